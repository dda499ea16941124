#include "base/srcfile.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
    PATH_BYTES_MAX = 4096,
    ZIP_LEVELS_MAX = 64, /* directories inside an archive that are tried */
};

/* In a foreign root a symbolic link is followed as its owner would; a kernel before 5.6 follows it
 * in ours, which is right for all but containers. */
static int open_in_root(int root, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_IN_ROOT};
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
        return fd;
    return openat(root, path + strspn(path, "/"), flags);
}

/* A name for the thing, not the thing: a pipe or a device is not touched by this. */
static int open_path(const struct srcfile_place *place, const char *path)
{
    int flags = O_PATH | O_CLOEXEC;
    if (path[0] != '/')
        return openat(place->cwd, path, flags);
    return place->root < 0 ? open(path, flags) : open_in_root(place->root, path, flags);
}

/* What a path that goes on behind a file gives; no code of the list means just this. */
enum { INSIDE_A_FILE = -1000 };

/* A descriptor of the regular file, a negative code, or INSIDE_A_FILE. */
static int open_regular(const struct srcfile_place *place, const char *path, struct stat *st)
{
    _cleanup_close_ int name = open_path(place, path);
    if (name < 0)
        return errno == ENOTDIR ? INSIDE_A_FILE : err_from_errno(errno);
    if (fstat(name, st) < 0 || !S_ISREG(st->st_mode))
        return E_NOENT;
    char again[64];
    snprintf(again, sizeof again, "/proc/self/fd/%d", name);
    int fd = open(again, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_from_errno(errno) : fd;
}

static int read_whole(int fd, struct buf *out)
{
    for (;;) {
        size_t want = min_u64(65536, out->max - out->len);
        if (!want)
            return E_LIMIT;
        if (!buf_reserve(out, want))
            return buf_error(out);
        ssize_t n = read(fd, out->data + out->len, want);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_from_errno(errno);
        out->len += n > 0 ? (size_t)n : 0;
    }
}

/* The longest beginning of the path that is a file is the archive. */
static int open_archive(const struct srcfile_place *place, char *path, struct stat *st,
                        const char **ret_member)
{
    for (int i = 0; i < ZIP_LEVELS_MAX; i++) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
            break;
        *slash = '\0';
        int fd = open_regular(place, path, st);
        if (fd >= 0) {
            *ret_member = slash + 1;
            return fd;
        }
        if (fd != INSIDE_A_FILE)
            return fd;
    }
    return E_NOENT;
}

static uint64_t mtime_of(const struct stat *st)
{
    return (uint64_t)st->st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st->st_mtim.tv_nsec;
}

static int read_member(const struct srcfile_place *place, const char *path, struct srcfile *f)
{
    char prefix[PATH_BYTES_MAX];
    memcpy(prefix, path, strlen(path) + 1);
    struct stat st = {0};
    const char *at = NULL;
    _cleanup_close_ int fd = open_archive(place, prefix, &st, &at);
    if (fd < 0)
        return fd;
    const char *member = path + (at - prefix); /* in `prefix` it is cut to pieces by now */
    int r = zip_read_member(fd, member, strlen(member), &f->text);
    f->in_zip = true;
    f->mtime_ns = mtime_of(&st);
    f->size = f->text.len;
    f->has_text = r == 0;
    return r == E_LIMIT ? 0 : r;
}

static int read_plain(int fd, const struct stat *st, struct srcfile *f)
{
    f->size = (uint64_t)st->st_size;
    f->mtime_ns = mtime_of(st);
    if (f->size >= f->text.max)
        return 0;
    int r = read_whole(fd, &f->text);
    f->has_text = r == 0;
    if (r == 0)
        f->size = f->text.len; /* it may have grown meanwhile */
    return r == E_LIMIT ? 0 : r;
}

int srcfile_read(const struct srcfile_place *place, const char *path, size_t max_text,
                 struct srcfile *ret)
{
    if (!*path || strlen(path) >= PATH_BYTES_MAX)
        return E_NOENT;
    struct srcfile f = {0};
    struct stat st = {0};
    buf_init(&f.text, max_text + 1); /* the byte past the maximum tells that there is more */
    _cleanup_close_ int fd = open_regular(place, path, &st);
    int r = fd >= 0               ? read_plain(fd, &st, &f)
            : fd == INSIDE_A_FILE ? read_member(place, path, &f)
                                  : fd;
    if (r < 0) {
        srcfile_release(&f);
        return r;
    }
    *ret = f;
    return 0;
}

void srcfile_release(struct srcfile *f)
{
    buf_release(&f->text);
    *f = (struct srcfile){0};
}

bool srcfile_exists(const struct srcfile_place *place, const char *path)
{
    struct stat st = {0};
    int fd = strlen(path) < PATH_BYTES_MAX ? open_path(place, path) : -1;
    if (fd < 0)
        return errno == ENOTDIR; /* perhaps inside an archive */
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    close(fd);
    return regular;
}
