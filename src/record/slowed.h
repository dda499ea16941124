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
    uint32_t object; /* which code object of that process: several may be called the same */
    struct remote_block block;
    double found_ns;       /* there */
    double counted_ns;     /* of that, while its code's calls and loops were counted */
    uint32_t found, moves; /* so often, and of that at its moves */
    double lost_ns;        /* as much was judged to be lost so far */
    uint32_t next_of_function, next_of_object; /* index + 1 of another one */
};

/* What a function has lost in a thread and was not told yet. */
struct slowed_function {
    uint32_t thread, code;
    uint32_t blocks;       /* index + 1 of the first */
    double calls, made;    /* of it, and by it */
    double lost_ns;        /* below 0: more was taken than is known by now to have been lost */
    double known_ns;       /* in this turn: its own time that is told, and was not yet taken from */
    uint64_t turn, judged; /* the last ones of known_ns, and in which it was judged */
};

/* What a code object counts, in all threads of its process. */
struct slowed_object {
    uint32_t process, object;
    uint32_t blocks;      /* index + 1 of the first */
    int16_t count;        /* as last seen … */
    uint64_t count_ns;    /* … then */
    bool is_counted;      /* from there to what was seen before that */
    double counted;       /* its calls and loops, while they were … */
    double expected;      /* … and what its blocks should have had … */
    uint64_t expected_at; /* … as of that turn */
};

struct slowed {
    VEC(struct slowed_block) blocks;
    VEC(struct slowed_function) functions;
    VEC(struct slowed_object) objects;
    struct idxmap block_map, function_map, object_map;
    uint64_t turn;
};

/* More than so many blocks are not remembered: all of them are forgotten, and it begins anew. 20 MB. */
enum { SLOWED_MOST_BLOCKS = 1 << 17 };

/* What a process has measured: a tick of it, at its pace, takes so many `tick_ns`. */
struct slowed_cost {
    const struct ring_calibration *measured;
    double tick_ns;
};

/* Before slowed_add() at the same moment: what a code object's count is. */
void slowed_count(struct slowed *s, uint32_t process, uint32_t object, int16_t count,
                  uint64_t now_ns);

/* One moment: `found` has the block, the time it stands for as found_ns, and 1 as `moves` if it is one of those. Best effort: without
 * memory less is taken out. */
void slowed_add(struct slowed *s, const struct slowed_block *found, uint64_t now_ns);

/* Was a process ever found at an instruction? */
bool slowed_has(const struct slowed *s, uint32_t process);

/* From here on times of functions are told anew: all of a turn, then what is taken from them. */
void slowed_begin(struct slowed *s);

/* NULL if a function was never found. Valid until slowed_add(). */
struct slowed_function *slowed_find(struct slowed *s, uint32_t thread, uint32_t code);

/* A path of the function has so much time of its own in this turn. */
void slowed_tell(const struct slowed *s, struct slowed_function *f, double self_ns);

/* How much of that is lost: of a function with several paths each bears as much as it has of the time. Never all of it: a function is found
 * while it runs, and its time is told at its next event, so the rest may be that of a path that is still to come. */
double slowed_take(struct slowed *s, struct slowed_function *f, const struct slowed_cost *cost,
                   double self_ns);

/* Of what a thread was found at, that `part` was while it was not traced: no time that is told bears that. */
void slowed_forgive(struct slowed *s, uint32_t thread, const struct slowed_cost *cost, double part);

void slowed_release(struct slowed *s);

#endif
