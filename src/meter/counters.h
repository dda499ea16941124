/* Instructions executed by the program and all it starts, where the processor's counters may be
 * used. Inside src/meter. */
#ifndef PYROMETER_METER_COUNTERS_H
#define PYROMETER_METER_COUNTERS_H

/* A descriptor, or -1 where there are no counters (many virtual machines) or no right to them. The
 * counter lies dormant in us, is inherited by what we fork, and wakes at its exec. */
int counters_open(void);

/* The count so far; NaN if not known. */
double counters_read(int fd);

#endif
