/* `pyrometer info`: what a recording holds. */
#include "view/info.h"

#include "base/err.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "cmd/progress.h"

#include <errno.h>
#include <stdio.h>

typedef VEC(struct view_info_kind) kind_vec;

static struct view_info_kind *kind_row(kind_vec *kinds, unsigned kind)
{
    for (size_t i = 0; i < kinds->len; i++)
        if (kinds->data[i].kind == kind)
            return &kinds->data[i];
    struct view_info_kind *row = vec_push(kinds);
    if (row)
        *row = (struct view_info_kind){.name = format_chunk_kind_name(kind), .kind = kind};
    return row;
}

static int compare_kinds(const void *a, const void *b)
{
    const struct view_info_kind *x = a, *y = b;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static int count_chunks(const char *path, kind_vec *kinds)
{
    struct format_reader *reader;
    int r = format_reader_open(path, &reader);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < format_reader_chunk_count(reader); i++) {
        const struct format_chunk *chunk = format_reader_chunk(reader, i);
        struct view_info_kind *row = kind_row(kinds, chunk->kind);
        if (!row) {
            r = E_NOMEM;
            break;
        }
        row->chunks++;
        row->records += chunk->records;
        row->stored_bytes += chunk->stored_bytes;
        row->raw_bytes += chunk->raw_bytes;
    }
    format_reader_free(reader);
    if (kinds->len)
        qsort(kinds->data, kinds->len, sizeof *kinds->data, compare_kinds);
    return r;
}

static int count_samples(void *ctx, const struct record_sample *samples, size_t n)
{
    struct view_info *info = ctx;
    info->sample_records += n;
    for (size_t i = 0; i < n; i++)
        info->samples += samples[i].count;
    return 0;
}

static int count_calls(void *ctx, const struct record_calls *calls)
{
    struct view_info *info = ctx;
    info->call_records++;
    info->calls += calls->calls;
    info->resumes += calls->resumes;
    return 0;
}

static int count_checkpoint(void *ctx, const struct record_memory *memory)
{
    struct view_info *info = ctx;
    info->memory.checkpoints++;
    info->memory.sampled |= (memory->flags & RECORD_MEMORY_SAMPLED) != 0;
    return 0;
}

static int count_site(void *ctx, const struct record_memory *memory, const struct record_site *site)
{
    struct view_info *info = ctx;
    (void)memory;
    info->memory.site_records++;
    info->memory.allocations += site->count;
    info->memory.objects |= site->allocator >= RECORD_ALLOCATOR_PYTHON_RAW;
    return 0;
}

static int show(const struct profile *profile, enum view_format format)
{
    kind_vec kinds = {0};
    struct view_info info = {.profile = profile};
    int r = count_chunks(profile_path(profile), &kinds);
    if (r == 0)
        r = profile_each_sample(profile, count_samples, &info, &info.damaged_chunks);
    uint32_t damaged = 0;
    if (r == 0)
        r = profile_each_calls(profile, count_calls, &info, &damaged);
    info.damaged_chunks += damaged;
    static const struct profile_memory_visitor memory = {.memory = count_checkpoint,
                                                         .site = count_site};
    if (r == 0)
        r = profile_each_memory(profile, &memory, &info, &damaged);
    info.damaged_chunks += damaged;
    int status = CMD_OK;
    if (r < 0) {
        status = cmd_load_failed(profile_path(profile), r);
    } else {
        info.kinds = kinds.data;
        info.kind_count = kinds.len;
        errno = 0;
        r = view_info_print(&info, cmd_stdout(), format);
        if (r < 0)
            status = cmd_output_failed("the standard output", r, errno);
    }
    vec_release(&kinds);
    return status;
}

int cmd_info(int argc, char **argv)
{
    bool json = false;
    const struct cmd_option options[] = {
        {"json", 0, CMD_FLAG, &json, NULL},
        {0},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands > 1)
        return cmd_fail(CMD_USAGE, "info takes one RUN, not %d", operands);
    struct profile *profile = NULL;
    int status = cmd_load_run(operands ? argv[first] : "@", &profile);
    if (!status)
        status = show(profile, json ? VIEW_JSON : VIEW_TEXT);
    profile_free(profile);
    return status;
}
