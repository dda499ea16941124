/* Files written for the user. */
#include "cmd/output.h"

#include "base/err.h"
#include "base/io.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int cmd_output_open(const char *path, bool force, const char *recording, struct cmd_output *ret)
{
    if (is_directory(path))
        return cmd_fail(CMD_FAILED, "cannot write '%s': it is a directory", path);
    if (recording && is_same_file(path, recording))
        return cmd_fail(CMD_FAILED, "'%s' is the recording itself; name another file", path);
    bool is_new;
    int fd = io_create(path, force, &is_new);
    if (fd == E_EXISTS)
        return cmd_fail(CMD_FAILED, "'%s' exists already; add --force or name another file", path);
    if (fd < 0)
        return cmd_fail(CMD_FAILED, "cannot write '%s': %s", path, err_text(fd));
    FILE *file = fdopen(fd, "w");
    if (!file) {
        close(fd);
        return cmd_fail(CMD_FAILED, "out of memory");
    }
    cmd_progress_make_way(fd);
    *ret = (struct cmd_output){path, file, is_new};
    return 0;
}

int cmd_output_close(struct cmd_output *output, int code)
{
    if (fclose(output->file) != 0 && code == 0)
        code = err_from_errno(errno);
    output->file = NULL;
    if (code == 0)
        return CMD_OK;
    if (output->is_new)
        unlink(output->path);
    return cmd_fail(CMD_FAILED, "cannot write '%s': %s", output->path, err_text(code));
}

bool cmd_output_has_suffix(const char *path, const char *suffix)
{
    size_t len = strlen(path), n = strlen(suffix);
    return len > n && strcasecmp(path + len - n, suffix) == 0;
}
