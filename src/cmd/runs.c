/* Which recording is meant, and where a new one goes.
 *
 * Recordings without a name of their own live in .pyrometer/runs, in the working directory or the
 * nearest one above it that has a .pyrometer. A run's id is its file's stem,
 * YYYYMMDD-HHMMSS-xxxxxx: local time, so that the order of names is the order of time, and the
 * first three bytes of the run's own id, so that two runs of one second differ (which of them came
 * first is then asked of the files). "@" and "@~N" count the files with such names only: a file
 * that somebody put or repaired there is named by its id. */
#include "cmd/runs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "format/format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define HOME_NAME   ".pyrometer"
#define RUN_SUFFIX  ".pyro"
#define RUN_PATTERN "dddddddd-dddddd-xxxxxx"

enum {
    RUN_ID_LEN = sizeof RUN_PATTERN - 1,
    RUN_HEX_AT = RUN_ID_LEN - 6, /* where the part from the run's id begins */
    MAX_CANDIDATES = 5,          /* named in an ambiguity */
};

/* File names in a runs folder, each owned, newest last. */
struct run_list {
    char *dir; /* owned; NULL where there is no folder */
    VEC(char *) names;
};

static void run_list_release(struct run_list *l)
{
    for (size_t i = 0; i < l->names.len; i++)
        free(l->names.data[i]);
    vec_release(&l->names);
    free(l->dir);
}

static char *join(const char *dir, const char *name)
{
    char *path;
    return asprintf(&path, "%s%s%s", dir, strcmp(dir, "/") ? "/" : "", name) < 0 ? NULL : path;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len > end_len && !strcmp(text + len - end_len, end);
}

/* True if the name begins as an id does; what follows may be ".pyro" or "-repaired.pyro". */
static bool begins_with_id(const char *name)
{
    for (size_t i = 0; i < RUN_ID_LEN; i++) {
        char want = RUN_PATTERN[i], c = name[i];
        bool digit = c >= '0' && c <= '9';
        bool ok = want == 'd' ? digit : want == 'x' ? digit || (c >= 'a' && c <= 'f') : c == want;
        if (!ok)
            return false;
    }
    return true;
}

static bool has_run_name(const char *name)
{
    return begins_with_id(name) && !strcmp(name + RUN_ID_LEN, RUN_SUFFIX);
}

/* The nearest .pyrometer from the working directory upward; E_NOENT if there is none. */
static int find_home(char **ret)
{
    _cleanup_free_ char *dir = getcwd(NULL, 0);
    if (!dir)
        return err_from_errno(errno);
    for (;;) {
        char *home = join(dir, HOME_NAME);
        if (!home)
            return E_NOMEM;
        if (is_directory(home)) {
            *ret = home;
            return 0;
        }
        free(home);
        if (!strcmp(dir, "/"))
            return E_NOENT;
        char *slash = strrchr(dir, '/');
        slash[slash == dir] = '\0'; /* "/home" becomes "/" */
    }
}

/* --- the list --- */

/* When the recording was begun, by its header; 0 if the file does not tell. */
static uint64_t read_created(const char *dir, const char *name)
{
    struct format_file_header header;
    _cleanup_free_ char *path = join(dir, name);
    _cleanup_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0 || read(fd, &header, sizeof header) != (ssize_t)sizeof header)
        return 0;
    return memcmp(header.magic, FORMAT_MAGIC, sizeof header.magic) ? 0 : header.created_ns;
}

/* By name; two runs of one second by what their files say. */
static int by_age(const void *a, const void *b, void *dir)
{
    const char *one = *(char *const *)a, *other = *(char *const *)b;
    bool same_second = has_run_name(one) && has_run_name(other) && !strncmp(one, other, RUN_HEX_AT);
    uint64_t first = same_second ? read_created(dir, one) : 0;
    uint64_t second = same_second ? read_created(dir, other) : 0;
    if (first != second)
        return first < second ? -1 : 1;
    return strcmp(one, other);
}

static int read_names(DIR *dir, struct run_list *l)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            return errno ? err_from_errno(errno) : 0;
        if (!ends_with(entry->d_name, RUN_SUFFIX))
            continue;
        char *name = strdup(entry->d_name);
        char **slot = name ? vec_push(&l->names) : NULL;
        if (!slot) {
            free(name);
            return E_NOMEM;
        }
        *slot = name;
    }
}

/* No folder is an empty list. Prints and returns a status on failure. */
static int run_list_load(struct run_list *l)
{
    _cleanup_free_ char *home = NULL;
    int rc = find_home(&home);
    if (rc == E_NOENT)
        return 0;
    if (rc < 0)
        return cmd_fail(CMD_FAILED, "cannot look for recordings: %s", err_text(rc));
    l->dir = join(home, "runs");
    if (!l->dir)
        return cmd_fail(CMD_FAILED, "out of memory");
    DIR *dir = opendir(l->dir);
    if (!dir && errno == ENOENT)
        return 0;
    rc = dir ? read_names(dir, l) : err_from_errno(errno);
    if (dir)
        closedir(dir);
    if (rc < 0)
        return cmd_fail(CMD_FAILED, "cannot list %s: %s", l->dir, err_text(rc));
    if (l->names.len)
        qsort_r(l->names.data, l->names.len, sizeof *l->names.data, by_age, l->dir);
    return 0;
}

/* --- which one is meant --- */

static int give(const struct run_list *l, const char *name, char **ret_path)
{
    char *path = join(l->dir, name);
    if (!path)
        return cmd_fail(CMD_FAILED, "out of memory");
    *ret_path = path;
    return 0;
}

static int no_runs(void)
{
    return cmd_fail(CMD_FAILED,
                    "there are no recordings yet; make one first: pyrometer run python app.py");
}

/* How many runs back "@" or "@~N" reaches; false if it is neither. */
static bool parse_back(const char *text, uint64_t *ret)
{
    if (!strcmp(text, "@")) {
        *ret = 0;
        return true;
    }
    const char *digits = text + 2;
    if (strncmp(text, "@~", 2) != 0 || !*digits || digits[strspn(digits, "0123456789")])
        return false;
    *ret = strtoull(digits, NULL, 10); /* too large becomes the largest, which is too far back */
    return true;
}

static int resolve_back(const struct run_list *l, const char *text, char **ret_path)
{
    uint64_t back, runs = 0;
    if (!parse_back(text, &back))
        return cmd_fail(
            CMD_USAGE, "'%s' names no run: write @ for the last one, @~1 for the one before", text);
    for (size_t i = l->names.len; i-- > 0;) {
        if (has_run_name(l->names.data[i]) && runs++ == back)
            return give(l, l->names.data[i], ret_path);
    }
    if (!runs)
        return no_runs();
    return cmd_fail(CMD_FAILED, "'%s' reaches too far back: there %s %ju recording%s", text,
                    runs == 1 ? "is" : "are", (uintmax_t)runs, runs == 1 ? "" : "s");
}

enum match { MATCH_NONE, MATCH_BEGINNING, MATCH_WHOLE };

static enum match match_text(const char *name, const char *key, size_t key_len)
{
    if (strncmp(name, key, key_len) != 0)
        return MATCH_NONE;
    const char *rest = name + key_len;
    return !*rest || !strcmp(rest, RUN_SUFFIX) ? MATCH_WHOLE : MATCH_BEGINNING;
}

/* By the id from its start, or from its hexadecimal part. */
static enum match match_name(const char *name, const char *key)
{
    size_t key_len = strlen(key);
    enum match m = match_text(name, key, key_len);
    if (m == MATCH_NONE && begins_with_id(name))
        m = match_text(name + RUN_HEX_AT, key, key_len);
    return m;
}

static int ambiguous(const struct run_list *l, const char *id, enum match level, size_t found)
{
    struct buf names;
    buf_init(&names, PATH_MAX);
    size_t named = 0;
    for (size_t i = l->names.len; i-- > 0 && named < MAX_CANDIDATES;) {
        const char *name = l->names.data[i];
        if (match_name(name, id) == level)
            buf_printf(&names, "%s%.*s", named++ ? ", " : "",
                       (int)(strlen(name) - strlen(RUN_SUFFIX)), name);
    }
    if (found > named)
        buf_printf(&names, " and %zu more", found - named);
    int status = cmd_fail(CMD_FAILED, "'%s' fits %zu recordings: %s", id, found, buf_cstr(&names));
    buf_release(&names);
    return status;
}

static int give_path(const char *path, char **ret_path)
{
    char *copy = strdup(path);
    if (!copy)
        return cmd_fail(CMD_FAILED, "out of memory");
    *ret_path = copy;
    return 0;
}

static int resolve_id(const struct run_list *l, const char *id, char **ret_path)
{
    const char *fits[3] = {NULL, NULL, NULL};
    size_t found[3] = {0, 0, 0};
    for (size_t i = 0; i < l->names.len; i++) {
        enum match m = match_name(l->names.data[i], id);
        fits[m] = l->names.data[i];
        found[m]++;
    }
    enum match level = found[MATCH_WHOLE] ? MATCH_WHOLE : MATCH_BEGINNING;
    if (found[level] == 1)
        return give(l, fits[level], ret_path);
    if (found[level] > 1)
        return ambiguous(l, id, level, found[level]);
    if (is_directory(id))
        return give_path(id, ret_path); /* whoever loads it will list it */
    return cmd_fail(CMD_FAILED, "'%s' is neither a file nor the id of a recording%s", id,
                    l->names.len ? "" : ", and there are no recordings here");
}

int cmd_resolve_run(const char *run, char **ret_path)
{
    if (!run)
        run = "@";
    if (!*run)
        return cmd_fail(CMD_USAGE, "the name of the recording is empty");
    if (run[0] != '@') {
        bool exists = access(run, F_OK) == 0;
        if (strchr(run, '/') && !exists)
            return cmd_fail(CMD_FAILED, "cannot read '%s': %s", run,
                            err_text(err_from_errno(errno)));
        if (strchr(run, '/') || (exists && !is_directory(run)))
            return give_path(run, ret_path);
    }
    struct run_list l = {0};
    int status = run_list_load(&l);
    if (status == 0)
        status = run[0] == '@' ? resolve_back(&l, run, ret_path) : resolve_id(&l, run, ret_path);
    run_list_release(&l);
    return status;
}

/* --- where a new one goes --- */

/* Two processes may do this at once: what exists already is fine. */
static int make_directory(const char *path)
{
    if (mkdir(path, 0777) == 0)
        return 0;
    if (errno == EEXIST)
        return is_directory(path) ? 0 : E_EXISTS;
    return err_from_errno(errno);
}

/* Recordings are large and personal: git shall not see them. */
static int write_gitignore(const char *home)
{
    _cleanup_free_ char *path = join(home, ".gitignore");
    if (!path)
        return E_NOMEM;
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno == EEXIST ? 0 : err_from_errno(errno);
    return io_write_all(fd, "*\n", 2);
}

static int make_home(char **ret)
{
    _cleanup_free_ char *cwd = getcwd(NULL, 0);
    if (!cwd)
        return err_from_errno(errno);
    char *home = join(cwd, HOME_NAME);
    if (!home)
        return E_NOMEM;
    int rc = make_directory(home);
    if (rc == 0)
        rc = write_gitignore(home);
    if (rc < 0) {
        free(home);
        return rc;
    }
    *ret = home;
    return 0;
}

int cmd_home(bool make, char **ret)
{
    int rc = find_home(ret);
    return rc == E_NOENT && make ? make_home(ret) : rc;
}

/* The folder for recordings, there and writable. */
static int make_runs_dir(char **ret)
{
    _cleanup_free_ char *home = NULL;
    int rc = cmd_home(true, &home);
    if (rc < 0 || !home)
        return rc < 0 ? rc : E_NOENT;
    char *dir = join(home, "runs");
    if (!dir)
        return E_NOMEM;
    rc = make_directory(dir);
    if (rc == 0 && access(dir, W_OK | X_OK) < 0)
        rc = err_from_errno(errno);
    if (rc < 0) {
        free(dir);
        return rc;
    }
    *ret = dir;
    return 0;
}

int cmd_new_run_path(const uint8_t run_id[16], char **ret_path)
{
    _cleanup_free_ char *dir = NULL;
    int rc = make_runs_dir(&dir);
    if (rc < 0)
        return cmd_fail(
            CMD_FAILED, "cannot keep the recording in .pyrometer/runs: %s; name a file with -o",
            rc == E_EXISTS ? "something that is no folder has that name" : err_text(rc));
    time_t now = time(NULL);
    struct tm local;
    char stamp[32] = "";
    if (!localtime_r(&now, &local) || !strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local))
        return cmd_fail(CMD_FAILED, "cannot tell the local time; name a file with -o");
    char *path;
    if (asprintf(&path, "%s/%s-%02x%02x%02x" RUN_SUFFIX, dir, stamp, run_id[0], run_id[1],
                 run_id[2]) < 0)
        return cmd_fail(CMD_FAILED, "out of memory");
    *ret_path = path;
    return 0;
}
