/* (profile, query) → how much of the metric every node of the stack trie, every thread and every
 * process carries itself. One streaming pass over the samples; everything above works on the result
 * and never looks at a sample again. */
#ifndef PYROMETER_ANALYSIS_WEIGHTS_H
#define PYROMETER_ANALYSIS_WEIGHTS_H

#include "analysis/calls.h"
#include "analysis/memory.h"

struct analysis_weight {
    uint64_t weight;  /* in the metric's integer: ns, bytes, 1 */
    uint64_t samples; /* looks that it rests on; of exact calls entries, of memory blocks */
};

struct analysis_weights {
    const struct profile *profile; /* borrowed: must outlive this */
    const struct analysis_metric *metric;
    struct analysis_weight *node;    /* own weight of each trie node, tables->node_count; or of the
                                        root alone, see below */
    struct analysis_weight *thread;  /* tables->thread_count */
    struct analysis_weight *process; /* tables->process_count */
    struct analysis_weight total;
    double squares;                 /* of the weights of single samples, added up */
    uint64_t recorded_samples;      /* in the whole recording, whatever the query */
    uint32_t threads_taken;         /* threads that pass the filters, with samples or without */
    uint32_t damaged_chunks;        /* of samples, that had to be skipped */
    struct analysis_calls *calls;   /* owned; of a metric of exact calls, NULL else */
    struct analysis_memory *memory; /* owned; of a metric of memory, NULL else */
    /* Of memory that was sampled: the variance of each node's weight, NULL else; and of all. NaN where it is
     * not known. */
    double *variance;
    double total_variance;
    /* Nothing is estimated from looks. Either the metric is of memory; or the metric is of exact calls, and `samples` say how often a path was
     * entered (calls and resumes; calls alone are in `calls`); or the
     * profile has exact counts (profile_tables.counts) and the query leaves them whole: functions and
     * their calls are then taken from the counts. */
    bool exact;
};

int analysis_weights_init(const struct profile *profile, const struct analysis_query *query,
                          struct analysis_weights *ret);
void analysis_weights_release(struct analysis_weights *w);

/* The same for who goes over the samples himself and wants the sums alone: of nodes only the root has
 * a weight, and the others no place. */
int analysis_weights_init_sums(const struct profile *profile, const struct analysis_query *query,
                               struct analysis_weights *ret);

/* True if functions and their calls were counted. */
static inline bool analysis_weights_counted(const struct analysis_weights *w)
{
    return w->exact && !w->memory;
}

static inline void analysis_weight_add(struct analysis_weight *to, struct analysis_weight w)
{
    to->weight += w.weight;
    to->samples += w.samples;
}

/* Adds every node's weight to its parent's, so that each holds its whole subtree. Parents come
 * before children in the table, so one pass backwards does it. */
void analysis_weights_accumulate(const struct profile_tables *t, struct analysis_weight *node);

/* How many samples of equal weight would tell as much. A sample stands for the time since the last look; where looks were missed one
 * of them may stand for as much as a hundred others, and is no surer for that. */
uint64_t analysis_weights_worth(const struct analysis_weights *w);

/* Half of the 95 % interval of a share, in points of 0–100, when `share` (0–1) was estimated from
 * `samples` looks of equal weight. Wilson's interval: it stays sensible for a few looks and for shares near 0 and
 * 1, where the normal one shrinks to nothing. Without any looks nothing is known: 100. */
double analysis_share_error(double share, uint64_t samples);

#endif
