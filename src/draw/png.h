/* Writes a canvas as .png: the format needs little beside zlib, so no library of its own. */
#ifndef PYROMETER_DRAW_PNG_H
#define PYROMETER_DRAW_PNG_H

#include "draw/canvas.h"

#include <stdio.h>

/* 0, E_NOMEM, or why the output could not be written. */
int draw_png_write(const struct draw_canvas *canvas, FILE *out);

#endif
