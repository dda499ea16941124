/* A file that a command writes for the user (-o FILE, --force): made new, never half of one left
 * behind under a new name, and never the recording itself. */
#ifndef PYROMETER_CMD_OUTPUT_H
#define PYROMETER_CMD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct cmd_output {
    const char *path; /* borrowed */
    FILE *file;
    bool is_new; /* ours to remove if it fails */
};

/* Opens it. An existing file is refused without `force`; so is a directory, and the file at
 * `recording` (which is mapped while it is read). 0, or the exit status after a line. */
int cmd_output_open(const char *path, bool force, const char *recording, struct cmd_output *ret);

/* Closes it. `code` is what writing returned: on failure the file is removed if it was new. 0, or
 * the exit status after a line. */
int cmd_output_close(struct cmd_output *output, int code);

/* True if the path ends so, in any case of letters. */
bool cmd_output_has_suffix(const char *path, const char *suffix);

#endif
