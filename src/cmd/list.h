/* What the commands that print a list share: how it is printed, and which of its rows. */
#ifndef PYROMETER_CMD_LIST_H
#define PYROMETER_CMD_LIST_H

#include "base/attr.h"
#include "view/emit.h"

#include <regex.h>
#include <stdbool.h>

/* Zero-initialise it, splice CMD_LIST_OPTIONS (and the options of single rows that the command
 * knows) into the command's table, cmd_list_make() after parsing, and in the end, also after a
 * failure, cmd_list_release(). */
struct cmd_list_options {
    const char *match;
    uint64_t limit;
    double min_percent;
    bool json, csv, has_limit, has_min_percent;
    regex_t regex; /* owned once compiled */
    bool has_regex;
};

/* clang-format off */
#define CMD_LIST_OPTIONS(l)                                                                        \
    {"match", 0, CMD_TEXT, &(l)->match, NULL},                                                     \
    {"json", 0, CMD_FLAG, &(l)->json, NULL},                                                       \
    {"csv", 0, CMD_FLAG, &(l)->csv, NULL}
#define CMD_LIST_LIMIT(l) {"limit", 0, CMD_COUNT, &(l)->limit, &(l)->has_limit}
#define CMD_LIST_MIN_PERCENT(l)                                                                    \
    {"min-percent", 0, CMD_REAL, &(l)->min_percent, &(l)->has_min_percent}
/* clang-format on */

/* The form of the output and the expression of --match, NULL without one (borrowed from the
 * options). 0, or the status after a line. */
int cmd_list_make(struct cmd_list_options *options, enum view_format *ret_format,
                  const regex_t **ret_match);
void cmd_list_release(struct cmd_list_options *options);

/* How many rows: what the user says; else a page of text, or all of them. 0: all. */
uint64_t cmd_list_limit(const struct cmd_list_options *options, enum view_format format);

struct analysis_weights;
/* After a table that has no place for words, --csv: says on standard error what the recording lacks. Only of what was counted, where
 * each loss is a hole; samples stand for each other. */
void cmd_list_warn(enum view_format format, const struct analysis_weights *weights);

struct profile;
/* Says that `profile` has no exact lines, and what to do, or why not: the status. `style` is that of --style which
 * cannot do without, NULL: samples would do, too. */
int cmd_list_no_exact_lines(const struct profile *profile, const char *style);

/* Exact calls have no lines but those that their functions begin in. 0, or the status after a line that
 * says so and what to do. */
int cmd_list_check_lines(const struct analysis_weights *weights);

/* The status after making `what` returned `code`; `in_output` if it was being printed by then. */
int cmd_list_status(const char *what, int code, bool in_output, int os_errno);

#endif
