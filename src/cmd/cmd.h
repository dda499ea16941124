/* A command is one file and one table row; its help has one source.
 *
 * To add a command `foo`:
 *   1. src/cmd/foo.c with `int cmd_foo(int argc, char **argv)`: argv[0] is "foo"; the return value is
 *      the exit status (enum cmd_status). Options are a table parsed by cmd_options_parse().
 *   2. a row in CMD_TABLE below; the file in meson.build.
 *   3. docs/man/pyrometer-foo.md: the source of `pyrometer foo --help`, of the man page and of the
 *      test that every option in the table is documented and the other way round.
 *
 * This layer alone prints errors and decides the exit status. */
#ifndef PYROMETER_CMD_CMD_H
#define PYROMETER_CMD_CMD_H

#include "base/attr.h"

#include <stdbool.h>

enum cmd_status {
    CMD_OK = 0,
    CMD_FAILED = 1, /* could not do it */
    CMD_USAGE = 2,  /* wrong usage */
    CMD_GATE = 3,   /* a gate failed */
    /* not an exit status: RUN was a folder, which was listed instead; main() makes CMD_OK of it */
    CMD_LISTED = 256,
};

/* name, function, group (for the overview), one-line summary */
#define CMD_TABLE(X)                                                                               \
    X(run, cmd_run, "record", "start a program and record it")                                     \
    X(attach, cmd_attach, "record", "record a program that already runs")                          \
    X(dump, cmd_dump, "record", "print every thread's stack, now")                                 \
    X(report, cmd_report, "look", "where the time went, as a table")                               \
    X(tree, cmd_tree, "look", "where the time went, as a call tree")                               \
    X(flame, cmd_flame, "look", "where the time went, as a flame graph")                           \
    X(graph, cmd_graph, "look", "who calls whom and what it costs, as a picture")                  \
    X(lines, cmd_lines, "look", "the source, with what was seen of each line beside it")           \
    X(memory, cmd_memory, "look", "who allocated memory, at the peak and never given back")        \
    X(timeline, cmd_timeline, "look", "what ran when, as a picture")                               \
    X(diff, cmd_diff, "look", "two runs side by side, with what changed")                          \
    X(history, cmd_history, "look", "the runs that were kept, and what they cost")                 \
    X(export, cmd_export, "look", "write a recording in another tool's format")                    \
    X(info, cmd_info, "files", "what a recording holds")                                           \
    X(verify, cmd_verify, "files", "check a recording, save what can be saved of a torn one")      \
    X(selftest, cmd_selftest, "files", "prove on this machine what the README claims")

#define X(name, function, group, summary) int function(int argc, char **argv);
CMD_TABLE(X)
#undef X

struct cmd {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *group;
    const char *summary;
};

/* --- errors: one line on stderr, "pyrometer: …" --- */

/* Prints one line and returns `status`, so that `return cmd_fail(CMD_USAGE, "…")` reads well. */
int cmd_fail(int status, const char *fmt, ...) ATTR_PRINTF(2, 3);
void cmd_warn(const char *fmt, ...) ATTR_PRINTF(1, 2);

/* --- options --- */

enum cmd_option_kind {
    CMD_FLAG,     /* bool *         --quiet */
    CMD_TEXT,     /* const char **  --match RE    --match=RE */
    CMD_OPT_TEXT, /* const char **  --sample      --sample=HZ   (value only with '=': "" without) */
    CMD_COUNT,    /* uint64_t *     --limit N     a whole number */
    CMD_REAL,     /* double *       --for S       a finite number >= 0 */
    CMD_EACH,     /* struct cmd_each *  --match RE --limit N   may be repeated; see there */
};

/* Every use of the options that share it, in the order of the command line. */
enum { CMD_EACH_MAX = 64 };
struct cmd_each {
    struct {
        const char *option; /* its long name */
        const char *value;
    } use[CMD_EACH_MAX];
    size_t count;
};

struct cmd_option {
    const char *name; /* long name without the dashes; NULL ends the table */
    char letter;      /* short form, or 0 */
    enum cmd_option_kind kind;
    void *target;
    bool *given; /* set to true if the option was used; may be NULL */
};

/* Parses options until the first operand ("stop_at_operand", for `run`: everything after belongs to
 * the command), "--" or the end; operands may otherwise stand between options. On success returns
 * the number of operands, which then start at argv[*ret_first]. `--help`/-h prints the command's
 * help and returns CMD_PARSED_HELP; a wrong option prints one line that names it (and a near one)
 * and returns CMD_PARSED_ERROR. */
enum { CMD_PARSED_HELP = -1, CMD_PARSED_ERROR = -2 };
int cmd_options_parse(int argc, char **argv, const struct cmd_option *options, bool stop_at_operand,
                      int *ret_first);

/* The help text of a command, generated from docs/man/pyrometer-<name>.md; NULL for an unknown one. */
const char *cmd_help_text(const char *name);

/* --- RUN arguments --- */

/* Resolves "@", "@~N", an id or its beginning, or a path to the path of a recording. On failure
 * prints the line and returns the exit status to use; 0 on success with *ret owned by the caller. */
int cmd_resolve_run(const char *run, char **ret_path);

/* A new recording's path in .pyrometer/runs (made on first use, with its .gitignore). The caller
 * frees. `run_id` is the 16 bytes that go into the file. Prints and returns a status on failure. */
int cmd_new_run_path(const uint8_t run_id[16], char **ret_path);

#endif
