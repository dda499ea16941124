/* Was a signal sent to us alone, or to our whole process group? Inside src/record.
 *
 * The kernel does not say: kill(2) of a process and of a group look the same to who receives them. But it decides
 * whether the signal must be sent on. What went to the group (killpg, timeout(1), fg of a shell, the program itself with kill(0, …))
 * has reached the command already, and would come twice; what went to us would not come at all.
 *
 * So a process of ours sits in the group with all signals blocked, and tells which ones are pending with it. It
 * executes nothing, is nobody's child, so that it is not taken for a part of the program, and ends when we do. */
#ifndef PYROMETER_RECORD_WITNESS_H
#define PYROMETER_RECORD_WITNESS_H

#include <stdint.h>

/* Starts it: the descriptor by which it is asked, close-on-exec, or a negative code. This process must not be a
 * subreaper meanwhile. */
int witness_start(void);

/* The signals that it got since it was asked last, a bit for each number below 64. Negative code if it does not answer (any
 * more): then it is not to be asked again. */
int witness_ask(int fd, uint64_t *ret_signals);

#endif
