/* Which commit the working directory stands at: read from git's own files, so that it takes no time.
 * Inside src/meter. */
#ifndef PYROMETER_METER_GIT_H
#define PYROMETER_METER_GIT_H

#include <stdbool.h>
#include <stddef.h>

struct git {
    char commit[72];  /* "" not known (no commit yet) */
    char branch[256]; /* "" detached */
};

/* The folder with the .git from `folder` upward; false if there is none. */
bool git_find(const char *folder, char *dst, size_t size);
bool git_read(const char *work_tree, struct git *ret);

#endif
