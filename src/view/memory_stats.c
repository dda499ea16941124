#include "view/memory_stats.h"

#include "base/err.h"
#include "view/heading.h"
#include "view/run.h"
#include "view/text.h"
#include "view/units.h"

enum { BAR_COLUMNS = 40, EIGHTHS = 8, ALLOCATOR_NAME = 24, NUMBER_NAME = 48 };

struct printer {
    const struct view_memory_stats *view;
    const struct analysis_weights *weights;
    const struct analysis_memory *memory;
    const struct profile_tables *t;
    struct view_emit emit;
};

static bool takes_process(const struct printer *p, size_t i)
{
    const struct analysis_query *q = p->view->query;
    return p->memory->process[i].checkpoints &&
           (!q->has_process || p->t->processes[i].pid == q->process);
}

/* --- processes --- */

static void print_processes(struct printer *p)
{
    static const struct view_column columns[] = {
        {"pid", "pid", VIEW_ID, VIEW_BOTH},
        {"peak_bytes", "peak", VIEW_BYTES, VIEW_BOTH},
        {"peak_time", "at", VIEW_SECONDS, VIEW_BOTH},
        {"live_bytes", "left", VIEW_BYTES, VIEW_BOTH},
        {"live_count", "blocks left", VIEW_COUNT, VIEW_BOTH},
        {"allocated_bytes", "allocated", VIEW_BYTES, VIEW_BOTH},
        {"allocations", "allocations", VIEW_COUNT, VIEW_BOTH},
        {"freed_bytes", "given back", VIEW_BYTES, VIEW_BOTH},
        {"frees", "frees", VIEW_COUNT, VIEW_BOTH},
        {"ended", NULL, VIEW_BOOL, VIEW_ONLY_DATA},
        {"command", "command", VIEW_NAME, VIEW_BOTH},
    };
    view_emit_table_begin(&p->emit, "processes", columns, ARRAY_LEN(columns), false);
    for (size_t i = 0; i < p->t->process_count; i++) {
        if (!takes_process(p, i))
            continue;
        const struct analysis_memory_process *m = &p->memory->process[i];
        struct profile_string command = p->t->strings[p->t->processes[i].command];
        const struct view_cell cells[] = {
            {.count = p->t->processes[i].pid},
            {.real = (double)m->last.peak_bytes},
            {.real = (double)m->last.peak_ns * 1e-9},
            {.real = (double)m->last.live_bytes},
            {.count = m->last.live_count},
            {.real = (double)m->bytes},
            {.count = m->count},
            {.real = (double)m->freed_bytes},
            {.count = m->freed},
            {.count = (m->last.flags & RECORD_MEMORY_LAST) != 0},
            {.text = command.text, .len = command.len, .absent = !command.len},
        };
        view_emit_row_begin(&p->emit, cells);
        view_emit_row_end(&p->emit);
    }
    view_emit_table_end(&p->emit);
}

/* --- sizes --- */

/* Bins from the first that has anything to the last. */
static void find_bins(const struct analysis_sizes *s, uint32_t *first, uint32_t *last)
{
    *first = ANALYSIS_SIZE_BINS;
    *last = 0;
    for (uint32_t i = 0; i < ANALYSIS_SIZE_BINS; i++)
        if (s->bin[i].count) {
            *first = *first == ANALYSIS_SIZE_BINS ? i : *first;
            *last = i;
        }
}

/* A bar of so many eighths of a column. */
static size_t draw_bar(char *text, size_t size, double share)
{
    static const char *const parts[EIGHTHS] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    size_t eighths = (size_t)(share * BAR_COLUMNS * EIGHTHS + 0.5), len = 0;
    eighths = eighths || share <= 0 ? eighths : 1;
    text[0] = '\0';
    for (size_t i = 0; i < eighths / EIGHTHS; i++)
        len += (size_t)snprintf(text + len, size - len, "█");
    return len + (size_t)snprintf(text + len, size - len, "%s", parts[eighths % EIGHTHS]);
}

static void print_sizes(struct printer *p)
{
    static const struct view_column columns[] = {
        {"from", NULL, VIEW_COUNT, VIEW_ONLY_DATA}, {"to", NULL, VIEW_COUNT, VIEW_ONLY_DATA},
        {NULL, "from", VIEW_BYTES, VIEW_ONLY_TEXT}, {"count", "allocations", VIEW_COUNT, VIEW_BOTH},
        {"bytes", "in all", VIEW_BYTES, VIEW_BOTH}, {NULL, "", VIEW_NAME, VIEW_ONLY_TEXT},
    };
    const struct analysis_sizes *s = p->view->sizes;
    uint32_t first, last;
    uint64_t most = 1;
    find_bins(s, &first, &last);
    for (uint32_t i = first; i <= last; i++)
        most = max_u64(most, s->bin[i].count);
    view_emit_line(&p->emit, "\nsizes of allocations, each to twice as large");
    view_emit_table_begin(&p->emit, "sizes", columns, ARRAY_LEN(columns), false);
    for (uint32_t i = first; i <= last; i++) {
        char bar[BAR_COLUMNS * 4 + 8];
        size_t len = draw_bar(bar, sizeof bar, (double)s->bin[i].count / (double)most);
        const struct view_cell cells[] = {
            {.count = analysis_size_from(i)},        {.count = analysis_size_to(i)},
            {.real = (double)analysis_size_from(i)}, {.count = s->bin[i].count},
            {.real = (double)s->bin[i].bytes},       {.text = bar, .len = len},
        };
        view_emit_row_begin(&p->emit, cells);
        view_emit_row_end(&p->emit);
    }
    view_emit_table_end(&p->emit);
}

/* --- allocators --- */

static const char *allocator_name(uint32_t number, char *scratch)
{
    const char *name = record_allocator_name(number);
    snprintf(scratch, ALLOCATOR_NAME, "allocator %u", number);
    return name ? name : scratch;
}

static void print_allocators(struct printer *p)
{
    static const struct view_column columns[] = {
        {"name", "allocator", VIEW_NAME, VIEW_BOTH},
        {"count", "allocations", VIEW_COUNT, VIEW_BOTH},
        {"bytes", "in all", VIEW_BYTES, VIEW_BOTH},
    };
    view_emit_line(&p->emit, "%s", "");
    view_emit_table_begin(&p->emit, "allocators", columns, ARRAY_LEN(columns), false);
    for (uint32_t i = 0; i < RECORD_MAX_ALLOCATORS; i++) {
        const struct analysis_size *a = &p->view->sizes->allocator[i];
        if (!a->count)
            continue;
        char scratch[ALLOCATOR_NAME];
        const char *name = allocator_name(i, scratch);
        const struct view_cell cells[] = {
            {.text = name, .len = strlen(name)},
            {.count = a->count},
            {.real = (double)a->bytes},
        };
        view_emit_row_begin(&p->emit, cells);
        view_emit_row_end(&p->emit);
    }
    view_emit_table_end(&p->emit);
}

/* --- all of it --- */

static void print_all(struct printer *p)
{
    print_processes(p);
    print_sizes(p);
    print_allocators(p);
    view_emit_line(&p->emit, "\nlargest allocators by size");
    view_memory_table(&p->view->by_size, &p->emit, "by_size");
    view_emit_line(&p->emit, "\nlargest allocators by count");
    view_memory_table(&p->view->by_count, &p->emit, "by_count");
}

/* --- CSV: one table, whose first column says which of those above a row is of --- */

static void put_text_row(struct printer *p, const char *section, const char *name,
                         const struct analysis_size *size, bool has_count)
{
    const struct view_cell cells[] = {
        {.text = section, .len = strlen(section)},
        {.text = name, .len = strlen(name)},
        {.absent = true},
        {.absent = true},
        {.real = (double)size->bytes},
        {.count = size->count, .absent = !has_count},
    };
    view_emit_row_begin(&p->emit, cells);
    view_emit_row_end(&p->emit);
}

static void put_processes(struct printer *p)
{
    for (size_t i = 0; i < p->t->process_count; i++) {
        const struct analysis_memory_process *m = &p->memory->process[i];
        char pid[NUMBER_NAME];
        snprintf(pid, sizeof pid, "%u", p->t->processes[i].pid);
        if (!takes_process(p, i))
            continue;
        put_text_row(p, "peak", pid, &(struct analysis_size){0, m->last.peak_bytes}, false);
        put_text_row(p, "live", pid,
                     &(struct analysis_size){m->last.live_count, m->last.live_bytes}, true);
        put_text_row(p, "allocated", pid, &(struct analysis_size){m->count, m->bytes}, true);
        put_text_row(p, "freed", pid, &(struct analysis_size){m->freed, m->freed_bytes}, true);
    }
}

static void put_sizes(struct printer *p)
{
    const struct analysis_sizes *s = p->view->sizes;
    uint32_t first, last;
    find_bins(s, &first, &last);
    for (uint32_t i = first; i <= last; i++) {
        char range[NUMBER_NAME];
        snprintf(range, sizeof range, "%ju-%ju", (uintmax_t)analysis_size_from(i),
                 (uintmax_t)analysis_size_to(i));
        put_text_row(p, "sizes", range, &s->bin[i], true);
    }
    for (uint32_t i = 0; i < RECORD_MAX_ALLOCATORS; i++) {
        char scratch[ALLOCATOR_NAME];
        if (s->allocator[i].count)
            put_text_row(p, "allocators", allocator_name(i, scratch), &s->allocator[i], true);
    }
}

static void put_rows(struct printer *p, const char *section, const struct view_memory *view)
{
    for (size_t i = 0; i < view->selection->count; i++) {
        const struct analysis_row *row = &view->rows->row[view->selection->row[i]];
        const struct view_cell cells[] = {
            {.text = section, .len = strlen(section)},
            {.text = row->name.text, .len = row->name.len},
            {.text = row->file.text, .len = row->file.len, .absent = !row->file.len},
            {.count = row->line, .absent = !row->line},
            {.real = (double)row->self.weight},
            {.count = row->self.samples},
        };
        view_emit_row_begin(&p->emit, cells);
        view_emit_row_end(&p->emit);
    }
}

static void put_csv(struct printer *p)
{
    static const struct view_column columns[] = {
        {"section", NULL, VIEW_NAME, VIEW_ONLY_DATA}, {"name", NULL, VIEW_NAME, VIEW_ONLY_DATA},
        {"file", NULL, VIEW_PATH, VIEW_ONLY_DATA},    {"line", NULL, VIEW_ID, VIEW_ONLY_DATA},
        {"bytes", NULL, VIEW_BYTES, VIEW_ONLY_DATA},  {"count", NULL, VIEW_COUNT, VIEW_ONLY_DATA},
    };
    view_emit_table_begin(&p->emit, "stats", columns, ARRAY_LEN(columns), false);
    put_processes(p);
    put_sizes(p);
    put_rows(p, "by_size", &p->view->by_size);
    put_rows(p, "by_count", &p->view->by_count);
    view_emit_table_end(&p->emit);
}

int view_memory_stats_print(const struct view_memory_stats *view, FILE *out,
                            enum view_format format, struct view_style style)
{
    const struct analysis_weights *w = view->by_size.rows->weights;
    struct printer p = {
        .view = view, .weights = w, .memory = w->memory, .t = profile_tables(w->profile)};
    view_emit_init(&p.emit, out, format, style);
    struct json *j = view_emit_json(&p.emit);
    if (j) {
        view_run_json(j, w->profile);
        view_heading_facts(j, w);
        view_run_losses_json(j, w->profile, w->damaged_chunks);
    }
    if (format == VIEW_CSV) {
        put_csv(&p);
    } else if (!j && !w->total.samples) {
        view_heading_nothing_left(&p.emit, w);
    } else {
        if (!j)
            view_heading_print(&p.emit, w, 0);
        print_all(&p);
        view_heading_losses(&p.emit, w);
    }
    return view_emit_finish(&p.emit);
}
