/* The folder .pyrometer, found upward from the working directory like git's. */
#ifndef PYROMETER_CMD_RUNS_H
#define PYROMETER_CMD_RUNS_H

#include <stdbool.h>

/* Its path, owned by the caller; made in the working directory, with a .gitignore of its own, if there is none and `make`;
 * else E_NOENT. Prints nothing. */
int cmd_home(bool make, char **ret);

#endif
