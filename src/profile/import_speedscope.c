/* speedscope's file format, sampled and evented profiles; a profile becomes a thread.
 *
 * Keys may stand in any order, so the file is read twice: for the frames, then for the profiles;
 * and of a profile the samples are kept until its weights and its unit are known. */
#include "profile/import.h"

#include "base/err.h"
#include "base/jsonread.h"
#include "base/progress.h"

enum { MAX_FRAMES = 1 << 24, MAX_DEPTH = 1 << 20, SNIFF_BYTES = 64 << 10 };

struct frame {
    uint32_t code, line;
};

struct reading {
    struct import *im;
    struct jsonread j;
    VEC(struct frame) frames;
    bool has_frames, has_profiles;
    const char *unit; /* of all profiles: NULL until the first */
    /* the profile being read */
    VEC(uint32_t) stacks;
    VEC(double) weights;
    VEC(uint32_t) open; /* evented: the nodes on the stack */
    struct buf name, unit_text;
};

static int expect(struct reading *rd, enum jsonread_token token)
{
    int r = jsonread_next(&rd->j);
    return r < 0 ? r : rd->j.token == token ? 0 : E_BADJSON;
}

/* Calls `fn` for every element of the array that comes next; its first token has been read then. */
static int each_element(struct reading *rd, int (*fn)(struct reading *rd))
{
    int r = expect(rd, JSONREAD_ARRAY);
    while (r == 0) {
        r = jsonread_next(&rd->j);
        if (r == 0 && rd->j.token == JSONREAD_ARRAY_END)
            return 0;
        if (r == 0)
            r = fn(rd);
        progress_reach((uint64_t)(rd->j.at - rd->im->data));
    }
    return r;
}

/* The same for the keys of an object whose first token has been read. */
static int each_key(struct reading *rd, int (*fn)(struct reading *rd))
{
    if (rd->j.token != JSONREAD_OBJECT)
        return E_BADJSON;
    int r = 0;
    while (r == 0) {
        r = jsonread_next(&rd->j);
        if (r == 0 && rd->j.token == JSONREAD_OBJECT_END)
            return 0;
        if (r == 0)
            r = fn(rd);
    }
    return r;
}

static int read_text(struct reading *rd, struct buf *out)
{
    int r = expect(rd, JSONREAD_TEXT);
    buf_clear(out);
    if (r == 0)
        buf_append(out, rd->j.text.data, rd->j.text.len);
    return r < 0 ? r : buf_error(out);
}

/* --- frames --- */

struct frame_fields {
    struct buf name, file;
    double line;
};

static int read_frame_key(struct reading *rd, struct frame_fields *f)
{
    if (jsonread_is(&rd->j, "name"))
        return read_text(rd, &f->name);
    bool is_file = jsonread_is(&rd->j, "file"), is_line = jsonread_is(&rd->j, "line");
    int r = jsonread_next(&rd->j);
    if (r == 0 && is_file && rd->j.token == JSONREAD_TEXT)
        buf_append(&f->file, rd->j.text.data, rd->j.text.len);
    else if (r == 0 && is_line && rd->j.token == JSONREAD_NUMBER)
        f->line = rd->j.number;
    else if (r == 0)
        r = jsonread_skip_rest(&rd->j);
    return r;
}

static int keep_frame(struct reading *rd, const struct frame_fields *f)
{
    struct frame *slot = rd->frames.len < MAX_FRAMES ? vec_push(&rd->frames) : NULL;
    if (!slot)
        return E_NOMEM;
    struct import_text name = {(const char *)f->name.data, f->name.len};
    struct import_text file = {(const char *)f->file.data, f->file.len};
    slot->line = f->line > 0 && f->line < 1e9 ? (uint32_t)f->line : 0;
    slot->code = import_code(rd->im, name, file, 0);
    return 0;
}

static int read_frame(struct reading *rd)
{
    if (rd->j.token != JSONREAD_OBJECT)
        return E_BADJSON;
    struct frame_fields f = {0};
    buf_init(&f.name, JSONREAD_MAX_TEXT);
    buf_init(&f.file, JSONREAD_MAX_TEXT);
    int r = 0;
    while (r == 0) {
        r = jsonread_next(&rd->j);
        if (r < 0 || rd->j.token == JSONREAD_OBJECT_END)
            break;
        r = read_frame_key(rd, &f);
    }
    if (r == 0)
        r = keep_frame(rd, &f);
    buf_release(&f.name);
    buf_release(&f.file);
    return r;
}

static int read_shared_key(struct reading *rd)
{
    if (!jsonread_is(&rd->j, "frames"))
        return jsonread_skip(&rd->j);
    rd->has_frames = true;
    return each_element(rd, read_frame);
}

static int find_frames(struct reading *rd)
{
    if (!jsonread_is(&rd->j, "shared"))
        return jsonread_skip(&rd->j);
    int r = jsonread_next(&rd->j);
    return r < 0 ? r : each_key(rd, read_shared_key);
}

/* --- profiles --- */

static int frame_of(struct reading *rd, struct frame *ret)
{
    if (rd->j.token != JSONREAD_NUMBER || !(rd->j.number >= 0) ||
        rd->j.number >= (double)rd->frames.len)
        return E_BADJSON;
    *ret = rd->frames.data[(size_t)rd->j.number];
    return 0;
}

static int read_sample(struct reading *rd)
{
    if (rd->j.token != JSONREAD_ARRAY)
        return E_BADJSON;
    uint32_t node = RECORD_STACK_ROOT;
    for (size_t depth = 0;; depth++) {
        struct frame frame = {0};
        int r = jsonread_next(&rd->j);
        if (r == 0 && rd->j.token == JSONREAD_ARRAY_END)
            break;
        if (r == 0)
            r = depth < MAX_DEPTH ? frame_of(rd, &frame) : E_LIMIT;
        if (r < 0)
            return r;
        node = import_stack(rd->im, node, frame.code, frame.line);
    }
    uint32_t *slot = vec_push(&rd->stacks);
    if (!slot)
        return E_NOMEM;
    *slot = node;
    return 0;
}

static int read_weight(struct reading *rd)
{
    if (rd->j.token != JSONREAD_NUMBER)
        return E_BADJSON;
    double *slot = vec_push(&rd->weights);
    if (!slot)
        return E_NOMEM;
    *slot = rd->j.number > 0 ? rd->j.number : 0;
    return 0;
}

struct event {
    double at;
    struct frame frame;
    char type;
    bool has_frame;
};

static int read_event_key(struct reading *rd, struct event *e)
{
    bool is_type = jsonread_is(&rd->j, "type"), is_at = jsonread_is(&rd->j, "at");
    bool is_frame = jsonread_is(&rd->j, "frame");
    int r = jsonread_next(&rd->j);
    if (r < 0)
        return r;
    if (is_type && rd->j.token == JSONREAD_TEXT && rd->j.text.len)
        e->type = (char)rd->j.text.data[0];
    else if (is_at && rd->j.token == JSONREAD_NUMBER)
        e->at = rd->j.number;
    else if (is_frame) {
        e->has_frame = true;
        return frame_of(rd, &e->frame);
    } else
        return jsonread_skip_rest(&rd->j);
    return 0;
}

/* The time since the event before belongs to the stack that was open: one more sample. The moment
 * itself stands in `weights` until the next event makes a difference of it. */
static int apply_event(struct reading *rd, const struct event *e)
{
    if (!e->has_frame || (e->type != 'O' && e->type != 'C'))
        return E_BADJSON;
    if (rd->weights.len) {
        double *last = &rd->weights.data[rd->weights.len - 1];
        *last = e->at > *last ? e->at - *last : 0;
    }
    uint32_t parent = rd->open.len ? rd->open.data[rd->open.len - 1] : RECORD_STACK_ROOT;
    if (e->type == 'O') {
        uint32_t *slot = rd->open.len < MAX_DEPTH ? vec_push(&rd->open) : NULL;
        if (!slot)
            return E_LIMIT;
        *slot = import_stack(rd->im, parent, e->frame.code, e->frame.line);
    } else if (rd->open.len) {
        rd->open.len--;
    } else {
        return E_BADJSON;
    }
    uint32_t *stack = vec_push(&rd->stacks);
    double *moment = vec_push(&rd->weights);
    if (!stack || !moment)
        return E_NOMEM;
    *stack = rd->open.len ? rd->open.data[rd->open.len - 1] : RECORD_STACK_ROOT;
    *moment = e->at;
    return 0;
}

static int read_event(struct reading *rd)
{
    if (rd->j.token != JSONREAD_OBJECT)
        return E_BADJSON;
    struct event e = {0};
    for (;;) {
        int r = jsonread_next(&rd->j);
        if (r == 0 && rd->j.token == JSONREAD_OBJECT_END)
            return apply_event(rd, &e);
        if (r == 0)
            r = read_event_key(rd, &e);
        if (r < 0)
            return r;
    }
}

static int read_profile_key(struct reading *rd)
{
    if (jsonread_is(&rd->j, "name"))
        return read_text(rd, &rd->name);
    if (jsonread_is(&rd->j, "unit"))
        return read_text(rd, &rd->unit_text);
    if (jsonread_is(&rd->j, "samples"))
        return each_element(rd, read_sample);
    if (jsonread_is(&rd->j, "weights"))
        return each_element(rd, read_weight);
    if (!jsonread_is(&rd->j, "events"))
        return jsonread_skip(&rd->j);
    int r = each_element(rd, read_event);
    if (r == 0 && rd->stacks.len) { /* nothing is open after the last event */
        rd->stacks.len--;
        rd->weights.len--;
    }
    return r;
}

/* speedscope's unit, ours, and how many of our integers one is. */
static int find_unit(struct reading *rd, double *ret_scale)
{
    static const struct {
        const char *theirs, *ours;
        double scale;
    } units[] = {
        {"nanoseconds", "seconds", 1},
        {"microseconds", "seconds", 1e3},
        {"milliseconds", "seconds", 1e6},
        {"seconds", "seconds", 1e9},
        {"bytes", "bytes", 1},
        {"none", "samples", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strcmp(buf_cstr(&rd->unit_text), units[i].theirs) != 0)
            continue;
        if (!rd->unit)
            import_unit(rd->im, units[i].ours);
        else if (strcmp(rd->unit, units[i].ours) != 0)
            return E_BADJSON; /* seconds and bytes do not add up */
        rd->unit = units[i].ours;
        *ret_scale = units[i].scale;
        return 0;
    }
    return E_BADJSON;
}

static int keep_profile(struct reading *rd)
{
    double scale;
    int r = find_unit(rd, &scale);
    if (r < 0)
        return r;
    if (rd->stacks.len != rd->weights.len)
        return E_BADJSON;
    bool counts = strcmp(rd->unit, "samples") == 0;
    import_thread(rd->im, (struct import_text){(const char *)rd->name.data, rd->name.len});
    for (size_t i = 0; i < rd->stacks.len; i++) {
        double exact = rd->weights.data[i] * scale + 0.5;
        uint64_t weight = exact < 9e18 ? (uint64_t)exact : (uint64_t)9e18;
        if (weight || !counts)
            import_sample(rd->im, rd->stacks.data[i], counts ? weight : 1, weight);
    }
    return 0;
}

static int read_profile(struct reading *rd)
{
    rd->stacks.len = rd->weights.len = rd->open.len = 0;
    buf_clear(&rd->name);
    buf_clear(&rd->unit_text);
    int r = each_key(rd, read_profile_key);
    return r < 0 ? r : keep_profile(rd);
}

static int find_profiles(struct reading *rd)
{
    if (!jsonread_is(&rd->j, "profiles"))
        return jsonread_skip(&rd->j);
    rd->has_profiles = true;
    return each_element(rd, read_profile);
}

/* --- the file --- */

static int read_top(struct reading *rd, const char *what, int (*fn)(struct reading *rd))
{
    jsonread_release(&rd->j);
    jsonread_init(&rd->j, rd->im->data, rd->im->len);
    progress_begin(what, rd->im->len);
    int r = jsonread_next(&rd->j);
    if (r == 0)
        r = each_key(rd, fn);
    return r < 0 ? r : expect(rd, JSONREAD_END);
}

int import_speedscope(struct import *im)
{
    struct reading rd = {.im = im};
    buf_init(&rd.name, JSONREAD_MAX_TEXT);
    buf_init(&rd.unit_text, JSONREAD_MAX_TEXT);
    int r = read_top(&rd, "importing frames", find_frames);
    if (r == 0)
        r = rd.has_frames ? read_top(&rd, "importing stacks", find_profiles) : E_FORMAT;
    if (r == 0 && !rd.has_profiles)
        r = E_FORMAT;
    /* JSON that does not even speak of speedscope is something else, not a damaged one of these */
    size_t sniff = min_u64(im->len, SNIFF_BYTES);
    if (r == E_BADJSON && !memmem(im->data, sniff, "speedscope", strlen("speedscope")))
        r = E_FORMAT;
    jsonread_release(&rd.j);
    vec_release(&rd.frames);
    vec_release(&rd.stacks);
    vec_release(&rd.weights);
    vec_release(&rd.open);
    buf_release(&rd.name);
    buf_release(&rd.unit_text);
    return r;
}
