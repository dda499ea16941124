/* Is a recording whole, and what can be saved of a torn one. */
#ifndef PYROMETER_FORMAT_VERIFY_H
#define PYROMETER_FORMAT_VERIFY_H

#include "format/reader.h"

struct format_verdict {
    struct format_summary summary;
    uint32_t checked_chunks;
    uint32_t bad_checksums; /* chunks whose bytes changed */
    uint32_t bad_contents;  /* chunks whose checksum holds but whose records do not decode */
    uint64_t dangling_refs; /* records that name an id nobody defined */
    uint64_t records;
    uint64_t samples; /* counting every sample of a run */
    /* of a repaired copy: what its original had lost */
    uint64_t lost_chunks;
    bool lost_end;
};

/* Checks every chunk; 0 with the verdict filled in even if the file is damaged. */
int format_verify(const char *path, struct format_verdict *ret);

/* True if nothing is wrong and the recording was finished in order, or repaired: a copy is whole, whatever its original was. */
bool format_verdict_is_whole(const struct format_verdict *v);

/* Copies every good chunk of `path` to a new file `out` (E_EXISTS unless force), notes what could not be saved, and finishes
 * it; the original is not touched. `ret` describes the original. */
int format_repair(const char *path, const char *out, bool force, struct format_verdict *ret);

#endif
