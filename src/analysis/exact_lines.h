/* (profile, query) → exact lines (format/record.h, record_line): hits, own time and callee time of every
 * line, by file and by function, and what each line called.
 *
 * The lines of files stand in an analysis_lines, so that they are chosen and found as sampled ones are:
 * `self` is the own time, `total` own and callee time, and their `samples` are hits. The same line
 * of two functions (a def, and the module that runs it) is one line there; `part` has them apart.
 *
 * Of the query only thread and process count: lines were added up where they were recorded, and have
 * neither moments nor stacks. The time before a function's first line goes to where it begins. */
#ifndef PYROMETER_ANALYSIS_EXACT_LINES_H
#define PYROMETER_ANALYSIS_EXACT_LINES_H

#include "analysis/lines.h"
#include "base/buf.h"

/* A line of one function. */
struct analysis_line_part {
    uint32_t code, line;
    uint64_t hits, own_ns, callee_ns;
};

/* A line's calls of one function. */
struct analysis_line_call {
    struct profile_string file; /* the line's */
    uint32_t line;
    uint32_t callee; /* code */
    uint32_t caller; /* code: the line's function, or one of them */
    uint64_t calls, ns;
};

struct analysis_exact_lines {
    struct analysis_weights weights; /* a stand-in: profile, metric and total alone */
    struct analysis_lines lines;
    struct analysis_line_part *part; /* by file, first line, name, line */
    size_t part_count;
    struct analysis_line_call *call; /* by file (its address) and line, the longest first */
    size_t call_count;
    struct analysis_line_call *part_call; /* the same for each part: by caller, line and callee */
    size_t part_call_count;
};

/* True if the recording has any. */
bool analysis_exact_lines_has(const struct profile *p);

/* `ret` must stay where it is: its lines point to its weights. */
int analysis_exact_lines_init(const struct profile *profile, const struct analysis_query *query,
                              struct analysis_exact_lines *ret);
void analysis_exact_lines_release(struct analysis_exact_lines *l);

/* What a line called: `*ret_count` of them, the longest first. */
const struct analysis_line_call *analysis_exact_calls(const struct analysis_exact_lines *l,
                                                      struct profile_string file, uint32_t line,
                                                      size_t *ret_count);

/* Is this line of its function worth showing, by itself? `scratch` as analysis/match.h wants it. */
bool analysis_exact_is_worth(const struct analysis_exact_lines *l,
                             const struct analysis_line_part *part,
                             const struct analysis_lines_select *select, struct buf *scratch);

/* What a line of one function called: `*ret_count` of them, by callee. */
const struct analysis_line_call *analysis_exact_part_calls(const struct analysis_exact_lines *l,
                                                           const struct analysis_line_part *part,
                                                           size_t *ret_count);

/* Is this the metric of exact lines, whatever else was recorded: the time of exact calls? */
bool analysis_exact_has_metric(const struct analysis_metric *metric);

/* Does the recording answer the question with exact lines? It has some, their metric is asked for or no
 * metric where there are no samples, and nothing that they do not know: moments and stacks. */
bool analysis_exact_answers(const struct profile *p, const struct analysis_query *q);

/* The parts as rows by line: `self` is the own time, `total` with callee time, samples are hits. They
 * borrow `l`, stand in no stacks and so have no edges. */
int analysis_exact_rows_init(const struct analysis_exact_lines *l, struct analysis_rows *ret);

/* Puts the hits beside rows by line that were made of samples. */
int analysis_exact_count(const struct analysis_exact_lines *l, struct analysis_rows *rows);

/* The name that a code object is shown by. */
struct profile_string analysis_code_name(const struct profile_tables *t, uint32_t code);

#endif
