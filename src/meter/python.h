/* What the program's Python processes have imported, seen from outside. Inside src/meter; the thread
 * that owns the tree owns this, too. */
#ifndef PYROMETER_METER_PYTHON_H
#define PYROMETER_METER_PYTHON_H

#include "meter/packages.h"
#include "meter/tree.h"

struct remote_finder;

struct python {
    struct remote_finder *finder;
    struct packages *packages;
    struct names modules;
    char version[32]; /* of the first interpreter found; "" before */
};

int python_init(struct python *p);
void python_release(struct python *p, struct tree *t);

/* Probes and looks at those that are due; the moment at which the next is. */
uint64_t python_look(struct python *p, struct tree *t, uint64_t now_ns);

#endif
