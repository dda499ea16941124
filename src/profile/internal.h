/* What the files of this folder may know of a loaded profile. */
#ifndef PYROMETER_PROFILE_INTERNAL_H
#define PYROMETER_PROFILE_INTERNAL_H

#include "profile/profile.h"

const struct format_reader *profile_reader(const struct profile *p);

/* An id from a record, or that of the stand-in for what was lost. */
uint32_t profile_mend_code(const struct profile *p, uint32_t code);
uint32_t profile_mend_string(const struct profile *p, uint32_t string);
uint32_t profile_mend_thread(const struct profile *p, uint32_t thread);

#endif
