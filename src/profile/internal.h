/* What the files of this folder may know of a loaded profile. */
#ifndef PYROMETER_PROFILE_INTERNAL_H
#define PYROMETER_PROFILE_INTERNAL_H

#include "profile/profile.h"

const struct format_reader *profile_reader(const struct profile *p);

/* An id from a record, or that of the stand-in for what was lost. */
uint32_t profile_mend_code(const struct profile *p, uint32_t code);
uint32_t profile_mend_string(const struct profile *p, uint32_t string);
uint32_t profile_mend_stack(const struct profile *p, uint32_t stack);
uint32_t profile_mend_thread(const struct profile *p, uint32_t thread);
uint32_t profile_mend_process(const struct profile *p, uint32_t process);

/* For each thread's id whether the file defines it; what is past `*ret_count` it does not. */
const uint8_t *profile_threads_known(const struct profile *p, size_t *ret_count);

#endif
