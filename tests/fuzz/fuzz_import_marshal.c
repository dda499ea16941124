/* The marshal reader over arbitrary bytes: what it accepts is in bounds and has no circle. */
#include "profile/marshal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marshal m;
    if (marshal_init(&m, data, size) < 0)
        return 0;
    if (m.root >= m.values.len || m.values.len > size)
        abort();
    for (size_t i = 0; i < m.values.len; i++) {
        const struct marshal_value *v = &m.values.data[i];
        const char *end = (const char *)data + size;
        if (v->kind == MARSHAL_TEXT &&
            (v->text < (const char *)data || v->count > (size_t)(end - v->text)))
            abort();
        for (uint32_t k = 0; v->kind == MARSHAL_ROW && k < v->count; k++)
            if (m.items.data[v->first + k] >= i) /* parts are finished before the whole */
                abort();
    }
    marshal_release(&m);
    return 0;
}
