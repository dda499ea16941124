/* Annotated source: the lines of each file with what was seen of them, for people, as JSON
 * (docs/json.md is the contract) or as CSV. */
#ifndef PYROMETER_VIEW_LINES_H
#define PYROMETER_VIEW_LINES_H

#include "analysis/lines.h"
#include "profile/source.h"
#include "view/emit.h"

/* A number beside each line: of the line itself, or with what it called. */
struct view_lines_column {
    const char *key;                    /* in JSON and CSV; NULL: in text only */
    const char *title;                  /* in text, of ten columns at most */
    const struct analysis_lines *lines; /* of the same profile */
    bool is_self;
    bool is_percent; /* in text: of all */
    bool is_error;   /* half of the 95 % interval of that number, of sampled memory */
};

struct view_lines {
    const struct analysis_lines *lines;
    const struct analysis_lines_select *select;
    const struct profile_sources *sources;
    /* Instead of samples and shares in text, and after them in JSON and CSV; at most twelve. */
    const struct view_lines_column *column;
    size_t columns;
    const struct analysis_lines
        *beside;    /* lines that are worth it here are shown, too; NULL: none */
    uint64_t limit; /* of files; 0: all */
};

/* 0, E_NOMEM, or why the output could not be written. */
int view_lines_print(const struct view_lines *view, FILE *out, enum view_format format,
                     struct view_style style);

#endif
