/* The relay process itself, and what it shares with the recorder. Inside src/meter. */
#ifndef PYROMETER_METER_RELAY_PROCESS_H
#define PYROMETER_METER_RELAY_PROCESS_H

#include "meter/relay.h"

#include <stdatomic.h>
#include <stdnoreturn.h>
#include <sys/ioctl.h>
#include <termios.h>

enum { RELAY_GIT_PENDING = 2 };

/* A limit below this leaves the relay no room. */
enum { RELAY_MIN_DESCRIPTORS = 32 };

/* In memory that both processes map. The relay writes, the recorder reads, but for `wanted`. */
struct relay_shared {
    _Atomic int32_t drained;
    _Atomic int32_t typed;     /* something is to be read from the user's terminal */
    _Atomic int32_t wanted;    /* the recorder's answer: somebody waits for it at ours */
    _Atomic int32_t git_dirty; /* 1, 0, -1 not known, or RELAY_GIT_PENDING */
    _Atomic uint64_t passed;   /* bytes handed on, all streams: whether there is progress */
    _Atomic uint64_t total[RELAY_STREAMS];
    uint8_t bytes[]; /* for each stream keep/2 bytes of its beginning, then keep/2 as a ring */
};

struct relay_job {
    struct relay_shared *shared;
    size_t keep;
    int from[RELAY_STREAMS]; /* what to read; -1: nothing */
    bool is_pty[RELAY_STREAMS];
    struct termios modes[RELAY_STREAMS]; /* of a pseudo-terminal, as the program finds it */
    struct winsize size[RELAY_STREAMS];
    int bell;               /* readable: the program has ended; closed: so have we */
    const char *git_folder; /* NULL: nothing to ask */
};

noreturn void relay_process(const struct relay_job *job);

#endif
