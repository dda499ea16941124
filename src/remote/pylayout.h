/* Where things lie in the memory of one CPython: the only room on the outside that knows versions.
 *
 * A layout is a set of byte offsets for one minor version (64-bit, GIL builds). 3.8–3.12 come from
 * tables generated from that version's own headers (tools/gen_pylayout); 3.13 and later describe
 * themselves in `_Py_DebugOffsets` at the start of `_PyRuntime`, which is checked before it is
 * trusted. Code outside this room asks for a field and for the few `kinds` below, never for a
 * version number. An offset that does not exist in that version is PYL_NONE. */
#ifndef PYROMETER_REMOTE_PYLAYOUT_H
#define PYROMETER_REMOTE_PYLAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define PYL_NONE UINT32_MAX

/* How a thread's frames are kept. */
enum pyl_frames {
    PYL_FRAMES_HEAP,   /* 3.8–3.10: PyFrameObjects on the heap, linked by f_back, tstate.frame */
    PYL_FRAMES_CFRAME, /* 3.11, 3.12: data stack; tstate.cframe -> current_frame */
    PYL_FRAMES_TSTATE, /* 3.13+: data stack; tstate.current_frame */
};

/* What `frame.instr` holds. */
enum pyl_instr {
    PYL_INSTR_BYTE_INDEX, /* 3.8, 3.9: int, byte offset into co_code; -1 before the first */
    PYL_INSTR_UNIT_INDEX, /* 3.10: int, offset in 2-byte units; -1 before the first */
    PYL_INSTR_PREV_PTR,   /* 3.11, 3.12: pointer to the instruction last started */
    PYL_INSTR_NEXT_PTR, /* 3.13+: pointer to the current instruction (see pylayout_debug.c for its lag) */
};

/* How lines are encoded. */
enum pyl_lines {
    PYL_LINES_LNOTAB,   /* 3.8, 3.9: co_lnotab, signed pairs */
    PYL_LINES_PEP626,   /* 3.10: co_linetable, (bytes, delta) pairs, -128 = no line */
    PYL_LINES_LOCATION, /* 3.11+: co_linetable, location entries */
};

/* Who owns the memory of a frame (frame.owner), where the version says so. */
enum pyl_owner {
    PYL_OWNER_THREAD = 0,
    PYL_OWNER_GENERATOR = 1,
    PYL_OWNER_FRAME_OBJECT = 2,
    PYL_OWNER_SHIM, /* a frame of the interpreter itself, to be skipped: numbers below */
};

enum pyl_dict_kind { /* how an instance keeps its attributes when it has no plain __dict__ */
                     PYL_DICT_OFFSET, /* 3.8–3.10: dict pointer at tp_dictoffset */
                     PYL_DICT_VALUES_311, /* 3.11: values pointer at -4 words, dict pointer at -3 words */
                     PYL_DICT_MANAGED_312, /* 3.12: tagged dict-or-values pointer at -3 words */
                     PYL_DICT_INLINE_313, /* 3.13+: inline values after the object, dict pointer at -3 words */
};

struct pylayout {
    int major, minor;
    enum pyl_frames frames;
    enum pyl_instr instr;
    enum pyl_lines lines;
    enum pyl_dict_kind dict_kind;
    /* owner values that mean "shim frame": an interpreter-made entry frame without Python code.
     * 3.12, 3.13: FRAME_OWNED_BY_CSTACK 3; 3.14: FRAME_OWNED_BY_INTERPRETER 3, _BY_CSTACK 4;
     * 3.15: FRAME_OWNED_BY_INTERPRETER 3.
     * 0 where there are none. */
    uint8_t shim_owner_min, shim_owner_max;
    uint8_t code_tag_mask; /* low bits to clear in frame.code (tagged from 3.14), else 0 */

    struct {
        uint32_t size; /* bytes of _PyRuntime worth reading */
        uint32_t interpreters_head;
        uint32_t finalizing;     /* pointer-sized, non-zero while finalizing */
        uint32_t tstate_current; /* 3.8–3.11: thread that holds the GIL (gilstate.tstate_current) */
        uint32_t gil;            /* 3.8–3.11: struct _gil_runtime_state inside the runtime */
    } runtime;
    struct {
        uint32_t next, id, threads_head, modules, sysdict;
        uint32_t gil;     /* 3.12+: pointer to the GIL structure (interp->ceval.gil) */
        uint32_t id_size; /* 8 */
    } interp;
    struct {           /* struct _gil_runtime_state */
        uint32_t size; /* whole structure with mutex and condition variables */
        uint32_t last_holder, locked;
    } gil;
    struct {
        uint32_t size; /* bytes that cover every field below */
        uint32_t next, interp, thread_id;
        uint32_t native_thread_id; /* 3.11+ */
        uint32_t frame; /* the PyFrameObject*, _PyCFrame* or _PyInterpreterFrame* by `frames` */
        uint32_t datastack_chunk, datastack_top; /* 3.11+ */
    } tstate;
    struct {
        uint32_t current_frame; /* 3.11, 3.12: inside _PyCFrame */
    } cframe;
    struct {
        uint32_t size; /* bytes that cover every field below but localsplus' content */
        uint32_t code, previous, instr;
        uint32_t owner;           /* one byte; 3.11+ */
        uint32_t localsplus;      /* first PyObject* of the fast locals */
        uint32_t in_generator;    /* 3.11+: where in a generator its frame begins, */
        uint32_t generator_state; /* how far before that the byte is that says what it does, */
        uint32_t generator_runs;  /* and what that is while it runs */
        uint32_t stacktop;        /* 3.11 to 3.13: int, -1 while it runs or is in C */
        uint32_t entry;           /* 3.11: one byte, not 0 if it was called through C */
        uint32_t clears_code;     /* 1 (3.14+): when it has ended it has no code */
    } frame;
    struct { /* struct _PyStackChunk (3.11+) */
        uint32_t previous, size, top, data;
    } chunk;
    struct {
        uint32_t size; /* bytes that cover every field below */
        uint32_t argcount, kwonlyargcount, flags, firstlineno;
        uint32_t name, qualname /* 3.11+ */, filename;
        uint32_t names, consts;   /* tuples */
        uint32_t linetable;       /* co_lnotab (3.8, 3.9) or co_linetable */
        uint32_t code;            /* PyBytes* co_code; 3.8–3.10 */
        uint32_t code_adaptive;   /* first instruction inside the code object; 3.11+ */
        uint32_t nlocals;         /* co_nlocals (3.8–3.10) or co_nlocalsplus (3.11+) */
        uint32_t localsplusnames; /* co_varnames tuple (3.8–3.10) or co_localsplusnames (3.11+) */
        uint32_t cellvars, freevars; /* 3.8–3.10: tuples that follow the varnames in localsplus */
        uint32_t localspluskinds;    /* 3.11+: bytes, one kind per local */
        uint32_t
            warmup; /* 3.11: short, counts up to 0 with each call and loop, and is quickened then */
        uint32_t framesize; /* 3.12+: int, words a frame of this code takes on the data stack */
        uint32_t stacksize; /* int; 3.11: a frame takes frame.localsplus / 8 + nlocals + this */
        uint32_t version;   /* 3.12+: int, of no other code object; 0: they ran out */
    } code;
    struct {
        uint32_t size, ob_type, ob_refcnt;
    } object;
    struct {
        uint32_t size, tp_name, tp_flags, tp_basicsize, tp_itemsize, tp_dictoffset;
        uint32_t ht_cached_keys; /* inside PyHeapTypeObject; 3.11+ */
    } type;
    struct {
        uint32_t ob_size, ob_sval;
    } bytes;
    struct {
        uint32_t length, state; /* state: the bit field; kind/compact/ascii decoded in object.c */
        uint32_t ascii_size;    /* sizeof(PyASCIIObject): data of compact ASCII */
        uint32_t compact_size;  /* sizeof(PyCompactUnicodeObject): data of other compact */
        uint32_t state_kind_shift; /* bits of `state`: interned width differs by version */
    } unicode;
    struct {
        uint32_t ob_size, ob_item;
    } tuple, list; /* list.ob_item is a pointer, tuple's inline */
    struct {
        uint32_t ob_fval;
    } float_;
    struct {
        uint32_t size_or_tag; /* ob_size (to 3.11) or lv_tag (3.12+) */
        uint32_t digits;
        uint32_t tagged; /* 1 from 3.12: lv_tag = ndigits << 3 | sign bits */
    } long_;
    struct {
        uint32_t ma_used, ma_keys, ma_values;
    } dict;
    struct {                       /* PyDictKeysObject */
        uint32_t log2_size;        /* 3.11+: one byte; below: dk_size, 8 bytes, at the same name */
        uint32_t log2_index_bytes; /* 3.11+: one byte, else PYL_NONE (derive from size) */
        uint32_t kind;     /* 3.11+: one byte: 0 general, 1 unicode, 2 split; else PYL_NONE */
        uint32_t nentries; /* dk_nentries */
        uint32_t indices;  /* start of dk_indices */
        uint32_t has_log2; /* 1 from 3.11 */
    } dictkeys;
    struct {
        uint32_t table, mask, used, fill;
    } set;
    struct {
        uint32_t md_dict;
    } module;
};

/* How large a window at `_PyRuntime` pylayout_for_runtime wants to see. */
enum { PYLAYOUT_PROBE_BYTES = 2048 };

/* The layout for a minor version that has a table (3.8–3.12); NULL else. Borrowed, static. */
const struct pylayout *pylayout_table(int major, int minor);

/* The versions that have a table, for probing an interpreter that does not tell: index 0, 1, … until
 * NULL. */
const struct pylayout *pylayout_table_at(size_t index);

/* Fills `ret` from the first bytes of `_PyRuntime` of 3.13 or later: cookie, version and every offset
 * checked against sane bounds. E_NOTPYTHON without a cookie, E_VERSION for a layout or build kind
 * (free-threaded) we do not know, E_BADMEM for nonsense. */
int pylayout_from_debug_offsets(const uint8_t *bytes, size_t len, struct pylayout *ret);

#endif
