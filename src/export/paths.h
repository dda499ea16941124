/* From a stack to the ids (rows, sites) on its path. Inside src/export only. */
#ifndef PYROMETER_EXPORT_PATHS_H
#define PYROMETER_EXPORT_PATHS_H

#include "analysis/rows.h"
#include "base/attr.h"
#include "base/err.h"

/* Parent and id of a node side by side: a walk up jumps about in memory, so what is needed together
 * lies together. */
struct export_link {
    uint32_t parent, id;
};

struct export_path {
    struct export_link *link; /* by node; owned */
    uint32_t *id;             /* the innermost first; owned; as long as the deepest stack */
    size_t len;
};

/* `column` gives the id of each node. Measures the deepest stack, so that filling needs no test. */
static inline int export_path_init(struct export_path *path, const struct profile_tables *t,
                                   const uint32_t *column)
{
    _cleanup_free_ uint32_t *depth = calloc(t->node_count + 1, sizeof *depth);
    path->link = calloc(t->node_count + 1, sizeof *path->link);
    if (!depth || !path->link)
        return E_NOMEM;
    size_t max = 0;
    for (size_t i = 1; i < t->node_count; i++) {
        path->link[i] = (struct export_link){t->node_parent[i], column[i]};
        depth[i] = depth[t->node_parent[i]] + 1;
        max = depth[i] > max ? depth[i] : max;
    }
    path->id = calloc(max + 1, sizeof *path->id);
    return path->id ? 0 : E_NOMEM;
}

/* The ids of a stack's nodes; none for the root. There is always room for one more. */
static inline void export_path_fill(struct export_path *path, uint32_t stack)
{
    size_t len = 0;
    for (uint32_t node = stack; node; node = path->link[node].parent)
        path->id[len++] = path->link[node].id;
    path->len = len;
}

static inline void export_path_release(struct export_path *path)
{
    free(path->link);
    free(path->id);
}

#endif
