/* Stacks that have been believed before: a look that shows one of them needs no second look. Inside
 * src/remote only.
 *
 * Proving a stack takes several looks that agree, and a program that never holds still for so long
 * would give away only the stacks it happens to rest in: the shares of its functions would come out
 * wrong, and nearly all of its samples marked. But what must never be told is an *impossible* stack.
 * One that was proven before is possible, so a single look that shows it is enough, be it torn or
 * not: the program was in it within the last microseconds. The same holds for the outer part of a
 * proven stack, at whatever instruction its innermost frame is: that frame went on to call the next.
 *
 * A stack is remembered as a hash over its code objects (not their addresses, which are used again) and the instructions of
 * its callers; frame addresses are left out, for the question is what can call what. The table is of fixed size, later
 * ones push out earlier ones, and it costs at worst the looks it was to save. A stack has to be
 * proven twice before it counts: an error of the proof would else be repeated from here on. */
#ifndef PYROMETER_REMOTE_KNOWN_H
#define PYROMETER_REMOTE_KNOWN_H

#include "remote/internal.h"

/* A hash of that; 0: the stack is empty or damaged. */
uint64_t known_hash(const struct remote *r, const walked_vec *stack);

/* The same of its outermost frames. */
uint64_t known_hash_of_outer(const struct remote *r, const walked_vec *stack, size_t frames);

/* Was it proven (twice), alone or as the outer part of another? Empty and damaged ones never are. */
bool known_has(const struct remote *r, uint64_t hash);

/* It has been proven (once more), and its outer parts with it. */
void known_learn(struct remote *r, const walked_vec *stack);

void known_release(struct remote *r);

#endif
