/* Collapsed stacks: "root;caller;leaf 42" a line, as stackcollapse, py-spy and `export collapsed`
 * write them. The number may be samples or time; the file does not say, so it is called samples. */
#include "profile/import.h"

#include "base/err.h"

#include <math.h>

/* A frame's text that was seen, so that equal ones are taken apart once. */
struct frame {
    struct import_text text; /* borrowed from the file */
    uint32_t code, line;
};

struct reading {
    struct import *im;
    VEC(struct frame) frames;
    struct idxmap by_text;
    uint64_t lines; /* with a stack */
};

static int find_frame(struct reading *rd, struct import_text text, struct frame *ret)
{
    uint32_t hash = hash_bytes(text.text, text.len), at;
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

static int read_stack(struct reading *rd, const char *at, const char *end, uint32_t *ret)
{
    static const char rootless[] = "<no Python frame>";
    uint32_t node = RECORD_STACK_ROOT;
    if ((size_t)(end - at) == sizeof rootless - 1 && !memcmp(at, rootless, sizeof rootless - 1))
        at = end;
    while (at < end) {
        const char *stop = memchr(at, ';', (size_t)(end - at));
        stop = stop ? stop : end;
        if (stop > at) {
            struct frame frame;
            int r = find_frame(rd, (struct import_text){at, (size_t)(stop - at)}, &frame);
            if (r < 0)
                return r;
            node = import_stack(rd->im, node, frame.code, frame.line);
        }
        at = stop + 1;
    }
    *ret = node;
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
    uint32_t stack;
    int r = read_stack(rd, line, blank, &stack);
    uint64_t weight = count < 9e15 ? (uint64_t)(count + 0.5) : (uint64_t)9e15;
    if (r == 0 && weight)
        import_sample(rd->im, stack, weight, weight);
    return r;
}

int import_collapsed(struct import *im)
{
    struct reading rd = {.im = im};
    const char *at = im->data, *end = im->data + im->len;
    int r = 0;
    import_unit(im, "samples");
    import_thread(im, (struct import_text){"all threads", 11});
    while (r == 0 && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        r = read_line(&rd, at, stop);
        at = stop + 1;
    }
    if (r == 0 && !rd.lines)
        r = E_FORMAT;
    vec_release(&rd.frames);
    idxmap_release(&rd.by_text);
    return r;
}
