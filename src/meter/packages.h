/* Which distributions, in which versions, the imported modules came from. Inside src/meter.
 *
 * A folder of sys.path has a NAME-VERSION.dist-info (or .egg-info) for each distribution in it, and
 * in there is written which modules it brought. Reading them takes a while, so it begins as soon as a
 * folder is known, on a thread of its own, while the program runs. Nothing is imported. What is
 * installed but was not imported is not told; where several distributions share a name
 * (namespace packages), the one that has an imported module's file is the one. */
#ifndef PYROMETER_METER_PACKAGES_H
#define PYROMETER_METER_PACKAGES_H

#include "meter/names.h"

struct packages;

int packages_new(struct packages **ret);
void packages_free(struct packages *p);

/* A folder of some interpreter's sys.path. Any thread. */
void packages_add_folder(struct packages *p, const char *folder);

/* After the program's end: `modules` are dotted names as in sys.modules. */
typedef void (*packages_fn)(void *ctx, const char *name, const char *version);
void packages_match(struct packages *p, const struct names *modules, packages_fn tell, void *ctx);

#endif
