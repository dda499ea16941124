#include "analysis/pysource.h"

#include "base/err.h"
#include "base/vec.h"

enum { TAB_WIDTH = 8, INDENT_MAX = UINT16_MAX };

/* Where a scan stands at the end of a line. */
struct scan {
    char quote;     /* of the open triple-quoted string; 0: none */
    uint32_t depth; /* open brackets */
    bool joined;    /* the last line ended in a backslash */
};

static bool is_triple(const char *p, const char *end)
{
    return end - p >= 3 && p[1] == p[0] && p[2] == p[0];
}

/* Past the end of the string that is open with `quote`; `end` if the line ends first. */
static const char *skip_string(const char *p, const char *end, char quote, bool triple, bool *open)
{
    for (; p < end; p++) {
        if (*p == '\\') {
            p++;
        } else if (*p == quote && (!triple || is_triple(p, end))) {
            *open = false;
            return p + (triple ? 3 : 1);
        }
    }
    *open = triple; /* a plain string does not outlast its line */
    return end;
}

static void scan_line(struct scan *s, const char *p, const char *end)
{
    bool open = false;
    if (s->quote) {
        p = skip_string(p, end, s->quote, true, &open);
        if (open)
            return;
        s->quote = 0;
    }
    s->joined = false;
    while (p < end) {
        char c = *p;
        if (c == '#')
            return;
        if (c == '"' || c == '\'') {
            bool triple = is_triple(p, end);
            p = skip_string(p + (triple ? 3 : 1), end, c, triple, &open);
            if (open) {
                s->quote = c;
                return;
            }
            continue;
        }
        if (c == '(' || c == '[' || c == '{')
            s->depth++;
        else if ((c == ')' || c == ']' || c == '}') && s->depth)
            s->depth--;
        s->joined = c == '\\' && p + 1 == end;
        p++;
    }
}

static bool has_word(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - p) > n && memcmp(p, word, n) == 0 && (p[n] == ' ' || p[n] == '\t');
}

static void describe(struct analysis_pyline *line, const char *p, const char *end)
{
    uint32_t indent = 0;
    for (; p < end && (*p == ' ' || *p == '\t' || *p == '\f'); p++)
        indent = *p == '\t' ? (indent / TAB_WIDTH + 1) * TAB_WIDTH : indent + 1;
    line->indent = (uint16_t)min_u64(indent, INDENT_MAX);
    line->begins = !line->continues && p < end && *p != '#';
    if (!line->begins)
        return;
    line->decorates = *p == '@';
    line->opens = has_word(p, end, "def") || has_word(p, end, "class") || has_word(p, end, "async");
}

int analysis_pysource_init(const char *text, size_t len, struct analysis_pysource *ret)
{
    if (len > ANALYSIS_PYSOURCE_MAX_BYTES)
        return E_LIMIT;
    VEC(struct analysis_pyline) lines = {0};
    struct scan scan = {0};
    const char *end = text + len;
    for (const char *p = text; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const char *next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        if (stop > p && stop[-1] == '\r')
            stop--;
        struct analysis_pyline *line = vec_push(&lines);
        if (!line) {
            vec_release(&lines);
            return E_NOMEM;
        }
        line->at = (uint32_t)(p - text);
        line->len = (uint32_t)(stop - p);
        line->continues = scan.quote || scan.depth || scan.joined;
        describe(line, p, stop);
        scan_line(&scan, p, stop);
        p = next;
    }
    *ret = (struct analysis_pysource){text, lines.data, (uint32_t)lines.len};
    return 0;
}

void analysis_pysource_release(struct analysis_pysource *s)
{
    free(s->line);
    *s = (struct analysis_pysource){0};
}

uint32_t analysis_pysource_end(const struct analysis_pysource *s, uint32_t first)
{
    if (first == 0 || first > s->count)
        return first;
    uint32_t head = first - 1; /* past the decorators, where the def stands */
    while (head < s->count && (!s->line[head].begins || s->line[head].decorates))
        head++;
    bool block = head < s->count && s->line[head].opens;
    uint32_t from = block ? head : first - 1, last = from;
    for (uint32_t i = from + 1; i < s->count; i++) {
        const struct analysis_pyline *line = &s->line[i];
        if (line->begins && (!block || line->indent <= s->line[from].indent))
            break;
        /* blank lines and comments before the next statement are not the block's */
        bool inside = block && line->len > 0 && line->indent > s->line[from].indent;
        if (line->continues || line->begins || inside)
            last = i;
    }
    return last + 1;
}
