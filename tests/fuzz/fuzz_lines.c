/* The line-table decoders: one byte for the encoding, four for the first line, then the table. */
#include "remote/code.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HEAD = 5, OFFSETS = 64 };
    if (size < HEAD)
        return 0;
    struct remote_code c = {
        .encoding = (enum pyl_lines)(data[0] % 3),
        .lines = (uint8_t *)data + HEAD,
        .lines_len = (uint32_t)(size - HEAD),
    };
    memcpy(&c.first_line, data + 1, sizeof c.first_line);
    for (int64_t offset = -2; offset < OFFSETS; offset++)
        remote_code_line(&c, offset);
    remote_code_line(&c, INT64_MAX);
    remote_code_line(&c, INT64_MIN);
    return 0;
}
