/* The parser of /proc/PID/maps over arbitrary text. */
#include "remote/maps.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *cursor = (const char *)data, *end = cursor + size;
    struct maps_line line;
    while (maps_next(&cursor, end, &line))
        if (line.start >= line.end || strlen(line.path) >= sizeof line.path)
            abort();
    static struct maps_candidate candidates[MAPS_MAX_CANDIDATES];
    size_t n = maps_candidates((const char *)data, size, "/opt/app/embeds", candidates);
    for (size_t i = 0; i < n; i++)
        if (candidates[i].path[0] != '/')
            abort();
    return 0;
}
