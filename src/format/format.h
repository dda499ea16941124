/* The profile file (.pyro), version 1: its layout and nothing else. docs/format.md explains it and
 * a test keeps the two in step.
 *
 *   offset 0    file header, 64 bytes
 *          64   chunk header, 32 bytes | payload (stored_bytes) | next chunk header | …
 *
 * A file is only ever appended to, one whole chunk at a time. A reader takes chunks until one is
 * torn (short, bad magic, bad checksum) and loses nothing before it. All numbers are little-endian.
 *
 * file header                               chunk header
 *    0  u8[8]  magic                           0  u32  magic "PYCH"
 *    8  u16    version_major                   4  u16  kind       (enum format_chunk_kind)
 *   10  u16    version_minor                   6  u16  flags      (FORMAT_CHUNK_ZSTD)
 *   12  u32    header_bytes (64)               8  u32  sequence   (0, 1, 2, …: a gap is a lost chunk)
 *   16  u32    compatible_flags               12  u32  stored_bytes
 *   20  u32    incompatible_flags             16  u32  raw_bytes
 *   24  u8[16] run_id                         20  u32  records
 *   40  u64    created_ns (since 1970)        24  u64  checksum   (XXH3-64 of the stored payload,
 *   48  u64    clock_origin_ns (monotonic)                         seeded with XXH3-64 of 0–23)
 *   56  u64    checksum (XXH3-64 of 0–55)
 *
 * A reader refuses a file whose major version or any incompatible flag it does not know; it ignores
 * compatible flags and skips chunk kinds it does not know. Strings, code, stack nodes, processes and
 * threads have dense ids for the whole file; a definition always stands in an earlier chunk than its
 * first use, and every definition chunk names its first id, so a lost chunk damages only what refers
 * to it. */
#ifndef PYROMETER_FORMAT_FORMAT_H
#define PYROMETER_FORMAT_FORMAT_H

#include <assert.h>
#include <stdint.h>

#define FORMAT_MAGIC       "\x89PYRO\r\n\x1a"
#define FORMAT_CHUNK_MAGIC 0x48435950u /* "PYCH" */

enum {
    FORMAT_VERSION_MAJOR = 1,
    FORMAT_VERSION_MINOR = 0,
    FORMAT_CHUNK_ZSTD = 1, /* chunk flag: payload is one zstd frame */
    FORMAT_KNOWN_INCOMPATIBLE = 0,
};

/* Limits a reader enforces before it allocates. */
enum {
    FORMAT_MAX_CHUNK_BYTES = 64 << 20, /* stored or raw */
    FORMAT_MAX_STRING_BYTES = 4 << 20,
    FORMAT_MAX_IDS = 1 << 30, /* of one kind */
};

struct format_file_header {
    uint8_t magic[8];
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_bytes;
    uint32_t compatible_flags;
    uint32_t incompatible_flags;
    uint8_t run_id[16];
    uint64_t created_ns;
    uint64_t clock_origin_ns;
    uint64_t checksum;
};
static_assert(sizeof(struct format_file_header) == 64, "the file header is 64 bytes");

struct format_chunk_header {
    uint32_t magic;
    uint16_t kind;
    uint16_t flags;
    uint32_t sequence;
    uint32_t stored_bytes;
    uint32_t raw_bytes;
    uint32_t records;
    uint64_t checksum;
};
static_assert(sizeof(struct format_chunk_header) == 32, "a chunk header is 32 bytes");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "structs are written as they lie");

/* number, name, what it holds. Numbers are for ever; 16 and up wait for their instruments. */
#define FORMAT_CHUNK_KINDS(X)                                                                      \
    X(1, META, "facts about the recording: pairs of texts")                                        \
    X(2, STRINGS, "interned texts")                                                                \
    X(3, CODES, "code objects")                                                                    \
    X(4, STACKS, "nodes of the stack trie")                                                        \
    X(5, PROCESSES, "processes, and later news of them")                                           \
    X(6, THREADS, "threads, and later news of them")                                               \
    X(7, SAMPLES, "runs of equal samples")                                                         \
    X(8, STATS, "counters of the recorder; the last value counts")                                 \
    X(9, END, "the recording was finished in order")                                               \
    X(16, CALLS, "exact calls, aggregated")                                                        \
    X(17, LINES, "exact line hits")                                                                \
    X(18, ALLOCATIONS, "memory by site, at one moment")                                            \
    X(19, EVENTS, "calls and returns on the timeline")                                             \
    X(20, GPU_SPANS, "kernels and copies")                                                         \
    X(21, COUNTERS, "values over time")                                                            \
    X(22, MARKS, "named moments and spans")                                                        \
    X(23, SOURCES, "source texts")                                                                 \
    X(24, INDEX, "levels of detail over earlier chunks")                                           \
    X(25, NOTES, "what is known of single calls on the timeline")                                  \
    X(26, MEMORY_EVENTS, "every allocation and release")

enum format_chunk_kind {
#define X(number, name, text) FORMAT_CHUNK_##name = (number),
    FORMAT_CHUNK_KINDS(X)
#undef X
};

/* The kind's name ("SAMPLES"), or NULL for one we do not know. */
const char *format_chunk_kind_name(unsigned kind);

#endif
