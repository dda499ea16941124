/* One line on stderr, printable whatever was in the arguments; and "did you mean". */
#include "cmd/speak.h"

#include "base/buf.h"
#include "cmd/cmd.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    LINE_MAX_BYTES = 1 << 16,
    NEAR_MAX_LEN = 31, /* longer words are nobody's typing mistake */
};

/* Length of the valid, printable UTF-8 character at `s`, or 0 if its first byte must be escaped:
 * control characters (C0, DEL, C1), stray and overlong bytes. `s` ends with a NUL, so a character
 * that is cut short fails its test at the NUL. */
static size_t printable_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    bool c1_control = s[0] == 0xc2 && s[1] < 0xa0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool no_character = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return c1_control || overlong || no_character ? 0 : len;
}

static void append_printable(struct buf *line, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        size_t len = printable_length(s);
        if (len)
            buf_append(line, s, len);
        else if (*s == '\n')
            buf_puts(line, "\\n");
        else if (*s == '\t')
            buf_puts(line, "\\t");
        else
            buf_printf(line, "\\x%02x", *s);
        s += len ? len : 1;
    }
}

/* The line leaves in one write, so that lines of several processes do not mix. */
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
    fwrite(line.data, 1, line.len, stderr);
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
