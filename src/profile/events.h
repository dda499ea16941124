/* The timeline of a recording: blocks of events and their summaries, where they are and what is in them.
 * Nothing of it is loaded with the profile; all of it is read when it is asked for. */
#ifndef PYROMETER_PROFILE_EVENTS_H
#define PYROMETER_PROFILE_EVENTS_H

#include "profile/profile.h"

/* Pushes every block, each thread's in the order of time: first with no events, then its batches. Ids
 * are made good; the block has its notes. `ret_damaged` (may be NULL) counts blocks that could not be read, or not to the end. */
int profile_each_event(const struct profile *p,
                       int (*fn)(void *ctx, const struct record_events *block,
                                 const struct record_event *events, size_t n),
                       void *ctx, uint32_t *ret_damaged);

/* How many events the file claims to hold. */
uint64_t profile_event_records(const struct profile *p);

/* Pushes every mark and every counter, ids made good; rows may be NULL. */
struct profile_mark_visitor {
    int (*mark)(void *ctx, const struct record_mark *mark);
    int (*counter)(void *ctx, const struct record_counter *counter);
};
int profile_each_mark(const struct profile *p, const struct profile_mark_visitor *visitor,
                      void *ctx);

/* Were arguments and results kept? Then blocks are worth reading where summaries would do. */
bool profile_has_arguments(const struct profile *p);

/* The timeline is complete from here on, in ns after the origin, and not to be shown before; 0: from the
 * beginning. */
uint64_t profile_window_start(const struct profile *p);

/* Was a timeline recorded? It may still be empty. */
bool profile_has_timeline(const struct profile *p);

/* Where everything is, by thread, then level, then time. */
struct profile_places {
    struct record_place *place; /* owned */
    size_t count;
};

/* A finished recording has directories; in a torn one, what they lack is looked for in every chunk. */
int profile_places_init(const struct profile *p, struct profile_places *ret);
void profile_places_release(struct profile_places *places);

/* What one place holds. Rows that the place's kind does not have may be NULL. */
struct profile_place_visitor {
    int (*events)(void *ctx, const struct record_events *block, const struct record_event *events,
                  size_t n);
    int (*box)(void *ctx, uint32_t depth, const struct record_box *box);
    int (*summary)(void *ctx, const struct record_summary *summary);
};

/* `ret_bytes` (may be NULL) is told how much of the file was read. E_CORRUPT: damaged. */
int profile_visit_place(const struct profile *p, const struct record_place *place,
                        const struct profile_place_visitor *visitor, void *ctx,
                        uint64_t *ret_bytes);

#endif
