/* The builder, and which reader a file is for. */
#include "profile/import.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { IMAGE_PATH_SIZE = 32, SNIFF_BYTES = 64 << 10 };

/* --- building --- */

static uint32_t text_id(struct import *im, struct import_text text)
{
    return format_writer_string(im->writer, text.text, text.len);
}

/* Notes of a sampler about a stack come back as what they were. */
static bool is_note(struct import_text name)
{
    static const char *const notes[] = {"<moving>", "<unreadable>", "<lost>", "<unknown>"};
    for (size_t i = 0; i < ARRAY_LEN(notes); i++)
        if (name.len == strlen(notes[i]) && !memcmp(name.text, notes[i], name.len))
            return true;
    return false;
}

/* Its error is sticky. */
static void flush_if_due(struct import *im)
{
    if (format_writer_wants_flush(im->writer))
        format_writer_flush(im->writer);
}

/* "<built-in method time.sleep>", "<method 'append' of 'list' objects>": as cProfile names C functions. */
static bool is_c_function(struct import_text name)
{
    return name.len > 2 && name.text[0] == '<' && name.text[name.len - 1] == '>' &&
           memchr(name.text, ' ', name.len);
}

uint32_t import_code(struct import *im, struct import_text name, struct import_text file,
                     uint32_t first_line)
{
    flush_if_due(im);
    struct import_code c = {text_id(im, name), text_id(im, file), first_line, 0};
    uint64_t key = ((uint64_t)c.name << 32 | c.file) * 31 + first_line;
    uint32_t hash = hash_u64(key), at;
    IDXMAP_FIND(&im->code_map, hash, i,
                im->codes.data[i].name == c.name && im->codes.data[i].file == c.file &&
                    im->codes.data[i].first_line == first_line,
                at);
    if (at != IDXMAP_NONE)
        return im->codes.data[at].id;
    struct import_code *slot = vec_push(&im->codes);
    if (!slot)
        return RECORD_CODE_UNKNOWN;
    *slot = c;
    slot->id = format_writer_code(im->writer, &(struct record_code){
                                                  .name = c.name,
                                                  .file = c.file,
                                                  .first_line = first_line,
                                                  .flags = file.len        ? 0
                                                           : is_note(name) ? RECORD_CODE_SPECIAL
                                                           : is_c_function(name) ? RECORD_CODE_C
                                                                                 : 0,
                                              });
    idxmap_insert(&im->code_map, hash, (uint32_t)im->codes.len - 1);
    return slot->id;
}

/* The digits at the end of a text; the place of the first, or `len` if there are none. */
static size_t find_digits(const char *text, size_t len)
{
    while (len && text[len - 1] >= '0' && text[len - 1] <= '9')
        len--;
    return len;
}

uint32_t import_frame(struct import *im, struct import_text frame, uint32_t *ret_line)
{
    *ret_line = 0;
    struct import_text name = frame, file = {"", 0};
    /* the last " (" before a ")" at the end */
    const char *open = NULL;
    for (size_t i = frame.len; i-- > 1 && frame.text[frame.len - 1] == ')';)
        if (frame.text[i] == '(' && frame.text[i - 1] == ' ') {
            open = frame.text + i;
            break;
        }
    if (!open || open - frame.text < 2)
        return import_code(im, name, file, 0);
    name.len = (size_t)(open - 1 - frame.text);
    file = (struct import_text){open + 1, frame.len - name.len - 3};
    size_t digits = find_digits(file.text, file.len);
    if (digits && digits < file.len && file.len - digits <= 9 && file.text[digits - 1] == ':') {
        for (size_t i = digits; i < file.len; i++)
            *ret_line = *ret_line * 10 + (uint32_t)(file.text[i] - '0');
        file.len = digits - 1;
    }
    return import_code(im, name, file, 0);
}

uint32_t import_stack(struct import *im, uint32_t parent, uint32_t code, uint32_t line)
{
    flush_if_due(im);
    return format_writer_stack(im->writer, &(struct record_stack){parent, code, line});
}

void import_thread(struct import *im, struct import_text name)
{
    struct record_thread thread = {
        .id = im->threads, .name = text_id(im, name), .ident = (uint64_t)im->threads + 1};
    format_writer_thread(im->writer, &thread);
    im->threads++;
    im->now = 0;
}

void import_sample(struct import *im, uint32_t stack, uint64_t samples, uint64_t weight)
{
    if (weight > INT64_MAX - im->now)
        weight = INT64_MAX - im->now; /* hostile: three hundred years */
    struct record_sample sample = {
        .thread = im->threads - 1,
        .stack = stack,
        .count = samples > UINT32_MAX ? UINT32_MAX : (uint32_t)samples,
        .start_ns = im->now,
        .duration_ns = weight,
    };
    im->now += weight;
    format_writer_sample(im->writer, &sample);
    flush_if_due(im);
}

void import_unit(struct import *im, const char *unit)
{
    format_writer_meta(im->writer, "import.unit", unit);
}

/* --- which reader --- */

static bool looks_like_pstats(const struct import *im)
{
    /* a dict, and then a tuple, or the end; JSON never goes on like that */
    static const char second[] = "()0\xa8\xa9";
    return im->len >= 2 && ((uint8_t)im->data[0] & 0x7f) == '{' && im->data[1] &&
           strchr(second, im->data[1]);
}

static bool looks_like_json(const struct import *im)
{
    size_t i = im->len >= 3 && !memcmp(im->data, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (i < im->len && im->data[i] && strchr(" \t\r\n", im->data[i]))
        i++;
    return i < im->len && im->data[i] == '{';
}

int import_any(struct import *im)
{
    if (looks_like_pstats(im)) {
        format_writer_meta(im->writer, "import", "pstats");
        char title[PATH_MAX + 64]; /* pictures show it, and they are drawn from the tree */
        snprintf(title, sizeof title, "%s (pstats: its call tree is an estimate)", im->path);
        format_writer_meta(im->writer, "command", title);
        return import_pstats(im);
    }
    if (looks_like_json(im)) {
        format_writer_meta(im->writer, "import", "speedscope");
        return import_speedscope(im);
    }
    format_writer_meta(im->writer, "import", "collapsed");
    return import_collapsed(im);
}

/* The first line that says something ends with a blank and a number. */
static bool looks_collapsed(const struct import *im)
{
    const char *at = im->data, *end = im->data + im->len, *stop;
    for (; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            stop = end;
        if (stop > at && *at != '#' && *at != '\r')
            break;
    }
    if (at >= end || memchr(at, '\0', (size_t)(stop - at)))
        return false;
    while (stop > at && (stop[-1] == '\r' || stop[-1] == ' '))
        stop--;
    size_t digits = find_digits(at, (size_t)(stop - at));
    return digits > 0 && at + digits < stop && (at[digits - 1] == ' ' || at[digits - 1] == '.');
}

const char *profile_kind(const char *path)
{
    _cleanup_free_ char *bytes = malloc(SNIFF_BYTES);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 && bytes ? read(fd, bytes, SNIFF_BYTES) : -1;
    if (n <= 0)
        return NULL;
    struct import im = {.data = bytes, .len = (size_t)n};
    if (im.len >= sizeof FORMAT_MAGIC - 1 && !memcmp(bytes, FORMAT_MAGIC, sizeof FORMAT_MAGIC - 1))
        return "recording";
    if (looks_like_pstats(&im))
        return "pstats";
    if (looks_like_json(&im))
        return memmem(bytes, im.len, "speedscope", strlen("speedscope")) ? "speedscope" : NULL;
    return looks_collapsed(&im) ? "collapsed" : NULL;
}

/* --- the whole --- */

/* The same file has the same id each time. */
static void make_id(const struct import *im, uint8_t id[16])
{
    size_t part = im->len / 4 + 1;
    for (size_t i = 0; i < 4; i++) {
        size_t from = min_u64(i * part, im->len), to = min_u64(from + part, im->len);
        uint32_t hash = hash_long(im->data + from, to - from);
        memcpy(id + 4 * i, &hash, 4);
    }
}

static int open_image(struct import *im, char image[IMAGE_PATH_SIZE])
{
    im->fd = memfd_create("pyrometer-import", MFD_CLOEXEC);
    if (im->fd < 0)
        return err_from_errno(errno);
    snprintf(image, IMAGE_PATH_SIZE, "/proc/self/fd/%d", im->fd);
    struct format_writer_options options = {.force = true};
    make_id(im, options.run_id);
    int r = format_writer_open(image, &options, &im->writer);
    if (r < 0)
        return r;
    format_writer_process(
        im->writer, &(struct record_process){
                        .kind = RECORD_PROCESS_PYTHON,
                        .command = text_id(im, (struct import_text){im->path, strlen(im->path)})});
    format_writer_meta(im->writer, "command", im->path);
    return 0;
}

static void release(struct import *im)
{
    format_writer_free(im->writer);
    vec_release(&im->codes);
    idxmap_release(&im->code_map);
    free(im->counts);
    free(im->calls);
    if (im->fd >= 0)
        close(im->fd);
}

int profile_import_memory(const void *data, size_t len, const char *path, uint64_t created_ns,
                          struct profile **ret)
{
    char image[IMAGE_PATH_SIZE];
    struct import im = {.data = data, .len = len, .path = path, .fd = -1};
    int r = open_image(&im, image);
    if (r == 0)
        r = import_any(&im);
    if (r == 0)
        r = format_writer_finish(im.writer);
    if (r == 0) {
        r = profile_load_image(image, path, created_ns, im.counts, im.calls, im.call_count, ret);
        im.counts = NULL;
        im.calls = NULL;
    }
    release(&im);
    return r;
}

int profile_import(const char *path, struct profile **ret)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_from_errno(errno);
    if (!S_ISREG(st.st_mode) || st.st_size <= 0)
        return E_FORMAT;
    size_t len = (size_t)st.st_size;
    void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return err_from_errno(errno);
    uint64_t created = (uint64_t)st.st_mtim.tv_sec * NS_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
    int r = profile_import_memory(data, len, path, created, ret);
    munmap(data, len);
    return r;
}
