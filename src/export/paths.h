/* From a stack to the ids (rows, sites) on its path. Inside src/export only. */
#ifndef PYROMETER_EXPORT_PATHS_H
#define PYROMETER_EXPORT_PATHS_H

#include "analysis/rows.h"
#include "base/attr.h"
#include "base/err.h"

struct export_path {
    const uint32_t *parent;
    uint32_t *id; /* the innermost first; owned; as long as the deepest stack */
    size_t len;
    size_t max;
};

/* Measures the deepest stack, so that filling needs no test. */
static inline int export_path_init(struct export_path *path, const struct profile_tables *t)
{
    _cleanup_free_ uint32_t *depth = calloc(t->node_count + 1, sizeof *depth);
    if (!depth)
        return E_NOMEM;
    *path = (struct export_path){.parent = t->node_parent};
    for (size_t i = 1; i < t->node_count; i++) {
        depth[i] = depth[t->node_parent[i]] + 1;
        path->max = depth[i] > path->max ? depth[i] : path->max;
    }
    path->id = malloc((path->max + 1) * sizeof *path->id);
    return path->id ? 0 : E_NOMEM;
}

/* The ids of a stack's nodes, out of a column by node; none for the root. */
static inline void export_path_fill(struct export_path *path, const uint32_t *column,
                                    uint32_t stack)
{
    size_t len = 0;
    for (uint32_t node = stack; node; node = path->parent[node])
        path->id[len++] = column[node];
    path->len = len;
}

static inline void export_path_release(struct export_path *path)
{
    free(path->id);
}

#endif
