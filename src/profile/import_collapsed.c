/* Collapsed stacks: "root;caller;leaf 42" a line, as stackcollapse, py-spy and `export collapsed`
 * write them. The number may be samples or time; the file does not say, so it is called samples.
 *
 * Lines are mostly sorted, so a line begins as the one before it does: what both share is taken from
 * there, and only the rest is looked up. */
#include "profile/import.h"

#include "base/err.h"
#include "base/progress.h"

#include <math.h>

/* A frame's text that was seen, so that equal ones are taken apart once. */
struct frame {
    struct import_text text; /* borrowed from the file */
    uint32_t code, line;
};

/* A place in the last line where a frame begins, and the stack of the frames before it. */
struct mark {
    size_t at;
    uint32_t stack;
};

struct reading {
    struct import *im;
    struct import_text last; /* the last line's stack */
    VEC(struct mark) marks;  /* in it, in their order */
    VEC(struct frame) frames;
    struct idxmap by_text;
    uint64_t lines; /* with a stack */
};

static int find_frame(struct reading *rd, struct import_text text, struct frame *ret)
{
    uint32_t hash = hash_long(text.text, text.len), at;
    IDXMAP_FIND(&rd->by_text, hash, i,
                rd->frames.data[i].text.len == text.len &&
                    !memcmp(rd->frames.data[i].text.text, text.text, text.len),
                at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)rd->frames.len;
        struct frame *slot = vec_push(&rd->frames);
        if (!slot || idxmap_insert(&rd->by_text, hash, at) < 0)
            return E_NOMEM;
        slot->text = text;
        slot->code = import_frame(rd->im, text, &slot->line);
    }
    *ret = rd->frames.data[at];
    return 0;
}

/* "42", "4.2" or "1e6" and nothing else; false if it is not. */
static bool read_count(const char *text, size_t len, double *ret)
{
    char digits[64];
    if (!len || len >= sizeof digits)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!strchr("0123456789.eE+", text[i]) || !text[i])
            return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    char *stop;
    *ret = strtod(digits, &stop);
    return !*stop && isfinite(*ret) && *ret >= 0;
}

static size_t shared_bytes(struct import_text a, struct import_text b)
{
    size_t len = min_u64(a.len, b.len), i = 0;
    for (uint64_t x, y; i + sizeof x <= len; i += sizeof x) {
        memcpy(&x, a.text + i, sizeof x);
        memcpy(&y, b.text + i, sizeof y);
        if (x != y)
            break;
    }
    while (i < len && a.text[i] == b.text[i])
        i++;
    return i;
}

/* Where to begin in a line: after the frames that it shares with the one before. */
static struct mark resume(struct reading *rd, struct import_text line)
{
    size_t shared = shared_bytes(rd->last, line);
    while (rd->marks.len && rd->marks.data[rd->marks.len - 1].at > shared)
        rd->marks.len--;
    rd->last = line;
    return rd->marks.len ? rd->marks.data[rd->marks.len - 1] : (struct mark){0, RECORD_STACK_ROOT};
}

static int read_stack(struct reading *rd, struct import_text line, uint32_t *ret)
{
    static const char rootless[] = "<no Python frame>";
    struct mark mark = resume(rd, line);
    if (line.len == sizeof rootless - 1 && !memcmp(line.text, rootless, line.len))
        mark.at = line.len;
    while (mark.at < line.len) {
        const char *at = line.text + mark.at;
        const char *stop = memchr(at, ';', line.len - mark.at);
        size_t len = stop ? (size_t)(stop - at) : line.len - mark.at;
        if (len) {
            struct frame frame;
            int r = find_frame(rd, (struct import_text){at, len}, &frame);
            if (r < 0)
                return r;
            mark.stack = import_stack(rd->im, mark.stack, frame.code, frame.line);
        }
        mark.at += len + 1;
        struct mark *slot = stop ? vec_push(&rd->marks) : NULL;
        if (stop && !slot)
            return E_NOMEM;
        if (slot)
            *slot = mark;
    }
    *ret = mark.stack;
    return 0;
}

static int read_line(struct reading *rd, const char *line, const char *end)
{
    while (end > line && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (line == end || *line == '#')
        return 0;
    const char *blank = memrchr(line, ' ', (size_t)(end - line));
    double count;
    if (!blank || memchr(line, '\0', (size_t)(end - line)) ||
        !read_count(blank + 1, (size_t)(end - blank - 1), &count))
        /* the first line tells whether it is this format at all */
        return rd->lines ? E_BADSTACKS : E_FORMAT;
    rd->lines++;
    while (blank > line && blank[-1] == ' ')
        blank--;
    uint32_t stack = RECORD_STACK_ROOT;
    int r = read_stack(rd, (struct import_text){line, (size_t)(blank - line)}, &stack);
    uint64_t weight = count < 9e15 ? (uint64_t)(count + 0.5) : (uint64_t)9e15;
    if (r == 0 && weight)
        import_sample(rd->im, stack, weight, weight);
    return r;
}

int import_collapsed(struct import *im)
{
    struct reading rd = {.im = im, .last = {"", 0}};
    const char *at = im->data, *end = im->data + im->len;
    int r = 0;
    progress_begin("importing stacks", im->len);
    import_unit(im, "samples");
    import_thread(im, (struct import_text){"all threads", 11});
    while (r == 0 && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        r = read_line(&rd, at, stop);
        at = stop + 1;
        progress_reach((uint64_t)(at - im->data));
    }
    if (r == 0 && !rd.lines)
        r = E_FORMAT;
    vec_release(&rd.frames);
    vec_release(&rd.marks);
    idxmap_release(&rd.by_text);
    return r;
}
