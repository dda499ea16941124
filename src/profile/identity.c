#include "profile/identity.h"

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

void profile_id_text(const struct profile *p, char ret[PROFILE_ID_SIZE])
{
    const uint8_t *id = profile_summary(p)->header.run_id;
    for (size_t i = 0; i < 16; i++)
        snprintf(ret + 2 * i, 3, "%02x", id[i]);
}

void profile_created_text(const struct profile *p, char ret[PROFILE_TIME_SIZE])
{
    time_t seconds = (time_t)(profile_summary(p)->header.created_ns / NS_PER_SEC);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || !strftime(ret, PROFILE_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm))
        ret[0] = '\0';
}

void profile_identity_json(struct json *j, const struct profile *p)
{
    char id[PROFILE_ID_SIZE], created[PROFILE_TIME_SIZE];
    profile_id_text(p, id);
    profile_created_text(p, created);
    const char *command = profile_meta_value(p, "command");
    json_kv_text(j, "id", id);
    json_kv_text(j, "path", profile_path(p));
    json_key(j, "command");
    if (command)
        json_text(j, command);
    else
        json_null(j);
    json_kv_text(j, "created", created);
}
