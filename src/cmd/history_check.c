/* pyrometer history check: the gate. Exit status 3 if it trips. */
#include "cmd/history_check.h"

#include "base/err.h"
#include "cmd/check.h"
#include "cmd/history.h"
#include "cmd/load.h"
#include "cmd/progress.h"

#include <errno.h>
#include <string.h>

enum { LAST_MAX = 10000 };

int cmd_check_default_limits(struct cmd_settings *settings)
{
    static const char *const metrics[] = {"elapsed_time_sec", "user_time_sec", "max_res_set_sz_kb"};
    for (size_t i = 0; i < ARRAY_LEN(metrics); i++)
        if (!cmd_settings_limit(settings, metrics[i]))
            return cmd_fail(CMD_FAILED, "out of memory");
    return 0;
}

/* --metric NAME or NAME=5%. */
static int add_metric(struct cmd_settings *s, const char *said)
{
    const char *equals = strrchr(said, '=');
    _cleanup_free_ char *name = strndup(said, equals ? (size_t)(equals - said) : strlen(said));
    if (!name)
        return cmd_fail(CMD_FAILED, "out of memory");
    struct cmd_limit *l = cmd_settings_limit(s, history_metric_canonical(name));
    if (!l)
        return cmd_fail(CMD_USAGE, "at most %d metrics can be checked at once", CMD_LIMITS_MAX);
    if (equals && !cmd_parse_share(equals + 1, &l->threshold))
        return cmd_fail(CMD_USAGE, "--metric %s: the threshold is written as %s=5%%", said, name);
    return 0;
}

/* Keeps only the metrics that were named, with what the project says about them. */
static void keep_named(struct cmd_settings *s, const struct cmd_each *named)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->limits.len; i++) {
        struct cmd_limit *l = &s->limits.data[i];
        bool is_named = false;
        for (size_t k = 0; k < named->count; k++) {
            const char *said = named->use[k].value;
            size_t name_len = strcspn(said, "=");
            _cleanup_free_ char *name = strndup(said, name_len);
            is_named = is_named || (name && !strcmp(history_metric_canonical(name), l->metric));
        }
        if (is_named)
            s->limits.data[kept++] = *l;
        else
            free(l->metric);
    }
    s->limits.len = kept;
}

static int understand(const struct cmd_history_options *o, struct cmd_settings *s)
{
    const struct cmd_each *named = &o->plot.metrics;
    double threshold = 0;
    int status = cmd_settings_load(s);
    if (status)
        return status;
    if (o->check.threshold && !cmd_parse_share(o->check.threshold, &threshold))
        return cmd_fail(CMD_USAGE, "--threshold %s: write it as 5%%", o->check.threshold);
    if (!s->limits.len && !named->count)
        status = cmd_check_default_limits(s);
    if (o->check.threshold) {
        for (size_t i = 0; i < s->limits.len; i++)
            s->limits.data[i].threshold = threshold;
    }
    for (size_t i = 0; !status && i < named->count; i++) {
        size_t before = s->limits.len;
        status = add_metric(s, named->use[i].value);
        if (!status && o->check.threshold && s->limits.len > before &&
            !strchr(named->use[i].value, '='))
            s->limits.data[before].threshold = threshold;
    }
    if (!status && named->count)
        keep_named(s, named);
    if (!status && o->has_last && (o->last < 2 || o->last > LAST_MAX))
        status = cmd_fail(CMD_USAGE, "--last needs a number from 2 to %d", LAST_MAX);
    return status;
}

static struct cmd_check_request make_request(const struct cmd_history_options *o,
                                             const struct cmd_settings *settings, const char *key)
{
    return (struct cmd_check_request){
        .key = key,
        .run = o->check.run,
        .baseline = o->check.baseline ? o->check.baseline : settings->baseline,
        .last = o->has_last      ? o->last
                : settings->last ? settings->last
                                 : CMD_CHECK_LAST,
        .settings = settings,
    };
}

static int check(const struct cmd_history_options *o, const struct cmd_settings *settings,
                 struct history_store *store, const char *key)
{
    struct cmd_check *c = calloc(1, sizeof *c);
    if (!c)
        return cmd_fail(CMD_FAILED, "out of memory");
    struct cmd_check_request request = make_request(o, settings, key);
    int status = cmd_check_make(store, &request, c);
    if (!status) {
        enum view_check_form form = o->check.markdown ? VIEW_CHECK_MARKDOWN
                                    : o->json         ? VIEW_CHECK_JSON
                                                      : VIEW_CHECK_TEXT;
        errno = 0;
        int r = view_check_print(&c->view, cmd_stdout(), form, view_style_of(stdout));
        status = r < 0                   ? cmd_output_failed("the answer", r, errno)
                 : c->view.is_regression ? CMD_GATE
                                         : CMD_OK;
        cmd_check_release(c);
    }
    free(c);
    return status;
}

int cmd_history_check(const struct cmd_history_options *o, int count, char **argv)
{
    if (o->csv || (o->json && *o->json))
        return cmd_fail(CMD_USAGE, "history check prints text, --markdown or --json");
    if (o->json && o->check.markdown)
        return cmd_fail(CMD_USAGE, "--json and --markdown are one too many");
    struct cmd_settings settings = {0};
    struct history_store *store = NULL;
    _cleanup_free_ char *path = NULL, *key = NULL;
    int status = understand(o, &settings);
    if (!status)
        status = cmd_history_open(o, HISTORY_READ, &path, &store);
    if (!status && count && !(key = cmd_history_key(count, argv)))
        status = cmd_fail(CMD_FAILED, "out of memory");
    if (!status)
        status = check(o, &settings, store, key);
    history_store_close(store);
    cmd_settings_release(&settings);
    return status;
}

int cmd_check_quietly(const char *db, const char *run, bool *ret_is_regression)
{
    struct cmd_history_options o = {.db = db, .check = {.run = run}};
    struct cmd_settings settings = {0};
    struct history_store *store = NULL;
    _cleanup_free_ char *path = NULL;
    struct cmd_check *c = calloc(1, sizeof *c);
    if (!c)
        return cmd_fail(CMD_FAILED, "out of memory");
    int status = understand(&o, &settings);
    if (!status)
        status = cmd_history_open(&o, HISTORY_READ, &path, &store);
    if (!status) {
        struct cmd_check_request request = make_request(&o, &settings, NULL);
        status = cmd_check_make(store, &request, c);
    }
    cmd_progress_end(); /* what comes next may be the program again */
    if (!status) {
        *ret_is_regression = c->view.is_regression;
        cmd_check_release(c);
    }
    free(c);
    history_store_close(store);
    cmd_settings_release(&settings);
    return status;
}
