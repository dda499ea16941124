/* The source of a recording's files, found again: on the disk, in a zip archive, or in the
 * recording itself, where the recorder kept what might vanish. The recorder's print of each file
 * tells whether what lies on the disk is still what ran. */
#ifndef PYROMETER_PROFILE_SOURCE_H
#define PYROMETER_PROFILE_SOURCE_H

#include "profile/profile.h"

enum {
    PROFILE_SOURCE_MAX_BYTES = 16 << 20, /* of one file on the disk */
    PROFILE_SOURCE_MAX_KEPT = 64 << 20,  /* of all texts in a recording; what is past it is left */
};

enum profile_source_origin {
    PROFILE_SOURCE_NONE, /* no text is to be had */
    PROFILE_SOURCE_FILE,
    PROFILE_SOURCE_ZIP,
    PROFILE_SOURCE_KEPT, /* it is the recording's */
};

struct profile_source {
    enum profile_source_origin origin;
    bool changed; /* a file is there, but it is not what ran; the text is the kept one if there is
                     one (origin KEPT), else the file's, whose lines may not fit */
    bool on_disk; /* a file is there */
    char *text;   /* owned; NULL with origin NONE */
    size_t len;
};

struct profile_sources;

/* Reads the prints and the kept texts. The profile is borrowed and must outlive it. */
int profile_sources_new(const struct profile *p, struct profile_sources **ret);
void profile_sources_free(struct profile_sources *s);

/* The source of a file by the name that code has for it. 0, also if there is none, or E_NOMEM. */
int profile_source_find(const struct profile_sources *s, struct profile_string path,
                        struct profile_source *ret);
void profile_source_release(struct profile_source *source);

#endif
