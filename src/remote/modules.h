/* Which modules a Python process has imported, and where it looks for them: sys.modules and sys.path,
 * read from outside. */
#ifndef PYROMETER_REMOTE_MODULES_H
#define PYROMETER_REMOTE_MODULES_H

#include <stdint.h>

struct remote;

enum {
    REMOTE_MODULES_MAX = 65536,    /* names of one look */
    REMOTE_MODULE_NAME_MAX = 256,  /* bytes of a name */
    REMOTE_PATH_ENTRIES_MAX = 256, /* of sys.path */
    REMOTE_PATH_BYTES_MAX = 4096,  /* of one of them */
};

/* How far sys.modules was read; zero-initialised: not at all. */
struct remote_modules_mark {
    uint64_t entries, count;
};

typedef void (*remote_text_fn)(void *ctx, const char *text);

/* Tells the names that are new since the mark (after a resize of the table some are told again). Of the
 * main interpreter; while it ends, its table is empty. Cheap if nothing was imported. 0 or a
 * negative code as for a sample. */
int remote_modules_look(struct remote *r, struct remote_modules_mark *mark, remote_text_fn tell,
                        void *ctx);

/* Tells the entries of sys.path that are texts. */
int remote_sys_path(struct remote *r, remote_text_fn tell, void *ctx);

#endif
