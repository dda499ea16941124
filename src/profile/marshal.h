/* Reads what Python's marshal module wrote, as plain data: numbers, texts, tuples, lists, dicts and
 * references to them. Nothing is executed and nothing is imported; code objects and all that is not
 * data is refused. Versions 0 to 5 of the format (CPython 2.7 to 3.15) as cProfile and pstats
 * write it.
 *
 * Every value takes at least one byte of input and a reference is an index, so memory is bounded by
 * the size of the input; depth has a maximum. A reference to something that is not finished (which
 * would make a circle) is refused, so values form a tree with shared parts. */
#ifndef PYROMETER_PROFILE_MARSHAL_H
#define PYROMETER_PROFILE_MARSHAL_H

#include "base/vec.h"

#include <stdbool.h>

enum { MARSHAL_MAX_DEPTH = 32 };

enum marshal_kind { MARSHAL_NONE, MARSHAL_NUMBER, MARSHAL_TEXT, MARSHAL_ROW };

struct marshal_value {
    enum marshal_kind kind;
    uint32_t count; /* ROW: its items; TEXT: its bytes */
    union {
        double number;    /* ints, bools and floats alike: exact up to 2^53 */
        const char *text; /* borrowed from the input */
        size_t first;     /* ROW: of its items in `items`. A dict has keys and values in turn. */
    };
};

struct marshal {
    VEC(struct marshal_value) values;
    VEC(uint32_t) items; /* indices of values */
    uint32_t root;
};

/* One value and nothing after it. E_BADPSTATS, E_LIMIT or E_NOMEM. The input must outlive it. */
int marshal_init(struct marshal *m, const void *data, size_t len);
void marshal_release(struct marshal *m);

/* The i-th item of a row; the caller has checked the count. */
static inline const struct marshal_value *marshal_item(const struct marshal *m,
                                                       const struct marshal_value *row, size_t i)
{
    return &m->values.data[m->items.data[row->first + i]];
}

#endif
