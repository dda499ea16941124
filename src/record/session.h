/* The memory shared with the guests (format/ring.h), from the recorder's side: made here, handed to
 * the command by its environment, and given back. Inside src/record. */
#ifndef PYROMETER_RECORD_SESSION_H
#define PYROMETER_RECORD_SESSION_H

#include "format/ring.h"

#include <stdbool.h>
#include <stddef.h>

enum { SESSION_MEMORY_INTERVAL = 128 << 10 }; /* bytes between two samples of memory, on average */

struct session {
    struct ring_session *shared; /* mapped; NULL: no session */
    int fd;
    char variable[96];             /* "PYROMETER_AGENT=PID:FD:KEY" */
    char preload[4352];            /* "LD_PRELOAD=…", ours before what was there */
    bool keeps_memory_events;      /* every single one goes into the file */
    uint64_t start_tick, start_ns; /* read together: where both clocks stood */
};

/* Where the guest's library is: as PYROMETER_AGENT_LIBRARY says, beside the program, or where it was installed. E_NOAGENT. */
int session_find_agent(char *path, size_t size);

/* `selection`: as ring_session has it; NULL: none. E_LIMIT if it is too long. */
int session_new(uint32_t instruments, const char *selection, struct session *ret);
void session_release(struct session *s);

/* In the child, before exec. */
void session_export(const struct session *s);

/* How many ns a tick has, by all that has passed since the start. */
double session_ns_per_tick(const struct session *s);

/* The present, in ticks. */
uint64_t session_tick(const struct session *s);

/* A moment on both clocks, and the pace between them: ns = clock.ns + (tick - clock.tick) * pace. Good to
 * some 50 ns for ticks of the near past. */
struct session_clock {
    uint64_t tick, ns; /* CLOCK_MONOTONIC */
    double ns_per_tick;
};
struct session_clock session_clock_now(const struct session *s);

/* Maps a slot; NULL if that fails. */
struct ring_header *session_map_slot(const struct session *s, uint32_t slot);
void session_unmap_slot(struct ring_header *h);
/* Gives its memory back to the system and its number to whoever asks next. */
void session_free_slot(const struct session *s, uint32_t slot);

#endif
