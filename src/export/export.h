/* Other tools' formats. A format is one file and one row of the table. */
#ifndef PYROMETER_EXPORT_EXPORT_H
#define PYROMETER_EXPORT_EXPORT_H

#include "analysis/query.h"

#include <stdio.h>

/* What a format left out because its viewers could not take it. */
struct export_notice {
    uint64_t calls;    /* so many; 0: nothing */
    uint64_t below_ns; /* those shorter than this */
    uint64_t limit;    /* what the viewer can take */
};

struct export_options {
    struct analysis_query query;
    bool all;                     /* leave nothing out */
    struct export_notice *notice; /* filled in; may be NULL */
    const char *losses;           /* what the recording lacks, in words; NULL: nothing. Borrowed */
    bool weighted;                /* values are the metric's weight, not the number of samples */
};

/* Streams the profile to `out`; 0 or a code. An error of the output is E_IO or the system's reason.
 */
typedef int export_fn(const struct profile *profile, const struct export_options *options,
                      FILE *out);

/* name, function, suffix of its files, what reads it */
#define EXPORT_FORMATS(X)                                                                          \
    X("collapsed", export_collapsed_write, ".collapsed",                                           \
      "one line a stack and a number: flame graph tools, speedscope")                              \
    X("speedscope", export_speedscope_write, ".speedscope.json", "speedscope.app")                 \
    X("callgrind", export_callgrind_write, ".callgrind", "KCachegrind, callgrind_annotate")        \
    X("pstats", export_pstats_write, ".prof", "pstats, snakeviz, gprof2dot, tuna")                 \
    X("chrome", export_chrome_write, ".trace.json",                                                \
      "a timeline's calls: chrome://tracing, Perfetto, speedscope")                                \
    X("perfetto", export_perfetto_write, ".pftrace", "a timeline's calls: ui.perfetto.dev")        \
    X("pprof", export_pprof_write, ".pb.gz", "go tool pprof")                                      \
    X("json", export_json_write, ".json", "the whole profile as one object (docs/json.md)")        \
    X("csv", export_csv_write, ".csv", "a row for each function: spreadsheets, data frames")       \
    X("dot", export_dot_write, ".dot", "the call graph: graphviz")

#define X(name, function, suffix, text) export_fn function;
EXPORT_FORMATS(X)
#undef X

struct export_format {
    const char *name;
    export_fn *write;
    const char *suffix;
    const char *text;
};

/* Ended by a row without a name. */
extern const struct export_format EXPORT_TABLE[];

const struct export_format *export_format_find(const char *name);

#endif
