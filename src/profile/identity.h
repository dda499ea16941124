/* Which run a recording is, as text. */
#ifndef PYROMETER_PROFILE_IDENTITY_H
#define PYROMETER_PROFILE_IDENTITY_H

#include "base/json.h"
#include "profile/profile.h"

enum { PROFILE_ID_SIZE = 33, PROFILE_TIME_SIZE = 32 };

/* The run's id as 32 hexadecimal digits. */
void profile_id_text(const struct profile *p, char ret[PROFILE_ID_SIZE]);

/* When the recording began, as ISO 8601 in UTC. */
void profile_created_text(const struct profile *p, char ret[PROFILE_TIME_SIZE]);

/* "id", "path", "command" and "created" in an open object: how every JSON names a run. */
void profile_identity_json(struct json *j, const struct profile *p);

#endif
