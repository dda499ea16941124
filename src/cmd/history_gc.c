/* pyrometer history rm and gc: removing runs, and the recordings that belong to them. */
#include "base/buf.h"
#include "base/err.h"
#include "base/progress.h"
#include "base/vec.h"
#include "cmd/history.h"
#include "cmd/progress.h"
#include "view/history.h"
#include "view/text.h"
#include "view/units.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What gc has to know of a run. */
struct candidate {
    int64_t id, started_us;
    char *profile; /* owned; NULL: none that is ours to remove */
    uint64_t profile_bytes;
};
typedef VEC(struct candidate) candidate_vec;

struct gather {
    const char *runs_folder;
    candidate_vec list;
};

/* Only recordings that stand in runs/ beside the database are ours; one that somebody put elsewhere with -o is not. */
static bool is_ours(const char *runs_folder, const char *profile)
{
    size_t len = strlen(runs_folder);
    return len && !strncmp(profile, runs_folder, len) && profile[len] == '/' &&
           !strchr(profile + len + 1, '/');
}

static int gather_one(void *ctx, const struct history_run *run)
{
    struct gather *g = ctx;
    struct candidate *c = vec_push(&g->list);
    struct stat st;
    if (!c)
        return E_NOMEM;
    c->id = run->id;
    c->started_us = run->started_us;
    if (run->profile && is_ours(g->runs_folder, run->profile) && stat(run->profile, &st) == 0) {
        c->profile = strdup(run->profile);
        c->profile_bytes = (uint64_t)st.st_size;
    }
    return 0;
}

static void candidates_release(candidate_vec *list)
{
    for (size_t i = 0; i < list->len; i++)
        free(list->data[i].profile);
    vec_release(list);
}

/* "<folder of the database>/runs", without links; "" if there is none. */
static void runs_folder_of(const char *db, char dst[PATH_MAX])
{
    _cleanup_free_ char *text = NULL;
    const char *slash = strrchr(db, '/');
    if (asprintf(&text, "%.*s/runs", slash ? (int)(slash - db) : 1, slash ? db : ".") < 0) {
        text = NULL;
        dst[0] = '\0';
    } else if (!realpath(text, dst)) {
        dst[0] = '\0';
    }
}

static int remove_one(struct history_store *s, const struct candidate *c, bool keep_profiles)
{
    int rc = history_store_remove(s, c->id);
    if (rc == 0 && c->profile && !keep_profiles && unlink(c->profile) < 0 && errno != ENOENT)
        cmd_warn("cannot remove %s: %s", c->profile, strerror(errno));
    return rc;
}

int cmd_history_rm(const struct cmd_history_options *o, int count, char **argv)
{
    if (!count)
        return cmd_fail(CMD_USAGE, "history rm needs the runs to remove: pyrometer history rm 17");
    char *path = NULL, folder[PATH_MAX];
    struct history_store *s = NULL;
    int status = cmd_history_open(o, HISTORY_WRITE, &path, &s);
    if (status)
        return status;
    runs_folder_of(path, folder);
    struct gather g = {.runs_folder = folder};
    for (int i = 0; !status && i < count; i++) { /* all are found before one is removed */
        int64_t id;
        struct history_run run = {0};
        status = cmd_history_find(s, path, argv[i], &id);
        int rc = status ? 0 : history_store_run(s, id, &run);
        if (rc == 0 && !status)
            rc = gather_one(&g, &run);
        if (rc < 0)
            status = cmd_history_failed(path, rc);
        history_run_release(&run);
    }
    for (size_t i = 0; !status && i < g.list.len; i++) {
        int rc = o->dry_run ? 0 : remove_one(s, &g.list.data[i], o->keep_profiles);
        if (rc < 0 && rc != E_NOENT)
            status = cmd_history_failed(path, rc);
    }
    candidates_release(&g.list);
    history_store_close(s);
    free(path);
    return status;
}

/* "500M", "2G", "100000" */
static bool parse_size(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    double n = strtod(text, &end);
    static const char units[] = "KMGT";
    const char *unit = *end ? strchr(units, *end >= 'a' ? *end - 32 : *end) : NULL;
    if (end == text || errno || n < 0 || n > 1e15 ||
        (*end && (!unit || (end[1] && strcmp(end + 1, "B") && strcmp(end + 1, "iB")))))
        return false;
    for (int i = 0; unit && i <= unit - units; i++)
        n *= 1024;
    *ret = (uint64_t)n;
    return true;
}

/* How many of the oldest go: those before `before_us`, and as many as bring the size below `max_size`. */
static size_t choose(const candidate_vec *list, int64_t before_us, uint64_t max_size,
                     uint64_t store_size, uint64_t *ret_bytes)
{
    uint64_t total = store_size, each = list->len ? store_size / list->len : 0, freed = 0;
    for (size_t i = 0; i < list->len; i++)
        total += list->data[i].profile_bytes;
    size_t n = 0;
    while (n < list->len &&
           (list->data[n].started_us < before_us || total - min_u64(freed, total) > max_size))
        freed += each + list->data[n++].profile_bytes;
    *ret_bytes = freed;
    return n;
}

static void say_what(const struct candidate *c)
{
    struct buf path;
    buf_init(&path, 1 << 16);
    if (c->profile)
        view_text_escape(&path, c->profile, strlen(c->profile));
    fprintf(cmd_stdout(), "would remove run %lld of %s%s%s\n", (long long)c->id,
            view_history_local(c->started_us).text, path.len ? " and " : "", buf_cstr(&path));
    buf_release(&path);
}

static int collect_garbage(const struct cmd_history_options *o, struct history_store *s,
                           const char *path, int64_t before_us, uint64_t max_size)
{
    char folder[PATH_MAX];
    uint64_t store_size = 0, freed = 0;
    runs_folder_of(path, folder);
    struct gather g = {.runs_folder = folder};
    struct history_filter all = {.with_warmups = true};
    int rc = history_store_size(s, &store_size);
    if (rc == 0)
        rc = history_store_runs(s, &all, false, gather_one, &g);
    size_t n = rc < 0 ? 0 : choose(&g.list, before_us, max_size, store_size, &freed);
    progress_begin("removing runs", n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct candidate *c = &g.list.data[i];
        if (o->dry_run)
            say_what(c);
        else
            rc = remove_one(s, c, o->keep_profiles);
        progress_add(1);
    }
    progress_begin("giving the room back", 0);
    if (rc == 0 && n && !o->dry_run)
        rc = history_store_shrink(s);
    if (rc == 0)
        fprintf(cmd_stdout(), "%s %zu of %zu runs, about %s\n",
                o->dry_run ? "would remove" : "removed", n, g.list.len,
                view_units_bytes((double)freed).text);
    candidates_release(&g.list);
    return rc < 0 ? cmd_history_failed(path, rc) : CMD_OK;
}

int cmd_history_gc(const struct cmd_history_options *o, int count, char **argv)
{
    (void)argv;
    int64_t before_us = INT64_MIN;
    uint64_t max_size = UINT64_MAX;
    if (count)
        return cmd_fail(CMD_USAGE, "history gc takes no run: history rm removes single ones");
    if (!o->older_than && !o->max_size)
        return cmd_fail(CMD_USAGE, "history gc needs --older-than 90d or --max-size 500M, or both");
    if (o->older_than && !cmd_history_parse_time(o->older_than, &before_us))
        return cmd_fail(CMD_USAGE, "--older-than %s: write an age as 90d, or a day as 2026-01-31",
                        o->older_than);
    if (o->max_size && !parse_size(o->max_size, &max_size))
        return cmd_fail(CMD_USAGE, "--max-size %s: write a size as 500M or 2G", o->max_size);
    char *path = NULL;
    struct history_store *s = NULL;
    int status = cmd_history_open(o, o->dry_run ? HISTORY_READ : HISTORY_WRITE, &path, &s);
    if (status)
        return status;
    status = collect_garbage(o, s, path, before_us, max_size);
    history_store_close(s);
    free(path);
    return status;
}
