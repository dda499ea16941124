/* Other tools' files, from the first byte to the rows of a table: pstats, collapsed, speedscope. */
#include "analysis/edges.h"
#include "profile/import.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void analyse(const struct profile *profile)
{
    struct analysis_query query = {.metric = ANALYSIS_METRICS};
    struct analysis_weights weights;
    if (analysis_weights_init(profile, &query, &weights) < 0)
        return;
    struct analysis_rows rows;
    if (analysis_rows_init(&weights, ANALYSIS_BY_FUNCTION, &rows) == 0) {
        struct analysis_edges edges;
        if (analysis_edges_init(&rows, &edges) == 0)
            analysis_edges_release(&edges);
        analysis_rows_release(&rows);
    }
    analysis_weights_release(&weights);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile *profile;
    if (profile_import_memory(data, size, "x", 1, &profile) < 0)
        return 0;
    analyse(profile);
    profile_free(profile);
    return 0;
}
