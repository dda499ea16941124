/* A folder given as RUN is not a run: what could be one is listed. */
#ifndef PYROMETER_CMD_FOLDER_H
#define PYROMETER_CMD_FOLDER_H

/* Prints name, kind, size and command of every profile in the folder. CMD_LISTED, or the status
 * after a line. */
int cmd_folder_list(const char *path);

#endif
