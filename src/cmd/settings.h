/* What a project says about itself: `[tool.pyrometer.check]` of the nearest pyproject.toml.
 *
 *     [tool.pyrometer.check]
 *     baseline = "branch:main"            # as --baseline
 *     last = 20                           # runs of it, as --last
 *
 *     [tool.pyrometer.check.metrics]
 *     elapsed_time_sec = "5%"
 *     max_res_set_sz_kb = { threshold = "2%", limit = 500000 }
 *     rows_per_second = { threshold = "5%", worse = "less" }
 *
 * An unknown key is an error: a threshold that nobody reads is worse than none. */
#ifndef PYROMETER_CMD_SETTINGS_H
#define PYROMETER_CMD_SETTINGS_H

#include "base/vec.h"

#include <stdbool.h>

enum { CMD_LIMITS_MAX = 64 };

/* What is asked of one metric. */
struct cmd_limit {
    char *metric;     /* owned */
    double threshold; /* a share */
    bool is_less_worse;
    double limit; /* NaN: none */
};

struct cmd_settings {
    char *path;     /* of the file; owned; NULL: there is none */
    char *baseline; /* owned; NULL: not said */
    uint64_t last;  /* 0: not said */
    VEC(struct cmd_limit) limits;
};

/* Looks from the working directory upward. No file, or one without our table, is no error. 0, or the
 * status after a line. */
int cmd_settings_load(struct cmd_settings *ret);
void cmd_settings_release(struct cmd_settings *s);

/* The entry of a metric, made if there is none: threshold as by default. NULL without memory or past
 * CMD_LIMITS_MAX. */
struct cmd_limit *cmd_settings_limit(struct cmd_settings *s, const char *metric);

/* "5%", "5 %" or "0.05" → 0.05; false if it is none of them or not within 0 to 10. */
bool cmd_parse_share(const char *text, double *ret);

#endif
