/* What the probes cost, and how it is taken out along the paths of calls.
 *
 * A call costs its function `inside` ns between the two stamps, and its caller `outside` ns around
 * them. The guest measures both at the start of every process, for Python and for C functions, and
 * the recording has them as the fact `calibration.ID` with the process's number in the file:
 *
 *     python_inside python_outside c_inside c_outside line error
 *
 * So a path's own time is what was stamped, less its calls times `inside`, less the calls of what it
 * called directly times `outside`, less what the recording says that other probes cost in it (calls
 * of types, which have probes but are not told). A resume costs what a call does. */
#ifndef PYROMETER_ANALYSIS_CALIBRATION_H
#define PYROMETER_ANALYSIS_CALIBRATION_H

#include "analysis/calls.h"

enum analysis_calibration_kind { ANALYSIS_CALIBRATION_PYTHON, ANALYSIS_CALIBRATION_C };

/* In ns, for one call or one line. */
struct analysis_calibration {
    double inside[2], outside[2]; /* by enum analysis_calibration_kind */
    double line;
    double error; /* of one call's inside and outside together */
};

/* False if the text is not six sensible numbers. */
bool analysis_calibration_parse(const char *text, struct analysis_calibration *ret);

/* That of a process (by its number in the file); false if it has none. */
bool analysis_calibration_find(const struct profile *profile, uint32_t process,
                               struct analysis_calibration *ret);

/* Takes the cost out of the self_ns of one thread's entries, which stand in the order of a walk down
 * the trie. 0 or E_NOMEM. */
int analysis_calibration_apply(const struct analysis_calibration *c, const struct profile_tables *t,
                               struct analysis_calls_entry *entry, size_t count);

#endif
