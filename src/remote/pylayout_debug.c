/* Layouts of the CPythons that describe themselves: 3.13 and later begin `_PyRuntime` with a
 * structure of offsets, _Py_DebugOffsets.
 *
 * The idea: for each minor version a complete layout from that version's headers is known
 * (pylayout_debug_table.h, generated), and everything that the target tells about itself goes over
 * it. Micro versions move fields inside _PyRuntime and the interpreter state; all such fields are
 * told. What is not told (GIL structure, dict keys, types, modules) is frozen with the minor
 * version's ABI.
 *
 * The bytes come from another process and are hostile: each one is checked against a maximum and
 * its alignment. That keeps our reads near the structure they mean; whether a pointer found there
 * is good remains for the reader to find out.
 *
 * What frame.instr means (from pycore_interpframe.h and _PyInterpreterFrame_LASTI of 3.13–3.15):
 * instr_ptr is the instruction that runs or is about to begin. For a caller's frame it is the CALL
 * (SEND, FOR_ITER, …) itself: the callee returns to instr_ptr + return_offset, so the pointer is
 * not moved past the call. For the running frame the interpreter writes it as each instruction
 * starts; only code run by the JIT writes it more seldom, where it may leave its trace, and then it
 * lags. Either way (instr_ptr - code_adaptive) is the byte offset to look up, without any
 * correction; a frame just made has the offset 0. */
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "remote/pylayout.h"
#include "remote/pylayout_debug_table.h"

/* The same first three words in every version. */
enum {
    DEBUG_COOKIE = 0,
    DEBUG_VERSION = 8, /* PY_VERSION_HEX */
    DEBUG_FREE_THREADED = 16,
    DEBUG_HEAD_SIZE = 24,
};

static const char cookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};

/* No offset may reach these. The fields read today lie below 1 KiB (runtime), 11 KiB (interpreter)
 * and 1 KiB (all others); the room above is for micro versions to come. */
enum {
    MAX_RUNTIME_OFFSET = 64 * 1024,
    MAX_INTERP_OFFSET = 1024 * 1024,
    MAX_OBJECT_OFFSET = 4096,
};

/* PY_VERSION_HEX's release level: alphas and betas still change their structures. */
enum { RELEASE_LEVEL_CANDIDATE = 0xC };

static uint64_t word_at(const uint8_t *bytes, size_t position)
{
    uint64_t word;

    memcpy(&word, bytes + position, sizeof(word));
    return word;
}

static const struct debug_version *find_version(uint64_t hex)
{
    int major = (int)(hex >> 24 & 0xff), minor = (int)(hex >> 16 & 0xff);

    if (hex > UINT32_MAX || (hex >> 4 & 0xf) < RELEASE_LEVEL_CANDIDATE)
        return NULL;
    for (size_t i = 0; i < sizeof(debug_versions) / sizeof(debug_versions[0]); i++) {
        const struct debug_version *version = &debug_versions[i];
        if (version->known.major == major && version->known.minor == minor)
            return version;
    }
    return NULL;
}

static uint64_t limit_of(size_t field)
{
    if (field < offsetof(struct pylayout, interp))
        return MAX_RUNTIME_OFFSET;
    if (field < offsetof(struct pylayout, gil))
        return MAX_INTERP_OFFSET;
    return MAX_OBJECT_OFFSET;
}

/* Puts what the target tells over the known layout. */
static int apply_told(const struct debug_version *version, const uint8_t *bytes,
                      struct pylayout *layout)
{
    for (const struct told_field *told = version->told; told->field != UINT16_MAX; told++) {
        uint64_t word = word_at(bytes, told->position);
        uint32_t offset = (uint32_t)word;

        if (word >= limit_of(told->field) || word % told->align != 0)
            return E_BADMEM;
        memcpy((char *)layout + told->field, &offset, sizeof(offset));
    }
    return 0;
}

static uint32_t end_of_words(const uint32_t *offsets, size_t count)
{
    uint32_t end = 0;

    for (size_t i = 0; i < count; i++)
        if (offsets[i] != PYL_NONE && offsets[i] + 8 > end)
            end = offsets[i] + 8;
    return end;
}

#define END_OF_WORDS(...)                                                                          \
    end_of_words((const uint32_t[]){__VA_ARGS__},                                                  \
                 sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Fields that follow from what was told. */
static void derive(struct pylayout *l)
{
    l->tstate.datastack_top = l->tstate.datastack_chunk + 8;
    l->runtime.size = END_OF_WORDS(l->runtime.interpreters_head, l->runtime.finalizing);
    l->tstate.size =
        END_OF_WORDS(l->tstate.next, l->tstate.interp, l->tstate.thread_id,
                     l->tstate.native_thread_id, l->tstate.frame, l->tstate.datastack_top);
    l->frame.size = END_OF_WORDS(l->frame.code, l->frame.previous, l->frame.instr,
                                 l->frame.owner / 8 * 8, l->frame.localsplus - 8);
    l->code.size = END_OF_WORDS(
        l->code.argcount, l->code.kwonlyargcount, l->code.flags, l->code.firstlineno, l->code.name,
        l->code.qualname, l->code.filename, l->code.linetable, l->code.nlocals,
        l->code.localsplusnames, l->code.localspluskinds, l->code.framesize, l->code.names,
        l->code.consts, l->code.localsplusnames, l->code.stacksize, l->code.code_adaptive - 8);
}

/* What the readers copy before they look into it must fit their buffers: code objects 256 bytes
 * (CODE_CHECK_BYTES in codes.c), heads of str 64 (dict.c), heads of types type.size (object.c). */
enum { MAX_CODE_END = 256, MAX_STR_HEAD = 64, MAX_OBJECT_HEAD = 64 };

static bool fits_buffers(const struct pylayout *l)
{
    return END_OF_WORDS(l->code.argcount, l->code.flags, l->code.firstlineno, l->code.name,
                        l->code.qualname, l->code.filename, l->code.linetable, l->code.nlocals,
                        l->code.stacksize, l->code.framesize, l->code.names, l->code.consts,
                        l->code.localsplusnames, l->code.version,
                        l->tuple.ob_size) <= MAX_CODE_END &&
           l->unicode.ascii_size <= MAX_STR_HEAD &&
           END_OF_WORDS(l->unicode.length, l->unicode.state / 8 * 8) <= l->unicode.ascii_size &&
           l->object.size <= MAX_OBJECT_HEAD && l->object.ob_type + 8 <= l->object.size &&
           END_OF_WORDS(l->type.tp_name, l->type.tp_flags) <= l->type.size;
}

static bool all_differ(const uint32_t *offsets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (offsets[i] == offsets[k])
                return false;
    return true;
}

#define ALL_DIFFER(...)                                                                            \
    all_differ((const uint32_t[]){__VA_ARGS__},                                                    \
               sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Zeroed or repeated words pass the bounds; two pointers in one place cannot be. */
static bool plausible(const struct pylayout *l)
{
    return ALL_DIFFER(l->runtime.finalizing, l->runtime.interpreters_head) &&
           ALL_DIFFER(l->interp.next, l->interp.id, l->interp.threads_head, l->interp.modules,
                      l->interp.sysdict, l->interp.gil) &&
           ALL_DIFFER(l->tstate.next, l->tstate.interp, l->tstate.frame, l->tstate.thread_id,
                      l->tstate.native_thread_id, l->tstate.datastack_chunk) &&
           ALL_DIFFER(l->frame.code, l->frame.previous, l->frame.instr) &&
           ALL_DIFFER(l->code.name, l->code.qualname, l->code.filename, l->code.linetable,
                      l->code.localsplusnames, l->code.localspluskinds) &&
           l->frame.localsplus >= sizeof(uint64_t) && l->code.code_adaptive >= l->object.size &&
           l->object.size >= 2 * sizeof(uint64_t);
}

int pylayout_from_debug_offsets(const uint8_t *bytes, size_t len, struct pylayout *ret)
{
    const struct debug_version *version;
    struct pylayout layout;
    int r;

    if (len < sizeof(cookie) || memcmp(bytes + DEBUG_COOKIE, cookie, sizeof(cookie)) != 0)
        return E_NOTPYTHON;
    if (len < DEBUG_HEAD_SIZE)
        return E_BADMEM;
    version = find_version(word_at(bytes, DEBUG_VERSION));
    if (!version || word_at(bytes, DEBUG_FREE_THREADED) != 0)
        return E_VERSION;
    if (len < version->debug_size)
        return E_BADMEM;

    layout = version->known;
    r = apply_told(version, bytes, &layout);
    if (r < 0)
        return r;
    if (!plausible(&layout) || !fits_buffers(&layout))
        return E_BADMEM;
    derive(&layout);
    *ret = layout;
    return 0;
}
