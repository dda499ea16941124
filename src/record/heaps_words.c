/* The words of a ring: stacks, definitions, records. Every one is hostile: kinds that do not exist are counted and skipped, lengths
 * are checked. */
#include "record/heaps.h"

#include "base/err.h"
#include "format/ringmem.h"

enum { MAX_DEPTH = 1 << 22 }; /* frames */

static inline uint64_t word_at(const struct heaps_feed *f, uint64_t n)
{
    return f->words[n & (RING_WORDS - 1)];
}

static void copy_payload(const struct heaps_feed *f, uint64_t first, size_t at, void *to,
                         size_t len)
{
    for (size_t i = 0; i < len; i++, at++)
        ((uint8_t *)to)[i] = (uint8_t)(word_at(f, first + at / 8) >> 8 * (at % 8));
}

static void *copy_text(const struct heaps_feed *f, uint64_t first, size_t *at, uint32_t len)
{
    char *text = malloc((size_t)len + 1);
    if (text) {
        copy_payload(f, first, *at, text, len);
        text[len] = 0;
    }
    *at += len;
    return text;
}

/* --- definitions ---
 *
 * A program that evaluates text makes new code again and again, which differs in nothing but its number: it is known by the
 * number of the first, or its stacks would fill the trie. */

uint32_t heaps_known_code(struct heaps *h, uint32_t number)
{
    uint32_t at;
    IDXMAP_FIND(&h->alias_map, hash_u64(number), i, h->aliases.data[i].id == number, at);
    return at == IDXMAP_NONE ? number : h->aliases.data[at].known;
}

/* A stack may have met the number before its definition came, by another ring. */
struct heaps_code *heaps_find_code(struct heaps *h, uint32_t number)
{
    uint32_t known = heaps_known_code(h, number), at;
    IDXMAP_FIND(&h->code_map, hash_u64(known), i, h->codes.data[i].id == known, at);
    return at == IDXMAP_NONE ? NULL : &h->codes.data[at];
}

static uint32_t hash_code(const struct remote_code *r)
{
    uint64_t texts =
        (uint64_t)hash_bytes(r->name, r->name_len) << 32 | hash_bytes(r->qualname, r->qualname_len);
    uint64_t rest =
        (uint64_t)hash_bytes(r->file, r->file_len) << 32 | hash_bytes(r->lines, r->lines_len);
    return hash_u64(texts ^ rest * 31 ^ r->first_line);
}

static bool same_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static bool same_code(const struct remote_code *a, const struct remote_code *b)
{
    return a->first_line == b->first_line && a->encoding == b->encoding &&
           same_bytes(a->name, a->name_len, b->name, b->name_len) &&
           same_bytes(a->qualname, a->qualname_len, b->qualname, b->qualname_len) &&
           same_bytes(a->file, a->file_len, b->file, b->file_len) &&
           same_bytes(a->lines, a->lines_len, b->lines, b->lines_len);
}

/* Is there one like it? Then the number means that one from now on, if there is memory to say so. */
static bool is_known(struct heaps *h, uint32_t number, const struct remote_code *r, uint32_t hash)
{
    uint32_t at;
    IDXMAP_FIND(&h->content_map, hash, i, same_code(&h->codes.data[i].code, r), at);
    struct heaps_alias *alias = at != IDXMAP_NONE ? vec_push(&h->aliases) : NULL;
    if (!alias)
        return false;
    *alias = (struct heaps_alias){number, h->codes.data[at].id};
    if (idxmap_insert(&h->alias_map, hash_u64(number), (uint32_t)h->aliases.len - 1) == 0)
        return true;
    h->aliases.len--;
    return false;
}

/* Takes the texts over. False: they are not wanted, or there is no memory. */
static bool add_code(struct heaps *h, uint32_t number, uint32_t pid, const struct remote_code *r)
{
    if (!r->name || !r->qualname || !r->file || !r->lines)
        return false;
    uint32_t hash = hash_code(r);
    if (is_known(h, number, r, hash))
        return false;
    struct heaps_code *code = vec_push(&h->codes);
    if (!code)
        return false;
    if (idxmap_insert(&h->code_map, hash_u64(number), (uint32_t)h->codes.len - 1) < 0) {
        h->codes.len--;
        return false;
    }
    (void)idxmap_insert(&h->content_map, hash,
                        (uint32_t)h->codes.len - 1); /* or it stays unknown */
    *code = (struct heaps_code){.id = number, .code = *r, .pid = pid};
    h->codes_new++;
    return true;
}

static void take_code(struct heaps *h, struct heaps_feed *f, uint64_t first, size_t bytes)
{
    struct ringmem_code c;
    static const enum pyl_lines encodings[] = {PYL_LINES_LNOTAB, PYL_LINES_PEP626,
                                               PYL_LINES_LOCATION};
    if (bytes < sizeof c) {
        f->nonsense++;
        return;
    }
    copy_payload(f, first, 0, &c, sizeof c);
    uint64_t texts = (uint64_t)c.name_len + c.qualname_len + c.file_len + c.lines_len;
    if (texts > bytes - sizeof c || c.id == 0 || c.id > RING_MAX_VALUE ||
        c.lines >= ARRAY_LEN(encodings)) {
        f->nonsense++;
        return;
    }
    if (heaps_find_code(h, c.id)) /* numbers are given once */
        return;
    size_t at = sizeof c;
    struct remote_code r = {.name_len = c.name_len,
                            .qualname_len = c.qualname_len,
                            .file_len = c.file_len,
                            .first_line = c.first_line,
                            .lines_len = c.lines_len,
                            .encoding = encodings[c.lines]};
    r.name = copy_text(f, first, &at, c.name_len);
    r.qualname = copy_text(f, first, &at, c.qualname_len);
    r.file = copy_text(f, first, &at, c.file_len);
    r.lines = copy_text(f, first, &at, c.lines_len);
    if (!add_code(h, c.id, f->owner.pid, &r)) {
        free(r.name);
        free(r.qualname);
        free(r.file);
        free(r.lines);
    }
}

static uint32_t top_of(const struct heaps_feed *f)
{
    return f->path.len ? f->path.data[f->path.len - 1] : 0;
}

static void push_frame(struct heaps *h, struct heaps_process *p, struct heaps_feed *f,
                       uint32_t number, int32_t offset)
{
    uint32_t code = h->aliases.len ? heaps_known_code(h, number) : number;
    uint32_t parent = top_of(f);
    uint32_t *place = f->path.len < MAX_DEPTH ? vec_push(&f->path) : NULL;
    if (!place) {
        f->nonsense++;
        return;
    }
    /* a frame of the interpreter itself takes a place, but is nobody's */
    *place = code ? heap_child(&p->heap, parent, code, offset) : parent;
}

static void move_frame(struct heaps_process *p, struct heaps_feed *f, int32_t offset)
{
    uint32_t top = top_of(f);
    if (!top) {
        f->nonsense++;
        return;
    }
    const struct heap_node *n = &p->heap.nodes.data[top];
    f->path.data[f->path.len - 1] = heap_child(&p->heap, n->parent, n->code, offset);
}

bool heaps_find_record(struct heaps *h, struct heaps_process *p, struct heaps_feed *f)
{
    while (f->tail < f->head) {
        uint64_t word = word_at(f, f->tail);
        switch ((enum ringmem_kind)(word & 15)) {
        case RINGMEM_ALLOC:
        case RINGMEM_MAP:
        case RINGMEM_UNMAP:
            if (f->head - f->tail < 2) {
                f->nonsense += f->complete; /* and the rest will not come any more */
                f->tail += f->complete;
                return false;
            }
            f->next_tick = f->tick + (word_at(f, f->tail + 1) >> RINGMEM_SIZE_LOW);
            return true;
        case RINGMEM_FREE:
            f->next_tick = f->tick + (word >> 49);
            return true;
        case RINGMEM_UNDO:
            f->next_tick = f->tick;
            return true;
        case RINGMEM_TIME:
            f->tick += word >> 4;
            break;
        case RINGMEM_KEEP:
            if (word >> 4 <= f->path.len)
                f->path.len = word >> 4;
            else
                f->nonsense++;
            break;
        case RINGMEM_PUSH:
            push_frame(h, p, f, (uint32_t)(word >> 4) & RING_MAX_VALUE, (int32_t)(word >> 32));
            break;
        case RINGMEM_MOVE:
            move_frame(p, f, (int32_t)(word >> 32));
            break;
        case RINGMEM_EXT: {
            uint32_t words = (uint32_t)(word >> 8) & 0xffffff;
            if (words > RING_MAX_PAYLOAD_WORDS || words >= f->head - f->tail) {
                f->nonsense++;
                f->tail = f->head;
                return false;
            }
            if ((word >> 4 & 15) == RINGMEM_EXT_MARK && words) {
                f->next_tick = max_u64(f->tick, word_at(f, f->tail + 1));
                return true;
            }
            if ((word >> 4 & 15) == RINGMEM_EXT_CODE)
                take_code(h, f, f->tail + 1, (size_t)words * 8);
            f->tail += words;
            break;
        }
        default:
            f->nonsense++;
            break;
        }
        f->tail++;
    }
    return false;
}

void heaps_take_record(struct heaps *h, struct heaps_process *p, struct heaps_feed *f,
                       const struct session_clock *clock)
{
    uint64_t word = word_at(f, f->tail), second = word_at(f, f->tail + 1);
    struct heap *heap = &p->heap;
    f->tick = f->next_tick;
    p->taken_tick = max_u64(p->taken_tick, f->tick);
    if (heap->log)
        heap->log_ns = heaps_ns(h, clock, f->tick);
    f->records++;
    f->tail += 2;
    uint64_t address = ringmem_block_address(word), size = ringmem_block_size(word, second);
    uint32_t allocator = (uint32_t)(word >> 4) & 31;
    switch ((enum ringmem_kind)(word & 15)) {
    case RINGMEM_ALLOC:
    case RINGMEM_MAP: {
        /* the first bytes are nobody's, and mean an empty place in the heap's tables */
        uint32_t site = allocator < RECORD_ALLOCATOR_COUNT && !heap->failed && address >> 3
                            ? heap_site(heap, top_of(f), f->number, allocator)
                            : UINT32_MAX;
        if (site == UINT32_MAX) {
            f->nonsense++;
        } else if ((word & 15) == RINGMEM_ALLOC) {
            heap_alloc(heap, site, address, size, f->tick);
            f->last_block = address >> 3;
        } else {
            heap_map(heap, site, address, size, f->tick);
            f->last_block = 0;
        }
        break;
    }
    case RINGMEM_UNMAP:
        heap_unmap(heap, address, size, f->tick);
        break;
    case RINGMEM_FREE: {
        f->tail--;
        address = word << 15 >> 19; /* bits 4 to 48 */
        /* of samples it is not known what was allocated in between */
        bool brief = address == f->last_block && !heap->interval;
        if (brief)
            f->last_block = 0; /* another thread's block may have its address next */
        heap_free(heap, address << 3, brief, &f->undo);
        break;
    }
    case RINGMEM_UNDO:
        f->tail--;
        if (f->undo.site != UINT32_MAX && f->undo.brief)
            f->last_block = f->undo.address >> 3;
        heap_undo(heap, &f->undo, f->tick);
        break;
    default: /* a mark: heaps_find_record() stops at nothing else */
        if (heaps_wants_mark(++p->marks, p->checkpoint_bytes, h->written_bytes))
            heaps_snapshot(h, p, RECORD_MEMORY_MARK, heaps_ns(h, clock, f->tick));
        f->tail += ((uint32_t)(word >> 8) & 0xffffff) - 1;
        break;
    }
}
