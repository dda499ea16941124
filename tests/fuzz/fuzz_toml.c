/* TOML that is none: every path and text that is given lies within its bounds. */
#include "base/toml.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int check(void *ctx, const struct toml_item *item)
{
    size_t *bytes = ctx;
    if (item->parts == 0 || item->parts > TOML_MAX_PARTS || item->line == 0)
        __builtin_trap();
    for (size_t i = 0; i < item->parts; i++)
        *bytes += strlen(item->part[i]);
    if (strlen(item->text) > TOML_MAX_TEXT)
        __builtin_trap();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bytes = 0;
    toml_read((const char *)data, size, check, &bytes, NULL);
    return 0;
}
