/* Python source that is none: lines lie in the text, and every block ends at or after its begin. */
#include "analysis/pysource.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct analysis_pysource s;
    if (analysis_pysource_init((const char *)data, size, &s) < 0)
        return 0;
    for (uint32_t n = 1; n <= s.count && n < 200; n++) {
        const struct analysis_pyline *line = &s.line[n - 1];
        uint32_t end = analysis_pysource_end(&s, n);
        if (line->at + (size_t)line->len > size || end < n || end > s.count)
            __builtin_trap();
    }
    analysis_pysource_release(&s);
    return 0;
}
