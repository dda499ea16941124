/* Runs that the SOMA profiler kept: a folder for each command, in it command.txt and a JSON file for
 * each run. */
#ifndef PYROMETER_HISTORY_IMPORT_SOMA_H
#define PYROMETER_HISTORY_IMPORT_SOMA_H

#include "history/run.h"

enum { HISTORY_SOMA_FILE_MAX = 64 << 20 };

/* One run out of the text of its file. `command` is command.txt's, for a file that does not tell it
 * (NULL: none). Numbers that are written as text ("1.23") are taken as numbers. The uid is made of the
 * content, so that the same file is the same run. E_BADJSON, E_INVALID (not a run), E_NOMEM, E_LIMIT. */
int history_import_soma(const char *command, const void *data, size_t len, struct history_run *ret);

#endif
