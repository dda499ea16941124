/* Human formats. The unit is chosen after rounding, so 999.96 ms reads "1.00 s", never "1000 ms".
 */
#include "view/units.h"

#include "base/attr.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Three digits: 1.23, 12.3, 123. */
static int decimals(double v)
{
    v = fabs(v);
    return v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
}

struct step {
    double size;
    const char *unit;
};

static struct view_units_text scaled(double v, const struct step *steps, size_t n, double base)
{
    struct view_units_text t;
    size_t i = 0;
    while (i + 1 < n && fabs(v) / steps[i].size >= base * 0.9995)
        i++;
    double shown = v / steps[i].size;
    snprintf(t.text, sizeof t.text, "%.*f %s", decimals(shown), shown, steps[i].unit);
    return t;
}

struct view_units_text view_units_seconds(double seconds)
{
    static const struct step steps[] = {{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}};
    struct view_units_text t;
    double s = fabs(seconds);
    if (s == 0 || !isfinite(s)) {
        snprintf(t.text, sizeof t.text, s == 0 ? "0 s" : "?");
    } else if (s >= 3599.5 && s < 1e12) {
        uint64_t minutes = (uint64_t)(s / 60 + 0.5);
        snprintf(t.text, sizeof t.text, "%" PRIu64 " h %02u min", minutes / 60,
                 (unsigned)(minutes % 60));
    } else {
        return scaled(seconds, steps, ARRAY_LEN(steps), 1000);
    }
    return t;
}

struct view_units_text view_units_percent(double percent)
{
    struct view_units_text t;
    if (!isfinite(percent))
        snprintf(t.text, sizeof t.text, "?");
    else
        snprintf(t.text, sizeof t.text, "%.1f %%", percent);
    return t;
}

struct view_units_text view_units_bytes(double bytes)
{
    static const struct step steps[] = {
        {1, "B"}, {1024., "KiB"}, {1048576., "MiB"}, {1073741824., "GiB"}, {1099511627776., "TiB"}};
    if (fabs(bytes) < 1000) {
        struct view_units_text t;
        snprintf(t.text, sizeof t.text, "%.0f B", bytes);
        return t;
    }
    return scaled(bytes, steps, ARRAY_LEN(steps), 1024);
}

struct view_units_text view_units_count(uint64_t count)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, count);
    struct view_units_text t;
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            t.text[at++] = ',';
        t.text[at++] = digits[i];
    }
    t.text[at] = '\0';
    return t;
}
