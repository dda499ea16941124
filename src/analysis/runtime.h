/* Which stacks are the interpreter's own: memory that they hold is held for its whole life, and no leak of
 * the program's. These are stacks without any Python frame, stacks that end in the machinery of import
 * (modules stay once they are loaded), those of start-up before the program, site and what it uses, and those of modules of the
 * standard library while they are imported: types, above all, which up to 3.12 outlive the interpreter. */
#ifndef PYROMETER_ANALYSIS_RUNTIME_H
#define PYROMETER_ANALYSIS_RUNTIME_H

#include "profile/profile.h"

/* One byte for each node of the trie, owned by the caller: is the stack that ends there the interpreter's? */
int analysis_runtime_nodes(const struct profile_tables *t, uint8_t **ret);

#endif
