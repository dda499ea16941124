/* What `run` and `attach` say when a recording ends: the run in plain words, the five hottest
 * functions and lines, and what to type next. */
#ifndef PYROMETER_VIEW_SUMMARY_H
#define PYROMETER_VIEW_SUMMARY_H

#include "profile/profile.h"
#include "view/emit.h"

/* `path` as the user would type it. */
int view_summary_print(const struct profile *p, const char *path, FILE *out,
                       struct view_style style);

#endif
