/* Weights → rows of a table, grouped by function, line, file, module, thread or process.
 *
 * A row's `self` is what its own frames carried as the leaf; its `total` counts every stack it
 * stands in once, however often it stands there, so recursion does not count twice and no total
 * exceeds the whole. Pseudo-frames (`<moving>`, `<unreadable>`, `<lost>`) and samples without a
 * Python frame have rows of their own: the selves of all rows add up to the whole. */
#ifndef PYROMETER_ANALYSIS_ROWS_H
#define PYROMETER_ANALYSIS_ROWS_H

#include "analysis/weights.h"

#include <string.h>

enum { ANALYSIS_ROW_NONE = UINT32_MAX };

/* name */
#define ANALYSIS_BY_LIST(X)                                                                        \
    X(FUNCTION, "function")                                                                        \
    X(LINE, "line")                                                                                \
    X(FILE, "file")                                                                                \
    X(MODULE, "module")                                                                            \
    X(THREAD, "thread")                                                                            \
    X(PROCESS, "process")

enum analysis_by {
#define X(id, name) ANALYSIS_BY_##id,
    ANALYSIS_BY_LIST(X)
#undef X
        ANALYSIS_BY_COUNT,
    ANALYSIS_BY_PLACE = ANALYSIS_BY_COUNT, /* file and line, whatever the function; has no name:
                                              it is for analysis/lines.c */
};

extern const char *const ANALYSIS_BY_NAMES[ANALYSIS_BY_COUNT + 1]; /* NULL ends it */

struct analysis_row {
    /* function and line: the qualified name; file: its path; module: dotted; thread: its name or
     * "thread TID"; process: its command. Texts are borrowed from the profile or from the rows. */
    struct profile_string name;
    struct profile_string file; /* empty where a row has none or several */
    uint32_t line;              /* function: its first line; line: the line; 0: none or not known */
    uint32_t pid, tid;          /* thread and process rows; 0 else */
    bool special;               /* a note about the stack, not code */
    bool is_c;                  /* a C function: it has no file */
    uint64_t calls, primitive_calls; /* of exact counts or calls; 0 else */
    uint64_t resumes;                /* of exact calls; 0 else */
    uint64_t alive_ns; /* coroutines: from begin to end; one in another of the same once */
    uint64_t hits;     /* of lines that were counted (analysis/exact_lines.h); 0 else */
    struct analysis_weight self, total;
    double self_variance, total_variance; /* of sampled memory (weights.h); 0 else */
};

struct analysis_rows {
    enum analysis_by by;
    const struct analysis_weights *weights; /* borrowed: must outlive this */
    struct analysis_row *row;
    size_t count;
    uint32_t *node_row; /* the row of each trie node, ANALYSIS_ROW_NONE for the root; NULL when by
                           thread or process, which have no place in a stack */
    char **texts;       /* owned: names that were made here */
    size_t text_count;
    bool has_hits; /* lines were counted: `hits` mean something */
};

int analysis_rows_init(const struct analysis_weights *weights, enum analysis_by by,
                       struct analysis_rows *ret);
void analysis_rows_release(struct analysis_rows *rows);

/* Names and places alone, for who has weights of his own: no selves, totals or calls. Of kinds that
 * stand in stacks. */
int analysis_rows_init_names(const struct analysis_weights *weights, enum analysis_by by,
                             struct analysis_rows *ret);

/* True if rows of that kind stand in stacks, and so have callers and callees. */
bool analysis_by_is_code(enum analysis_by by);

/* The dotted module of a source path, as text the caller frees; NULL without memory. What is not a
 * path ("<string>") stays as it is. */
char *analysis_module_name(const char *path, size_t len);
/* True if that is no more than the name of its file, which files in other folders may have, too. */
bool analysis_module_is_bare(const char *path, size_t len);

/* The order of texts in every list: by bytes, of two that begin the same the shorter first. */
static inline int analysis_compare_text(struct profile_string a, struct profile_string b)
{
    int c = memcmp(a.text, b.text, a.len < b.len ? a.len : b.len);
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

#endif
