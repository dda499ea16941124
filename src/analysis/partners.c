/* Partners are found level by level, from the strictest sameness to the loosest: what is left of
 * both sides is sorted by the level's key and merged. Within a key rows pair up in the order of
 * their lines, so that the second <lambda> of a file meets the second. */
#include "analysis/partners.h"

#include "base/attr.h"
#include "base/err.h"

#include <string.h>

enum where { NOWHERE, BY_FILE, BY_MODULE };
enum name { NAMELESS, BY_NAME, BY_LAST_PART };

struct level {
    enum name name;
    enum where where;
    bool by_line;
};

enum { LEVELS_MAX = 4 };
static const struct level LEVELS[ANALYSIS_BY_COUNT][LEVELS_MAX + 1] = {
    [ANALYSIS_BY_FUNCTION] = {{BY_NAME, BY_FILE, true},
                              {BY_NAME, BY_FILE, false},
                              {BY_NAME, BY_MODULE, false},
                              {BY_LAST_PART, BY_MODULE, false}},
    [ANALYSIS_BY_LINE] = {{BY_NAME, BY_FILE, true},
                          {BY_NAME, BY_MODULE, true},
                          {BY_LAST_PART, BY_MODULE, true}},
    [ANALYSIS_BY_FILE] = {{BY_NAME, BY_FILE, false}, {NAMELESS, BY_MODULE, false}},
    [ANALYSIS_BY_MODULE] = {{BY_NAME, NOWHERE, false}},
    [ANALYSIS_BY_THREAD] = {{BY_NAME, NOWHERE, false}},
    [ANALYSIS_BY_PROCESS] = {{BY_NAME, NOWHERE, false}},
};

struct item {
    const struct analysis_row *row;
    uint32_t index;                    /* of the row */
    struct profile_string name, where; /* the level's */
    char *module;                      /* owned; NULL while not needed */
};

struct side {
    struct item *item; /* those without a partner; owned */
    size_t count;
};

static int compare_u32(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_keys(const struct item *a, const struct item *b, const struct level *level)
{
    int c = analysis_compare_text(a->name, b->name);
    if (!c)
        c = analysis_compare_text(a->where, b->where);
    if (!c)
        c = a->row->special - b->row->special;
    return c || !level->by_line ? c : compare_u32(a->row->line, b->row->line);
}

static int compare_items(const void *a, const void *b, void *ctx)
{
    const struct item *x = a, *y = b;
    int c = compare_keys(x, y, ctx);
    if (!c)
        c = compare_u32(x->row->line, y->row->line);
    return c ? c : x->row < y->row ? -1 : x->row > y->row;
}

/* "C.f.<locals>.g" → "g"; "<lambda>" stays. */
static struct profile_string last_part(struct profile_string name)
{
    const char *dot = memrchr(name.text, '.', name.len);
    if (!dot)
        return name;
    uint32_t skipped = (uint32_t)(dot + 1 - name.text);
    return (struct profile_string){dot + 1, name.len - skipped};
}

/* Before 3.11 code objects have plain names only. */
static bool has_qualified_names(const struct analysis_rows *rows)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    for (size_t i = 0; i < t->code_count; i++)
        if (t->codes[i].qualname)
            return true;
    return false;
}

static int prepare(struct side *side, const struct level *level)
{
    for (size_t i = 0; i < side->count; i++) {
        struct item *item = &side->item[i];
        struct profile_string file = item->row->file;
        item->name = level->name == NAMELESS       ? (struct profile_string){"", 0}
                     : level->name == BY_LAST_PART ? last_part(item->row->name)
                                                   : item->row->name;
        item->where = (struct profile_string){"", 0};
        if (level->where == BY_FILE) {
            item->where = file;
        } else if (level->where == BY_MODULE) {
            if (!item->module)
                item->module = analysis_module_name(file.text, file.len);
            if (!item->module)
                return E_NOMEM;
            item->where = (struct profile_string){item->module, (uint32_t)strlen(item->module)};
        }
    }
    qsort_r(side->item, side->count, sizeof *side->item, compare_items, (void *)level);
    return 0;
}

/* Pairs up what agrees at this level; the rest stays. */
static void pair(struct side *before, struct side *after, const struct level *level,
                 uint32_t *partner)
{
    size_t i = 0, j = 0, kept_i = 0, kept_j = 0;
    while (i < before->count || j < after->count) {
        int c = i == before->count  ? 1
                : j == after->count ? -1
                                    : compare_keys(&before->item[i], &after->item[j], level);
        if (c < 0) {
            before->item[kept_i++] = before->item[i++];
        } else if (c > 0) {
            after->item[kept_j++] = after->item[j++];
        } else {
            partner[before->item[i].index] = after->item[j].index;
            free(before->item[i++].module);
            free(after->item[j++].module);
        }
    }
    before->count = kept_i;
    after->count = kept_j;
}

static int side_init(const struct analysis_rows *rows, struct side *ret)
{
    ret->item = calloc(rows->count + 1, sizeof *ret->item);
    if (!ret->item)
        return E_NOMEM;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->row[i].total.samples)
            ret->item[ret->count++] = (struct item){.row = &rows->row[i], .index = (uint32_t)i};
    return 0;
}

static void side_release(struct side *side)
{
    for (size_t i = 0; i < side->count; i++)
        free(side->item[i].module);
    free(side->item);
}

int analysis_partners_find(const struct analysis_rows *before, const struct analysis_rows *after,
                           uint32_t *partner)
{
    if (before->by != after->by || before->by >= ANALYSIS_BY_COUNT)
        return E_INVALID;
    struct side left = {0}, right = {0};
    int r = side_init(before, &left);
    if (r == 0)
        r = side_init(after, &right);
    for (size_t i = 0; i < before->count; i++)
        partner[i] = ANALYSIS_ROW_NONE;
    const struct level *level = LEVELS[before->by];
    bool same_names = has_qualified_names(before) == has_qualified_names(after);
    for (; r == 0 && (level->name || level->where); level++) {
        if (level->name == BY_LAST_PART && same_names)
            continue;
        r = prepare(&left, level);
        if (r == 0)
            r = prepare(&right, level);
        if (r == 0)
            pair(&left, &right, level, partner);
    }
    side_release(&left);
    side_release(&right);
    return r;
}
