/* How large allocations were and who was asked for them: sums over a recording, or a range of it. */
#ifndef PYROMETER_ANALYSIS_SIZES_H
#define PYROMETER_ANALYSIS_SIZES_H

#include "analysis/memory.h"

enum { ANALYSIS_SIZE_BINS = 64 };

struct analysis_size {
    uint64_t count, bytes;
};

struct analysis_sizes {
    /* Bin b: 2^b to 2^(b+1)-1 bytes, bin 0 of 0 or 1. Of whole processes: sizes know no threads and no stacks. */
    struct analysis_size bin[ANALYSIS_SIZE_BINS];
    struct analysis_size allocator[RECORD_MAX_ALLOCATORS]; /* of the sites that the query takes */
    struct analysis_size total;                            /* of the bins */
};

int analysis_sizes_init(const struct profile *profile, const struct analysis_query *query,
                        const struct analysis_memory *memory, struct analysis_sizes *ret);

/* The least and the largest size of a bin. */
uint64_t analysis_size_from(uint32_t bin);
uint64_t analysis_size_to(uint32_t bin);

#endif
