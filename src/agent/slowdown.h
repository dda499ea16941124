/* What instructions lose where a profile function slows all of them down (CPython 3.10 and 3.11), by kind (remote/opcodes.h).
 *
 * One instruction cannot be timed: the processor does it while its neighbours are under way. So small loops such as programs have are timed,
 * bare and slowed, and what their instructions take is made of that by least squares: all of the loops come out a little off, and none
 * far. What is asked of it in the end is how a program's loops compare, which are made of the same. An instruction that takes long by itself,
 * as a division does, hides a part of what its neighbours lose: its kind may lose less than nothing. */
#ifndef PYROMETER_AGENT_SLOWDOWN_H
#define PYROMETER_AGENT_SLOWDOWN_H

#include "format/ring.h"

/* Each loop's name and body, and what is in one turn: moves, stores, iterations, arithmetic, divisions, comparisons, names, attributes,
 * items, others. As 3.10 and 3.11 compile it: tests/e2e/test_versions.py asks them. */
#define SLOWDOWN_LOOPS(X)                                                                          \
    X(empty, "pass", 1, 1, 1)                                                                      \
    X(add, "x += i", 3, 2, 1, 1)                                                                   \
    X(copy, "y = i", 2, 2, 1)                                                                      \
    X(copies, "y = i; z = y; w = z", 4, 4, 1)                                                      \
    X(mixed, "x = (x * 31 + i) % 1000003", 5, 2, 1, 2, 1)                                          \
    X(compare, "if i > 0: x = i", 4, 3, 1, 0, 0, 1)                                                \
    X(both, "x += i; y = x * 3", 5, 3, 1, 2)                                                       \
    X(real, "r = r * 0.5 + 1.5", 4, 2, 1, 2)                                                       \
    X(bits, "x = i & 85", 3, 2, 1, 0, 0, 0, 0, 0, 0, 1)                                            \
    X(pair, "x = i, y", 3, 2, 1, 0, 0, 0, 0, 0, 0, 1)                                              \
    X(index, "x = l[3] + i", 4, 2, 1, 1, 0, 0, 0, 0, 1)                                            \
    X(lookup, "x = d[0] + i", 4, 2, 1, 1, 0, 0, 0, 0, 1)                                           \
    X(attribute, "x = o.origin + i", 3, 2, 1, 1, 0, 0, 0, 1)                                       \
    X(attributes, "o.origin = i; x = o.origin", 4, 2, 1, 0, 0, 0, 0, 2)                            \
    X(name, "x = thing; y = i", 2, 3, 1, 0, 0, 0, 1)                                               \
    X(fill, "l[3] = i", 4, 1, 1, 0, 0, 0, 0, 0, 1)                                                 \
    X(longer, "x = x + i - 3; y = y + x * 2", 7, 3, 1, 4)

/* Their functions, for a program that has a `thing` with an attribute `origin`. */
#define SLOWDOWN_FUNCTION(name, body, ...)                                                         \
    "def slowed_" #name "(numbers, f, x=0, y=0, r=1.5, o=thing, l=[5] * 8, d={0: 3}):\n"           \
    "    for i in numbers:\n"                                                                      \
    "        " body "\n"
#define SLOWDOWN_PROGRAM SLOWDOWN_LOOPS(SLOWDOWN_FUNCTION)

#define SLOWDOWN_ONE_MORE(...) +1
enum { SLOWDOWN_COUNT = 0 SLOWDOWN_LOOPS(SLOWDOWN_ONE_MORE) };

extern const char *const slowdown_functions[SLOWDOWN_COUNT];

/* What one instruction of each kind takes slowed, and how much of that is lost: below 0 where it hides more than it loses. */
struct slowdown {
    double takes[RING_SLOWED_KINDS], slower[RING_SLOWED_KINDS];
};

/* Of the times of one turn of each loop, bare and slowed. All 0 if they make no sense. */
struct slowdown slowdown_fit(const double *bare, const double *slowed);

/* What instructions lose together, so many of each kind. */
double slowdown_of(const struct slowdown *s, const uint8_t *counts);

#endif
