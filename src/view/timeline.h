/* The timeline as JSON, as one picture (SVG), and as a page that zooms (HTML). */
#ifndef PYROMETER_VIEW_TIMELINE_H
#define PYROMETER_VIEW_TIMELINE_H

#include "analysis/timeline.h"

#include <stdio.h>

/* All return 0, or why the stream did not take it. */
int view_timeline_json(const struct analysis_timeline *t, FILE *out);
int view_timeline_write_svg(const struct analysis_timeline *t, FILE *out);
int view_timeline_write_html(const struct analysis_timeline *t, FILE *out);

/* Inside src/view: a function's name as people know it, and a colour for it that is always the same. */
struct profile_string view_timeline_name(const struct profile_tables *t, uint32_t code);
unsigned view_timeline_hue(const struct profile_tables *t, uint32_t code);

/* What is known of the call in a box, if it is a single one. Boxes are asked for row by row, in the order
 * of time; *at is 0 before the first. */
const struct analysis_timeline_note *
view_timeline_notes(const struct analysis_timeline_thread *thread, uint32_t depth,
                    const struct record_box *box, size_t *at, size_t *ret_count);

struct profile_string view_timeline_note_text(const struct analysis_timeline_thread *thread,
                                              const struct analysis_timeline_note *note);

/* What the recording lacks, calls that were to be left out too, in words; nothing is appended where it
 * lacks nothing. */
void view_timeline_losses(const struct analysis_timeline *t, struct buf *out);

/* "MainThread", "thread 12"; with the process where there are several. */
void view_timeline_thread(const struct profile_tables *t, uint32_t thread, struct buf *out);

/* Numbers for the functions that stand in the boxes, in the order of their first; owned by the caller.
 * `ret_codes` lists them. */
int view_timeline_functions(const struct analysis_timeline *t, uint32_t **ret_number,
                            uint32_t **ret_codes, size_t *ret_count);

#endif
