/* `pyrometer tree`: where the time went, as a call tree: on a terminal one to walk through, else as text,
 * JSON or CSV. */
#include "view/tree.h"

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/list.h"
#include "cmd/load.h"
#include "cmd/progress.h"
#include "view/heading.h"
#include "view/tree_screen.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

/* of a text when the user sets no limit himself */
enum { TEXT_LIMIT = 60 };
static const double TEXT_MIN_PERCENT = 0.5;

struct tree_options {
    struct cmd_query_options query;
    uint64_t limit, max_depth;
    bool has_limit, has_min_percent;
    double min_percent;
    bool bottom_up, by_line, by_thread, text, json, csv;
};

/* The command line, understood. */
struct tree_request {
    struct analysis_query query;
    struct analysis_calltree_options options;
    enum view_format format;
    bool interactive;
    int signal; /* that ended the walk; 0: none did */
};

/* The limits of the tree, for the output it is made for. */
static void choose_limits(const struct tree_options *o, struct tree_request *q)
{
    bool is_default =
        q->format == VIEW_TEXT && !q->interactive && !o->has_limit && !o->has_min_percent;
    uint64_t limit = o->has_limit     ? o->limit
                     : q->interactive ? VIEW_TREE_SCREEN_NODES
                     : is_default     ? TEXT_LIMIT
                                      : 0;
    uint64_t depth = o->max_depth ? o->max_depth : UINT32_MAX;
    if (q->format == VIEW_JSON)
        depth = min_u64(depth, VIEW_TREE_JSON_DEPTH);
    q->options = (struct analysis_calltree_options){
        .by = o->by_line ? ANALYSIS_BY_LINE : ANALYSIS_BY_FUNCTION,
        .by_thread = o->by_thread,
        .tree = {.bottom_up = o->bottom_up,
                 .max_nodes = limit ? min_u64(limit, UINT32_MAX) + 1 : 0, /* and the root */
                 .max_depth = (uint32_t)min_u64(depth, UINT32_MAX),
                 .min_share = (is_default ? TEXT_MIN_PERCENT : o->min_percent) / 100},
    };
}

static int understand(struct tree_options *o, struct tree_request *q)
{
    int status = cmd_query_make(&o->query, &q->query);
    if (status)
        return status;
    if (o->json + o->csv + o->text > 1)
        return cmd_fail(CMD_USAGE, "--json, --csv and --text: one of them");
    if (o->min_percent > 100)
        return cmd_fail(CMD_USAGE, "--min-percent %g: it is between 0 and 100", o->min_percent);
    q->format = o->json ? VIEW_JSON : o->csv ? VIEW_CSV : VIEW_TEXT;
    q->interactive = q->format == VIEW_TEXT && !o->text && screen_is_possible();
    return 0;
}

static int print(const struct tree_request *q, const struct analysis_calltree *tree)
{
    errno = 0;
    int r = view_tree_print(tree, cmd_stdout(), q->format, view_style_of(stdout));
    if (r < 0)
        return cmd_output_failed("the tree", r, errno);
    cmd_list_warn(q->format, &tree->weights);
    return 0;
}

/* Takes the tree. */
static int browse(struct tree_request *q, struct screen *screen, const struct profile *profile,
                  struct analysis_calltree *tree)
{
    int r = view_tree_browse(screen, profile, &q->query, tree);
    q->signal = screen_signal(screen);
    screen_close(screen);
    return r < 0 ? cmd_fail(CMD_FAILED, "cannot show the tree: %s", err_text(r)) : 0;
}

/* There is something to show: makes the tree for the output that is possible. Takes the tree. */
static int grow_and_show(const struct tree_options *o, struct tree_request *q,
                         const struct profile *profile, struct analysis_calltree *tree)
{
    struct screen *screen = NULL;
    choose_limits(o, q);
    int r = analysis_calltree_grow(tree, &q->query, &q->options);
    int status = r < 0 ? cmd_fail(CMD_FAILED, "cannot make the tree: %s", err_text(r)) : 0;
    if (!status && q->interactive && screen_open(view_style_of(cmd_stdout()).colour, &screen) == 0)
        return browse(q, screen, profile, tree);
    if (!status)
        status = print(q, tree);
    analysis_calltree_release(tree);
    free(tree);
    return status;
}

static int show(const struct tree_options *o, struct tree_request *q, const struct profile *profile)
{
    struct analysis_calltree *tree = calloc(1, sizeof *tree);
    int r = tree ? analysis_calltree_weigh(tree, profile, &q->query) : E_NOMEM;
    if (r < 0) {
        free(tree);
        return cmd_load_failed(profile_path(profile), r);
    }
    bool too_short = view_is_too_short(&tree->weights);
    int status = too_short ? 0 : cmd_query_check(&q->query, profile);
    if (!status && !too_short && tree->weights.total.samples)
        return grow_and_show(o, q, profile, tree);
    q->interactive = false;
    choose_limits(o, q);
    tree->options = q->options;
    if (!status)
        status = print(q, tree);
    analysis_calltree_release(tree);
    free(tree);
    return status;
}

int cmd_tree(int argc, char **argv)
{
    struct tree_options o = {0};
    const struct cmd_option options[] = {
        {"bottom-up", 0, CMD_FLAG, &o.bottom_up, NULL},
        {"by-line", 0, CMD_FLAG, &o.by_line, NULL},
        {"by-thread", 0, CMD_FLAG, &o.by_thread, NULL},
        {"limit", 0, CMD_COUNT, &o.limit, &o.has_limit},
        {"min-percent", 0, CMD_REAL, &o.min_percent, &o.has_min_percent},
        {"max-depth", 0, CMD_COUNT, &o.max_depth, NULL},
        CMD_QUERY_OPTIONS(&o.query),
        {"text", 0, CMD_FLAG, &o.text, NULL},
        {"json", 0, CMD_FLAG, &o.json, NULL},
        {"csv", 0, CMD_FLAG, &o.csv, NULL},
        {0},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands > 1)
        return cmd_fail(CMD_USAGE, "tree takes one RUN, not %d", operands);

    struct tree_request q = {0};
    struct profile *profile = NULL;
    int status = understand(&o, &q);
    if (!status)
        status = cmd_load_run(operands ? argv[first] : "@", &profile);
    if (!status)
        status = show(&o, &q, profile);
    profile_free(profile);
    cmd_query_release(&o.query);
    if (q.signal) { /* the screen took it; who started us shall see it */
        signal(q.signal, SIG_DFL);
        raise(q.signal);
    }
    return status;
}
