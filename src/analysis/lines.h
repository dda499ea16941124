/* Weights → the lines of each file, for annotated source, and which of them are shown.
 *
 * A line's `self` and `total` are those of rows by line, but of the line whatever function runs in
 * it. What is in no line (`<moving>`, no Python frame) is kept beside: the selves of all lines and
 * of these add up to the whole. */
#ifndef PYROMETER_ANALYSIS_LINES_H
#define PYROMETER_ANALYSIS_LINES_H

#include "analysis/pysource.h"
#include "analysis/rows.h"
#include "base/vec.h"

struct analysis_line {
    uint32_t line;                  /* 0: not known */
    uint32_t function_line;         /* where the innermost function seen here begins; 0: module */
    struct profile_string function; /* its name */
    struct analysis_weight self, total;
    double self_variance, total_variance; /* of sampled memory, as those of a row; 0 else */
};

struct analysis_file {
    struct profile_string path;
    struct analysis_weight self, total;
    size_t first, count; /* its lines, in order */
};

struct analysis_lines {
    const struct analysis_weights *weights; /* borrowed: must outlive this */
    struct analysis_file *file;             /* the heaviest self first */
    size_t file_count;
    struct analysis_line *line;
    size_t line_count;
    struct analysis_row *special; /* what is in no line, the heaviest first */
    size_t special_count;
};

int analysis_lines_init(const struct analysis_weights *weights, struct analysis_lines *ret);
void analysis_lines_release(struct analysis_lines *l);

/* Which lines are worth showing. */
struct analysis_lines_select {
    const regex_t *match; /* as analysis/match.h has it; NULL: all */
    double min_percent;   /* of the total */
    uint64_t min_samples; /* in whose stack the line stands */
    bool has_context;
    uint64_t context; /* lines around a line; without: its whole function */
};

/* Lines `from` to `to` of a source. */
struct analysis_span {
    uint32_t from, to;
};
typedef VEC(struct analysis_span) analysis_span_vec;

/* Adds what is to be shown of a file to what is there of it already, in order and without overlaps; nothing
 * if no line of it is worth it. Without source (NULL) the lines themselves are all there is to show. */
int analysis_lines_spans(const struct analysis_lines *l, const struct analysis_file *file,
                         const struct analysis_lines_select *select,
                         const struct analysis_pysource *source, analysis_span_vec *spans);

/* The file's line of that number, or NULL: never seen. */
const struct analysis_line *analysis_lines_find(const struct analysis_lines *l,
                                                const struct analysis_file *file, uint32_t line);

#endif
