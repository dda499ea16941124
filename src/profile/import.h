/* Other tools' profiles, loaded as if they were recordings. Inside src/profile only: the world
 * calls profile_load(), which comes here when a file is not ours.
 *
 * Idea: a reader of a format pushes (stack, weight) pairs into a builder, which writes a recording
 * into memory by way of the ordinary writer; that is then loaded like any other. So there is one
 * kind of profile above this folder. Facts that tell where it came from: `import` (the format) and
 * `import.unit` (what a weight is: seconds, bytes or samples). */
#ifndef PYROMETER_PROFILE_IMPORT_H
#define PYROMETER_PROFILE_IMPORT_H

#include "base/idxmap.h"
#include "base/vec.h"
#include "format/writer.h"
#include "profile/profile.h"

struct import_code {
    uint32_t name, file, first_line;
    uint32_t id; /* in the recording */
};

struct import {
    const char *data; /* the file, borrowed */
    size_t len;
    const char *path;
    int fd; /* the image */
    struct format_writer *writer;
    VEC(struct import_code) codes;
    struct idxmap code_map;
    uint32_t threads;
    uint64_t now; /* the end of the last sample of the current thread */
    /* Exact counts, if the format has them; see profile.h. Handed over to the profile. */
    struct profile_counts *counts;
    struct profile_call *calls;
    size_t call_count;
};

struct import_text {
    const char *text;
    size_t len;
};

/* The same code for the same texts. `file` may be empty. */
uint32_t import_code(struct import *im, struct import_text name, struct import_text file,
                     uint32_t first_line);

/* The code and the line of a frame that is one text: "name (file:line)" as many tools write it, or
 * a bare name. */
uint32_t import_frame(struct import *im, struct import_text frame, uint32_t *ret_line);

uint32_t import_stack(struct import *im, uint32_t parent, uint32_t code, uint32_t line);

/* Samples that follow belong to it. */
void import_thread(struct import *im, struct import_text name);
void import_sample(struct import *im, uint32_t stack, uint64_t samples, uint64_t weight);

/* What a weight is: "seconds" (in ns), "bytes" or "samples". Once. */
void import_unit(struct import *im, const char *unit);

/* The readers. E_FORMAT: it is not this format at all. */
int import_collapsed(struct import *im);
int import_speedscope(struct import *im);
int import_pstats(struct import *im);

/* Any of the three, by the looks of the first bytes. */
int import_any(struct import *im);

/* The whole of it from bytes in memory (fuzzers, tests) and from a file. */
int profile_import_memory(const void *data, size_t len, const char *path, uint64_t created_ns,
                          struct profile **ret);
int profile_import(const char *path, struct profile **ret);

/* In profile.c: loads an image; takes `counts` and `calls` over in any case. */
int profile_load_image(const char *image, const char *path, uint64_t created_ns,
                       struct profile_counts *counts, struct profile_call *calls, size_t call_count,
                       struct profile **ret);

#endif
