/* The thread that compresses chunks and appends them to the file. Inside src/format only.
 *
 * The producer hands over whole raw payloads; the order of submission is the order in the file. At
 * most SINK_MAX_QUEUED bytes wait: a producer that is ahead of the disk by more is held back, so
 * memory stays bounded whatever the disk does. */
#ifndef PYROMETER_FORMAT_SINK_H
#define PYROMETER_FORMAT_SINK_H

#include "base/buf.h"
#include "format/format.h"

enum { SINK_MAX_QUEUED = 128 << 20 };

struct sink;

/* Takes over `fd`, whose position is after the file header. */
int sink_start(int fd, struct sink **ret);

/* Queues a payload; takes its memory and leaves `payload` empty. The sticky error of the disk. */
int sink_submit(struct sink *s, enum format_chunk_kind kind, struct buf *payload, uint32_t records);

/* Waits until everything submitted is on its way to the disk, ends the thread and closes the file.
 * The sticky error; `ret_cpu_ns` (may be NULL) is told all the CPU time the thread has used. */
int sink_stop(struct sink *s, uint64_t *ret_cpu_ns);

/* Bytes that wait. */
size_t sink_queued(struct sink *s);

/* CPU time of the thread so far. */
uint64_t sink_cpu_ns(const struct sink *s);

#endif
