/* `pyrometer verify`: whether a recording is whole, in plain words; with --repair, a copy of what
 * is good. The checking itself is src/format/verify.c. */
#include "format/verify.h"

#include "base/err.h"
#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "cmd/progress.h"
#include "view/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RUN_SUFFIX ".pyro"

struct verify_options {
    bool repair, force, json;
    const char *output;
};

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static uint32_t good_chunks(const struct format_verdict *v)
{
    return v->checked_chunks - v->bad_checksums - v->bad_contents;
}

static uint64_t torn_bytes(const struct format_verdict *v)
{
    return v->summary.torn ? v->summary.file_bytes - v->summary.good_bytes : 0;
}

/* One line for each thing that is wrong. */
static void print_faults(const struct format_verdict *v)
{
    if (!v->summary.finished)
        puts("  not finished: the recorder was stopped before it could end the file");
    if (v->summary.torn)
        printf("  torn: the last %" PRIu64 " byte%s belong to a chunk that is not complete\n",
               torn_bytes(v), plural(torn_bytes(v)));
    if (v->bad_checksums)
        printf("  changed: %" PRIu32 " chunk%s with a wrong checksum\n", v->bad_checksums,
               plural(v->bad_checksums));
    if (v->bad_contents)
        printf("  unreadable: %" PRIu32 " chunk%s with records that make no sense\n",
               v->bad_contents, plural(v->bad_contents));
    if (v->summary.missing_chunks)
        printf("  missing: %" PRIu32 " chunk%s, told by the gaps in their numbers\n",
               v->summary.missing_chunks, plural(v->summary.missing_chunks));
    if (v->dangling_refs)
        printf("  incomplete: %" PRIu64 " record%s to something that is lost\n", v->dangling_refs,
               v->dangling_refs == 1 ? " refers" : "s refer");
}

/* What a repaired copy lacks. */
static void print_lost(const struct format_verdict *v)
{
    if (v->lost_chunks)
        printf("  lost before it was repaired: %" PRIu64 " chunk%s\n", v->lost_chunks,
               plural(v->lost_chunks));
    if (v->lost_end)
        puts("  lost before it was repaired: the end, which was never written, or was cut off");
}

static void print_verdict(const char *path, const struct format_verdict *v)
{
    bool whole = format_verdict_is_whole(v);
    bool repaired = v->lost_chunks || v->lost_end;
    fprintf(cmd_stdout(), "%s: %s%s\n", path, whole ? "whole" : "damaged",
            repaired ? ", a repaired copy" : "");
    printf("  good: %" PRIu32 " of %" PRIu32 " chunk%s, with %" PRIu64 " record%s and %" PRIu64
           " sample%s\n",
           good_chunks(v), v->checked_chunks, plural(v->checked_chunks), v->records,
           plural(v->records), v->samples, plural(v->samples));
    if (!whole)
        print_faults(v);
    print_lost(v);
}

static int print_json(const char *path, const struct format_verdict *v, const char *repaired)
{
    struct profile *profile;
    int r = profile_load(path, &profile); /* without warnings: the verdict says it all */
    if (r < 0)
        return cmd_load_failed(path, r);
    struct json j;
    json_init(&j, cmd_stdout());
    json_object_begin(&j);
    view_run_json(&j, profile);
    profile_free(profile);
    json_kv_bool(&j, "whole", format_verdict_is_whole(v));
    json_kv_bool(&j, "finished", v->summary.finished);
    json_kv_u64(&j, "file_bytes", v->summary.file_bytes);
    json_kv_u64(&j, "torn_bytes", torn_bytes(v));
    json_kv_u64(&j, "chunks", v->checked_chunks);
    json_kv_u64(&j, "bad_checksums", v->bad_checksums);
    json_kv_u64(&j, "bad_contents", v->bad_contents);
    json_kv_u64(&j, "missing_chunks", v->summary.missing_chunks);
    json_kv_u64(&j, "dangling_refs", v->dangling_refs);
    json_kv_u64(&j, "lost_chunks", v->lost_chunks);
    json_kv_bool(&j, "lost_end", v->lost_end);
    json_kv_u64(&j, "records", v->records);
    json_kv_u64(&j, "samples", v->samples);
    json_key(&j, "repaired");
    if (repaired)
        json_text(&j, repaired);
    else
        json_null(&j);
    json_object_end(&j);
    putchar('\n');
    return CMD_OK;
}

/* "a/b.pyro" becomes "a/b-repaired.pyro". */
static char *repaired_path(const char *path)
{
    size_t len = strlen(path), suffix = strlen(RUN_SUFFIX);
    if (len > suffix && !strcmp(path + len - suffix, RUN_SUFFIX))
        len -= suffix;
    char *out;
    return asprintf(&out, "%.*s-repaired" RUN_SUFFIX, (int)len, path) < 0 ? NULL : out;
}

static int repair_failed(const char *path, const char *out, bool force, int rc)
{
    if (rc == E_EXISTS && force)
        return cmd_fail(CMD_FAILED, "'%s' is the recording itself; name another file with -o", out);
    if (rc == E_EXISTS)
        return cmd_fail(CMD_FAILED, "'%s' exists already; add --force or name another file with -o",
                        out);
    return cmd_fail(CMD_FAILED, "cannot save '%s' as '%s': %s", path, out, err_text(rc));
}

/* A whole recording is copied only if the user named the copy. */
static int repair(const char *path, const struct verify_options *options,
                  const struct format_verdict *before)
{
    bool whole = format_verdict_is_whole(before);
    struct format_verdict v = *before;
    _cleanup_free_ char *out = NULL;
    if (!whole || options->output) {
        if (!v.records)
            return cmd_fail(CMD_FAILED, "nothing in '%s' can be saved", path);
        out = options->output ? strdup(options->output) : repaired_path(path);
        if (!out)
            return cmd_fail(CMD_FAILED, "out of memory");
        int rc = format_repair(path, out, options->force, &v);
        if (rc < 0)
            return repair_failed(path, out, options->force, rc);
    }
    if (options->json)
        return print_json(path, &v, out);
    print_verdict(path, &v);
    if (!out)
        puts("nothing to repair");
    else
        printf("saved what is good: %s\nnext: pyrometer report %s\n", out, out);
    return CMD_OK;
}

static int check(const char *path, const struct verify_options *options)
{
    struct format_verdict v;
    cmd_progress_begin();
    int rc = format_verify(path, &v);
    if (rc < 0)
        return cmd_load_failed(path, rc);
    if (options->repair)
        return repair(path, options, &v);
    bool whole = format_verdict_is_whole(&v);
    if (options->json) {
        int status = print_json(path, &v, NULL);
        if (status)
            return status;
    } else {
        print_verdict(path, &v);
        if (!whole && v.records)
            printf("to save what is good: pyrometer verify --repair %s\n", path);
    }
    return whole ? CMD_OK : CMD_FAILED;
}

int cmd_verify(int argc, char **argv)
{
    struct verify_options options = {0};
    const struct cmd_option table[] = {
        {"repair", 0, CMD_FLAG, &options.repair, NULL},
        {"output", 'o', CMD_TEXT, &options.output, NULL},
        {"force", 0, CMD_FLAG, &options.force, NULL},
        {"json", 0, CMD_FLAG, &options.json, NULL},
        {NULL, 0, CMD_FLAG, NULL, NULL},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, table, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands > 1)
        return cmd_fail(CMD_USAGE, "verify takes one recording, not %d", operands);
    if ((options.output || options.force) && !options.repair)
        return cmd_fail(CMD_USAGE, "%s goes with --repair", options.output ? "-o" : "--force");

    _cleanup_free_ char *path = NULL;
    int status = cmd_resolve_run(operands ? argv[first] : "@", &path);
    return status ? status : check(path, &options);
}
