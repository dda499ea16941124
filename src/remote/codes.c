/* Code objects by address, and the doubt about them.
 *
 * A code object's names cost many reads, so they are remembered by address. But an address is not an
 * identity: code made by exec() dies young and its memory is used again at once. So an entry carries
 * a print of the fields that identify it, and the print is checked against the target before the
 * names are used: always while the entry is young, now and then once it has proved to last.
 *
 * It is checked after the looks that are believed, and what was remembered before them and is there after
 * them was there all the time: from 3.12 on a code object has a number that no other one ever gets. Below, one that looks just the
 * same could have died and been born again meanwhile with another one in between; there the check of a
 * young one must not come late. */
#include "base/clock.h"
#include "base/err.h"
#include "remote/known.h"

#include <string.h>

enum {
    MAX_NAME_BYTES = 64 << 10,
    MAX_LINE_TABLE_BYTES = 8 << 20,
    YOUNG_CHECKS = 64, /* an entry confirmed less often is checked at every sample */
    BATCH_CHECKS = 64, /* code objects checked in one read */
    CODE_RANGES = 2,   /* that a check reads at most: the code object, and the hash of its name */
    CODE_CHECK_BYTES = 256,
    MAX_GAP = 2048,         /* bytes that are read along, */
    MAX_BETWEEN = 16 << 10, /* in one read */
    MAX_AT_HAND = 4096,     /* names, or constants */
    MAX_TEXTS_AT_HAND = 256,
    MAX_CLASS_BYTES = 256, /* of a class's name */
    NAME_CHECK_BYTES = 8,
    LINE_MEMO_SLOTS = 8192,
};
#define REBIRTH_NS                                                                                 \
    (50 * NS_PER_US) /* nothing dies and is there again as it was, with another between, in less */
#define YOUNG_NS              NS_PER_SEC /* or that was met less long ago */
#define OLD_CHECK_INTERVAL_NS (10 * NS_PER_MS)

/* What one read checks. A range costs as much as some thousand bytes, and code objects that were made together lie together: so what is
 * near is read along. */
struct batch {
    size_t count, pieces_count, ranges_count;
    uint32_t entry[BATCH_CHECKS];
    struct piece {
        uint64_t addr;
        uint32_t len;
        uint32_t at;                           /* in `bytes` */
    } pieces[BATCH_CHECKS * CODE_RANGES];      /* of the entries, one after the other, */
    uint8_t order[BATCH_CHECKS * CODE_RANGES]; /* and by address */
    uint32_t len;                              /* of all ranges */
    struct iovec ranges[BATCH_CHECKS * CODE_RANGES];
    uint8_t bytes[BATCH_CHECKS * (CODE_CHECK_BYTES + NAME_CHECK_BYTES) + MAX_BETWEEN];
};

struct line_memo {
    struct {
        uint32_t code;
        int32_t line;
        int64_t offset;
    } slot[LINE_MEMO_SLOTS];
};

static size_t window_bytes(const struct remote *r)
{
    return min_u64(r->layout.code.size, CODE_CHECK_BYTES);
}

static uint32_t optional_u32(const uint8_t *p, uint32_t offset)
{
    return offset == PYL_NONE ? 0 : field_u32(p, offset);
}

static uint64_t optional_u64(const uint8_t *p, uint32_t offset)
{
    return offset == PYL_NONE ? 0 : field_u64(p, offset);
}

/* The print out of a copied code object, all but the name's hash. */
static void take_print(const struct remote *r, const uint8_t *p, struct code_print *ret)
{
    const struct pylayout *l = &r->layout;
    *ret = (struct code_print){
        .type = field_u64(p, l->object.ob_type),
        .name = field_u64(p, l->code.name),
        .qualname = optional_u64(p, l->code.qualname),
        .file = field_u64(p, l->code.filename),
        .lines = field_u64(p, l->code.linetable),
        .bytecode = optional_u64(p, l->code.code),
        .first_line = field_u32(p, l->code.firstlineno),
        .argcount = field_u32(p, l->code.argcount),
        .nlocals = optional_u32(p, l->code.nlocals),
        .flags = field_u32(p, l->code.flags),
        .version = optional_u32(p, l->code.version),
    };
    if (l->code.code_adaptive == PYL_NONE)
        return;
    ret->units = field_u32(p, l->tuple.ob_size); /* a code object is of variable size, too */
    ret->frame_words = l->code.framesize != PYL_NONE ? field_u32(p, l->code.framesize)
                                                     : l->frame.localsplus / 8 + ret->nlocals +
                                                           field_u32(p, l->code.stacksize);
}

/* Is the hash of its name a part of the print? */
static bool wants_name(const struct code_print *print)
{
    return !print->version;
}

static uint64_t name_hash_addr(const struct remote *r, uint64_t name)
{
    return name + r->layout.unicode.length + 8; /* PyASCIIObject.hash follows the length */
}

static void code_free(struct remote_code *c)
{
    if (!c)
        return;
    free(c->name);
    free(c->qualname);
    free(c->file);
    free(c->lines);
    free(c);
}

/* Below 3.10 an empty table is one, too: that of code which is all on its first line. */
static void read_line_table(const struct remote *r, uint64_t addr, struct remote_code *c)
{
    uint64_t len = 0;
    if (!mem_plausible(addr) || mem_read_ptr(&r->mem, addr + r->layout.bytes.ob_size, &len) < 0 ||
        len > MAX_LINE_TABLE_BYTES)
        return;
    uint8_t *table = malloc(len + 1);
    if (table && (!len || mem_read(&r->mem, addr + r->layout.bytes.ob_sval, table, len) == 0)) {
        c->lines = table;
        c->lines_len = (uint32_t)len;
    } else {
        free(table);
    }
}

static char *empty_text(void)
{
    return calloc(1, 1);
}

/* Reads everything a report needs of a code object. E_BADMEM if it is none. */
static int read_code(const struct remote *r, uint64_t addr, struct code_print *ret_print,
                     struct remote_code **ret)
{
    uint8_t window[CODE_CHECK_BYTES];
    if (!mem_plausible(addr))
        return E_BADMEM;
    int rc = mem_read(&r->mem, addr, window, window_bytes(r));
    if (rc < 0)
        return rc;
    struct code_print print;
    take_print(r, window, &print);
    if ((r->code_type && print.type != r->code_type) || !mem_plausible(print.name))
        return E_BADMEM;
    if (wants_name(&print)) {
        rc = mem_read(&r->mem, name_hash_addr(r, print.name), &print.name_hash, NAME_CHECK_BYTES);
        if (rc < 0)
            return rc;
    }

    struct remote_code *c = calloc(1, sizeof *c);
    if (!c)
        return E_NOMEM;
    c->first_line = print.first_line;
    c->encoding = r->layout.lines;
    c->name = object_read_text(r, print.name, MAX_NAME_BYTES, &c->name_len);
    c->file = object_read_text(r, print.file, MAX_NAME_BYTES, &c->file_len);
    if (print.qualname)
        c->qualname = object_read_text(r, print.qualname, MAX_NAME_BYTES, &c->qualname_len);
    if (!c->qualname)
        c->qualname = empty_text();
    if (!c->file)
        c->file = empty_text();
    if (!c->name || !c->file || !c->qualname) {
        code_free(c);
        return E_BADMEM;
    }
    read_line_table(r, print.lines, c);
    *ret_print = print;
    *ret = c;
    return 0;
}

/* Reads the object at an entry's address and gives it a fresh index. */
static int fill_entry(struct remote *r, struct code_entry *e, uint64_t now_ns)
{
    struct remote_code *c = NULL;
    struct code_print print;
    int rc = read_code(r, e->addr, &print, &c);
    if (rc < 0)
        return rc;
    struct remote_code **slot = vec_push(&r->codes);
    if (!slot) {
        code_free(c);
        return E_NOMEM;
    }
    *slot = c;
    e->print = print;
    e->index = (uint32_t)r->codes.len - 1;
    e->confirmed = 0;
    e->called = e->at_hand_of = 0;
    e->owed = 0;
    e->confirmed_ns = e->met_ns = now_ns ? now_ns : clock_mono_ns();
    return 0;
}

int codes_lookup(struct remote *r, uint64_t addr, uint64_t now_ns, uint32_t *ret_entry)
{
    uint32_t hash = hash_u64(addr), at;
    IDXMAP_FIND(&r->entry_map, hash, i, r->entries.data[i].addr == addr, at);
    if (at == IDXMAP_NONE) {
        struct code_entry fresh = {.addr = addr};
        if (!r->code_memo)
            r->code_memo = calloc(CODE_MEMO_SLOTS, sizeof *r->code_memo);
        int rc = fill_entry(r, &fresh, now_ns);
        if (rc < 0)
            return rc;
        at = (uint32_t)r->entries.len;
        struct code_entry *e = vec_push(&r->entries);
        if (!e || idxmap_insert(&r->entry_map, hash, at) < 0)
            return E_NOMEM;
        *e = fresh;
    } else if (r->entries.data[at].index == UINT32_MAX) { /* found changed: read anew */
        int rc = fill_entry(r, &r->entries.data[at], now_ns);
        if (rc < 0)
            return rc;
    }
    *ret_entry = at;
    return 0;
}

static size_t memo_slot(uint64_t addr)
{
    return (addr >> 4 ^ addr >> 13) % CODE_MEMO_SLOTS;
}

static struct code_memo find_entry(const struct remote *r, uint64_t addr)
{
    struct code_memo *m = r->code_memo ? &r->code_memo[memo_slot(addr)] : NULL;
    if (m && m->addr == addr)
        return *m;
    uint32_t at;
    IDXMAP_FIND(&r->entry_map, hash_u64(addr), i, r->entries.data[i].addr == addr, at);
    if (at == IDXMAP_NONE || r->entries.data[at].index == UINT32_MAX)
        return (struct code_memo){0};
    struct code_memo found = {addr, at, r->entries.data[at].index};
    if (m)
        *m = found;
    return found;
}

bool codes_find(const struct remote *r, uint64_t addr, uint32_t *ret_entry)
{
    const struct code_memo found = addr ? find_entry(r, addr) : (struct code_memo){0};
    *ret_entry = found.entry;
    return found.addr != 0;
}

uint64_t codes_identity(const struct remote *r, uint64_t addr)
{
    const struct code_memo found = addr ? find_entry(r, addr) : (struct code_memo){0};
    return found.addr ? found.index + 1ull : 0;
}

static bool is_young(const struct code_entry *e, uint64_t now_ns)
{
    return e->confirmed < YOUNG_CHECKS || now_ns - e->met_ns < YOUNG_NS;
}

static bool due(const struct code_entry *e, uint64_t now_ns)
{
    return is_young(e, now_ns) || now_ns - e->confirmed_ns > OLD_CHECK_INTERVAL_NS;
}

uint64_t codes_next_check(const struct remote *r, const walked_vec *stack, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < stack->len; i++) {
        uint64_t addr = stack->data[i].code;
        if (addr == WALKED_SHIM || addr == WALKED_UNREADABLE)
            continue;
        uint32_t at;
        if (!codes_find(r, addr, &at) || is_young(&r->entries.data[at], now_ns))
            return 0;
        next = min_u64(next, r->entries.data[at].confirmed_ns + OLD_CHECK_INTERVAL_NS);
    }
    return next;
}

/* Which code objects of the frames from *at on are to be checked now: at most BATCH_CHECKS, and then
 * *at is where to go on. */
static void plan_batch(struct remote *r, const walked_vec *stack, uint64_t now_ns, size_t *at,
                       struct batch *batch)
{
    batch->count = batch->pieces_count = 0;
    for (; *at < stack->len && batch->count < BATCH_CHECKS; ++*at) {
        uint64_t addr = stack->data[*at].code;
        uint32_t entry;
        if (addr == WALKED_SHIM || addr == WALKED_UNREADABLE || !codes_find(r, addr, &entry))
            continue;
        struct code_entry *e = &r->entries.data[entry];
        if (!due(e, now_ns) || e->asked == r->checks) /* recursion: once will do */
            continue;
        e->asked = r->checks;
        batch->entry[batch->count++] = entry;
        batch->pieces[batch->pieces_count++] = (struct piece){.addr = addr, .len = window_bytes(r)};
        if (wants_name(&e->print))
            batch->pieces[batch->pieces_count++] =
                (struct piece){.addr = name_hash_addr(r, e->print.name), .len = NAME_CHECK_BYTES};
    }
}

/* Their order by address, or as they come. Nearly all come in order, or in the reverse of it. */
static void order_batch(struct batch *b, bool by_address)
{
    for (size_t i = 0; i < b->pieces_count; i++) {
        size_t at = i;
        for (; by_address && at && b->pieces[b->order[at - 1]].addr > b->pieces[i].addr; at--)
            b->order[at] = b->order[at - 1];
        b->order[at] = (uint8_t)i;
    }
}

/* Puts the ranges of a read together. */
static void range_batch(struct batch *b, bool together)
{
    uint32_t between = 0;
    order_batch(b, together);
    b->ranges_count = b->len = 0;
    for (size_t i = 0; i < b->pieces_count; i++) {
        struct piece *p = &b->pieces[b->order[i]];
        struct iovec *last = b->ranges_count ? &b->ranges[b->ranges_count - 1] : NULL;
        uint64_t end = last ? (uint64_t)(uintptr_t)last->iov_base + last->iov_len : 0;
        uint64_t gap = p->addr - end; /* huge where they overlap */
        if (together && last && gap <= MAX_GAP && between + gap <= MAX_BETWEEN) {
            between += (uint32_t)gap;
            last->iov_len += gap + p->len;
            b->len += (uint32_t)gap;
        } else {
            b->ranges[b->ranges_count++] = (struct iovec){(void *)(uintptr_t)p->addr, p->len};
        }
        p->at = b->len;
        b->len += p->len;
    }
}

static void release_at_hand(struct code_entry *e)
{
    free(e->at_hand);
    free(e->at_hand_texts);
    e->at_hand = e->at_hand_texts = NULL;
    e->at_hand_len = 0;
    e->at_hand_read = false;
}

static void forget(struct remote *r, struct code_entry *e)
{
    /* frames of earlier samples were resolved by their reader: nobody asks for this one again */
    code_free(r->codes.data[e->index]);
    r->codes.data[e->index] = NULL;
    e->index = UINT32_MAX;
    if (r->code_memo)
        r->code_memo[memo_slot(e->addr)].addr = 0;
    release_at_hand(e);
}

static bool judge_batch(struct remote *r, const struct batch *batch, size_t got, uint64_t now_ns)
{
    bool all_good = true;
    const struct piece *piece = batch->pieces;
    for (size_t i = 0; i < batch->count; i++) {
        struct code_entry *e = &r->entries.data[batch->entry[i]];
        const struct piece *window = piece++, *name = wants_name(&e->print) ? piece++ : NULL;
        const struct piece *last = name ? name : window;
        struct code_print print = {0};
        bool is_there = last->at + last->len <= got && window->at + window->len <= got;
        if (is_there) {
            take_print(r, batch->bytes + window->at, &print);
            if (name)
                print.name_hash = field_u64(batch->bytes + name->at, 0);
        }
        if (is_there && memcmp(&print, &e->print, sizeof print) == 0) {
            e->confirmed += e->confirmed_ns != now_ns; /* a sample counts once */
            e->confirmed_ns = now_ns;
        } else {
            forget(r, e);
            all_good = false;
        }
        if (!is_there) /* the kernel reads no further: of the others nothing is known */
            break;
    }
    return all_good;
}

bool codes_check(struct remote *r, const walked_vec *stack, uint64_t now_ns)
{
    bool all_good = true;
    struct batch batch;
    r->checks++;
    for (size_t at = 0; at < stack->len;) {
        plan_batch(r, stack, now_ns, &at, &batch);
        if (!batch.count)
            break;
        ssize_t got = -1;
        for (int together = 1; together >= 0;
             together--) { /* or one by one, if something is not there */
            range_batch(&batch, together);
            got = mem_read_ranges(&r->mem, batch.bytes, batch.ranges, batch.ranges_count);
            if (got < 0)
                return false;
            if ((size_t)got == batch.len)
                break;
        }
        all_good &= judge_batch(r, &batch, (size_t)got, now_ns);
    }
    return all_good;
}

enum codes_verdict codes_confirm(struct remote *r, const walked_vec *stack, bool allowed,
                                 uint64_t look_ns, uint64_t now_ns)
{
    bool hurry = false; /* one of them may have died and been born again */
    for (size_t i = 0; i < stack->len; i++) {
        uint32_t entry;
        if (codes_find(r, stack->data[i].code, &entry)) {
            const struct code_entry *e = &r->entries.data[entry];
            hurry |= wants_name(&e->print) && is_young(e, now_ns);
        } else if (stack->data[i].code != WALKED_SHIM && !allowed) {
            return CODES_NO;
        }
    }
    if (!codes_check(r, stack, now_ns))
        return CODES_NO;
    return hurry && clock_mono_ns() - look_ns >= REBIRTH_NS ? CODES_LATE : CODES_YES;
}

bool codes_has_place(const struct remote *r, uint32_t entry, int64_t instr)
{
    const struct code_entry *e = &r->entries.data[entry];
    int64_t first = (int64_t)(e->addr + r->layout.code.code_adaptive);
    int64_t fresh = r->layout.instr == PYL_INSTR_PREV_PTR ? first - 2 : first;
    return instr >= fresh && instr < first + 2 * (int64_t)e->print.units;
}

/* Adds the addresses in a tuple. */
static void add_items(const struct remote *r, uint64_t tuple, struct code_entry *e)
{
    uint64_t len;
    if (!mem_plausible(tuple) || mem_read_ptr(&r->mem, tuple + r->layout.tuple.ob_size, &len) < 0 ||
        !len || len > MAX_AT_HAND)
        return;
    uint64_t *grown = realloc(e->at_hand, (e->at_hand_len + len) * sizeof *grown);
    if (!grown)
        return;
    e->at_hand = grown;
    if (mem_read(&r->mem, tuple + r->layout.tuple.ob_item, grown + e->at_hand_len,
                 len * sizeof *grown) == 0)
        e->at_hand_len += len;
}

static void read_at_hand(const struct remote *r, struct code_entry *e)
{
    uint8_t window[CODE_CHECK_BYTES];
    e->at_hand_read = true;
    if (mem_read(&r->mem, e->addr, window, window_bytes(r)) < 0)
        return;
    add_items(r, field_u64(window, r->layout.code.names), e);
    add_items(r, field_u64(window, r->layout.code.consts), e);
    add_items(r, field_u64(window, r->layout.code.localsplusnames), e);
}

static uint64_t text_hash(const char *text, size_t len)
{
    return hash_bytes(text, len) | 1ull << 32; /* 0: no text */
}

static void read_texts_at_hand(const struct remote *r, struct code_entry *e)
{
    e->at_hand_texts = calloc(e->at_hand_len, sizeof *e->at_hand_texts);
    for (size_t i = 0; e->at_hand_texts && i < min_u64(e->at_hand_len, MAX_TEXTS_AT_HAND); i++) {
        _cleanup_free_ char *text = object_read_str(r, e->at_hand[i], MAX_CLASS_BYTES);
        if (text)
            e->at_hand_texts[i] = text_hash(text, strlen(text));
    }
}

/* The class that a method named __so__ belongs to, by its qualified name: NULL if it is no such method. */
static const char *class_of(const struct remote_code *c, size_t *ret_len)
{
    const char *dot = strncmp(c->name, "__", 2) == 0 ? strrchr(c->qualname, '.') : NULL;
    const char *begin = dot;
    while (begin && begin > c->qualname && begin[-1] != '.')
        begin--;
    *ret_len = dot ? (size_t)(dot - begin) : 0;
    return begin;
}

/* Does it name the class? To call that is to call its __init__ and the like. */
static bool names_class(const struct remote *r, struct code_entry *e,
                        const struct remote_code *callee)
{
    size_t len;
    const char *class = class_of(callee, &len);
    if (!class || !len || len > MAX_CLASS_BYTES || !e->at_hand_len)
        return false;
    if (!e->at_hand_texts)
        read_texts_at_hand(r, e);
    for (size_t i = 0; e->at_hand_texts && i < e->at_hand_len; i++)
        if (e->at_hand_texts[i] == text_hash(class, len))
            return true;
    return false;
}

bool codes_names(struct remote *r, uint32_t caller, uint32_t callee)
{
    struct code_entry *e = &r->entries.data[caller];
    const struct code_entry *other = &r->entries.data[callee];
    if (!e->at_hand_read)
        read_at_hand(r, e);
    for (size_t i = 0; i < e->at_hand_len; i++)
        if (e->at_hand[i] == other->print.name || e->at_hand[i] == other->addr)
            return true;
    return names_class(r, e, r->codes.data[other->index]);
}

/* From 3.12 on a call of a class that was met before leaves a frame between the caller and the class's __init__. Its code object has
 * one name for all, and begins nowhere: Python's own tracebacks do not show it. */
bool codes_is_inner(const struct remote *r, uint32_t entry)
{
    const struct code_print *p = &r->entries.data[entry].print;
    return p->first_line == 0 && p->name == p->file && p->name == p->qualname;
}

bool codes_suspends(const struct remote *r, uint32_t entry)
{
    enum { CO_GENERATOR = 0x20, CO_COROUTINE = 0x80, CO_ASYNC_GENERATOR = 0x200 };
    return r->entries.data[entry].print.flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
}

bool codes_is_generator(struct remote *r, uint64_t addr)
{
    uint32_t entry;
    return codes_lookup(r, addr, 0, &entry) == 0 && codes_suspends(r, entry);
}

int64_t codes_offset(const struct remote *r, uint32_t entry, int64_t instr)
{
    const struct code_entry *e = &r->entries.data[entry];
    switch (r->layout.instr) {
    case PYL_INSTR_BYTE_INDEX:
        return instr;
    case PYL_INSTR_UNIT_INDEX:
        return instr * 2;
    case PYL_INSTR_PREV_PTR:
    case PYL_INSTR_NEXT_PTR:
        return instr - (int64_t)(e->addr + r->layout.code.code_adaptive);
    }
    return -1;
}

int32_t codes_line(struct remote *r, uint32_t entry, int64_t instr)
{
    const struct code_entry *e = &r->entries.data[entry];
    int64_t offset = codes_offset(r, entry, instr);
    if (!r->memo && !(r->memo = calloc(1, sizeof *r->memo)))
        return 0;
    uint32_t at = hash_u64((uint64_t)offset << 32 ^ e->index) % LINE_MEMO_SLOTS;
    if (r->memo->slot[at].code != e->index + 1 || r->memo->slot[at].offset != offset) {
        r->memo->slot[at].code = e->index + 1; /* 0 marks an empty slot */
        r->memo->slot[at].offset = offset;
        r->memo->slot[at].line = remote_code_line(r->codes.data[e->index], offset);
    }
    return r->memo->slot[at].line;
}

size_t remote_code_count(const struct remote *r)
{
    return r->codes.len;
}

const struct remote_code *remote_code(const struct remote *r, uint32_t index)
{
    return r->codes.data[index];
}

void codes_release(struct remote *r)
{
    for (size_t i = 0; i < r->codes.len; i++)
        code_free(r->codes.data[i]);
    vec_release(&r->codes);
    for (size_t i = 0; i < r->entries.len; i++)
        release_at_hand(&r->entries.data[i]);
    vec_release(&r->entries);
    idxmap_release(&r->entry_map);
    edges_release(&r->edges);
    known_release(r);
    free(r->memo);
    free(r->code_memo);
}
