#include "remote/maps.h"

#include <string.h>

static bool parse_hex(const char **p, const char *end, uint64_t *ret)
{
    uint64_t v = 0;
    const char *start = *p;
    for (; *p < end && *p - start < 16; (*p)++) {
        char c = **p;
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v << 4 | (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    *ret = v;
    return *p > start;
}

static bool expect(const char **p, const char *end, char c)
{
    if (*p >= end || **p != c)
        return false;
    (*p)++;
    return true;
}

/* "start-end perms offset dev inode   path" */
static bool parse_line(const char *p, const char *end, struct maps_line *ret)
{
    if (!parse_hex(&p, end, &ret->start) || !expect(&p, end, '-') ||
        !parse_hex(&p, end, &ret->end) || !expect(&p, end, ' ') || end - p < 5)
        return false;
    ret->readable = p[0] == 'r';
    ret->executable = p[2] == 'x';
    p += 4;
    if (!expect(&p, end, ' ') || !parse_hex(&p, end, &ret->offset))
        return false;
    for (int field = 0; field < 2; field++) { /* dev, inode */
        while (p < end && *p == ' ')
            p++;
        while (p < end && *p != ' ')
            p++;
    }
    while (p < end && *p == ' ')
        p++;
    size_t len = (size_t)(end - p);
    if (len >= sizeof ret->path)
        return false;
    memcpy(ret->path, p, len);
    ret->path[len] = 0;
    return ret->start < ret->end;
}

bool maps_next(const char **cursor, const char *end, struct maps_line *ret)
{
    while (*cursor < end) {
        const char *line = *cursor;
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        *cursor = stop < end ? stop + 1 : end;
        if (parse_line(line, stop, ret))
            return true;
    }
    return false;
}

/* 0: not worth a look; smaller is better */
static int rank(const char *path, const char *exe)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    if (!strncmp(base, "libpython", 9))
        return 1;
    if (exe && !strcmp(path, exe))
        return 2;
    if (!strncmp(base, "python", 6) && !strstr(base, ".so"))
        return 3;
    return 0;
}

size_t maps_candidates(const char *text, size_t len, const char *exe,
                       struct maps_candidate ret[MAPS_MAX_CANDIDATES])
{
    size_t count = 0;
    for (int wanted = 1; wanted <= 3; wanted++) {
        const char *cursor = text;
        struct maps_line line;
        while (count < MAPS_MAX_CANDIDATES && maps_next(&cursor, text + len, &line)) {
            if (line.offset != 0 || line.path[0] != '/' || rank(line.path, exe) != wanted)
                continue;
            if (count && !strcmp(ret[count - 1].path, line.path))
                continue;
            ret[count].base = line.start;
            ret[count].end = line.end;
            memcpy(ret[count].path, line.path, sizeof line.path);
            count++;
        }
    }
    return count;
}
