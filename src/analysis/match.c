/* Matching code, and the mask over the trie: a node is left if it or a node above it matches the
 * one expression and none of them matches the other. Parents come before children, so one pass
 * forward does it; a frame is a (code, line) pair and is matched once, however many nodes have it.
 */
#include "analysis/match.h"

#include "base/err.h"
#include "base/idxmap.h"
#include "base/vec.h"

bool analysis_match_text(const regex_t *match, struct profile_string text)
{
    /* by length: a name may hold NULs */
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)text.len};
    return regexec(match, text.text, 1, &range, REG_STARTEND) == 0;
}

bool analysis_match_code(const regex_t *match, struct profile_string name,
                         struct profile_string file, uint32_t line, struct buf *scratch)
{
    if (analysis_match_text(match, name) || analysis_match_text(match, file))
        return true;
    buf_clear(scratch);
    buf_append(scratch, file.text, file.len);
    buf_printf(scratch, ":%u(", line);
    buf_append(scratch, name.text, name.len);
    buf_puts(scratch, ")");
    const char *text = buf_cstr(scratch);
    return analysis_match_text(match, (struct profile_string){text, (uint32_t)scratch->len});
}

void analysis_match_c_name(struct profile_string name, struct buf *out)
{
    bool angles = name.len >= 2 && name.text[0] == '<' && name.text[name.len - 1] == '>';
    if (!angles) {
        buf_append(out, name.text, name.len);
        return;
    }
    buf_puts(out, "{");
    buf_append(out, name.text + 1, name.len - 2);
    buf_puts(out, "}");
}

bool analysis_match_c(const regex_t *match, struct profile_string name, struct buf *scratch)
{
    buf_clear(scratch);
    analysis_match_c_name(name, scratch);
    const char *text = buf_cstr(scratch);
    return analysis_match_text(match, (struct profile_string){text, (uint32_t)scratch->len});
}

enum verdict {
    INCLUDED = 1, /* this frame matches --include */
    EXCLUDED = 2, /* this frame matches --exclude */
};

struct frame {
    uint32_t code, line;
    uint8_t verdict;
};

struct matching {
    const struct profile_tables *t;
    const struct analysis_query *q;
    VEC(struct frame) frames;
    struct idxmap map;
    struct buf scratch;
};

static bool matches(struct matching *m, const regex_t *match, const struct record_code *code,
                    uint32_t line)
{
    struct profile_string name = m->t->strings[code->qualname ? code->qualname : code->name];
    struct profile_string file = m->t->strings[code->file];
    if (!match)
        return false;
    line = line ? line : code->first_line;
    return analysis_match_code(match, name, file, line, &m->scratch) ||
           (code->flags & RECORD_CODE_C && analysis_match_c(match, name, &m->scratch));
}

static uint8_t judge(struct matching *m, uint32_t code_id, uint32_t line)
{
    const struct record_code *code = &m->t->codes[code_id];
    return (matches(m, m->q->include, code, line) ? INCLUDED : 0) |
           (matches(m, m->q->exclude, code, line) ? EXCLUDED : 0);
}

static int verdict_of(struct matching *m, uint32_t code, uint32_t line, uint8_t *ret)
{
    uint32_t hash = hash_u64((uint64_t)code << 32 | line), at;
    IDXMAP_FIND(&m->map, hash, i, m->frames.data[i].code == code && m->frames.data[i].line == line,
                at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)m->frames.len;
        struct frame *f = vec_push(&m->frames);
        if (!f || idxmap_insert(&m->map, hash, at) < 0)
            return E_NOMEM;
        *f = (struct frame){code, line, judge(m, code, line)};
    }
    *ret = m->frames.data[at].verdict;
    return 0;
}

/* First what stands on the way from the root, then what that means. */
static int fill(struct matching *m, uint8_t *mask)
{
    const struct profile_tables *t = m->t;
    mask[0] = m->q->include ? 0 : INCLUDED;
    for (size_t i = 1; i < t->node_count; i++) {
        uint8_t own;
        int r = verdict_of(m, t->node_code[i], t->node_line[i], &own);
        if (r < 0)
            return r;
        mask[i] = mask[t->node_parent[i]] | own;
    }
    for (size_t i = 0; i < t->node_count; i++)
        mask[i] = mask[i] == INCLUDED;
    return buf_error(&m->scratch);
}

int analysis_match_nodes(const struct profile_tables *t, const struct analysis_query *q,
                         uint8_t **ret)
{
    if (!q->include && !q->exclude) {
        *ret = NULL;
        return 0;
    }
    struct matching m = {.t = t, .q = q};
    buf_init(&m.scratch, ANALYSIS_MATCH_BYTES_MAX);
    uint8_t *mask = malloc(t->node_count + 1);
    int r = mask ? fill(&m, mask) : E_NOMEM;
    vec_release(&m.frames);
    idxmap_release(&m.map);
    buf_release(&m.scratch);
    if (r < 0) {
        free(mask);
        return r;
    }
    *ret = mask;
    return 0;
}
