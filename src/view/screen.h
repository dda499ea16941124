/* A terminal as a screen of lines and a keyboard: the little of ncurses that the browsers need.
 *
 * While a screen is open the terminal shows another page, and SIGWINCH, SIGTERM, SIGINT and SIGHUP
 * arrive as keys; screen_close() gives everything back exactly as it was, whatever happened between.
 * There can be one screen at a time, for there is one terminal. Only one thread may use it.
 *
 * Texts must be harmless (view/text.h) UTF-8. Whatever the locale says, the screen speaks UTF-8, as
 * all our output does. */
#ifndef PYROMETER_VIEW_SCREEN_H
#define PYROMETER_VIEW_SCREEN_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct screen; /* opaque */

enum screen_style {
    SCREEN_PLAIN,
    SCREEN_FAINT,
    SCREEN_STRONG, /* headings */
    SCREEN_CHOSEN, /* the line of the cursor, bars */
    SCREEN_HOT,
    SCREEN_WARM,
    SCREEN_FOUND, /* what a search found */
};

/* Characters are their code point; the rest is below zero. */
enum screen_key {
    SCREEN_KEY_NONE = -1, /* a key that means nothing here, or time is up */
    SCREEN_KEY_UP = -2,
    SCREEN_KEY_DOWN = -3,
    SCREEN_KEY_LEFT = -4,
    SCREEN_KEY_RIGHT = -5,
    SCREEN_KEY_PAGE_UP = -6,
    SCREEN_KEY_PAGE_DOWN = -7,
    SCREEN_KEY_HOME = -8,
    SCREEN_KEY_END = -9,
    SCREEN_KEY_ENTER = -10,
    SCREEN_KEY_BACKSPACE = -11,
    SCREEN_KEY_ESCAPE = -12,
    SCREEN_RESIZED = -13, /* screen_size() has changed; draw again */
    SCREEN_STOP = -14,    /* a signal asks to end, or the terminal is gone: screen_signal() */
};

/* False if the standard streams are no terminal that a screen can be made of. */
bool screen_is_possible(void);

/* E_NOMEM, or E_SYSTEM where the terminal is not known or cannot be addressed: then nothing was
 * touched and plain text is the answer. */
int screen_open(bool colour, struct screen **ret);
void screen_close(struct screen *s);

void screen_size(const struct screen *s, size_t *ret_height, size_t *ret_width);

/* Draws: _clear, then lines in any order, then _show. Text goes from (row, column) to the right, and
 * is cut at the margin; _fill styles the rest of the row. */
void screen_clear(struct screen *s);
void screen_put(struct screen *s, size_t row, size_t column, enum screen_style style,
                const char *text, size_t len);
void screen_fill(struct screen *s, size_t row, size_t column, enum screen_style style);
void screen_cursor(struct screen *s, size_t row, size_t column); /* shows it; _clear hides it */
void screen_show(struct screen *s);

/* Waits for a key, for ever if `milliseconds` is below zero. */
int screen_key(struct screen *s, int milliseconds);

/* Shows lines of text, cut at the margin, until a key that does not scroll them. That key,
 * which means nothing else, or SCREEN_STOP. */
int screen_page(struct screen *s, const char *const *text, size_t count);

/* What a key does to a line that is typed: a character is added, the last one taken away. The buffer's
 * maximum is the line's. */
void screen_edit(struct buf *line, int key);

/* After SCREEN_STOP: the signal that asked, 0 if the terminal went away. It is for the caller to end
 * by it once the screen is closed, so that whoever started us sees why. */
int screen_signal(const struct screen *s);

#endif
