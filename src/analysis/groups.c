/* Groups code objects and trie nodes into rows. Strings are interned in the file, so equal texts
 * have equal ids and a function is a triple of numbers; only modules are compared as text. */
#include "analysis/groups.h"

#include "base/err.h"
#include "base/idxmap.h"
#include "base/large.h"
#include "base/vec.h"

enum {
    LINE_TABLE_PER_NODE = 2, /* entries that may be spent for each node */
    LINE_TABLE_LEAST = 1 << 20,
};

/* What makes two frames the same row. */
struct key {
    uint32_t name; /* string id; for a module the index of its text */
    uint32_t file;
    uint32_t line;
    uint32_t special; /* 1: a note about the stack; 2: a C function */
};

struct grouping {
    struct analysis_rows *rows;
    const struct profile_tables *t;
    VEC(struct key) keys; /* parallel to rows */
    VEC(struct analysis_row) row;
    VEC(char *) texts;
    struct idxmap by_key;
    struct idxmap by_text;
};

static uint32_t hash_key(const struct key *k)
{
    uint64_t a = (uint64_t)k->name << 32 | k->file;
    uint64_t b = (uint64_t)k->line << 2 | k->special;
    return hash_u64(a * 0x9e3779b97f4a7c15ull ^ b);
}

static bool same_key(const struct key *a, const struct key *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The row of a key; a new one, with the texts given, if there is none. */
static int row_of(struct grouping *g, const struct key *key, struct profile_string name,
                  struct profile_string file, uint32_t *ret_row)
{
    uint32_t hash = hash_key(key), at;
    IDXMAP_FIND(&g->by_key, hash, i, same_key(&g->keys.data[i], key), at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)g->row.len;
        struct key *new_key = vec_push(&g->keys);
        struct analysis_row *row = vec_push(&g->row);
        if (!new_key || !row || idxmap_insert(&g->by_key, hash, at) < 0)
            return E_NOMEM;
        *new_key = *key;
        row->name = name;
        row->file = file;
        row->line = key->line;
        row->special = key->special == 1;
        row->is_c = key->special == 2;
    }
    *ret_row = at;
    return 0;
}

static struct profile_string shown_name(const struct profile_tables *t,
                                        const struct record_code *code)
{
    return t->strings[code->qualname ? code->qualname : code->name];
}

/* The index of an equal module text in g->texts; takes `text` over. */
static int intern_module(struct grouping *g, char *text, uint32_t *ret_index)
{
    if (!text)
        return E_NOMEM;
    uint32_t hash = hash_bytes(text, strlen(text)), at;
    IDXMAP_FIND(&g->by_text, hash, i, strcmp(g->texts.data[i], text) == 0, at);
    if (at != IDXMAP_NONE) {
        free(text);
        *ret_index = at;
        return 0;
    }
    at = (uint32_t)g->texts.len;
    char **slot = vec_push(&g->texts);
    if (!slot) {
        free(text);
        return E_NOMEM;
    }
    *slot = text;
    *ret_index = at;
    return idxmap_insert(&g->by_text, hash, at);
}

static int module_row(struct grouping *g, const struct record_code *code, uint32_t *ret_row)
{
    struct profile_string file = g->t->strings[code->file];
    struct key key = {0};
    int r = intern_module(g, analysis_module_name(file.text, file.len), &key.name);
    if (r < 0)
        return r;
    if (analysis_module_is_bare(file.text, file.len))
        key.file = code->file; /* others may have the same name, in other folders */
    const char *text = g->texts.data[key.name];
    struct profile_string name = {text, (uint32_t)strlen(text)};
    size_t before = g->row.len;
    r = row_of(g, &key, name, file, ret_row);
    if (r == 0 && g->row.len == before) {
        /* a package seen again: the file stays only while it is the only one */
        struct analysis_row *row = &g->row.data[*ret_row];
        if (row->file.text != file.text)
            row->file = g->t->strings[RECORD_STRING_EMPTY];
    }
    return r;
}

/* C functions have no file and no lines. Where rows are files or modules, all are one row; where they
 * are places in the source, each is a note beside it. */
static int c_row(struct grouping *g, struct key key, struct profile_string name, uint32_t *ret_row)
{
    static const char text[] = "<C functions>";
    enum analysis_by by = g->rows->by;
    if (by == ANALYSIS_BY_FILE || by == ANALYSIS_BY_MODULE) {
        key.name = 0;
        name = (struct profile_string){text, sizeof text - 1};
    }
    key.special = by == ANALYSIS_BY_PLACE ? 1 : 2;
    return row_of(g, &key, name, g->t->strings[RECORD_STRING_EMPTY], ret_row);
}

/* The row of a code object; `line` matters when rows are lines only. */
static int code_row(struct grouping *g, uint32_t code_id, uint32_t line, uint32_t *ret_row)
{
    const struct record_code *code = &g->t->codes[code_id];
    struct profile_string name = shown_name(g->t, code), file = g->t->strings[code->file];
    struct key key = {.name = code->qualname ? code->qualname : code->name, .file = code->file};
    if (code->flags & RECORD_CODE_SPECIAL) {
        key.special = 1;
        return row_of(g, &key, name, file, ret_row);
    }
    if (code->flags & RECORD_CODE_C)
        return c_row(g, key, name, ret_row);
    if (!line && g->rows->weights->calls)
        line = code->first_line; /* calls are counted by function: all at its first line */
    switch (g->rows->by) {
    case ANALYSIS_BY_FILE:
        key.name = 0;
        return row_of(g, &key, file, file, ret_row);
    case ANALYSIS_BY_MODULE:
        return module_row(g, code, ret_row);
    case ANALYSIS_BY_PLACE:
        key.name = 0;
        key.line = line;
        return row_of(g, &key, file, file, ret_row);
    case ANALYSIS_BY_LINE:
        key.line = line;
        return row_of(g, &key, name, file, ret_row);
    default:
        key.line = code->first_line;
        return row_of(g, &key, name, file, ret_row);
    }
}

/* Where in one table the rows of each code object's lines stand: a stretch for each, from its first
 * line seen to its last. Asked for every node, so one load instead of a search. */
struct line_table {
    uint32_t *row;   /* ANALYSIS_ROW_NONE: not met yet; NULL: the lines are too far apart */
    uint32_t *first; /* line, for each code */
    size_t *at;      /* where its stretch begins */
};

static void line_table_release(struct line_table *lines)
{
    free(lines->row);
    free(lines->first);
    free(lines->at);
}

static int line_table_init(const struct profile_tables *t, struct line_table *ret)
{
    struct line_table l = {.first = malloc((t->code_count + 1) * sizeof *l.first),
                           .at = calloc(t->code_count + 1, sizeof *l.at)};
    _cleanup_free_ uint32_t *last = calloc(t->code_count + 1, sizeof *last);
    if (!l.first || !l.at || !last) {
        line_table_release(&l);
        return E_NOMEM;
    }
    memset(l.first, 0xff, (t->code_count + 1) * sizeof *l.first);
    for (size_t i = 1; i < t->node_count; i++) {
        uint32_t code = t->node_code[i], line = t->node_line[i];
        l.first[code] = line < l.first[code] ? line : l.first[code];
        last[code] = line > last[code] ? line : last[code];
    }
    size_t total = 0;
    for (size_t i = 0; i < t->code_count; i++) {
        l.at[i] = total;
        total += last[i] >= l.first[i] ? (size_t)last[i] - l.first[i] + 1 : 0;
    }
    /* a file may claim any line: what would be mostly holes is searched instead */
    if (total <= LINE_TABLE_PER_NODE * t->node_count + LINE_TABLE_LEAST)
        l.row = malloc((total + 1) * sizeof *l.row);
    if (l.row)
        memset(l.row, 0xff, (total + 1) * sizeof *l.row);
    *ret = l;
    return 0;
}

static int assign_lines(struct grouping *g, uint32_t *node_row)
{
    const struct profile_tables *t = g->t;
    struct line_table lines;
    int r = line_table_init(t, &lines);
    if (r < 0)
        return r;
    for (size_t i = 1; r == 0 && i < t->node_count; i++) {
        uint32_t code = t->node_code[i], line = t->node_line[i];
        uint32_t *known = lines.row ? &lines.row[lines.at[code] + line - lines.first[code]] : NULL;
        if (known && *known != ANALYSIS_ROW_NONE) {
            node_row[i] = *known;
            continue;
        }
        r = code_row(g, code, line, &node_row[i]);
        if (known)
            *known = node_row[i];
    }
    line_table_release(&lines);
    return r;
}

/* When rows are not lines, every node of a code object has the same row. */
static int assign_codes(struct grouping *g, uint32_t *node_row)
{
    const struct profile_tables *t = g->t;
    _cleanup_free_ uint32_t *known = malloc((t->code_count + 1) * sizeof *known);
    if (!known)
        return E_NOMEM;
    memset(known, 0xff, (t->code_count + 1) * sizeof *known);
    for (size_t i = 1; i < t->node_count; i++) {
        uint32_t code = t->node_code[i];
        if (known[code] == ANALYSIS_ROW_NONE) {
            int r = code_row(g, code, 0, &known[code]);
            if (r < 0)
                return r;
        }
        node_row[i] = known[code];
    }
    return 0;
}

static int assign_nodes(struct grouping *g, uint32_t *node_row)
{
    bool by_line = g->rows->by == ANALYSIS_BY_LINE || g->rows->by == ANALYSIS_BY_PLACE;
    node_row[0] = ANALYSIS_ROW_NONE;
    return by_line ? assign_lines(g, node_row) : assign_codes(g, node_row);
}

int analysis_groups_fill(struct analysis_rows *rows)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    struct grouping g = {.rows = rows, .t = t};
    rows->node_row = large_calloc(t->node_count + 1, sizeof *rows->node_row);
    int r = rows->node_row ? assign_nodes(&g, rows->node_row) : E_NOMEM;
    rows->row = g.row.data;
    rows->count = g.row.len;
    rows->texts = g.texts.data;
    rows->text_count = g.texts.len;
    vec_release(&g.keys);
    idxmap_release(&g.by_key);
    idxmap_release(&g.by_text);
    return r;
}
