/* What the commands that look at a recording share: loading it with a line that helps when it
 * cannot be loaded, and options whose value is one of a list. */
#ifndef PYROMETER_CMD_LOAD_H
#define PYROMETER_CMD_LOAD_H

#include "analysis/query.h"
#include "base/attr.h"
#include "base/buf.h"

/* Resolves RUN and loads it. On failure prints the line and returns the exit status; 0 on success
 * with *ret owned by the caller. A torn or damaged recording is loaded as far as it goes, with a
 * warning. */
int cmd_load_run(const char *run, struct profile **ret);

/* The same for a path. */
int cmd_load_path(const char *path, struct profile **ret);

/* The line for a recording that cannot be read, and its exit status. */
int cmd_load_failed(const char *path, int code);

/* The place of `word` in a NULL-ended list, or a line that gives the right ones and -1. */
int cmd_choose(const char *option, const char *word, const char *const *names);

/* The filter language: the part of a command line that makes a query. Zero-initialise it, splice
 * CMD_QUERY_OPTIONS into the command's table, cmd_query_make() after parsing, and in the end, also
 * after a failure, cmd_query_release(). */
struct cmd_query_options {
    const char *metric;
    const char *thread;
    uint64_t process;
    bool has_process;
    const char *range; /* "A:B", seconds after the start; either side may be empty */
    double at;         /* the moment of the metric `live`, in the same seconds */
    bool has_at;
    const char *include, *exclude;
    regex_t include_regex, exclude_regex; /* owned once compiled */
    bool has_include, has_exclude;
};

/* The rows of the table, the same for every command that looks at recordings. */
/* clang-format off */
#define CMD_QUERY_OPTIONS(q)                                                                       \
    {"metric", 0, CMD_TEXT, &(q)->metric, NULL},                                                   \
    {"thread", 0, CMD_TEXT, &(q)->thread, NULL},                                                   \
    {"process", 0, CMD_COUNT, &(q)->process, &(q)->has_process},                                   \
    {"range", 0, CMD_TEXT, &(q)->range, NULL},                                                     \
    {"at", 0, CMD_REAL, &(q)->at, &(q)->has_at},                                                   \
    {"include", 0, CMD_TEXT, &(q)->include, NULL},                                                 \
    {"exclude", 0, CMD_TEXT, &(q)->exclude, NULL}
/* clang-format on */

/* Fills in the query (texts and expressions stay borrowed from the options). 0, or the status after
 * a line. */
int cmd_query_make(struct cmd_query_options *options, struct analysis_query *ret);
void cmd_query_release(struct cmd_query_options *options);

/* The filters as the user gave them, for a heading: "thread main, seconds 1:2"; appended. */
void cmd_query_describe(const struct cmd_query_options *options, struct buf *out);

/* Compiles the extended regular expression of an option. 0, or the status after a line. */
int cmd_regex_compile(const char *option, const char *pattern, regex_t *ret);

/* 0 if the filters leave a thread at all, or the status after a line that lists what there is. */
int cmd_query_check(const struct analysis_query *query, const struct profile *profile);

/* The same for what has moments whatever the metric: a timeline. */
int cmd_query_check_threads(const struct analysis_query *query, const struct profile *profile);

/* The status after an output that failed with `code`: a reader who went away is no error. */
int cmd_output_failed(const char *what, int code, int os_errno);

#endif
