/* Which pieces of a thread's memory a look copies. See plan.h. */
#include "remote/plan.h"

#include "base/err.h"

#include <stdlib.h>

enum {
    STACK_MARGIN = 256,         /* bytes at least read above the last known top of the data stack */
    MAX_CHUNKS = 4096,          /* data-stack chunks of one thread */
    MAX_CHUNK_BYTES = 64 << 20, /* of one chunk */
    MAX_FRAME_GAP = 1024,       /* bytes between two frames that are read along */
    MAX_LOOSE = 64 << 10,       /* of one piece of such frames */
    MAX_SORTED = 1024,          /* pieces that are put in order, to be read with their neighbours */
    MAX_JOINED = 32 << 10,      /* of one region of several pieces */
    PAGE = 4096,
    MAX_SPARE = 1024,   /* pieces that a stack of no frames may have */
    MAX_KEPT = 64,      /* pieces of earlier stacks that are read along */
    KEEP_RENEWALS = 32, /* until as many other stacks have been believed, or samples given up */
    KEEP_STILL = 64,    /* or the stack was the same so often */
};

/* Bytes of a frame that the walk needs. */
uint32_t plan_frame_bytes(const struct pylayout *l)
{
    uint32_t end = l->frame.code + 8;
    if (l->frame.previous + 8 > end)
        end = l->frame.previous + 8;
    if (l->frame.instr + 8 > end)
        end = l->frame.instr + 8;
    if (l->frame.owner != PYL_NONE && l->frame.owner + 1 > end)
        end = l->frame.owner + 1;
    return (end + 7) & ~7u;
}

static bool covers(const struct region *g, uint64_t addr, uint32_t len)
{
    return addr >= g->addr && addr - g->addr + len <= g->len;
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
        if (covers(g, addr, len)) {
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
struct region *plan_find(struct thread *t, uint64_t addr, uint32_t len)
{
    if (t->in_order && t->regions.len && !covers(&t->regions.data[t->last_hit], addr, len))
        t->last_hit = nearest(&t->regions, addr);
    return find_of(t->regions.data, t->regions.len, &t->last_hit, addr, len);
}

/* A small region on the page of that word, if one of the two nearest is. */
struct region *plan_beside(struct thread *t, uint64_t addr)
{
    size_t at = t->in_order ? nearest(&t->regions, addr) : 0;
    for (size_t i = at; i < t->regions.len && i < at + 2; i++) {
        struct region *g = &t->regions.data[i];
        if (g->loose && g->addr / PAGE == addr / PAGE &&
            (g->addr + g->len - 1) / PAGE == addr / PAGE)
            return g;
    }
    return NULL;
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
    if (t->pieces.len && !vec_reserve(&t->regions, t->pieces.len))
        return E_NOMEM;
    for (size_t i = 0; i < t->pieces.len; i++)
        t->regions.data[t->regions.len++] = t->pieces.data[i];
    if (t->regions.len < 2 || t->regions.len > MAX_SORTED)
        return 0;
    qsort(t->regions.data, t->regions.len, sizeof *t->regions.data, by_address);
    size_t last = 0;
    for (size_t i = 1; i < t->regions.len; i++) {
        struct region *low = &t->regions.data[last], *high = &t->regions.data[i];
        if (can_join(low, high))
            low->len =
                (uint32_t)(max_u64(low->addr + low->len, high->addr + high->len) - low->addr);
        else
            t->regions.data[++last] = *high;
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

static int add_piece(struct thread *t, uint64_t addr, uint64_t len)
{
    struct region *g = vec_push(&t->pieces);
    if (!g)
        return E_NOMEM;
    *g = (struct region){.addr = addr, .len = (uint32_t)len};
    return 0;
}

/* Adds a frame outside of the chunks. Frames that were allocated one after the other lie side by
 * side: what is between two near ones is read along, since a range costs more than its bytes. */
static int add_frame(struct thread *t, uint64_t addr, uint32_t need)
{
    struct region *last = t->pieces.len ? &t->pieces.data[t->pieces.len - 1] : NULL;
    if (last && last->loose) {
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

/* Makes the plan cover the frame at `addr`: its chunk up to it, or the frame alone. */
static int cover(const struct remote *r, struct thread *t, uint64_t addr)
{
    const struct chunk *c = plan_chunk(t, addr);
    uint32_t need = plan_frame_bytes(&r->layout), lead = plan_frame_lead(&r->layout);
    if (!c)
        return add_frame(t, addr - lead, need + lead);
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
    t->kept = 0;                    /* no longer the last ones: until the next renewal */
    struct plan_circle circle = {0};
    if (need > sizeof bytes)
        return E_BADMEM;
    for (int i = 0; addr && i < REMOTE_MAX_FRAMES && !plan_is_circle(&circle, addr); i++) {
        if (plan_chunk(t, addr)) {
            /* a chunk holds many frames: the next look brings them all */
            return cover(r, t, addr);
        }
        int rc = mem_plausible(addr) ? mem_read(&r->mem, addr, bytes, need) : E_BADMEM;
        if (rc == E_BADMEM) {
            t->bad_addr = addr;
            return 0;
        }
        if (rc == 0)
            rc = cover(r, t, addr);
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
        int rc = cover(r, t, frame);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool is_covered(struct thread *t, const struct region *g)
{
    return find_piece(t, t->pieces.len, g->addr, g->len) != NULL;
}

int plan_renew(struct remote *r, struct thread *t)
{
    t->kept = 0;
    region_vec old = t->pieces;
    t->pieces = t->old_pieces;
    t->old_pieces = old;
    int rc = plan_accepted(r, t);
    size_t used = t->pieces.len;
    for (size_t i = 0; rc == 0 && i < old.len && t->pieces.len - used < MAX_KEPT; i++) {
        struct region g = old.data[i];
        if (!g.loose || ++g.idle > KEEP_RENEWALS || is_covered(t, &g))
            continue;
        struct region *kept = vec_push(&t->pieces);
        if (!kept)
            return E_NOMEM;
        *kept = g;
    }
    t->kept = t->pieces.len - used;
    t->still = 0;
    return rc < 0 ? rc : arrange(t);
}

int plan_held_still(struct thread *t)
{
    if (!t->kept || ++t->still <= KEEP_STILL)
        return 0;
    t->pieces.len -= t->kept;
    t->kept = 0;
    return arrange(t);
}

/* The pieces with these frames are needed. */
static void need_all(struct thread *t, const walked_vec *stack, uint32_t need)
{
    for (size_t i = 0; i < stack->len; i++) {
        struct region *g = find_piece(t, t->pieces.len, stack->data[i].frame, need);
        if (g)
            g->idle = 0;
    }
}

int plan_cut_back(const struct remote *r, struct thread *t)
{
    size_t n = t->pieces.len, left = 0;
    bool too_many = n > t->now.len + t->before.len + MAX_SPARE;
    for (size_t i = 0; i < n; i++)
        t->pieces.data[i].idle++;
    if (!too_many) {
        need_all(t, &t->now, plan_frame_bytes(&r->layout));
        need_all(t, &t->before, plan_frame_bytes(&r->layout));
    }
    for (size_t i = 0; i < n; i++) {
        struct region g = t->pieces.data[i];
        if (!too_many && (!g.loose || g.idle <= KEEP_RENEWALS))
            t->pieces.data[left++] = g;
    }
    if (left == n)
        return 0;
    t->pieces.len = left;
    t->kept = 0;
    return arrange(t);
}

int plan_drop(struct thread *t, size_t at)
{
    const struct region gone = t->regions.data[at];
    size_t left = 0;
    for (size_t i = 0; i < t->pieces.len; i++) {
        const struct region *g = &t->pieces.data[i];
        if (g->addr < gone.addr || g->addr >= gone.addr + gone.len)
            t->pieces.data[left++] = *g;
    }
    t->pieces.len = left;
    t->kept = 0;
    return arrange(t);
}
