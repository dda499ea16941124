/* A source file by the name that a code object has: a plain file, or a path that goes on inside a
 * zip archive (lib/app.zip/pkg/mod.py). The path may be another process's: then it is looked up in
 * that process's root and working directory. The file is hostile: its size has a maximum, and what
 * is no regular file (a pipe, a device) is not read. */
#ifndef PYROMETER_BASE_SRCFILE_H
#define PYROMETER_BASE_SRCFILE_H

#include "base/buf.h"

/* Where paths begin. Borrowed descriptors. */
struct srcfile_place {
    int root; /* for absolute paths; -1: ours */
    int cwd;  /* for relative ones; AT_FDCWD: ours */
};

struct srcfile {
    uint64_t size;     /* of the file, or of the member */
    uint64_t mtime_ns; /* of the file, or of the archive */
    bool in_zip;
    bool has_text;   /* false: it is larger than the maximum */
    struct buf text; /* owned */
};

/* 0, E_NOENT (also for what is no regular file), E_ACCESS, E_IO, E_CORRUPT, E_NOMEM … */
int srcfile_read(const struct srcfile_place *place, const char *path, size_t max_text,
                 struct srcfile *ret);
void srcfile_release(struct srcfile *f);

/* Only whether there may be such a file. */
bool srcfile_exists(const struct srcfile_place *place, const char *path);

#endif
