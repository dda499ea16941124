/* One line on stderr, printable whatever was in the arguments; and "did you mean". */
#include "cmd/speak.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    LINE_MAX_BYTES = 1 << 16,
    NEAR_MAX_LEN = 31, /* longer words are nobody's typing mistake */
};

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/* Control characters and bytes that are not UTF-8 come out escaped. */
static void append_printable(struct buf *line, const char *text)
{
    size_t left = strlen(text);
    while (left) {
        uint32_t c = 0;
        size_t len = utf8_decode(text, left, &c);
        if (len && !is_control(c))
            buf_append(line, text, len);
        else if (c == '\n')
            buf_puts(line, "\\n");
        else if (c == '\t')
            buf_puts(line, "\\t");
        else
            buf_printf(line, "\\x%02x", (unsigned char)*text);
        /* of a long control character the rest follows as stray bytes, escaped one by one */
        size_t step = len && !is_control(c) ? len : 1;
        text += step;
        left -= step;
    }
}

/* The line leaves in one write, so that lines of several processes do not mix. */
static void speak(const char *command, const char *kind, const char *fmt, va_list args)
    ATTR_PRINTF(3, 0);
static void speak(const char *command, const char *kind, const char *fmt, va_list args)
{
    char *message = NULL;
    if (vasprintf(&message, fmt, args) < 0)
        message = NULL;

    struct buf line;
    buf_init(&line, LINE_MAX_BYTES);
    buf_printf(&line, "pyrometer%s%s: %s", command ? " " : "", command ? command : "", kind);
    append_printable(&line, message ? message : "out of memory");
    buf_puts(&line, "\n");
    /* a line past the maximum keeps its beginning, which says what is wrong */
    cmd_progress_say((const char *)line.data, line.len);
    buf_release(&line);
    free(message);
}

int cmd_fail(int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    speak(NULL, "", fmt, args);
    va_end(args);
    return status;
}

int cmd_fail_in(const char *command, int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    speak(command, "", fmt, args);
    va_end(args);
    return status;
}

void cmd_warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    speak(NULL, "warning: ", fmt, args);
    va_end(args);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Edits that turn `a` into `b`: insert, delete, replace, swap two neighbours. Both at most
 * NEAR_MAX_LEN long. row[2] is the current row of the usual table, row[0] the one two above. */
static unsigned edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned row[3][NEAR_MAX_LEN + 1] = {{0}};
    for (size_t j = 0; j <= b_len; j++)
        row[2][j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        memcpy(row[0], row[1], sizeof row[0]);
        memcpy(row[1], row[2], sizeof row[1]);
        row[2][0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned replace = row[1][j - 1] + (a[i - 1] != b[j - 1]);
            row[2][j] = min3(row[1][j] + 1, row[2][j - 1] + 1, replace);
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && row[0][j - 2] + 1 < row[2][j])
                row[2][j] = row[0][j - 2] + 1;
        }
    }
    return row[2][b_len];
}

void cmd_near_offer(struct cmd_near *near, const char *candidate)
{
    size_t word_len = strlen(near->word), len = strlen(candidate);
    if (!word_len || word_len > NEAR_MAX_LEN || len > NEAR_MAX_LEN)
        return;
    unsigned distance = edit_distance(near->word, word_len, candidate, len);
    /* a beginning is as good as one slip: abbreviations are not accepted, but understood */
    if (word_len >= 2 && !strncmp(near->word, candidate, word_len))
        distance = 1;
    bool near_enough = distance <= 1 + len / 4 && distance < len;
    if (near_enough && (!near->best || distance < near->distance)) {
        near->best = candidate;
        near->distance = distance;
    }
}
