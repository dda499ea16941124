/* Other people's text on a terminal: made harmless, measured in columns, cut to fit. */
#ifndef PYROMETER_VIEW_TEXT_H
#define PYROMETER_VIEW_TEXT_H

#include "base/buf.h"

/* Appends text so that it can neither move the cursor nor break a line: control characters and
 * bytes that are not UTF-8 as \x1b, characters that turn the writing direction as \u202e. */
void view_text_escape(struct buf *out, const char *text, size_t len);

/* Appends a path as one word of a shell, which can be typed or pasted as the RUN of a command. */
void view_text_shell(struct buf *out, const char *path);

/* Columns that (escaped) text takes on a terminal: two for East Asian wide characters, none for
 * combining marks. */
size_t view_text_width(const char *text, size_t len);

enum view_text_cut { VIEW_CUT_LEFT, VIEW_CUT_MIDDLE, VIEW_CUT_RIGHT };

/* Appends (escaped) text in at most `width` columns, with '…' where something was left out: at the
 * left for paths, whose end matters, in the middle for names, at the right for source. */
void view_text_fit(struct buf *out, const char *text, size_t len, size_t width,
                   enum view_text_cut cut);

#endif
