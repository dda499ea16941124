#include "cmd/culprits.h"

#include "base/err.h"

int cmd_culprits_add(struct cmd_culprits *c, bool is_after, const char *path,
                     const struct analysis_query *query)
{
    struct profile *profile = NULL;
    struct analysis_weights w = {0};
    if (!c->blame && analysis_blame_new(&c->blame) < 0)
        return E_NOMEM;
    int r = profile_load(path, &profile);
    if (r == 0)
        r = analysis_weights_init(profile, query, &w);
    if (r < 0) {
        profile_free(profile);
        c->skipped++;
        return r == E_NOMEM ? r : 0;
    }
    bool is_exact = w.exact, is_other = c->has_kind && is_exact != c->is_exact;
    if (is_other || !w.total.samples) {
        c->skipped++;
    } else {
        c->has_kind = true;
        c->is_exact = is_exact;
        r = analysis_blame_add(c->blame, is_after, &w);
        if (r == E_LIMIT || r == E_INVALID) {
            c->skipped++;
            r = 0;
        }
    }
    analysis_weights_release(&w);
    profile_free(profile);
    return r;
}

int cmd_culprits_find(struct cmd_culprits *c)
{
    return c->blame ? analysis_blame_find(c->blame, &c->found) : E_INVALID;
}

void cmd_culprits_release(struct cmd_culprits *c)
{
    analysis_culprits_release(&c->found);
    analysis_blame_free(c->blame);
    *c = (struct cmd_culprits){0};
}
