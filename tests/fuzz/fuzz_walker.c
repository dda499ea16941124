/* The threads, frames, code objects, names and locals of a process whose memory is the fuzz input.
 *
 *   byte 0     which CPython: 0–4 a table, 5 and up: what the memory says of itself
 *   byte 1     bit 0: the type of code objects is known; bit 1: the consistency check is off
 *   byte 2     how many patches follow (at most 31)
 *   byte 3     unused
 *   8 bytes each: a patch {u16 call, u16 offset / 4, u32 value}: what the target writes while it is
 *              being read, just before that call
 *   the rest   its memory, from BASE on; the runtime begins there */
#include "base/err.h"
#include "remote/internal.h"
#include "remote/locals.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    BASE = 0x10000,
    HEAD = 4,
    MAX_PATCHES = 31,
    MAX_THREADS = 3,
    SAMPLES = 4,
    MAX_MEMORY = 1 << 16
};

struct patch {
    uint16_t call, at;
    uint32_t value;
};

struct target {
    uint8_t *memory;
    size_t size;
    uint16_t calls;
    const uint8_t *patches;
    size_t patch_count;
};

static ssize_t play(void *ctx, void *dst, const struct iovec *ranges, size_t count)
{
    struct target *t = ctx;
    t->calls++;
    for (size_t i = 0; i < t->patch_count; i++) {
        struct patch p;
        memcpy(&p, t->patches + i * sizeof p, sizeof p);
        if (p.call == t->calls && (size_t)p.at * 4 + 4 <= t->size)
            memcpy(t->memory + (size_t)p.at * 4, &p.value, 4);
    }
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = (uintptr_t)ranges[i].iov_base - (uint64_t)BASE;
        if (at > t->size || ranges[i].iov_len > t->size - at)
            return done ? (ssize_t)done : -EFAULT;
        memcpy((uint8_t *)dst + done, t->memory + at, ranges[i].iov_len);
        done += ranges[i].iov_len;
    }
    return (ssize_t)done;
}

static bool choose_layout(struct remote *r, uint8_t which, const struct target *t)
{
    const struct pylayout *l = pylayout_table_at(which % 8);
    if (!l)
        return pylayout_from_debug_offsets(t->memory, t->size, &r->layout) == 0;
    r->layout = *l;
    return true;
}

static void check(const struct remote *r, const struct remote_sample *s)
{
    if (s->depth > REMOTE_MAX_FRAMES + 1 || s->shared > s->depth || s->tries > REMOTE_MAX_TRIES)
        abort();
    for (uint32_t i = 0; i < s->depth; i++)
        if (s->frames[i].code != REMOTE_CODE_UNREADABLE &&
            s->frames[i].code >= remote_code_count(r))
            abort();
    /* frames that are new to the caller must have a code that can be asked for its names */
    for (uint32_t i = 0; i < s->depth - s->shared; i++)
        if (s->frames[i].code != REMOTE_CODE_UNREADABLE &&
            strlen(remote_code(r, s->frames[i].code)->name) > 1 << 20)
            abort();
}

static void sample(struct remote *r)
{
    char name[64];
    uint64_t begin, end;
    struct remote_sample s;
    struct remote_locals locals;
    struct remote_instruction found;
    if (remote_slows_instructions(r) && remote_running_instruction(r, 1, &found) == 1 &&
        (found.code >= remote_code_count(r) || found.thread >= remote_thread_count(r) ||
         found.block.begin > 1u << 16))
        abort();
    for (size_t i = 0; i < remote_thread_count(r) && i < MAX_THREADS; i++) {
        remote_thread_name(r, i, name, sizeof name);
        remote_gil_range(r, i, &begin, &end);
        if (remote_sample_thread(r, i, &s) < 0)
            continue;
        check(r, &s);
        for (uint32_t f = 0; f < s.depth && f < 3; f++) {
            if (remote_frame_locals(r, i, f, &locals) == 0)
                remote_locals_release(&locals);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return 0;
    struct target t = {.patch_count = data[2] & MAX_PATCHES, .patches = data + HEAD};
    size_t begin = HEAD + t.patch_count * sizeof(struct patch);
    if (size < begin || size - begin > MAX_MEMORY)
        return 0;
    t.size = size - begin;
    t.memory = malloc(t.size + 1);
    memcpy(t.memory, data + begin, t.size);

    struct remote *r = calloc(1, sizeof *r);
    r->mem = (struct mem){.fake = play, .fake_ctx = &t};
    r->runtime = BASE;
    r->rng = 1;
    r->unsafe = data[1] & 2;
    if (choose_layout(r, data[0], &t)) {
        if (data[1] & 1)
            r->code_type = BASE + 0x100;
        for (int i = 0; i < SAMPLES; i++) {
            if (remote_threads_may_have_changed(r) && remote_refresh_threads(r) < 0 &&
                !remote_thread_count(r))
                break;
            sample(r);
        }
    }
    remote_close(r);
    free(t.memory);
    return 0;
}
