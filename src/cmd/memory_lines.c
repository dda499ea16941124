/* `pyrometer memory lines`: the source, with the memory of each line beside it. Each number is a metric of
 * its own over the same lines. */
#include "base/err.h"
#include "cmd/memory.h"
#include "cmd/progress.h"
#include "view/lines.h"

#include <errno.h>

/* Of lines in a table when the user does not say: the rest of a program is long. */
#define TEXT_MIN_PERCENT 1.0

enum { ALLOCATED, COUNT, PEAK, LEAKED, METRICS };
static const char *const METRIC[METRICS] = {"allocated", "count", "peak", "leaked"};

struct numbers {
    struct analysis_weights weights;
    struct analysis_lines lines;
};

static int numbers_init(const struct cmd_memory *m, struct numbers *numbers)
{
    int r = 0;
    for (int i = 0; r == 0 && i < METRICS; i++) {
        struct analysis_query q = m->query;
        q.metric = analysis_metric_find(METRIC[i]);
        r = analysis_weights_init(m->profile, &q, &numbers[i].weights);
        if (r == 0)
            r = analysis_lines_init(&numbers[i].weights, &numbers[i].lines);
    }
    return r;
}

static int print(const struct cmd_memory *m, const struct numbers *numbers,
                 const struct profile_sources *sources)
{
    static const struct {
        struct view_lines_column column;
        int metric;
    } all[] = {
        {{.key = "increment", .title = "increment"}, LEAKED},
        {{.key = "increment_error", .title = "±", .is_error = true}, LEAKED},
        {{.key = "occurrences", .title = "count"}, COUNT},
        {{.key = "allocated", .title = "allocated"}, ALLOCATED},
        {{.key = "total_error", .title = "±", .is_error = true}, ALLOCATED},
        {{.key = "error", .is_self = true, .is_error = true}, ALLOCATED},
        {{.key = "peak", .title = "peak"}, PEAK},
        {{.key = "peak_error", .title = "±", .is_error = true}, PEAK},
        {{.key = "held", .title = "held", .is_self = true}, LEAKED},
        {{.key = "own_peak", .is_self = true}, PEAK},
    };
    bool is_text = m->format == VIEW_TEXT; /* which has no room for what has no title */
    bool is_sampled = numbers[ALLOCATED].weights.variance != NULL;
    struct view_lines_column columns[ARRAY_LEN(all)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if ((all[i].column.is_error && !is_sampled) || (is_text && !all[i].column.title))
            continue;
        columns[count] = all[i].column;
        columns[count++].lines = &numbers[all[i].metric].lines;
    }
    bool chosen = m->match || m->o->list.has_min_percent;
    struct analysis_lines_select select = {
        .match = m->match,
        .min_percent = chosen || !is_text ? m->o->list.min_percent : TEXT_MIN_PERCENT};
    struct view_lines view = {.lines = &numbers[ALLOCATED].lines,
                              .select = &select,
                              .sources = sources,
                              .column = columns,
                              .columns = count,
                              .limit = m->o->list.limit};
    errno = 0;
    return view_lines_print(&view, cmd_stdout(), m->format, view_style_of(stdout));
}

int cmd_memory_lines(struct cmd_memory *m)
{
    struct numbers numbers[METRICS] = {0};
    struct profile_sources *sources = NULL;
    int r = numbers_init(m, numbers);
    if (r == 0)
        r = profile_sources_new(m->profile, &sources);
    int status = 0;
    if (r < 0)
        status = cmd_fail(CMD_FAILED, "cannot make the lines: %s", err_text(r));
    else if ((r = print(m, numbers, sources)) < 0)
        status = cmd_output_failed("the lines", r, errno);
    profile_sources_free(sources);
    for (int i = 0; i < METRICS; i++) {
        analysis_lines_release(&numbers[i].lines);
        analysis_weights_release(&numbers[i].weights);
    }
    return status;
}
