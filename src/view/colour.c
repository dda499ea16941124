/* OKLCH to sRGB; the constants are Ottosson's. */
#include "view/colour.h"

#include "base/idxmap.h"

#include <math.h>
#include <string.h>

static uint32_t channel(double linear)
{
    double v = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;
    return (uint32_t)(255 * (v < 0 ? 0 : v > 1 ? 1 : v) + 0.5);
}

uint32_t view_colour_oklch(double lightness, double chroma, double hue)
{
    double a = chroma * cos(hue * M_PI / 180), b = chroma * sin(hue * M_PI / 180);
    double l = pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
    double m = pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
    double s = pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
    uint32_t red = channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
    uint32_t green = channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
    uint32_t blue = channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
    return red << 16 | green << 8 | blue;
}

uint32_t view_colour_heat(double heat)
{
    double t = heat < 0 ? 0 : heat > 1 ? 1 : heat;
    return view_colour_oklch(0.94 - 0.28 * t, 0.05 + 0.14 * t, 95 - 67 * t);
}

uint32_t view_colour_module_hue(const char *module)
{
    enum { SPREAD = 36 };
    size_t top = strcspn(module, ".");
    uint32_t hue = hash_bytes(module, top) % 360;
    if (!module[top])
        return hue;
    return (hue + 360 - SPREAD / 2 + hash_bytes(module, strlen(module)) % SPREAD) % 360;
}
