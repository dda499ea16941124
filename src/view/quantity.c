#include "view/quantity.h"

#include "base/attr.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len > end_len && !strcmp(text + len - end_len, end);
}

enum view_quantity view_quantity_of(const char *metric)
{
    if (ends_with(metric, "_sec") || ends_with(metric, "_seconds"))
        return VIEW_QUANTITY_SECONDS;
    if (ends_with(metric, "_kb") || ends_with(metric, "_bytes"))
        return VIEW_QUANTITY_BYTES;
    if (!strncmp(metric, "pct_", 4) || ends_with(metric, "_percent"))
        return VIEW_QUANTITY_PERCENT;
    return VIEW_QUANTITY_NUMBER;
}

/* From the metric's own unit to bytes or seconds. */
static double base_scale(const char *metric)
{
    return ends_with(metric, "_kb") ? 1024 : 1;
}

struct view_units_text view_quantity_text(const char *metric, double value)
{
    struct view_units_text t;
    if (!isfinite(value)) {
        snprintf(t.text, sizeof t.text, "?");
        return t;
    }
    switch (view_quantity_of(metric)) {
    case VIEW_QUANTITY_SECONDS:
        return view_units_seconds(value);
    case VIEW_QUANTITY_BYTES:
        return view_units_bytes(value * base_scale(metric));
    case VIEW_QUANTITY_PERCENT:
        return view_units_percent(value);
    case VIEW_QUANTITY_NUMBER:
        break;
    }
    if (value >= 0 && value < 1e15 && value == floor(value))
        return view_units_count((uint64_t)value);
    snprintf(t.text, sizeof t.text, "%.4g", value);
    return t;
}

struct view_quantity_scale view_quantity_scale_for(const char *metric, double largest)
{
    static const struct view_quantity_scale seconds[] = {{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"},
                                                         {1, "s"},     {60, "min"},  {3600, "h"}};
    static const struct view_quantity_scale bytes[] = {
        {1, "B"}, {1024., "KiB"}, {1048576., "MiB"}, {1073741824., "GiB"}, {1099511627776., "TiB"}};
    static const struct view_quantity_scale numbers[] = {
        {1, ""}, {1e3, "thousand"}, {1e6, "million"}, {1e9, "billion"}};
    static const struct view_quantity_scale percent = {1, "%"};
    const struct view_quantity_scale *steps = numbers;
    size_t count = ARRAY_LEN(numbers);
    double least = 10; /* that many of the unit at least: 9,000 is read as it is */
    switch (view_quantity_of(metric)) {
    case VIEW_QUANTITY_PERCENT:
        return percent;
    case VIEW_QUANTITY_SECONDS:
        steps = seconds;
        count = ARRAY_LEN(seconds);
        least = 1;
        break;
    case VIEW_QUANTITY_BYTES:
        steps = bytes;
        count = ARRAY_LEN(bytes);
        least = 1;
        break;
    case VIEW_QUANTITY_NUMBER:
        break;
    }
    double size = fabs(largest) * base_scale(metric);
    size_t i = 0;
    while (i + 1 < count && size >= least * steps[i + 1].divisor *
                                        (steps[i + 1].divisor >= 60 && steps == seconds ? 5 : 1))
        i++;
    return (struct view_quantity_scale){steps[i].divisor / base_scale(metric), steps[i].unit};
}
