/* What was alive at a moment, to the event: where every one was kept (`run --memory-events`), they are gone over again. */
#ifndef PYROMETER_ANALYSIS_MEMORY_EVENTS_H
#define PYROMETER_ANALYSIS_MEMORY_EVENTS_H

#include "profile/profile.h"

/* Told of every block that is alive at the moment, by process and site. What it returns non-zero stops and is returned. */
typedef int analysis_alive(void *ctx, uint32_t process, const struct record_memory_site *site,
                           uint64_t count, uint64_t bytes);

/* E_NOENT: they were not kept. E_CORRUPT: some are lost, and no moment can be told; `fn` was not called. `*damaged` is counted up
 * by the chunks of events that are, beside those that the profile's summary counts. */
int analysis_memory_alive(const struct profile *profile, uint64_t at_ns, analysis_alive *fn,
                          void *ctx, uint32_t *damaged);

#endif
