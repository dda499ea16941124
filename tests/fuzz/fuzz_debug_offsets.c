/* What a 3.13 or later says of itself: whatever it says, a layout that is taken must be one whose
 * every field lies where the readers have room for it. */
#include "base/err.h"
#include "remote/pylayout.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MAX_OFFSET = 1 << 21 };
    struct pylayout l;
    int rc = pylayout_from_debug_offsets(data, size, &l);
    if (rc < 0)
        return 0;
    /* from `runtime` on, the structure is all uint32_t */
    uint32_t words[(sizeof l - offsetof(struct pylayout, runtime)) / sizeof(uint32_t)];
    memcpy(words, (uint8_t *)&l + offsetof(struct pylayout, runtime), sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i] != PYL_NONE && words[i] > MAX_OFFSET)
            abort();
    if (l.tstate.frame + 8 > l.tstate.size || l.tstate.next + 8 > l.tstate.size ||
        l.frame.code + 8 > l.frame.size || l.frame.previous + 8 > l.frame.size)
        abort();
    return 0;
}
