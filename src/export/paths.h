/* From stacks to the ids (rows, sites) on their paths. Inside src/export only. */
#ifndef PYROMETER_EXPORT_PATHS_H
#define PYROMETER_EXPORT_PATHS_H

#include "analysis/rows.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/large.h"
#include "export/spool.h"

/* Stacks that climb side by side. A climb waits for memory at every step, for each node says where
 * the next one is; several at once wait together. */
enum { EXPORT_PATHS = 16 };

/* Parent and id of a node side by side: what is needed together lies together. */
struct export_link {
    uint32_t parent, id;
};

struct export_paths {
    struct export_link *link; /* by node; owned */
    uint32_t *ids;            /* owned; EXPORT_PATHS stretches, each as long as the deepest stack */
    size_t room;              /* of a stretch */
    size_t len[EXPORT_PATHS];
};

/* `column` gives the id of each node; a stack without nodes has the one id `none`. Measures the
 * deepest stack, so that filling needs no test. */
static inline int export_paths_init(struct export_paths *p, const struct profile_tables *t,
                                    const uint32_t *column, uint32_t none)
{
    _cleanup_free_ uint32_t *depth = large_calloc(t->node_count + 1, sizeof *depth);
    p->link = large_calloc(t->node_count + 1, sizeof *p->link);
    if (!depth || !p->link)
        return E_NOMEM;
    size_t max = 1;
    p->link[0].id = none;
    for (size_t i = 1; i < t->node_count; i++) {
        p->link[i] = (struct export_link){t->node_parent[i], column[i]};
        depth[i] = depth[t->node_parent[i]] + 1;
        max = depth[i] > max ? depth[i] : max;
    }
    p->room = max;
    p->ids = calloc(max, EXPORT_PATHS * sizeof *p->ids);
    return p->ids ? 0 : E_NOMEM;
}

/* The ids on the paths of the next `n` (EXPORT_PATHS at most) stacks, the innermost first. */
static inline void export_paths_fill(struct export_paths *p, const struct export_record *records,
                                     size_t n)
{
    uint32_t node[EXPORT_PATHS];
    size_t climbing = n;
    for (size_t i = 0; i < n; i++) {
        node[i] = records[i].stack;
        p->ids[i * p->room] = p->link[node[i]].id;
        node[i] = p->link[node[i]].parent;
        p->len[i] = 1;
    }
    while (climbing) {
        climbing = 0;
        for (size_t i = 0; i < n; i++) {
            if (!node[i])
                continue;
            struct export_link link = p->link[node[i]];
            p->ids[i * p->room + p->len[i]++] = link.id;
            node[i] = link.parent;
            climbing++;
        }
    }
}

static inline const uint32_t *export_paths_ids(const struct export_paths *p, size_t i)
{
    return p->ids + i * p->room;
}

static inline void export_paths_release(struct export_paths *p)
{
    free(p->link);
    free(p->ids);
}

#endif
