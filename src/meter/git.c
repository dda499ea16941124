#include "meter/git.h"

#include "base/buf.h"
#include "base/io.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096, PACKED_MAX = 16 << 20 };

bool git_find(const char *folder, char *dst, size_t size)
{
    char at[PATH_SIZE], git[PATH_SIZE + 8];
    if (snprintf(at, sizeof at, "%s", folder) >= (int)sizeof at || at[0] != '/')
        return false;
    for (;;) {
        snprintf(git, sizeof git, "%s/.git", at);
        if (access(git, F_OK) == 0)
            return snprintf(dst, size, "%s", *at ? at : "/") < (int)size;
        char *slash = strrchr(at, '/');
        if (!slash)
            return false;
        *slash = '\0';
        if (!*at && slash == at && access("/.git", F_OK) != 0)
            return false;
    }
}

/* One line of a small file, without what ends it. */
static bool read_line(const char *path, char *dst, size_t size)
{
    int n = io_read_text(path, dst, size);
    if (n <= 0)
        return false;
    dst[strcspn(dst, "\r\n")] = '\0';
    return *dst != '\0';
}

static bool join(char *dst, size_t size, const char *folder, const char *name)
{
    int n = name[0] == '/' ? snprintf(dst, size, "%s", name)
                           : snprintf(dst, size, "%s/%s", folder, name);
    return n > 0 && n < (int)size;
}

/* Where HEAD is, and where the refs are: not the same in a linked work tree. */
static bool find_folders(const char *tree, char *head, char *common)
{
    char dot[PATH_SIZE], line[PATH_SIZE], path[PATH_SIZE];
    if (!join(dot, sizeof dot, tree, ".git"))
        return false;
    if (read_line(dot, line, sizeof line) && !strncmp(line, "gitdir: ", 8)) {
        if (!join(head, PATH_SIZE, tree, line + 8))
            return false;
    } else {
        memcpy(head, dot, sizeof dot);
    }
    if (!join(path, sizeof path, head, "commondir") || !read_line(path, line, sizeof line))
        memcpy(common, head, PATH_SIZE);
    else if (!join(common, PATH_SIZE, head, line))
        return false;
    return true;
}

static bool is_commit(const char *text)
{
    size_t n = strspn(text, "0123456789abcdef");
    return (n == 40 || n == 64) && (!text[n] || text[n] == ' ' || text[n] == '\n');
}

static void take_commit(struct git *g, const char *text)
{
    if (is_commit(text))
        snprintf(g->commit, sizeof g->commit, "%.*s", (int)strspn(text, "0123456789abcdef"), text);
}

/* Lines "commit ref". */
static void search_packed(struct git *g, const char *common, const char *ref)
{
    char path[PATH_SIZE];
    struct buf b;
    buf_init(&b, PACKED_MAX);
    if (join(path, sizeof path, common, "packed-refs") && io_read_file(path, &b) == 0) {
        size_t len = strlen(ref);
        for (const char *at = buf_cstr(&b); at && *at;) {
            const char *end = strchr(at, '\n'), *blank = strchr(at, ' ');
            size_t rest = blank ? strcspn(blank + 1, "\r\n") : 0;
            if (blank && (!end || blank < end) && rest == len && !strncmp(blank + 1, ref, len))
                take_commit(g, at);
            at = end ? end + 1 : NULL;
        }
    }
    buf_release(&b);
}

bool git_read(const char *work_tree, struct git *ret)
{
    char head[PATH_SIZE], common[PATH_SIZE], path[PATH_SIZE], line[PATH_SIZE];
    *ret = (struct git){0};
    if (!find_folders(work_tree, head, common) || !join(path, sizeof path, head, "HEAD") ||
        !read_line(path, line, sizeof line))
        return false;
    if (strncmp(line, "ref: ", 5) != 0) {
        take_commit(ret, line);
        return true;
    }
    char ref[PATH_SIZE];
    snprintf(ref, sizeof ref, "%s", line + 5);
    if (strstr(ref, ".."))
        return false;
    if (!strncmp(ref, "refs/heads/", 11))
        snprintf(ret->branch, sizeof ret->branch, "%.*s", (int)sizeof ret->branch - 1, ref + 11);
    if ((join(path, sizeof path, head, ref) && read_line(path, line, sizeof line)) ||
        (join(path, sizeof path, common, ref) && read_line(path, line, sizeof line)))
        take_commit(ret, line);
    if (!ret->commit[0])
        search_packed(ret, common, ref);
    return true;
}
