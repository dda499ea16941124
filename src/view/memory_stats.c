#include "view/memory_stats.h"

#include "base/err.h"
#include "view/heading.h"
#include "view/run.h"
#include "view/text.h"
#include "view/units.h"

enum { BAR_COLUMNS = 40, EIGHTHS = 8, ALLOCATOR_NAME = 24 };

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
        char number[ALLOCATOR_NAME];
        const char *name = record_allocator_name(i);
        snprintf(number, sizeof number, "allocator %u", i);
        name = name ? name : number;
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
    if (!j && !w->total.samples) {
        view_heading_nothing_left(&p.emit, w);
    } else {
        if (!j)
            view_heading_print(&p.emit, w, 0);
        print_all(&p);
        view_heading_losses(&p.emit, w);
    }
    return view_emit_finish(&p.emit);
}
