/* The JSON reader over arbitrary bytes: every token, and skipping from every second one. */
#include "base/jsonread.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const uint8_t *data, size_t size, bool skips)
{
    struct jsonread j;
    jsonread_init(&j, data, size);
    size_t tokens = 0;
    while (jsonread_next(&j) == 0 && j.token != JSONREAD_END) {
        if (j.depth > JSONREAD_MAX_DEPTH || ++tokens > size + 1)
            abort();
        if (skips && tokens % 2 && jsonread_skip_rest(&j) < 0)
            break;
    }
    /* an error stays */
    if (j.error && (j.token == JSONREAD_END || jsonread_next(&j) != j.error))
        abort();
    jsonread_release(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size, false);
    read_all(data, size, true);
    return 0;
}
