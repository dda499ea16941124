/* Stacks along time: for each thread the blocks of a flame chart. A block is a function (a row) at
 * some depth, for as long as it stood there without a break under the same caller.
 *
 * A long recording has more blocks than a picture has points. Blocks shorter than a limit that lie
 * side by side under one caller become one folded block; if there are still too many, the limit
 * grows and what is shorter is left out and counted. */
#ifndef PYROMETER_ANALYSIS_SEQUENCE_H
#define PYROMETER_ANALYSIS_SEQUENCE_H

#include "analysis/rows.h"

struct analysis_block {
    uint32_t lane;
    uint32_t depth; /* 0 is the outermost frame */
    uint32_t row;   /* ANALYSIS_ROW_NONE: folded */
    uint32_t folded;
    uint64_t start_ns, end_ns;
    struct analysis_weight total, self;
};

struct analysis_lane {
    uint32_t thread;     /* its index in the profile */
    size_t first, count; /* blocks */
    uint32_t depth;      /* of the deepest block, plus one */
    struct analysis_weight total;
};

struct analysis_sequence {
    struct analysis_block *block; /* lane by lane, then by time, callers before what they call */
    size_t count;
    struct analysis_lane *lane; /* by process, then by the time of the first sample */
    size_t lane_count;
    uint64_t from_ns, to_ns; /* of what was seen */
    uint64_t shortest_ns;    /* blocks shorter than this were folded or left out */
    uint64_t folded, dropped;
};

/* `max_blocks` >= 1. `query` is the one the rows' weights were made with. */
int analysis_sequence_init(const struct analysis_rows *rows, const struct analysis_query *query,
                           size_t max_blocks, struct analysis_sequence *ret);
void analysis_sequence_release(struct analysis_sequence *s);

#endif
