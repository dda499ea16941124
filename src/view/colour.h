/* Colours for pictures, chosen in OKLCH, where equal steps look equal. */
#ifndef PYROMETER_VIEW_COLOUR_H
#define PYROMETER_VIEW_COLOUR_H

#include <stdint.h>

/* 0xrrggbb. Lightness 0–1, chroma 0–0.4, hue in degrees. */
uint32_t view_colour_oklch(double lightness, double chroma, double hue);

/* From pale yellow to red for 0 to 1. The lightness falls all the way, so the order is also seen in
 * print without colour and by eyes that do not tell red from green; black text stays readable. */
uint32_t view_colour_heat(double heat);

/* The hue of a dotted module: the same in every picture; a package's modules are neighbours. */
uint32_t view_colour_module_hue(const char *module);

#endif
