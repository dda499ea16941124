/* Taking out goes backwards over the walk, so that callees come before their callers.
 *
 * A function that ran shorter than its probes are said to cost has nothing left. What it cannot bear is
 * taken from its caller: the cost of a call as a whole is known better than at which of its two
 * stamps it falls, and so the totals of all callers stay what they would be. Only what the outermost
 * function cannot bear is let go; no time is below zero. */
#include "analysis/calibration.h"

#include "base/attr.h"
#include "base/err.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIELDS = 6 };
static const double MOST_NS =
    1e6; /* a probe that takes a millisecond was not measured but guessed */

bool analysis_calibration_parse(const char *text, struct analysis_calibration *ret)
{
    double field[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        char *end;
        field[i] = strtod(text, &end);
        if (end == text || !(field[i] >= 0 && field[i] <= MOST_NS))
            return false;
        text = end;
    }
    if (*text)
        return false;
    *ret = (struct analysis_calibration){.inside = {field[0], field[2]},
                                         .outside = {field[1], field[3]},
                                         .line = field[4],
                                         .error = field[5]};
    return true;
}

bool analysis_calibration_find(const struct profile *profile, uint32_t process,
                               struct analysis_calibration *ret)
{
    char key[32];
    snprintf(key, sizeof key, "calibration.%u", process);
    const char *text = profile_meta_value(profile, key);
    return text && analysis_calibration_parse(text, ret);
}

int analysis_calibration_apply(const struct analysis_calibration *c, const struct profile_tables *t,
                               struct analysis_calls_entry *entry, size_t count)
{
    _cleanup_free_ uint32_t *place = calloc(t->node_count + 1, sizeof *place); /* index + 1 */
    _cleanup_free_ double *owed = calloc(count + 1, sizeof *owed);
    if (!place || !owed)
        return E_NOMEM;
    for (size_t i = 0; i < count; i++)
        place[entry[i].sums.stack] = (uint32_t)i + 1;
    for (size_t i = count; i-- > 0;) {
        struct record_calls *e = &entry[i].sums;
        bool is_c = t->codes[t->node_code[e->stack]].flags & RECORD_CODE_C;
        double entered = (double)e->calls + (double)e->resumes;
        double left =
            (double)e->self_ns - entered * c->inside[is_c] - (double)e->probes_ns - owed[i];
        if (left < (double)e->self_ns) /* else there is nothing to take out */
            e->self_ns = left > 0 ? (uint64_t)(left + 0.5) : 0;
        uint32_t caller = t->node_parent[e->stack];
        while (caller && !place[caller])
            caller = t->node_parent[caller];
        if (place[caller])
            owed[place[caller] - 1] += entered * c->outside[is_c] + (left < 0 ? -left : 0);
    }
    return 0;
}
