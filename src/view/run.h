/* What every view says about the recording it shows: which run, how it was sampled, what was lost.
 */
#ifndef PYROMETER_VIEW_RUN_H
#define PYROMETER_VIEW_RUN_H

#include "base/buf.h"
#include "base/json.h"
#include "profile/identity.h"

/* The same for people: "2026-11-15 09:30 UTC"; nothing is appended where it is not known. */
void view_run_day(const struct profile *p, struct buf *out);

/* The command, escaped for a terminal; "" if not known. */
void view_run_command(const struct profile *p, struct buf *out);

/* The distinct Python versions of its processes, joined by ", ". */
void view_run_pythons(const struct profile *p, struct buf *out);

/* A counter in the recorder's integer, or -1 where the recording does not say. */
double view_run_stat(const struct profile *p, enum record_stat stat);

/* False if it was only traced from inside: then looks mean nothing. */
bool view_run_is_sampled(const struct profile *p);

/* The end of a sentence, where a selection left nothing to trace. */
#define VIEW_RUN_UNSELECTED                                                                        \
    "no function that ran is in the selection (run --function, --match, --include, --exclude)"

/* Why there is nothing in a recording that was only traced from inside: the end of a sentence. What was refused is
 * told with the losses. */
const char *view_run_untraced(const struct profile *p);

/* Why a process could not be looked at: appends a sentence without its full stop, escaped for a terminal. False if all could. */
bool view_run_refusal(const struct profile *p, struct buf *out);

/* Looks per second that were really taken; -1 if not known. */
double view_run_achieved_hz(const struct profile *p);

/* "run": { … } and "sampling": { … } and "losses": { … } in an open object. `damaged` counts sample
 * chunks that could not be read, over those the profile knows of. */
void view_run_json(struct json *j, const struct profile *p);
void view_run_sampling_json(struct json *j, const struct profile *p);
void view_run_losses_json(struct json *j, const struct profile *p, uint32_t damaged);

/* Why there is not enough to look at in a sampled recording, and what to do instead: "no Python process was seen: …". */
const char *view_run_unsampled(const struct profile *p);

/* The losses in words ("12 looks missed, 1 chunk damaged"); nothing is appended if there are none.
 */
void view_run_losses(const struct profile *p, uint32_t damaged, struct buf *out);

/* How many calls the timeline lacks because run --min-duration and --max-depth were asked to leave them out, in
 * words; nothing is appended if none. */
void view_run_left_out(const struct profile *p, struct buf *out);

#endif
