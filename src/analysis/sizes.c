#include "analysis/sizes.h"

struct summing {
    const struct profile_tables *t;
    const struct analysis_query *query;
    struct analysis_sizes *sizes;
};

static void add(struct analysis_size *to, uint64_t count, uint64_t bytes)
{
    to->count += count;
    to->bytes += bytes;
}

static int on_sizes(void *ctx, const struct record_memory *memory, const struct record_sizes *sizes)
{
    const struct summing *s = ctx;
    if (!analysis_memory_takes(s->query, s->t, memory))
        return 0;
    add(&s->sizes->bin[sizes->bin % ANALYSIS_SIZE_BINS], sizes->count, sizes->bytes);
    add(&s->sizes->total, sizes->count, sizes->bytes);
    return 0;
}

int analysis_sizes_init(const struct profile *profile, const struct analysis_query *query,
                        const struct analysis_memory *memory, struct analysis_sizes *ret)
{
    static const struct profile_memory_visitor visitor = {.sizes = on_sizes};
    struct analysis_sizes sizes = {0};
    struct summing s = {profile_tables(profile), query, &sizes};
    int r = profile_each_memory(profile, &visitor, &s, NULL);
    if (r < 0)
        return r;
    for (size_t i = 0; i < memory->count; i++) {
        const struct analysis_site *site = &memory->site[i];
        add(&sizes.allocator[site->allocator % RECORD_MAX_ALLOCATORS], site->count, site->bytes);
    }
    *ret = sizes;
    return 0;
}

uint64_t analysis_size_from(uint32_t bin)
{
    return bin ? 1ull << bin : 0;
}

uint64_t analysis_size_to(uint32_t bin)
{
    return bin == ANALYSIS_SIZE_BINS - 1 ? UINT64_MAX : (2ull << bin) - 1;
}
