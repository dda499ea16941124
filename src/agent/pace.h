/* How quick the processor is just now.
 *
 * A shared or throttled machine runs at half its speed in one moment and at full speed in the next, and
 * what probes cost follows. So the guest times a small fixed piece of work when it calibrates itself
 * and now and then while the program runs; the recorder scales the one by the other. */
#ifndef PYROMETER_AGENT_PACE_H
#define PYROMETER_AGENT_PACE_H

#include <stdint.h>

/* Ticks that the piece of work takes: some 200 ns. */
uint64_t pace_measure(void);

#endif
