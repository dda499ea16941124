/* Which pieces of a thread's memory a look copies. See plan.h. */
#include "remote/plan.h"

#include "base/err.h"
#include "remote/look.h"

#include <stdlib.h>
#include <string.h>

enum {
    STACK_MARGIN = 256,         /* bytes at least read above the last known top of the data stack */
    MAX_CHUNKS = 4096,          /* data-stack chunks of one thread */
    MAX_CHUNK_BYTES = 64 << 20, /* of one chunk */
    MAX_FRAME_GAP = 1024,       /* bytes between two frames that are read along */
    MAX_LOOSE = 64 << 10,       /* of one piece of such frames */
    MAX_SORTED = 1024,          /* pieces that are put in order, to be read with their neighbours */
    MAX_JOINED = 32 << 10,      /* of one region of several pieces */
    PAGE = 4096,
    MAX_SPARE = 8,       /* pieces that earlier stacks needed are read along, */
    MAX_SPARE_HEAP = 64, /* many, where whole stacks are in pieces, */
    KEEP_LOOKS = 64,     /* until so many looks did not need them */
    MAX_FRAME_BYTES = 1024,
    CFRAME_BYTES = 24, /* of the interpreter's C frame, its pointer among them */
};

/* Bytes of a frame that the walk needs. */
uint32_t plan_frame_bytes(const struct pylayout *l)
{
    uint32_t end = l->frame.code + 8;
    if (l->frame.previous + 8 > end)
        end = l->frame.previous + 8;
    if (l->frame.instr + 8 > end)
        end = l->frame.instr + 8;
    const uint32_t bytes[] = {l->frame.owner, l->frame.entry};
    for (size_t i = 0; i < ARRAY_LEN(bytes); i++)
        if (bytes[i] != PYL_NONE && bytes[i] + 1 > end)
            end = bytes[i] + 1;
    if (l->frame.stacktop != PYL_NONE && l->frame.stacktop + 4 > end)
        end = l->frame.stacktop + 4;
    return (end + 7) & ~7u;
}

/* Frames follow each other in one region, or region by region: the search begins at the last hit. */
static struct region *find_of(struct region *regions, size_t n, size_t *last_hit, uint64_t addr,
                              uint32_t len)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = *last_hit + i;
        if (at >= n)
            at -= n;
        struct region *g = &regions[at];
        if (plan_covers(g, addr, len)) {
            *last_hit = at;
            return g;
        }
    }
    return NULL;
}

/* The last of the regions, in order of address, that begins no later; the first if all do. */
static size_t nearest(const region_vec *regions, uint64_t addr)
{
    size_t low = 0, high = regions->len;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (regions->data[middle].addr <= addr)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Hundreds of frames of a deep stack are in as many regions, and one goes from each to any other. */
struct region *plan_search(struct thread *t, uint64_t addr, uint32_t len)
{
    if (t->in_order && t->regions.len && !plan_covers(&t->regions.data[t->last_hit], addr, len))
        t->last_hit = nearest(&t->regions, addr);
    return find_of(t->regions.data, t->regions.len, &t->last_hit, addr, len);
}

static struct region *find_piece(struct thread *t, size_t n, uint64_t addr, uint32_t len)
{
    return find_of(t->pieces.data, n, &t->last_piece, addr, len);
}

static int by_address(const void *a, const void *b)
{
    const struct region *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Can they be read as one? Then no page is touched that holds no piece: it might not be there. */
static bool can_join(const struct region *low, const struct region *high)
{
    uint64_t last_page = (low->addr + low->len - 1) / PAGE, next_page = high->addr / PAGE;
    return low->loose && high->loose && next_page <= last_page + 1 &&
           high->addr + high->len - low->addr <= MAX_JOINED;
}

/* What the next look reads, from the pieces. To the kernel a range costs as much as three pages, and
 * a look has to be quick: pieces on pages next to each other are read as one. */
static int arrange(struct thread *t)
{
    t->regions.len = 0;
    t->last_hit = t->last_piece = 0;
    t->in_order = false;
    if (!vec_reserve(&t->regions, t->pieces.len + ARRAY_LEN(t->cframes)))
        return E_NOMEM;
    for (size_t i = 0; i < t->pieces.len; i++)
        t->regions.data[t->regions.len++] = t->pieces.data[i];
    for (size_t i = 0; i < ARRAY_LEN(t->cframes) && t->cframes[i]; i++)
        t->regions.data[t->regions.len++] = (struct region){
            .addr = t->cframes[i], .len = CFRAME_BYTES, .loose = true, .pointers = true};
    if (t->regions.len < 2 || t->regions.len > MAX_SORTED)
        return 0;
    qsort(t->regions.data, t->regions.len, sizeof *t->regions.data, by_address);
    size_t last = 0;
    for (size_t i = 1; i < t->regions.len; i++) {
        struct region *low = &t->regions.data[last], *high = &t->regions.data[i];
        if (can_join(low, high)) {
            low->len =
                (uint32_t)(max_u64(low->addr + low->len, high->addr + high->len) - low->addr);
            low->pointers &= high->pointers;
            low->idle = (uint8_t)min_u64(low->idle, high->idle);
        } else {
            t->regions.data[++last] = *high;
        }
    }
    t->regions.len = last + 1;
    t->in_order = true;
    return 0;
}

const struct chunk *plan_chunk(const struct thread *t, uint64_t addr)
{
    for (size_t i = 0; i < t->chunks.len; i++)
        if (addr >= t->chunks.data[i].base &&
            addr - t->chunks.data[i].base < t->chunks.data[i].size)
            return &t->chunks.data[i];
    return NULL;
}

/* Reads the list of data-stack chunks anew. */
int plan_refresh_chunks(struct remote *r, struct thread *t, uint64_t newest)
{
    const struct pylayout *l = &r->layout;
    t->chunks.len = 0;
    uint8_t head[64];
    uint32_t head_bytes = l->chunk.data;
    if (head_bytes > sizeof head)
        return E_BADMEM;
    for (uint64_t at = newest; at && t->chunks.len < MAX_CHUNKS;) {
        int rc = mem_plausible(at) ? mem_read(&r->mem, at, head, head_bytes) : E_BADMEM;
        if (rc < 0)
            return rc == E_BADMEM ? 0 : rc;
        uint64_t size = field_u64(head, l->chunk.size);
        if (size < head_bytes || size > MAX_CHUNK_BYTES)
            return 0;
        struct chunk *c = vec_push(&t->chunks);
        if (!c)
            return E_NOMEM;
        *c = (struct chunk){at, size};
        at = field_u64(head, l->chunk.previous);
    }
    return 0;
}

uint64_t plan_root(const struct remote *r, const struct thread *t)
{
    return t->chunks.len ? t->chunks.data[t->chunks.len - 1].base + r->layout.chunk.data + 8 : 0;
}

static int add_piece(struct thread *t, uint64_t addr, uint64_t len)
{
    struct region *g = vec_push(&t->pieces);
    if (!g)
        return E_NOMEM;
    *g = (struct region){.addr = addr, .len = (uint32_t)len};
    return 0;
}

/* Adds a frame outside of the chunks. Frames that were allocated one after the other lie side by
 * side: what is between two near ones is read along, since a range costs more than its bytes. Not where the walk
 * asks the frames of generators one by one what they do. */
static int add_frame(struct thread *t, uint64_t addr, uint32_t need, bool single)
{
    struct region *last = t->pieces.len ? &t->pieces.data[t->pieces.len - 1] : NULL;
    if (last && last->loose && (!single || t->pieces.len >= MAX_SORTED)) {
        uint64_t begin = min_u64(last->addr, addr);
        uint64_t end = max_u64(last->addr + last->len, addr + need);
        if (end - begin <= (uint64_t)last->len + need + MAX_FRAME_GAP && end - begin <= MAX_LOOSE) {
            last->addr = begin;
            last->len = (uint32_t)(end - begin);
            return 0;
        }
    }
    int rc = add_piece(t, addr, need);
    if (rc == 0)
        t->pieces.data[t->pieces.len - 1].loose = true;
    return rc;
}

/* What a frame outside of the data stack takes with all that it has at hand. */
static uint32_t all_bytes(const struct remote *r, uint64_t code)
{
    uint32_t need = plan_frame_bytes(&r->layout), entry;
    if (!plan_frame_lead(&r->layout) || !codes_find(r, code, &entry))
        return need;
    return (uint32_t)max_u64(need, min_u64(codes_frame_bytes(r, entry), MAX_FRAME_BYTES));
}

/* Makes the plan cover the frame at `addr`: its chunk up to it, or the frame alone. */
static int cover(const struct remote *r, struct thread *t, uint64_t addr, uint64_t code)
{
    const struct chunk *c = plan_chunk(t, addr);
    uint32_t need = plan_frame_bytes(&r->layout), lead = plan_frame_lead(&r->layout);
    if (!c)
        return add_frame(t, addr - lead, lead + all_bytes(r, code), lead > 0);
    /* up to the end of the page: bytes cost little, another page as much as two thousand of them, and a
     * stack that has grown beyond what was read a look more */
    uint64_t end = (addr + need + STACK_MARGIN + PAGE - 1) / PAGE * PAGE;
    uint64_t len = min_u64(end - c->base, c->size);
    for (size_t i = 0; i < t->pieces.len; i++) {
        struct region *g = &t->pieces.data[i];
        if (g->addr == c->base) {
            if (g->len < len)
                g->len = (uint32_t)len;
            return 0;
        }
    }
    return add_piece(t, c->base, len);
}

static int chase(struct remote *r, struct thread *t, uint64_t addr)
{
    const struct pylayout *l = &r->layout;
    uint32_t need = plan_frame_bytes(l);
    uint8_t bytes[128];
    size_t planned = t->pieces.len; /* those added below cannot be met again */
    struct plan_circle circle = {0};
    if (need > sizeof bytes)
        return E_BADMEM;
    for (int i = 0; addr && i < REMOTE_MAX_FRAMES && !plan_is_circle(&circle, addr); i++) {
        if (plan_chunk(t, addr)) {
            /* a chunk holds many frames: the next look brings them all */
            return cover(r, t, addr, 0);
        }
        int rc = mem_plausible(addr) ? mem_read(&r->mem, addr, bytes, need) : E_BADMEM;
        if (rc == E_BADMEM) {
            t->bad_addr = addr;
            return 0;
        }
        struct walked w;
        if (rc == 0) {
            look_read_frame(l, bytes, &w);
            t->drawn_code = t->drawn_code ? t->drawn_code : w.code;
            rc = cover(r, t, addr, w.code);
        }
        if (rc < 0)
            return rc;
        addr = field_u64(bytes, l->frame.previous);
        if (find_piece(t, planned, addr, need))
            return 0;
    }
    return 0;
}

int plan_chase(struct remote *r, struct thread *t, uint64_t addr)
{
    int rc = chase(r, t, addr);
    return rc < 0 ? rc : arrange(t);
}

/* What the accepted walk used, in the order of use. */
static int plan_accepted(struct remote *r, struct thread *t)
{
    uint32_t need = plan_frame_bytes(&r->layout);
    t->pieces.len = 0;
    t->last_piece = 0;
    for (size_t i = 0; i < t->accepted.len; i++) {
        uint64_t frame = t->accepted.data[i].frame;
        if (t->accepted.data[i].code == WALKED_UNREADABLE)
            break;
        if (plan_chunk(t, frame) &&
            find_piece(t, t->pieces.len, frame, need)) /* its chunk is planned already */
            continue;
        int rc = cover(r, t, frame, t->accepted.data[i].code);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool is_covered(struct thread *t, const struct region *g)
{
    return find_piece(t, t->pieces.len, g->addr, g->len) != NULL;
}

/* The oldest that may still be kept, if there are too many. */
static uint8_t oldest_kept(const struct remote *r, const region_vec *pieces)
{
    unsigned most = has_data_stack(r) ? MAX_SPARE : MAX_SPARE_HEAP;
    unsigned of_age[KEEP_LOOKS + 1] = {0}, spare = 0;
    for (size_t i = 0; i < pieces->len; i++)
        if (pieces->data[i].idle <= KEEP_LOOKS)
            of_age[pieces->data[i].idle]++;
    uint8_t age = 0;
    while (age < KEEP_LOOKS && (spare += of_age[age + 1]) <= most)
        age++;
    return age;
}

int plan_renew(struct remote *r, struct thread *t)
{
    region_vec old = t->pieces;
    t->pieces = t->old_pieces;
    t->old_pieces = old;
    int rc = plan_accepted(r, t);
    size_t used = t->pieces.len;
    uint8_t oldest = oldest_kept(r, &old);
    for (size_t i = 0; rc == 0 && i < old.len; i++) {
        const struct region *g = &old.data[i];
        if (!g->loose || g->idle > oldest || is_covered(t, g))
            continue;
        struct region *kept = vec_push(&t->pieces);
        if (!kept)
            return E_NOMEM;
        *kept = *g;
    }
    t->spare = t->pieces.len - used;
    return rc < 0 ? rc : arrange(t);
}

/* Of the pieces, or regions, some are needed by the walk in t->now, and the others are not. */
static void age(struct thread *t, region_vec *list, size_t *last_hit, uint32_t need)
{
    for (size_t i = 0; i < list->len; i++)
        list->data[i].idle += list->data[i].loose && list->data[i].idle < UINT8_MAX;
    for (size_t i = 0; i < t->now.len; i++) {
        uint64_t frame = t->now.data[i].frame;
        struct region *g =
            plan_chunk(t, frame) ? NULL : find_of(list->data, list->len, last_hit, frame, need);
        if (g)
            g->idle = 0;
    }
}

/* Frames that were met before their code was are covered in whole now. */
static bool widen(const struct remote *r, struct thread *t)
{
    bool wider = false;
    for (size_t i = 0; i < t->now.len; i++) {
        const struct walked *w = &t->now.data[i];
        uint32_t all = all_bytes(r, w->code);
        struct region *g = plan_chunk(t, w->frame) ? NULL
                                                   : find_piece(t, t->pieces.len, w->frame,
                                                                plan_frame_bytes(&r->layout));
        if (g && !plan_covers(g, w->frame, all)) {
            g->len = (uint32_t)(w->frame + all - g->addr);
            wider = true;
        }
    }
    return wider;
}

int plan_age(const struct remote *r, struct thread *t)
{
    uint32_t need = plan_frame_bytes(&r->layout);
    size_t left = 0, n = t->pieces.len;
    age(t, &t->pieces, &t->last_piece, need);
    age(t, &t->regions, &t->last_hit, need);
    bool wider = widen(r, t);
    t->spare = 0;
    uint8_t oldest = oldest_kept(r, &t->pieces);
    for (size_t i = 0; i < n; i++) {
        struct region g = t->pieces.data[i];
        if (g.idle > oldest)
            continue;
        t->spare += g.idle > 0;
        t->pieces.data[left++] = g;
    }
    t->pieces.len = left;
    return left == n && !wider ? 0 : arrange(t);
}

static size_t place_of_cframe(const struct thread *t, uint64_t cframe)
{
    size_t at = 0;
    while (at < ARRAY_LEN(t->cframes) && t->cframes[at] != cframe)
        at++;
    return at;
}

/* Which is the first then; the one at that place makes room. */
static void put_cframe_first(struct thread *t, size_t place, uint64_t cframe)
{
    memmove(t->cframes + 1, t->cframes, place * sizeof *t->cframes);
    t->cframes[0] = cframe;
}

void plan_touch_cframe(struct thread *t, uint64_t cframe)
{
    size_t at = place_of_cframe(t, cframe);
    if (at < ARRAY_LEN(t->cframes))
        put_cframe_first(t, at, cframe);
}

int plan_note_cframe(struct thread *t, uint64_t cframe)
{
    put_cframe_first(t, min_u64(place_of_cframe(t, cframe), ARRAY_LEN(t->cframes) - 1), cframe);
    return arrange(t);
}

static bool is_within(const struct region *g, uint64_t addr)
{
    return addr >= g->addr && addr - g->addr < g->len;
}

int plan_drop(struct thread *t, size_t at)
{
    const struct region gone = t->regions.data[at];
    size_t left = 0, kept = 0;
    for (size_t i = 0; i < ARRAY_LEN(t->cframes); i++) {
        uint64_t cframe = t->cframes[i];
        t->cframes[i] = 0;
        if (cframe && !is_within(&gone, cframe))
            t->cframes[kept++] = cframe;
    }
    for (size_t i = 0; i < t->pieces.len; i++) {
        const struct region *g = &t->pieces.data[i];
        if (!is_within(&gone, g->addr))
            t->pieces.data[left++] = *g;
    }
    t->pieces.len = left;
    return arrange(t);
}
