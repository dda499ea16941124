/* Drains the rings of the guests, on a thread of its own, and keeps what they say until the recorder
 * takes it. Inside src/record.
 *
 * The draining thread owns the rings and everything it makes of them, under one lock; the recorder
 * takes the lock only to carry counts into the file. A ring whose process has died without a word is
 * drained to its head and given back. */
#ifndef PYROMETER_RECORD_DRAIN_H
#define PYROMETER_RECORD_DRAIN_H

#include "record/events.h"
#include "record/procs.h"
#include "record/session.h"
#include "record/target.h"

struct drain;

/* Starts the thread. The session stays the caller's and must outlive it, and so must `trace`: what is
 * wanted of the timeline, NULL if nothing. Times count from origin_ns. */
int drain_new(const struct session *session, const struct events_options *trace, uint64_t origin_ns,
              struct drain **ret);

/* True when so much is waiting that a flush is due, or a checkpoint of memory is: what came before it is not to be lost. */
bool drain_wants_flush(const struct drain *d);

/* Carries all that is new into the file. */
void drain_flush(struct drain *d, struct target_shared *shared, struct procs *procs);

/* Drains what is left, after the program has ended or is not listened to any more, and ends the
 * thread. drain_flush() after it takes the rest. */
void drain_stop(struct drain *d);

uint64_t drain_cpu_ns(const struct drain *d);
void drain_free(struct drain *d);

#endif
