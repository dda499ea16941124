/* Facts about the machine and the command, written into a recording's META chunk. Inside src/record. */
#ifndef PYROMETER_RECORD_FACTS_H
#define PYROMETER_RECORD_FACTS_H

#include "format/writer.h"
#include "record/record.h"

void facts_write(struct format_writer *w, const struct record_options *options, const char *mode);

#endif
