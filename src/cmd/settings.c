#include "cmd/settings.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/toml.h"
#include "cmd/cmd.h"
#include "stats/gate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "pyproject.toml"

static const double SHARE_MAX = 10;

bool cmd_parse_share(const char *text, double *ret)
{
    char *end;
    if (!*text || text[strspn(text, "0123456789. %")])
        return false;
    double v = strtod(text, &end);
    if (end == text)
        return false;
    end += strspn(end, " ");
    if (*end == '%') {
        v /= 100;
        end++;
    }
    if (*end || !isfinite(v) || v < 0 || v > SHARE_MAX)
        return false;
    *ret = v;
    return true;
}

struct cmd_limit *cmd_settings_limit(struct cmd_settings *s, const char *metric)
{
    for (size_t i = 0; i < s->limits.len; i++)
        if (!strcmp(s->limits.data[i].metric, metric))
            return &s->limits.data[i];
    if (s->limits.len == CMD_LIMITS_MAX)
        return NULL;
    char *copy = strdup(metric);
    struct cmd_limit *l = copy ? vec_push(&s->limits) : NULL;
    if (!l) {
        free(copy);
        return NULL;
    }
    *l = (struct cmd_limit){.metric = copy, .threshold = STATS_GATE_THRESHOLD, .limit = NAN};
    return l;
}

/* --- one value of the file --- */

struct reading {
    struct cmd_settings *settings;
    bool has_failed; /* the line has been printed */
};

static int refuse(struct reading *r, const struct toml_item *item, const char *what)
{
    r->has_failed = true;
    cmd_fail(CMD_USAGE, "%s, line %u: %s", r->settings->path, item->line, what);
    return E_INVALID;
}

static bool read_share(const struct toml_item *item, double *ret)
{
    if (item->kind == TOML_TEXT)
        return cmd_parse_share(item->text, ret);
    /* a plain 5 might be 5 % or 500 %: only what is clearly a share is taken */
    if (item->kind != TOML_NUMBER || !(item->number >= 0 && item->number < 1))
        return false;
    *ret = item->number;
    return true;
}

/* tool.pyrometer.check.metrics.NAME[.KEY] */
static int read_metric(struct reading *r, const struct toml_item *item)
{
    enum { NAME = 4, KEY = 5 };
    const char *key = item->parts > KEY ? item->part[KEY] : "threshold";
    if (item->parts > KEY + 1)
        return refuse(r, item, "a metric has `threshold`, `limit` and `worse`");
    struct cmd_limit *l = cmd_settings_limit(r->settings, item->part[NAME]);
    if (!l)
        return refuse(r, item, "too many metrics");
    if (!strcmp(key, "threshold"))
        return read_share(item, &l->threshold)
                   ? 0
                   : refuse(r, item, "a threshold is written as \"5%\"");
    if (!strcmp(key, "limit") && item->kind == TOML_NUMBER && isfinite(item->number)) {
        l->limit = item->number;
        return 0;
    }
    if (!strcmp(key, "worse") && item->kind == TOML_TEXT &&
        (!strcmp(item->text, "less") || !strcmp(item->text, "more"))) {
        l->is_less_worse = !strcmp(item->text, "less");
        return 0;
    }
    return refuse(r, item,
                  !strcmp(key, "limit")   ? "a limit is a number in the metric's unit"
                  : !strcmp(key, "worse") ? "`worse` is \"more\" or \"less\""
                                          : "a metric has `threshold`, `limit` and `worse`");
}

static int on_item(void *ctx, const struct toml_item *item)
{
    static const char *const ours[] = {"tool", "pyrometer", "check"};
    enum { OURS = ARRAY_LEN(ours) };
    struct reading *r = ctx;
    for (size_t i = 0; i < OURS; i++)
        if (item->parts <= i || strcmp(item->part[i], ours[i]) != 0)
            return 0;
    if (item->parts > OURS + 1 && !strcmp(item->part[OURS], "metrics") && !item->in_array)
        return read_metric(r, item);
    if (item->parts == OURS + 1 && !item->in_array) {
        if (!strcmp(item->part[OURS], "baseline") && item->kind == TOML_TEXT) {
            free(r->settings->baseline);
            r->settings->baseline = strdup(item->text);
            return r->settings->baseline ? 0 : E_NOMEM;
        }
        if (!strcmp(item->part[OURS], "last") && item->kind == TOML_NUMBER && item->number >= 1 &&
            item->number <= 10000) {
            r->settings->last = (uint64_t)item->number;
            return 0;
        }
    }
    return refuse(r, item, "[tool.pyrometer.check] has `baseline`, `last` and `metrics`");
}

/* --- the file --- */

/* The nearest one upward; its text is appended to `out`. E_NOENT: there is none. */
static int find_file(struct buf *out, char **ret_path)
{
    _cleanup_free_ char *dir = getcwd(NULL, 0);
    if (!dir)
        return err_from_errno(errno);
    for (;;) {
        char *path;
        if (asprintf(&path, "%s/" FILE_NAME, strcmp(dir, "/") ? dir : "") < 0)
            return E_NOMEM;
        int r = io_read_file(path, out);
        if (r == 0) {
            *ret_path = path;
            return 0;
        }
        free(path);
        if (r != E_NOENT || !strcmp(dir, "/"))
            return r;
        char *slash = strrchr(dir, '/');
        slash[slash == dir] = '\0';
    }
}

int cmd_settings_load(struct cmd_settings *ret)
{
    struct cmd_settings s = {0};
    struct reading reading = {&s, false};
    struct buf text;
    unsigned line = 0;
    buf_init(&text, TOML_MAX_BYTES);
    int r = find_file(&text, &s.path), status = 0;
    if (r == 0)
        r = toml_read((const char *)text.data, text.len, on_item, &reading, &line);
    if (reading.has_failed)
        status = CMD_USAGE;
    else if (r == E_BADTOML)
        status = cmd_fail(CMD_USAGE, "%s, line %u: it is not TOML", s.path, line);
    else if (r < 0 && r != E_NOENT)
        status =
            cmd_fail(CMD_FAILED, "cannot read %s: %s", s.path ? s.path : FILE_NAME, err_text(r));
    buf_release(&text);
    if (status)
        cmd_settings_release(&s);
    else
        *ret = s;
    return status;
}

void cmd_settings_release(struct cmd_settings *s)
{
    for (size_t i = 0; i < s->limits.len; i++)
        free(s->limits.data[i].metric);
    vec_release(&s->limits);
    free(s->path);
    free(s->baseline);
    *s = (struct cmd_settings){0};
}
