/* `pyrometer memory`: who allocated it, how much at the peak, what was never given back. Its parts are words
 * after the command, as people know them from memray. */
#include "cmd/memory.h"

#include "base/err.h"
#include "cmd/speak.h"

#include <stdio.h>
#include <string.h>

/* What a part can be asked beside its filters. */
enum { TAKES_METRIC = 1, TAKES_AT = 2, TAKES_RANGE = 4 };

static const struct part {
    const char *word;
    int (*run)(struct cmd_memory *m);
    const char *metric; /* that it is of */
    unsigned takes;
} PARTS[] = {
    {"summary", cmd_memory_summary, "peak", TAKES_METRIC | TAKES_AT | TAKES_RANGE},
    {"stats", cmd_memory_stats, "allocated", TAKES_RANGE},
    {"leaks", cmd_memory_leaks, "leaked", 0},
    {"temporary", cmd_memory_temporary, "temporary", TAKES_RANGE},
    {"lines", cmd_memory_lines, "allocated", 0},
    {"plot", cmd_memory_plot, "allocated", TAKES_RANGE},
};

static int check_part(const struct part *part, const struct cmd_memory_options *o)
{
    const char *wrong = o->query.metric && !(part->takes & TAKES_METRIC)           ? "--metric"
                        : o->query.has_at && !(part->takes & TAKES_AT)             ? "--at"
                        : o->query.range && !(part->takes & TAKES_RANGE)           ? "--range"
                        : o->mark && part->run != cmd_memory_leaks                 ? "--mark"
                        : o->all && part->run != cmd_memory_leaks                  ? "--all"
                        : o->list.has_min_percent && part->run != cmd_memory_lines ? "--min-percent"
                        : o->output && part->run != cmd_memory_plot                ? "--output"
                                                                                   : NULL;
    if (wrong)
        return cmd_fail(CMD_USAGE, "memory %s has no %s", part->word, wrong);
    return 0;
}

static int understand(struct cmd_memory_options *o, const struct part *part, struct cmd_memory *m)
{
    int status = check_part(part, o);
    if (!status)
        status = cmd_query_make(&o->query, &m->query);
    if (!status)
        status = cmd_list_make(&o->list, &m->format, &m->match);
    if (status)
        return status;
    if (!o->query.metric && !o->query.has_at)
        m->query.metric = analysis_metric_find(part->metric);
    if (!m->query.metric->weigh_site)
        return cmd_fail(CMD_USAGE, "--metric %s is not of memory", m->query.metric->name);
    int by = cmd_choose("--by", o->by, ANALYSIS_BY_NAMES);
    if (by < 0)
        return CMD_USAGE;
    if (!analysis_by_is_code((enum analysis_by)by))
        return cmd_fail(CMD_USAGE, "--by %s: pyrometer report --metric %s --by %s has it", o->by,
                        m->query.metric->name, o->by);
    m->o = o;
    m->by = (enum analysis_by)by;
    return 0;
}

static int run_part(struct cmd_memory_options *o, const struct part *part, const char *run)
{
    struct cmd_memory m = {0};
    int status = understand(o, part, &m);
    if (!status)
        status = cmd_load_run(run, &m.profile);
    if (!status && !profile_has_memory(m.profile))
        status =
            cmd_fail(CMD_FAILED, "'%s' has no memory in it: record it with pyrometer run --memory",
                     profile_path(m.profile));
    if (!status)
        status = cmd_query_check(&m.query, m.profile);
    if (!status)
        status = part->run(&m);
    profile_free(m.profile);
    cmd_list_release(&o->list);
    cmd_query_release(&o->query);
    return status;
}

/* `memory tree` is `tree` with another metric: it has that command's options. */
static int run_tree(int argc, char **argv)
{
    static char tree[] = "tree", metric[] = "--metric", peak[] = "peak";
    bool chosen = false;
    for (int i = 2; i < argc; i++)
        chosen |= strncmp(argv[i], "--metric", 8) == 0 || strncmp(argv[i], "--at", 4) == 0;
    _cleanup_free_ char **args = calloc((size_t)argc + 3, sizeof *args);
    if (!args)
        return cmd_fail(CMD_FAILED, "out of memory");
    int n = 0;
    args[n++] = tree;
    if (!chosen) {
        args[n++] = metric;
        args[n++] = peak;
    }
    for (int i = 2; i < argc; i++)
        args[n++] = argv[i];
    return cmd_tree(n, args);
}

/* A word that is no part may be a RUN, of which `summary` is meant. */
static bool is_run(const char *word)
{
    return strpbrk(word, "@/.") || access(word, F_OK) == 0;
}

static int unknown_part(const char *word)
{
    struct cmd_near near = {.word = word};
    for (size_t i = 0; i < ARRAY_LEN(PARTS); i++)
        cmd_near_offer(&near, PARTS[i].word);
    cmd_near_offer(&near, "tree");
    return cmd_fail(
        CMD_USAGE,
        "memory '%s': it is one of summary, tree, stats, leaks, temporary, lines, plot%s%s%s", word,
        near.best ? " (did you mean " : "", near.best ? near.best : "", near.best ? "?)" : "");
}

int cmd_memory(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "tree") == 0)
        return run_tree(argc, argv);
    struct cmd_memory_options o = {.by = "function"};
    const struct cmd_option options[] = {
        {"by", 0, CMD_TEXT, &o.by, NULL},
        CMD_LIST_OPTIONS(&o.list),
        CMD_LIST_LIMIT(&o.list),
        CMD_LIST_MIN_PERCENT(&o.list),
        CMD_QUERY_OPTIONS(&o.query),
        {"all", 0, CMD_FLAG, &o.all, NULL},
        {"mark", 0, CMD_TEXT, &o.mark, NULL},
        {"output", 'o', CMD_TEXT, &o.output, NULL},
        {"force", 0, CMD_FLAG, &o.force, NULL},
        {"ascii", 0, CMD_FLAG, &o.ascii, NULL},
        {0},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands == 1 && is_run(argv[first]))
        return run_part(&o, &PARTS[0], argv[first]);
    const char *word = operands ? argv[first] : "summary";
    if (operands && strcmp(word, "tree") == 0)
        return cmd_fail(CMD_USAGE, "memory tree: `tree` is the first word, its options follow");
    for (size_t i = 0; i < ARRAY_LEN(PARTS); i++) {
        if (strcmp(PARTS[i].word, word) != 0)
            continue;
        if (operands > 2)
            return cmd_fail(CMD_USAGE, "memory %s takes one RUN, not %d", word, operands - 1);
        return run_part(&o, &PARTS[i], operands > 1 ? argv[first + 1] : "@");
    }
    return unknown_part(word);
}
