/* At which instruction is the running thread just now? Inside src/remote; remote.h has what it answers. */
#ifndef PYROMETER_REMOTE_INSTRUCTION_H
#define PYROMETER_REMOTE_INSTRUCTION_H

struct instruction_watch;

/* NULL is fine. */
void instruction_watch_free(struct instruction_watch *w);

#endif
