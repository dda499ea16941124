/* What `run` and `attach` say when a recording ends: the run in plain words, the five hottest
 * functions and lines, and what to type next. */
#ifndef PYROMETER_VIEW_SUMMARY_H
#define PYROMETER_VIEW_SUMMARY_H

#include "profile/profile.h"
#include "view/emit.h"

/* `path` as the user would type it; `named`: it was, and the recording is not the last of those that go by
 * themselves, so the commands to type next must name it. */
int view_summary_print(const struct profile *p, const char *path, bool named, FILE *out,
                       struct view_style style);

#endif
