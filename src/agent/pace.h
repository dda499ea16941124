/* How quick the processor is just now.
 *
 * A shared or throttled machine runs at half its speed in one moment and at full speed in the next, and
 * what probes cost follows. So the guest times a small fixed piece of work when it calibrates itself
 * and now and then while the program runs; the recorder scales the one by the other. */
#ifndef PYROMETER_AGENT_PACE_H
#define PYROMETER_AGENT_PACE_H

#include <stdint.h>

/* How slow an interpreter is just now, in units that stay the same. It follows the ticks that a piece of work of some 200 ns
 * takes (the shortest of a few, some of which an interrupt may have hit) to the power of 1.5: from a neighbour on the
 * same core, with whom caches and decoder are shared, an interpreter suffers more than a small loop does. So it was
 * measured on CPython 3.8 to 3.13, which ran 2.1 times slower while the loop ran 1.6 times slower. Neighbours come
 * and go within milliseconds, so the mean of many is wanted, not the one in the middle. */
uint64_t pace_measure(void);

#endif
