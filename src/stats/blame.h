/* Which parts of a whole explain that it changed between two sets of runs, and how sure that is.
 *
 * A part is a function (or a line), measured in every run. Three things move it without anybody's
 * fault: the error of the sampling, which the number of samples tells; the machine, which was
 * slower for a whole run; and the difference between one run and the next. The machine is taken out
 * first: most parts agree on how fast a run was, by their median, and who disagrees is the one that
 * is looked for. The rest is estimated from the runs of each side, mixed with what programs are
 * known to do; of one run on each side only the latter is left, so that pairs need larger changes.
 * Runs on a busy machine prove less: a neighbour's burst hits whatever runs at the moment.
 *
 * A part is blamed if its change is beyond that (Student's t, corrected for the number of parts that
 * could have been blamed) and large enough to matter. */
#ifndef PYROMETER_STATS_BLAME_H
#define PYROMETER_STATS_BLAME_H

#include <stdbool.h>
#include <stddef.h>

#define STATS_BLAME_ALPHA 0.04 /* chance that equal programs blame somebody */
#define STATS_BLAME_LEAST 0.01 /* of the whole: what is smaller is not worth a name */

struct stats_blame_cell {
    double weight;  /* seconds, bytes, … */
    double samples; /* that it rests on; infinite where it was counted */
};

struct stats_blame_input {
    const struct stats_blame_cell *cell; /* part after part, in each the runs: before, then after */
    size_t parts, before_count, after_count; /* at least one run on each side */
    const double
        *busy; /* of each run: the share of the machine that others took, 0–1; NULL: none */
    double alpha, least;
};

struct stats_blame_part {
    size_t part;
    double before, after; /* means, as if all runs had had the same machine */
    double change;        /* after less before */
    double error;         /* half of the 95 % interval of the change */
    double p;             /* of no change; corrected */
    bool is_blamed;
};

/* Fills `ret` (room for all parts): the blamed first, in each half the largest change first. 0,
 * E_NOMEM, or E_INVALID without runs. */
int stats_blame_find(const struct stats_blame_input *input, struct stats_blame_part *ret);

#endif
