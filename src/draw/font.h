/* Text on a canvas, in a font of our own: strokes on a grid, one width for every character.
 *
 * Why our own: a picture must look the same on a machine without any font, and a font engine with a
 * font inside would be larger than the rest of the program. It has the printable characters of
 * ASCII and the few others that Pyrometer itself writes (… × · → — “ ”); any other character is a
 * hollow box, two of them where it is wide in a terminal (the .svg has them all). */
#ifndef PYROMETER_DRAW_FONT_H
#define PYROMETER_DRAW_FONT_H

#include "draw/canvas.h"

#define DRAW_FONT_ADVANCE 0.6 /* from character to character, for size 1 */

enum draw_align { DRAW_LEFT, DRAW_CENTRE, DRAW_RIGHT };

struct draw_font {
    double size; /* the height of a line without gap, in the picture's units */
    bool bold;
    uint32_t colour;
};

/* UTF-8 on one line; (x, y) is on the base line. What is not UTF-8 is a box for each byte. */
void draw_text(struct draw_canvas *c, const struct draw_font *font, double x, double y,
               enum draw_align align, const char *text);

#endif
