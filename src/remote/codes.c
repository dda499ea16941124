/* Code objects by address, and the doubt about them.
 *
 * A code object's names cost many reads, so they are remembered by address. But an address is not an
 * identity: code made by exec() dies young and its memory is used again at once. So an entry carries
 * a print of the fields that identify it, and the print is checked against the target before the
 * names are used: always while the entry is young, now and then once it has proved to last. A frame
 * keeps its code alive, so what was checked between two looks that show the same frame is what it
 * runs; and so is what was checked shortly before them and again after them, with the same result.
 * The second way leaves the looks close together: a check takes longer than several looks, and a
 * stack that moves is not there any more after it. */
#include "base/clock.h"
#include "base/err.h"
#include "remote/known.h"
#include "remote/sites.h"

#include <string.h>

enum {
    MAX_NAME_BYTES = 64 << 10,
    MAX_LINE_TABLE_BYTES = 8 << 20,
    YOUNG_CHECKS = 64, /* an entry confirmed less often is checked at every sample */
    BATCH_CHECKS = 64, /* code objects checked in one read */
    CODE_RANGES = 2,   /* that a check reads: the code object, and the hash of its name */
    CODE_CHECK_BYTES = 256,
    NAME_CHECK_BYTES = 8,
    LINE_MEMO_SLOTS = 8192,
};
#define INFANT_NS             (100 * NS_PER_MS) /* one met less long ago may be gone the next moment */
#define YOUNG_NS              NS_PER_SEC        /* or that was met less long ago */
#define OLD_CHECK_INTERVAL_NS (10 * NS_PER_MS)

/* What one read checks. */
struct batch {
    uint32_t entry[BATCH_CHECKS];
    struct iovec ranges[BATCH_CHECKS * CODE_RANGES];
    uint8_t bytes[BATCH_CHECKS * (CODE_CHECK_BYTES + NAME_CHECK_BYTES)];
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
    };
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
    rc = mem_read(&r->mem, name_hash_addr(r, print.name), &print.name_hash, NAME_CHECK_BYTES);
    if (rc < 0)
        return rc;

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
    e->confirmed_ns = e->met_ns = now_ns ? now_ns : clock_mono_ns();
    return 0;
}

int codes_lookup(struct remote *r, uint64_t addr, uint64_t now_ns, uint32_t *ret_entry)
{
    uint32_t hash = hash_u64(addr), at;
    IDXMAP_FIND(&r->entry_map, hash, i, r->entries.data[i].addr == addr, at);
    if (at == IDXMAP_NONE) {
        struct code_entry fresh = {.addr = addr};
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

static bool is_young(const struct code_entry *e, uint64_t now_ns)
{
    return e->confirmed < YOUNG_CHECKS || now_ns - e->met_ns < YOUNG_NS;
}

static bool is_infant(const struct code_entry *e, uint64_t now_ns)
{
    return e->confirmed < YOUNG_CHECKS || now_ns - e->met_ns < INFANT_NS;
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
        IDXMAP_FIND(&r->entry_map, hash_u64(addr), k, r->entries.data[k].addr == addr, at);
        if (at == IDXMAP_NONE || is_young(&r->entries.data[at], now_ns))
            return 0;
        next = min_u64(next, r->entries.data[at].confirmed_ns + OLD_CHECK_INTERVAL_NS);
    }
    return next;
}

/* Which code objects of the frames from *at on are to be checked now: at most BATCH_CHECKS, and then
 * *at is where to go on. */
static size_t plan_batch(struct remote *r, const walked_vec *stack, uint64_t now_ns, size_t *at,
                         struct batch *batch)
{
    size_t count = 0;
    for (; *at < stack->len && count < BATCH_CHECKS; ++*at) {
        uint64_t addr = stack->data[*at].code;
        if (addr == WALKED_SHIM || addr == WALKED_UNREADABLE)
            continue;
        uint32_t entry;
        IDXMAP_FIND(&r->entry_map, hash_u64(addr), k, r->entries.data[k].addr == addr, entry);
        if (entry == IDXMAP_NONE || r->entries.data[entry].index == UINT32_MAX)
            continue;
        struct code_entry *e = &r->entries.data[entry];
        if (!due(e, now_ns) || e->asked == r->checks) /* recursion: once will do */
            continue;
        e->asked = r->checks;
        batch->entry[count] = entry;
        batch->ranges[CODE_RANGES * count] =
            (struct iovec){(void *)(uintptr_t)addr, window_bytes(r)};
        batch->ranges[CODE_RANGES * count + 1] =
            (struct iovec){(void *)(uintptr_t)name_hash_addr(r, e->print.name), NAME_CHECK_BYTES};
        count++;
    }
    return count;
}

static void forget(struct remote *r, struct code_entry *e)
{
    /* frames of earlier samples were resolved by their reader: nobody asks for this one again */
    code_free(r->codes.data[e->index]);
    r->codes.data[e->index] = NULL;
    e->index = UINT32_MAX;
    known_forget(r);
}

static bool judge_batch(struct remote *r, const struct batch *batch, size_t count, uint64_t now_ns)
{
    bool all_good = true;
    const uint8_t *bytes = batch->bytes;
    for (size_t i = 0; i < count; i++, bytes += window_bytes(r) + NAME_CHECK_BYTES) {
        struct code_entry *e = &r->entries.data[batch->entry[i]];
        struct code_print print;
        take_print(r, bytes, &print);
        print.name_hash = field_u64(bytes, (uint32_t)window_bytes(r));
        if (memcmp(&print, &e->print, sizeof print) == 0) {
            e->confirmed += e->confirmed_ns != now_ns; /* a sample counts once */
            e->confirmed_ns = now_ns;
        } else {
            if (e->index != UINT32_MAX)
                forget(r, e);
            all_good = false;
        }
    }
    return all_good;
}

bool codes_check(struct remote *r, const walked_vec *stack, uint64_t now_ns)
{
    bool all_good = true;
    struct batch batch;
    size_t each = window_bytes(r) + NAME_CHECK_BYTES;
    r->checks++;
    for (size_t at = 0; at < stack->len;) {
        size_t count = plan_batch(r, stack, now_ns, &at, &batch);
        if (!count)
            break;
        ssize_t got = mem_read_ranges(&r->mem, batch.bytes, batch.ranges, count * CODE_RANGES);
        size_t whole = got < 0 ? 0 : min_u64((size_t)got / each, count);
        if (!judge_batch(r, &batch, whole, now_ns) || whole < count)
            all_good = false;
        if (whole < count && got >= 0) /* it is not there any more, or what it was called is not */
            forget(r, &r->entries.data[batch.entry[whole]]);
    }
    return all_good;
}

bool codes_can_wait(const struct remote *r, const walked_vec *stack, bool opened, uint64_t now_ns)
{
    for (size_t i = 0; i < stack->len; i++) {
        uint64_t addr = stack->data[i].code;
        if (addr == WALKED_SHIM)
            continue;
        uint32_t at;
        IDXMAP_FIND(&r->entry_map, hash_u64(addr), k, r->entries.data[k].addr == addr, at);
        if (at == IDXMAP_NONE)
            return false;
        const struct code_entry *e = &r->entries.data[at];
        if (e->index == UINT32_MAX || is_infant(e, now_ns) ||
            (opened && due(e, now_ns) && e->confirmed_ns != now_ns))
            return false;
    }
    return true;
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
    vec_release(&r->entries);
    idxmap_release(&r->entry_map);
    edges_release(&r->edges);
    known_release(r);
    sites_release(r);
    free(r->memo);
}
