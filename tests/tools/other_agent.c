/* Part of an agent of another version: the guest's side of the shared memory, which takes the number of the next
 * version for its own. All else of it is the agent that is. */
#define RING_VERSION RING_VERSION_OF_RECORDER
#include "format/ring.h"
#undef RING_VERSION
#define RING_VERSION (RING_VERSION_OF_RECORDER + 1)

#include "agent/guest.c"
