/* Places in functions: every (function, line) that stands in a stack, numbered. What formats need
 * that tell lines inside functions apart (callgrind, pprof). Inside src/export only. */
#ifndef PYROMETER_EXPORT_SITES_H
#define PYROMETER_EXPORT_SITES_H

#include "analysis/rows.h"
#include "base/vec.h"

struct export_site {
    uint32_t row;  /* of the function */
    uint32_t line; /* 0: not known */
    struct analysis_weight self;
};

struct export_sites {
    VEC(struct export_site) site;
    uint32_t *node_site; /* by trie node; the root's has no meaning */
};

/* `rows` are functions. */
int export_sites_init(const struct analysis_rows *rows, struct export_sites *ret);
void export_sites_release(struct export_sites *s);

#endif
