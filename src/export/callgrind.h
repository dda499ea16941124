/* What both writers of callgrind's format share: names that are spelled out once, and costs. Inside
 * src/export only. */
#ifndef PYROMETER_EXPORT_CALLGRIND_H
#define PYROMETER_EXPORT_CALLGRIND_H

#include "export/source.h"

struct callgrind_out {
    const struct analysis_row *row; /* the functions; borrowed */
    size_t row_count;
    uint8_t *ambiguous; /* rows whose name and file are not theirs alone */
    uint32_t *file_id;  /* by row */
    uint8_t *row_named, *file_named;
    FILE *out;
    struct buf buf; /* to be drained by whoever writes much */
};

/* Names of rows are told apart by where their texts are: they are a profile's own. Also on failure it
 * is to be released. */
int callgrind_out_init(struct callgrind_out *o, const struct analysis_row *row, size_t count,
                       FILE *out);
void callgrind_out_release(struct callgrind_out *o);

/* Up to the first function. `note` may be NULL; `second` is the event of `samples`, and what it
 * means. */
void callgrind_put_heading(struct callgrind_out *o, const struct analysis_weights *weights,
                           const char *note, const char *second, const char *second_text);

/* The function that what follows belongs to. */
void callgrind_put_function(struct callgrind_out *o, uint32_t row);

/* What it called; its costs are to follow. */
void callgrind_put_call(struct callgrind_out *o, uint32_t from_row, uint32_t row, uint64_t calls);

void callgrind_put_costs(struct callgrind_out *o, uint32_t line, struct analysis_weight cost);

/* Exact lines: those of the recording must answer the query (analysis/exact_lines.h). */
int export_callgrind_write_lines(const struct profile *profile, const struct analysis_query *query,
                                 FILE *out);

#endif
