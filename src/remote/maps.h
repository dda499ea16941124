/* The files mapped into a process, out of /proc/PID/maps. Inside src/remote only. */
#ifndef PYROMETER_REMOTE_MAPS_H
#define PYROMETER_REMOTE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MAPS_MAX_PATH = 4096 };

/* One line of maps. */
struct maps_line {
    uint64_t start, end, offset;
    bool readable, executable;
    char path[MAPS_MAX_PATH]; /* "" for anonymous memory */
};

/* Parses the line at *cursor (which moves behind it); false at the end. A line that does not parse is
 * skipped. `end` bounds the text. */
bool maps_next(const char **cursor, const char *end, struct maps_line *ret);

/* A mapped file that may hold an interpreter. */
struct maps_candidate {
    uint64_t base, end; /* of the mapping that begins with its first page (file offset 0) */
    char path[MAPS_MAX_PATH];
};

enum { MAPS_MAX_CANDIDATES = 8 };

/* The mapped files worth looking into, best first: libpython*, then the executable `exe`, then files
 * called python*. Returns how many. */
size_t maps_candidates(const char *text, size_t len, const char *exe,
                       struct maps_candidate ret[MAPS_MAX_CANDIDATES]);

#endif
