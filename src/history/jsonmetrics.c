#include "history/jsonmetrics.h"

#include "base/err.h"
#include "base/jsonread.h"

#include <math.h>
#include <stdio.h>

enum { LAYERS = 2 };

/* The way to where the reader stands. */
struct path {
    char text[HISTORY_MAX_NAME + 1];
    size_t len;
    size_t len_at[JSONREAD_MAX_DEPTH + 1];    /* of the path at each depth */
    uint64_t item_at[JSONREAD_MAX_DEPTH + 1]; /* elements seen in an array */
    bool is_array[JSONREAD_MAX_DEPTH + 1];
    bool too_long; /* what lies below is left out */
};

static void put_part(struct path *p, const char *part)
{
    int n = snprintf(p->text + p->len, sizeof p->text - p->len, "%s%s", p->len ? "." : "", part);
    p->too_long = n < 0 || p->len + (size_t)n >= sizeof p->text;
    if (!p->too_long)
        p->len += (size_t)n;
    p->text[p->len] = '\0';
}

static void back_to(struct path *p, unsigned depth)
{
    p->len = p->len_at[depth];
    p->text[p->len] = '\0';
    p->too_long = false;
}

/* An element of an array: the first has the array's own name, for many hold one only. */
static void enter_element(struct path *p, unsigned depth)
{
    char number[24];
    if (!p->is_array[depth])
        return;
    back_to(p, depth);
    uint64_t item = p->item_at[depth]++;
    snprintf(number, sizeof number, "%llu", (unsigned long long)item);
    if (item)
        put_part(p, number);
}

static void open_level(struct path *p, const struct jsonread *j)
{
    p->len_at[j->depth] = p->len;
    p->item_at[j->depth] = 0;
    p->is_array[j->depth] = j->token == JSONREAD_ARRAY;
}

static int add_layer(struct history_run *run, const char *prefix, const void *data, size_t len,
                     int layer)
{
    struct jsonread j;
    struct path p = {0};
    int rc;
    put_part(&p, prefix);
    p.len_at[0] = p.len;
    jsonread_init(&j, data, len);
    while ((rc = jsonread_next(&j)) == 0 && j.token != JSONREAD_END) {
        bool opens = j.token == JSONREAD_OBJECT || j.token == JSONREAD_ARRAY;
        unsigned depth = j.depth - opens; /* where this token stands */
        if (j.token == JSONREAD_KEY) {
            back_to(&p, depth);
            put_part(&p, buf_cstr(&j.text));
            continue;
        }
        if (j.token != JSONREAD_OBJECT_END && j.token != JSONREAD_ARRAY_END)
            enter_element(&p, depth);
        if (opens)
            open_level(&p, &j);
        if (j.token == JSONREAD_NUMBER && !p.too_long && p.len) {
            rc = history_run_add_metric(run, p.text, j.number);
            if (rc < 0)
                break;
        }
        if (j.token == JSONREAD_TEXT && depth == 0 && layer + 1 < LAYERS) {
            rc = add_layer(run, prefix, j.text.data, j.text.len, layer + 1);
            break;
        }
    }
    jsonread_release(&j);
    return rc;
}

int history_run_add_json(struct history_run *run, const char *prefix, const void *data, size_t len)
{
    return add_layer(run, prefix, data, len, 0);
}

static int add_line(struct history_run *run, const char *line, size_t len)
{
    struct jsonread j;
    char name[HISTORY_MAX_NAME + 1] = "";
    double value = NAN;
    bool has_value = false, in_name = false, in_value = false;
    int rc;
    jsonread_init(&j, line, len);
    while ((rc = jsonread_next(&j)) == 0 && j.token != JSONREAD_END) {
        if (j.token == JSONREAD_KEY) {
            in_name = j.depth == 1 && jsonread_is(&j, "name");
            in_value = j.depth == 1 && jsonread_is(&j, "value");
        } else if (j.token == JSONREAD_TEXT && in_name && j.text.len <= HISTORY_MAX_NAME) {
            snprintf(name, sizeof name, "%s", buf_cstr(&j.text));
        } else if (j.token == JSONREAD_NUMBER && in_value && j.depth == 1) {
            value = j.number;
            has_value = true;
        }
    }
    jsonread_release(&j);
    if (rc == 0 && (!*name || !has_value))
        rc = E_INVALID;
    return rc < 0 ? rc : history_run_add_metric(run, name, value);
}

int history_run_add_metric_lines(struct history_run *run, const void *data, size_t len,
                                 size_t *ret_bad)
{
    const char *at = data, *end = at + len;
    size_t bad = 0;
    while (len && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        if (stop > at) {
            int rc = add_line(run, at, (size_t)(stop - at));
            if (rc == E_NOMEM)
                return rc;
            bad += rc < 0;
        }
        at = stop + 1;
    }
    *ret_bad = bad;
    return 0;
}
