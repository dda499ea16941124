/* The sources of the code that was seen: their prints, and the texts of those that may vanish.
 * Inside src/record.
 *
 * Files are read by a thread of their own, with the rights of the process whose code names them, so
 * that neither a slow disk holds up the sampler nor a recording by root holds what the program's
 * user may not read. What was never a file is asked of the program's linecache, by the sampler,
 * since only it may read the program's memory. All functions are for the recorder's thread. */
#ifndef PYROMETER_RECORD_SOURCES_H
#define PYROMETER_RECORD_SOURCES_H

#include "format/writer.h"
#include "remote/remote.h"

enum {
    SOURCES_MAX_TEXT_BYTES = 1 << 20,  /* of one text that is kept, or of a file that is hashed */
    SOURCES_MAX_KEPT_BYTES = 16 << 20, /* of all texts of a recording */
    SOURCES_MAX_FILES = 1 << 16,       /* that are looked at */
    SOURCES_MAX_PSEUDO = 256,          /* names of one process that are looked for in linecache */
};

struct sources;
struct sources_place; /* a process's root and working directory, held open */

/* Starts the thread. The writer is borrowed. */
int sources_new(struct format_writer *writer, struct sources **ret);

/* Ends the thread after what is queued, but waits for it only so long; writes what it has read. */
void sources_free(struct sources *s);

/* NULL if they cannot be had: then that process's sources are not looked at. */
struct sources_place *sources_place_new(pid_t pid);
void sources_place_free(struct sources_place *p);

/* Code of that process names this file; `path` is the id of its name. Cheap for one seen before. */
void sources_want(struct sources *s, struct sources_place *place, uint32_t path, const char *text);

/* Looks in the program's linecache for names that were no files, when it is time to. */
void sources_ask(struct sources *s, struct sources_place *place, struct remote *r, uint64_t now_ns);

/* Hands what was read since to the writer. */
void sources_collect(struct sources *s);

/* CPU time of the thread so far. */
uint64_t sources_cpu_ns(const struct sources *s);

#endif
