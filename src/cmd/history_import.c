/* pyrometer history import: runs that another tool kept. */
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/progress.h"
#include "cmd/history.h"
#include "cmd/keep.h"
#include "cmd/progress.h"
#include "history/import_soma.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 1000000, COMMAND_FILE_MAX = 1 << 20 };

struct import {
    struct history_store *store;
    const char *path; /* of the store */
    uint64_t kept, known, refused, files;
    int status;
};

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);
    return len > n && !strcmp(text + len - n, end);
}

/* Loading a pickle runs whatever is in it, so none is loaded: each is named. */
static bool is_pickle(const char *name)
{
    return ends_with(name, ".run") || ends_with(name, ".pickle") || ends_with(name, ".pkl");
}

static void import_file(struct import *im, const char *path, const char *command)
{
    struct buf b;
    struct history_run run = {0};
    im->files++;
    progress_add(1);
    buf_init(&b, HISTORY_SOMA_FILE_MAX);
    int rc = io_read_file(path, &b);
    if (rc == 0)
        rc = history_import_soma(command, b.data, b.len, &run);
    if (rc < 0) {
        im->refused++;
        cmd_warn("%s is left out: %s", path,
                 rc == E_INVALID   ? "it is not a run of the SOMA profiler"
                 : rc == E_BADJSON ? "the JSON is damaged"
                                   : err_text(rc));
    } else {
        rc = history_store_add(im->store, &run, NULL);
        im->kept += rc == 0;
        im->known += rc == E_EXISTS;
        if (rc < 0 && rc != E_EXISTS)
            im->status = cmd_history_failed(im->path, rc);
        history_run_release(&run);
    }
    buf_release(&b);
}

static char *read_command(const char *folder)
{
    _cleanup_free_ char *path = NULL;
    struct buf b;
    if (asprintf(&path, "%s/command.txt", folder) < 0) {
        path = NULL;
        return NULL;
    }
    buf_init(&b, COMMAND_FILE_MAX);
    if (io_read_file(path, &b) < 0) {
        buf_release(&b);
        return NULL;
    }
    while (b.len && strchr("\r\n", b.data[b.len - 1]))
        b.len--;
    return buf_detach(&b);
}

static void import_folder(struct import *im, const char *folder, int depth)
{
    enum { DEPTH_MAX = 3 };
    DIR *dir = opendir(folder);
    if (!dir) {
        im->status = cmd_fail(CMD_FAILED, "cannot read %s: %s", folder, strerror(errno));
        return;
    }
    _cleanup_free_ char *command = read_command(folder);
    for (const struct dirent *e; !im->status && im->files < FILES_MAX && (e = readdir(dir));) {
        _cleanup_free_ char *path = NULL;
        struct stat st;
        if (e->d_name[0] == '.' || asprintf(&path, "%s/%s", folder, e->d_name) < 0) {
            path = NULL;
            continue;
        }
        if (stat(path, &st) < 0)
            continue;
        if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
            import_folder(im, path, depth + 1);
        } else if (S_ISREG(st.st_mode) && ends_with(e->d_name, ".json")) {
            import_file(im, path, command);
        } else if (S_ISREG(st.st_mode) && is_pickle(e->d_name)) {
            im->refused++;
            cmd_warn("%s is left out: it is a pickle, and reading one can execute what is in it",
                     path);
        }
    }
    closedir(dir);
}

int cmd_history_import(const struct cmd_history_options *o, int count, char **argv)
{
    if (!count)
        return cmd_fail(CMD_USAGE, "history import needs a folder, for example profiling_runs");
    char *path = NULL;
    struct import im = {0};
    cmd_progress_begin();
    progress_begin("importing runs", 0);
    int rc = cmd_history_path(o->db, true, &path);
    if (rc == 0)
        rc = history_store_open(path, HISTORY_WRITE, &im.store);
    if (rc < 0) {
        int status = cmd_history_failed(path ? path : "here", rc);
        free(path);
        return status;
    }
    im.path = path;
    for (int i = 0; !im.status && i < count; i++) {
        struct stat st;
        if (stat(argv[i], &st) == 0 && S_ISREG(st.st_mode))
            import_file(&im, argv[i], NULL);
        else
            import_folder(&im, argv[i], 0);
    }
    fprintf(cmd_stdout(), "%llu runs imported, %llu known already, %llu left out\n",
            (unsigned long long)im.kept, (unsigned long long)im.known,
            (unsigned long long)im.refused);
    history_store_close(im.store);
    free(path);
    if (!im.status && !im.kept && !im.known)
        return cmd_fail(CMD_FAILED, "there is no run to import in %s", argv[0]);
    return im.status;
}
