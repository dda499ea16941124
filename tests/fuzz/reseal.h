/* Makes a mutated profile file worth reading: a fuzzer cannot guess checksums, so without this it
 * would never get past them. For the fuzzers only. */
#ifndef PYROMETER_TESTS_FUZZ_RESEAL_H
#define PYROMETER_TESTS_FUZZ_RESEAL_H

#include "format/compress.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What must hold whatever the input: else the fuzzer has found something. */
#define require(good)                                                                              \
    do {                                                                                           \
        if (!(good)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #good);                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Two ways, each with its own faults left in. False: every chunk whose length fits gets its
 * checksum, all other fields stay as they are. True: a chunk reaches up to the next magic, so that
 * bytes may come and go in a payload without the rest being lost. */
static inline void reseal(uint8_t *data, size_t len, bool reframe)
{
    static const uint32_t magic = FORMAT_CHUNK_MAGIC;
    struct format_file_header file;
    struct format_chunk_header h;
    if (len < sizeof file)
        return;
    memcpy(&file, data, sizeof file);
    memcpy(file.magic, FORMAT_MAGIC, sizeof file.magic);
    if (reframe) {
        file.version_major = FORMAT_VERSION_MAJOR;
        file.incompatible_flags = 0;
        file.header_bytes = sizeof file;
    }
    file.checksum = checksum_file_header(&file);
    memcpy(data, &file, sizeof file);
    for (size_t at = sizeof file; len - at >= sizeof h;) {
        memcpy(&h, data + at, sizeof h);
        size_t room = len - at - sizeof h;
        if (reframe) {
            uint8_t *next = memmem(data + at + sizeof h, room, &magic, sizeof magic);
            h.magic = magic;
            h.stored_bytes = (uint32_t)(next ? (size_t)(next - data) - at - sizeof h : room);
            if (!(h.flags & FORMAT_CHUNK_ZSTD))
                h.raw_bytes = h.stored_bytes;
        }
        if (h.magic != magic || h.stored_bytes > room) {
            at++;
            continue;
        }
        h.checksum = checksum_chunk(&h, data + at + sizeof h);
        memcpy(data + at, &h, sizeof h);
        at += sizeof h + h.stored_bytes;
    }
}

/* An exact copy on the heap, so that a sanitizer sees a byte too many. */
static inline uint8_t *resealed_copy(const uint8_t *data, size_t len, bool reframe)
{
    uint8_t *copy = malloc(len ? len : 1);
    if (len)
        memcpy(copy, data, len);
    reseal(copy, len, reframe);
    return copy;
}

#endif
