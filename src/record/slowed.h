/* Time that instructions took longer because a profile function was set (remote/opcodes.h): estimated from where the threads were found,
 * kept until the exact calls of the same function are written, and taken out of its time with the cost of its probes. Inside
 * src/record; the recorder's thread only.
 *
 * Of what passes in a block, the part that is lost is known by the kinds of its instructions, if they take what they usually do. How often
 * it really ran 3.11 can be made to count (agent/codes.h). For 3.10 there is a sign only of a block of which one instruction takes far
 * longer than its kind does, as a product of long numbers: its moves, which always do the same little, are seldom seen then. */
#ifndef PYROMETER_RECORD_SLOWED_H
#define PYROMETER_RECORD_SLOWED_H

#include "base/idxmap.h"
#include "base/vec.h"
#include "format/ring.h"
#include "remote/remote.h"

#include <stdint.h>

/* Where a thread was found. Each moment stands for the time since the one before it. */
struct slowed_block {
    uint32_t process, thread, code; /* ids in the file */
    struct remote_block block;
    double found_ns;       /* there */
    double counted_ns;     /* of that, while its code's calls and loops were counted */
    uint32_t found, moves; /* so often, and of that at its moves */
    double lost_ns;        /* as much was judged to be lost so far */
};

/* What a function has lost in a thread and was not told yet. */
struct slowed_function {
    uint32_t thread, code;
    double calls, made; /* of it, and by it */
    double called;      /* what its blocks should have made: for slowed_judge() */
    double lost_ns;
    double known_ns; /* for whoever divides it: the function's own time that is told now */
};

/* What a code object counts, in all threads of its process. */
struct slowed_code {
    uint32_t process, code;
    int16_t count;     /* as last seen … */
    uint64_t count_ns; /* … then */
    bool is_counted;   /* from there to what was seen before that */
    double counted;    /* its calls and loops, while they were … */
    double expected;   /* … and what its blocks should have had: for slowed_judge() */
};

struct slowed {
    VEC(struct slowed_block) blocks;
    VEC(struct slowed_function) functions;
    VEC(struct slowed_code) codes;
    struct idxmap block_map, function_map, code_map;
};

/* Before slowed_add() at the same moment: what a code object's count is. */
void slowed_count(struct slowed *s, uint32_t process, uint32_t code, int16_t count,
                  uint64_t now_ns);

/* One moment: `found` has the block, the time it stands for as found_ns, and 1 as `moves` if it is one of those. Best effort: without
 * memory less is taken out. */
void slowed_add(struct slowed *s, const struct slowed_block *found, uint64_t now_ns);

/* From here on the time of a thread's functions is told. */
void slowed_begin(struct slowed *s, uint32_t thread);

/* Makes what a thread was found at into what its functions have lost, by what its process has measured: a tick, scaled as that is, takes
 * so many `tick_ns`. */
void slowed_judge(struct slowed *s, uint32_t process, uint32_t thread,
                  const struct ring_calibration *cost, double tick_ns);

/* NULL if nothing is known to have been lost there. */
struct slowed_function *slowed_find(struct slowed *s, uint32_t thread, uint32_t code);

void slowed_release(struct slowed *s);

#endif
