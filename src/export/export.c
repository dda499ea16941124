/* The table of formats. */
#include "export/export.h"

#include <string.h>

const struct export_format EXPORT_TABLE[] = {
#define X(name, function, suffix, text) {name, function, suffix, text},
    EXPORT_FORMATS(X)
#undef X
        {0},
};

const struct export_format *export_format_find(const char *name)
{
    for (const struct export_format *f = EXPORT_TABLE; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}
