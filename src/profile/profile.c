/* Loads a recording. Idea: one visit of the definition chunks fills arrays indexed by id; then one
 * pass over the arrays redirects every reference that leads nowhere, so that nobody above this file
 * has to doubt an id. Samples are not kept: they are decoded again for whoever asks.
 *
 * Ids come from the file and are hostile. They are dense by contract, so a hole is what a lost
 * chunk leaves; holes are bounded by a budget, and a definition that lies past it counts as lost.
 */
#include "profile/profile.h"

#include "base/err.h"
#include "base/vec.h"
#include "profile/import.h"
#include "profile/internal.h"

enum {
    /* Ids that may be missing in one table. A chunk holds some 10^5 definitions. */
    HOLE_BUDGET = 1 << 22,
    TEXT_BLOCK_BYTES = 256 << 10,
};

static const char LOST_TEXT[] = "<lost>";
static const char UNKNOWN_TEXT[] = "<unknown>";

/* String bytes, in blocks that never move. */
struct text_block {
    struct text_block *next;
    size_t used;
    size_t cap;
    char bytes[];
};

struct profile {
    struct format_reader *reader; /* owned */
    char *path;                   /* owned */
    struct format_summary summary;
    struct profile_tables tables; /* borrows from the arrays below */
    struct text_block *texts;

    VEC(struct profile_string) strings;
    VEC(struct record_code) codes;
    VEC(uint8_t) code_known;
    VEC(uint32_t) node_parent;
    VEC(uint32_t) node_code;
    VEC(uint32_t) node_line;
    VEC(struct record_process) processes;
    VEC(uint8_t) process_known;
    VEC(struct record_thread) threads;
    VEC(uint8_t) thread_known;
    VEC(struct profile_meta) meta;
    struct profile_counts *counts; /* owned, both; NULL but for imports */
    struct profile_call *calls;

    struct {
        uint32_t strings, codes, nodes, processes, threads;
    } holes; /* ids missing so far */
    uint32_t lost_string, lost_code, lost_stack, lost_process, lost_thread;
};

/* --- loading: one function for each kind of definition --- */

static char *keep_text(struct profile *p, const char *text, size_t len)
{
    if (!p->texts || p->texts->cap - p->texts->used < len + 1) {
        size_t cap = len + 1 > TEXT_BLOCK_BYTES ? len + 1 : TEXT_BLOCK_BYTES;
        struct text_block *block = malloc(sizeof *block + cap);
        if (!block)
            return NULL;
        *block = (struct text_block){.next = p->texts, .cap = cap};
        p->texts = block;
    }
    char *kept = p->texts->bytes + p->texts->used;
    if (len)
        memcpy(kept, text, len);
    kept[len] = '\0';
    p->texts->used += len + 1;
    return kept;
}

/* Makes `v` long enough for index `id`, zeroing what is new. False without memory. */
#define extend_to(v, id)                                                                           \
    ({                                                                                             \
        size_t want_ = (size_t)(id) + 1;                                                           \
        bool ok_ = want_ <= (v)->len || vec_reserve((v), want_);                                   \
        if (ok_ && want_ > (v)->len) {                                                             \
            memset((v)->data + (v)->len, 0, (want_ - (v)->len) * sizeof *(v)->data);               \
            (v)->len = want_;                                                                      \
        }                                                                                          \
        ok_;                                                                                       \
    })

/* May this id enter its table? Spends the table's budget of holes. */
static bool is_near(uint32_t *holes, uint32_t id, size_t len)
{
    if (id < len)
        return true;
    size_t hole = id - len;
    if (id >= FORMAT_MAX_IDS || hole > HOLE_BUDGET - *holes)
        return false;
    *holes += (uint32_t)hole;
    return true;
}

static int on_meta(void *ctx, const char *key, size_t key_len, const char *value, size_t value_len)
{
    struct profile *p = ctx;
    enum { SOUGHT = 4096 }; /* a hostile file may have millions */
    /* a fact may be told again: the last word counts */
    for (size_t i = 0; i < min_u64(p->meta.len, SOUGHT); i++)
        if (strlen(p->meta.data[i].key) == key_len &&
            memcmp(p->meta.data[i].key, key, key_len) == 0) {
            p->meta.data[i].value = keep_text(p, value, value_len);
            return p->meta.data[i].value ? 0 : E_NOMEM;
        }
    struct profile_meta *meta = vec_push(&p->meta);
    if (!meta)
        return E_NOMEM;
    meta->key = keep_text(p, key, key_len);
    meta->value = keep_text(p, value, value_len);
    return meta->key && meta->value ? 0 : E_NOMEM;
}

static int on_string(void *ctx, uint32_t id, const char *text, size_t len)
{
    struct profile *p = ctx;
    if (id == RECORD_STRING_EMPTY || !is_near(&p->holes.strings, id, p->strings.len))
        return 0;
    char *kept = keep_text(p, text, len);
    if (!kept || !extend_to(&p->strings, id))
        return E_NOMEM;
    p->strings.data[id] = (struct profile_string){kept, (uint32_t)len};
    return 0;
}

static int on_code(void *ctx, uint32_t id, const struct record_code *code)
{
    struct profile *p = ctx;
    if (id == RECORD_CODE_UNKNOWN || !is_near(&p->holes.codes, id, p->codes.len))
        return 0;
    if (!extend_to(&p->codes, id) || !extend_to(&p->code_known, id))
        return E_NOMEM;
    p->codes.data[id] = *code;
    p->code_known.data[id] = 1;
    return 0;
}

/* A hole among the nodes is left as {0, 0, 0}: a frame at the root whose code nobody can name. The
 * code is marked as lost here already, by a value past every table. */
static int on_stack(void *ctx, uint32_t id, const struct record_stack *node)
{
    struct profile *p = ctx;
    size_t old = p->node_code.len;
    if (id == RECORD_STACK_ROOT || !is_near(&p->holes.nodes, id, old))
        return 0;
    if (!extend_to(&p->node_parent, id) || !extend_to(&p->node_code, id) ||
        !extend_to(&p->node_line, id))
        return E_NOMEM;
    for (size_t i = old; i < id; i++)
        p->node_code.data[i] = UINT32_MAX;
    bool sound = node->parent < id;
    p->node_parent.data[id] = sound ? node->parent : RECORD_STACK_ROOT;
    p->node_code.data[id] = sound ? node->code : UINT32_MAX;
    p->node_line.data[id] = sound ? node->line : 0;
    return 0;
}

static int on_process(void *ctx, const struct record_process *process)
{
    struct profile *p = ctx;
    uint32_t id = process->id;
    if (!is_near(&p->holes.processes, id, p->processes.len))
        return 0;
    if (!extend_to(&p->processes, id) || !extend_to(&p->process_known, id))
        return E_NOMEM;
    p->processes.data[id] = *process;
    p->process_known.data[id] = 1;
    return 0;
}

static int on_thread(void *ctx, const struct record_thread *thread)
{
    struct profile *p = ctx;
    uint32_t id = thread->id;
    if (!is_near(&p->holes.threads, id, p->threads.len))
        return 0;
    if (!extend_to(&p->threads, id) || !extend_to(&p->thread_known, id))
        return E_NOMEM;
    p->threads.data[id] = *thread;
    p->thread_known.data[id] = 1;
    return 0;
}

static int on_stat(void *ctx, enum record_stat stat, uint64_t value)
{
    struct profile *p = ctx;
    if ((unsigned)stat >= RECORD_STAT_COUNT)
        return 0;
    p->tables.stats.value[stat] = value;
    p->tables.stat_known[stat] = true;
    return 0;
}

/* --- redirecting what leads nowhere --- */

/* The predefined entries with id 0. Before loading, so that the arrays are never empty. */
static int add_predefined(struct profile *p)
{
    struct profile_string *empty = vec_push(&p->strings);
    if (!empty || !extend_to(&p->codes, 0) || !extend_to(&p->code_known, 0) ||
        !extend_to(&p->node_parent, 0) || !extend_to(&p->node_code, 0) ||
        !extend_to(&p->node_line, 0))
        return E_NOMEM;
    *empty = (struct profile_string){"", 0};
    p->code_known.data[0] = 1;
    return 0;
}

/* What stands in for the lost, behind the last id of each table. */
static int add_lost(struct profile *p)
{
    struct profile_string *lost = vec_push(&p->strings);
    struct profile_string *unknown = vec_push(&p->strings);
    struct record_code *code = vec_push(&p->codes);
    uint32_t *parent = vec_push(&p->node_parent);
    uint32_t *node_code = vec_push(&p->node_code);
    uint32_t *line = vec_push(&p->node_line);
    struct record_process *process = vec_push(&p->processes);
    struct record_thread *thread = vec_push(&p->threads);
    if (!lost || !unknown || !code || !parent || !node_code || !line || !process || !thread)
        return E_NOMEM;
    p->lost_string = (uint32_t)p->strings.len - 2;
    p->lost_code = (uint32_t)p->codes.len - 1;
    p->lost_stack = (uint32_t)p->node_parent.len - 1;
    p->lost_process = (uint32_t)p->processes.len - 1;
    p->lost_thread = (uint32_t)p->threads.len - 1;

    /* by index: the second push may have moved the first */
    p->strings.data[p->lost_string] = (struct profile_string){LOST_TEXT, sizeof LOST_TEXT - 1};
    p->strings.data[p->lost_string + 1] =
        (struct profile_string){UNKNOWN_TEXT, sizeof UNKNOWN_TEXT - 1};
    p->codes.data[RECORD_CODE_UNKNOWN] =
        (struct record_code){.name = p->lost_string + 1, .flags = RECORD_CODE_SPECIAL};
    *code = (struct record_code){.name = p->lost_string, .flags = RECORD_CODE_SPECIAL};
    *node_code = p->lost_code;
    *process = (struct record_process){.id = p->lost_process, .command = p->lost_string};
    *thread = (struct record_thread){
        .id = p->lost_thread, .process = p->lost_process, .name = p->lost_string};
    return 0;
}

static void redirect_string(const struct profile *p, uint32_t *id)
{
    if (*id >= p->strings.len || !p->strings.data[*id].text)
        *id = p->lost_string;
}

static inline uint32_t mend_stack(const struct profile *p, uint32_t id)
{
    return id < p->node_parent.len ? id : p->lost_stack;
}

static inline uint32_t mend_thread(const struct profile *p, uint32_t id)
{
    return id < p->thread_known.len && p->thread_known.data[id] ? id : p->lost_thread;
}

static void redirect_all(struct profile *p)
{
    for (size_t i = 0; i < p->strings.len; i++)
        if (!p->strings.data[i].text)
            p->strings.data[i] = p->strings.data[p->lost_string];
    for (size_t i = 0; i < p->codes.len; i++) {
        struct record_code *code = &p->codes.data[i];
        redirect_string(p, &code->name);
        redirect_string(p, &code->qualname);
        redirect_string(p, &code->file);
    }
    for (size_t i = 0; i < p->node_code.len; i++) {
        uint32_t code = p->node_code.data[i];
        if (code >= p->code_known.len || !p->code_known.data[code])
            p->node_code.data[i] = p->lost_code;
    }
    for (size_t i = 0; i < p->processes.len; i++) {
        redirect_string(p, &p->processes.data[i].command);
        redirect_string(p, &p->processes.data[i].python_version);
    }
    for (size_t i = 0; i < p->thread_known.len; i++) {
        struct record_thread *thread = &p->threads.data[i];
        redirect_string(p, &thread->name);
        uint32_t process = thread->process;
        if (p->thread_known.data[i] &&
            (process >= p->process_known.len || !p->process_known.data[process]))
            thread->process = p->lost_process;
    }
}

static void publish(struct profile *p)
{
    struct profile_tables *t = &p->tables;
    t->strings = p->strings.data;
    t->string_count = p->strings.len;
    t->codes = p->codes.data;
    t->code_count = p->codes.len;
    t->node_parent = p->node_parent.data;
    t->node_code = p->node_code.data;
    t->node_line = p->node_line.data;
    t->node_count = p->node_parent.len;
    t->processes = p->processes.data;
    t->process_count = p->processes.len;
    t->threads = p->threads.data;
    t->thread_count = p->threads.len;
    t->meta = p->meta.data;
    t->meta_count = p->meta.len;
}

/* --- what was never measured --- */

/* The recorder writes all its counters whenever it writes any. What a command cost is known when it has been waited for: never of one
 * that was only attached to, and not yet if the file ends before the command did, which has taken some time by then. */
static void forget_unmeasured(struct profile *p)
{
    static const enum record_stat at_the_end[] = {RECORD_STAT_USER_NS, RECORD_STAT_SYSTEM_NS,
                                                  RECORD_STAT_PEAK_RSS_BYTES,
                                                  RECORD_STAT_EXIT_STATUS};
    const char *mode = profile_meta_value(p, "mode");
    bool has_ended = p->tables.stats.value[RECORD_STAT_ELAPSED_NS] != 0;
    if (!has_ended)
        p->tables.stat_known[RECORD_STAT_ELAPSED_NS] = false;
    if (has_ended && (!mode || strcmp(mode, "run") == 0))
        return;
    for (size_t i = 0; i < ARRAY_LEN(at_the_end); i++)
        p->tables.stat_known[at_the_end[i]] = false;
}

/* A repaired copy is whole by itself, but lacks what its original had lost. */
static void remember_repair(struct profile *p)
{
    const uint64_t *stats = p->tables.stats.value;
    p->summary.damaged_chunks += (uint32_t)min_u64(stats[RECORD_STAT_CHUNKS_LOST], UINT16_MAX);
    if (stats[RECORD_STAT_END_LOST])
        p->summary.finished = false;
}

/* --- life --- */

static const struct format_visitor LOADER = {
    .meta = on_meta,
    .string = on_string,
    .code = on_code,
    .stack = on_stack,
    .process = on_process,
    .thread = on_thread,
    .stat = on_stat,
};

/* Takes the reader over, also on failure. */
static int load(struct format_reader *reader, const char *path, struct profile **ret)
{
    struct profile *p = calloc(1, sizeof *p);
    if (!p) {
        format_reader_free(reader);
        return E_NOMEM;
    }
    p->reader = reader;
    p->path = strdup(path);
    uint32_t damaged = 0;
    int r = p->path ? add_predefined(p) : E_NOMEM;
    if (r == 0)
        r = format_reader_visit(reader, &LOADER, p, &damaged);
    if (r == 0)
        r = add_lost(p);
    if (r < 0) {
        profile_free(p);
        return r;
    }
    redirect_all(p);
    forget_unmeasured(p);
    publish(p);
    p->summary = *format_reader_summary(reader);
    p->summary.damaged_chunks += damaged; /* opening saw broken frames only, not payloads */
    remember_repair(p);
    *ret = p;
    return 0;
}

int profile_load(const char *path, struct profile **ret)
{
    struct format_reader *reader;
    int r = format_reader_open(path, &reader);
    if (r == E_FORMAT)
        return profile_import(path, ret);
    return r < 0 ? r : load(reader, path, ret);
}

int profile_load_image(const char *image, const char *path, uint64_t created_ns,
                       struct profile_counts *counts, struct profile_call *calls, size_t call_count,
                       struct profile **ret)
{
    struct format_reader *reader;
    int r = format_reader_open(image, &reader);
    if (r == 0)
        r = load(reader, path, ret);
    if (r < 0) {
        free(counts);
        free(calls);
        return r;
    }
    (*ret)->summary.header.created_ns = created_ns;
    (*ret)->tables.counts = (*ret)->counts = counts;
    (*ret)->tables.calls = (*ret)->calls = calls;
    (*ret)->tables.call_count = call_count;
    return 0;
}

int profile_load_memory(const void *data, size_t len, struct profile **ret)
{
    struct format_reader *reader;
    int r = format_reader_open_memory(data, len, &reader);
    return r < 0 ? r : load(reader, "", ret);
}

void profile_free(struct profile *p)
{
    if (!p)
        return;
    vec_release(&p->strings);
    vec_release(&p->codes);
    vec_release(&p->code_known);
    vec_release(&p->node_parent);
    vec_release(&p->node_code);
    vec_release(&p->node_line);
    vec_release(&p->processes);
    vec_release(&p->process_known);
    vec_release(&p->threads);
    vec_release(&p->thread_known);
    vec_release(&p->meta);
    free(p->counts);
    free(p->calls);
    while (p->texts) {
        struct text_block *next = p->texts->next;
        free(p->texts);
        p->texts = next;
    }
    format_reader_free(p->reader);
    free(p->path);
    free(p);
}

const struct profile_tables *profile_tables(const struct profile *p)
{
    return &p->tables;
}

const struct format_summary *profile_summary(const struct profile *p)
{
    return &p->summary;
}

const char *profile_path(const struct profile *p)
{
    return p->path;
}

/* The last fact counts, as with every other news in a file. */
const char *profile_meta_value(const struct profile *p, const char *key)
{
    for (size_t i = p->meta.len; i-- > 0;)
        if (strcmp(p->meta.data[i].key, key) == 0)
            return p->meta.data[i].value;
    return NULL;
}

/* --- for the folder --- */

const struct format_reader *profile_reader(const struct profile *p)
{
    return p->reader;
}

uint32_t profile_mend_code(const struct profile *p, uint32_t code)
{
    return code < p->code_known.len && p->code_known.data[code] ? code : p->lost_code;
}

uint32_t profile_mend_string(const struct profile *p, uint32_t string)
{
    redirect_string(p, &string);
    return string;
}

uint32_t profile_mend_stack(const struct profile *p, uint32_t stack)
{
    return mend_stack(p, stack);
}

const uint8_t *profile_threads_known(const struct profile *p, size_t *ret_count)
{
    *ret_count = p->thread_known.len;
    return p->thread_known.data;
}

uint32_t profile_mend_thread(const struct profile *p, uint32_t thread)
{
    return mend_thread(p, thread);
}

uint32_t profile_mend_process(const struct profile *p, uint32_t process)
{
    bool known = process < p->process_known.len && p->process_known.data[process];
    return known ? process : p->lost_process;
}
