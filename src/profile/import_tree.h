/* A call tree out of functions and the calls between them. It cannot be right: if f was called by a
 * and by b, the file does not tell which of them made f slow in its callees. It is the best guess:
 * what f spends in its callees is spread over its callers as f's own total is. Inside src/profile
 * only. */
#ifndef PYROMETER_PROFILE_IMPORT_TREE_H
#define PYROMETER_PROFILE_IMPORT_TREE_H

#include "profile/import.h"

struct import_function {
    uint32_t code, line;
    struct profile_counts counts;
    uint64_t untimed_calls; /* calls from callers of which nothing else is known */
};

struct import_tree {
    VEC(struct import_function) functions;
    VEC(struct profile_call) calls; /* caller and callee are indices of functions */
};

/* Pushes the tree as samples. Every function stands in it, and its own time in all places adds up
 * to what was measured (to a nanosecond a place). Recursion is cut where a function would stand
 * under itself; what is too small to matter is not drawn, its time goes to the other places. */
int import_tree_grow(struct import *im, const struct import_tree *tree);

#endif
