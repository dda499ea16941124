#include "draw/axis.h"

#include <math.h>

static double round_step(double rough)
{
    double power = pow(10, floor(log10(rough))), lead = rough / power;
    return power * (lead <= 1.0001 ? 1 : lead <= 2.0001 ? 2 : lead <= 5.0001 ? 5 : 10);
}

struct draw_axis draw_axis_around(double low, double high, size_t want)
{
    struct draw_axis a = {.decimals = 0};
    if (!isfinite(low) || !isfinite(high))
        low = 0, high = 1;
    double least = fmax(fabs(low), fabs(high)) * 1e-6; /* finer steps would all read the same */
    if (!(high - low > least)) {
        double room = low == 0 ? 1 : fabs(low) * 0.1;
        low -= low == 0 ? 0 : room;
        high += room;
    }
    want = want < 1 ? 1 : want > DRAW_AXIS_TICKS / 2 ? DRAW_AXIS_TICKS / 2 : want;
    double step = round_step((high - low) / (double)want);
    a.low = floor(low / step + 1e-9) * step;
    a.high = ceil(high / step - 1e-9) * step;
    a.decimals = (int)fmax(0, -floor(log10(step) + 1e-9));
    for (; a.ticks < DRAW_AXIS_TICKS; a.ticks++) {
        double at = a.low + (double)a.ticks * step;
        if (at > a.high + step / 2)
            break;
        a.tick[a.ticks] = fabs(at) < step / 2 ? 0 : at;
    }
    return a;
}

double draw_axis_place(const struct draw_axis *axis, double value)
{
    return (value - axis->low) / (axis->high - axis->low);
}
