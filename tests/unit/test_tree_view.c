/* The call tree as text and as something to walk through, without a terminal, on a recording of known
 * truth whose answers can be worked out on paper. */
#include "base/clock.h"
#include "format/writer.h"
#include "view/tree.h"
#include "view/tree_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char path[] = "/tmp/pyrometer-test-XXXXXX";
static struct format_writer *w;

static uint32_t text(const char *t)
{
    return format_writer_string(w, t, strlen(t));
}

static uint32_t node(uint32_t parent, const char *name, uint32_t line)
{
    uint32_t code = format_writer_code(
        w,
        &(struct record_code){.name = text(name), .file = text("/srv/app.py"), .first_line = line});
    return format_writer_stack(w, &(struct record_stack){parent, code, line});
}

/* `count` samples of 1 ms each. */
static void sample(uint32_t stack, uint32_t state, uint32_t count)
{
    static uint64_t at_ms;
    format_writer_sample(w, &(struct record_sample){.thread = 1,
                                                    .stack = stack,
                                                    .state = state,
                                                    .count = count,
                                                    .start_ns = at_ms * NS_PER_MS,
                                                    .duration_ns = count * NS_PER_MS});
    at_ms += count;
}

struct made {
    struct profile *profile;
    struct analysis_query query;
    struct analysis_calltree tree;
};

/* In ms, self and total:
 *   main 10/900 ─┬─ alpha 0/500 ── beta 500/500     (on a CPU)
 *                ├─ gamma 100/300 ─┬─ beta 150
 *                │                 └─ delta 50
 *                └─ zeta 90
 *   other 100 */
static struct profile *known_profile(void)
{
    struct format_writer_options options = {.force = true};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    format_writer_process(w, &(struct record_process){.id = 1, .pid = 7, .command = text("app")});
    format_writer_thread(w, &(struct record_thread){.id = 1, .process = 1, .tid = 7});
    uint32_t m = node(0, "main", 1), alpha = node(m, "alpha", 10), gamma = node(m, "gamma", 30);
    uint32_t zeta = node(m, "zeta", 50), other = node(0, "other", 60);
    sample(m, 0, 10);
    sample(node(alpha, "beta", 20), RECORD_ON_CPU, 500);
    sample(gamma, 0, 100);
    sample(node(gamma, "beta", 20), 0, 150);
    sample(node(gamma, "delta", 40), 0, 50);
    sample(zeta, 0, 90);
    sample(other, 0, 100);
    struct profile *p = NULL;
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    assert_int_equal(profile_load(path, &p), 0);
    return p;
}

static void make(struct made *m, struct analysis_calltree_options options)
{
    *m = (struct made){.profile = known_profile(), .query = {.metric = ANALYSIS_METRICS}};
    assert_int_equal(analysis_calltree_weigh(&m->tree, m->profile, &m->query), 0);
    assert_int_equal(analysis_calltree_grow(&m->tree, &m->query, &options), 0);
}

static void unmake(struct made *m)
{
    analysis_calltree_release(&m->tree);
    profile_free(m->profile);
}

/* The visible names, joined, the cursor's in brackets, a level as a dot. */
static const char *lines_of(const struct tree_model *m)
{
    static char out[512];
    size_t at = 0;
    for (size_t i = 0; i < m->lines.len; i++) {
        const struct analysis_row *label = analysis_calltree_label(m->t, m->lines.data[i].node);
        const char *name = label ? label->name.text : "folded";
        const char *dots = &"....."[5 - m->lines.data[i].level];
        int n = snprintf(out + at, sizeof out - at, i == m->cursor ? "%s%s[%s]" : "%s%s%s",
                         i ? " " : "", dots, name);
        at += (size_t)n;
    }
    return out;
}

static uint64_t self_ms(const struct tree_model *m)
{
    const struct analysis_tree_node *nodes = m->t->tree.node;
    return nodes ? nodes[tree_model_node(m)].self.weight / NS_PER_MS : 0;
}

static char *printed(const struct analysis_calltree *tree, enum view_format format)
{
    char *out = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&out, &len);
    assert_int_equal(view_tree_print(tree, f, format, (struct view_style){0}), 0);
    fclose(f);
    return out;
}

/* --- the model --- */

static void test_first_look_and_moves(void **state)
{
    (void)state;
    struct made made;
    struct tree_model m;
    make(&made, (struct analysis_calltree_options){0});
    assert_int_equal(tree_model_init(&m, &made.tree), 0);
    assert_string_equal(lines_of(&m), "[main] .alpha .beta .gamma .zeta other");
    tree_model_resize(&m, 2);
    tree_model_move(&m, 3);
    assert_int_equal(m.cursor, 3);
    assert_int_equal(m.top, 2);
    tree_model_move(&m, 100);
    assert_int_equal(m.cursor, 5);
    assert_int_equal(m.top, 4);
    tree_model_resize(&m, 100);
    assert_int_equal(m.top, 0);
    tree_model_move(&m, -100);
    assert_int_equal(m.cursor, 0);
    tree_model_resize(&m, 0);
    assert_int_equal(m.height, 1);
    tree_model_release(&m);
    unmake(&made);
}

static void test_opening_and_closing(void **state)
{
    (void)state;
    struct made made;
    struct tree_model m;
    make(&made, (struct analysis_calltree_options){0});
    assert_int_equal(tree_model_init(&m, &made.tree), 0);
    tree_model_move(&m, 3);
    assert_int_equal(tree_model_right(&m), 0);
    assert_string_equal(lines_of(&m), "main .alpha .beta .[gamma] ..beta ..delta .zeta other");
    assert_int_equal(tree_model_right(&m), 0); /* open already: to the first child */
    assert_int_equal(tree_model_right(&m), 0); /* a leaf stays */
    assert_string_equal(lines_of(&m), "main .alpha .beta .gamma ..[beta] ..delta .zeta other");
    assert_int_equal(tree_model_left(&m), 0); /* to the parent */
    assert_int_equal(tree_model_left(&m), 0); /* closed */
    assert_string_equal(lines_of(&m), "main .alpha .beta .[gamma] .zeta other");
    tree_model_move(&m, -3);
    assert_int_equal(tree_model_toggle(&m), 0);
    assert_string_equal(lines_of(&m), "[main] other");
    assert_int_equal(tree_model_left(&m), 0);
    assert_string_equal(lines_of(&m), "[main] other");
    assert_int_equal(tree_model_descend(&m), 0);
    assert_string_equal(lines_of(&m), "main .alpha .[beta] .gamma .zeta other");
    tree_model_release(&m);
    unmake(&made);
}

static void test_hottest_one_after_the_other(void **state)
{
    (void)state;
    struct made made;
    struct tree_model m;
    make(&made, (struct analysis_calltree_options){0});
    assert_int_equal(tree_model_init(&m, &made.tree), 0);
    static const uint64_t selves_ms[] = {500, 150, 100, 100, 90, 50, 10, 10};
    for (size_t i = 0; i < ARRAY_LEN(selves_ms); i++) {
        assert_int_equal(tree_model_hottest(&m), 0);
        assert_int_equal(self_ms(&m), selves_ms[i]);
    }
    tree_model_move(&m, 1); /* somewhere else: from the start */
    assert_int_equal(tree_model_hottest(&m), 0);
    assert_int_equal(self_ms(&m), 500);
    tree_model_release(&m);
    unmake(&made);
}

static void test_orders(void **state)
{
    (void)state;
    struct made made;
    struct tree_model m;
    make(&made, (struct analysis_calltree_options){0});
    assert_int_equal(tree_model_init(&m, &made.tree), 0);
    tree_model_move(&m, 3);
    assert_int_equal(tree_model_sort(&m, TREE_SORT_SELF), 0);
    assert_string_equal(lines_of(&m), "other main .[gamma] .zeta .alpha .beta");
    assert_int_equal(tree_model_sort(&m, TREE_SORT_NAME), 0);
    assert_string_equal(lines_of(&m), "main .alpha .beta .[gamma] .zeta other");
    tree_model_release(&m);
    unmake(&made);
}

static void test_search_goes_round(void **state)
{
    (void)state;
    struct made made;
    struct tree_model m;
    regex_t match;
    make(&made, (struct analysis_calltree_options){0});
    assert_int_equal(tree_model_init(&m, &made.tree), 0);
    assert_int_equal(tree_model_next(&m, false), 0); /* nothing is searched for */
    assert_int_equal(regcomp(&match, "^BETA$", REG_EXTENDED | REG_NOSUB | REG_ICASE), 0);
    assert_int_equal(tree_model_search(&m, &match), 0);
    assert_int_equal(m.found_count, 2);
    assert_int_equal(tree_model_next(&m, false), 0);
    assert_string_equal(lines_of(&m), "main .alpha .[beta] .gamma .zeta other");
    assert_int_equal(tree_model_next(&m, false), 0); /* opens what hides it */
    assert_string_equal(lines_of(&m), "main .alpha .beta .gamma ..[beta] ..delta .zeta other");
    assert_int_equal(tree_model_next(&m, false), 0);
    assert_int_equal(m.cursor, 2);
    assert_int_equal(tree_model_next(&m, true), 0);
    assert_int_equal(m.cursor, 4);
    regfree(&match);
    assert_int_equal(regcomp(&match, "nobody", REG_EXTENDED | REG_NOSUB), 0);
    assert_int_equal(tree_model_search(&m, &match), 0);
    assert_int_equal(m.found_count, 0);
    assert_int_equal(tree_model_next(&m, true), 0);
    assert_int_equal(m.cursor, 4);
    regfree(&match);
    tree_model_release(&m);
    unmake(&made);
}

static void test_following_into_another_metric(void **state)
{
    (void)state;
    struct made made;
    struct tree_model m, other;
    make(&made, (struct analysis_calltree_options){0});
    assert_int_equal(tree_model_init(&m, &made.tree), 0);
    tree_model_move(&m, 3);
    assert_int_equal(tree_model_right(&m), 0);
    struct analysis_calltree cpu;
    struct analysis_query query = {.metric = analysis_metric_find("cpu")};
    assert_int_equal(analysis_calltree_weigh(&cpu, made.profile, &query), 0);
    assert_int_equal(analysis_calltree_grow(&cpu, &query, &made.tree.options), 0);
    assert_int_equal(tree_model_init(&other, &cpu), 0);
    assert_int_equal(tree_model_follow(&other, &m), 0);
    assert_string_equal(lines_of(&other), "[main] alpha beta"); /* gamma is not there: its caller */
    assert_int_equal(tree_model_follow(&m, &other), 0);
    assert_string_equal(lines_of(&m), "[main] .alpha .beta .gamma ..beta ..delta .zeta other");
    tree_model_release(&other);
    analysis_calltree_release(&cpu);
    tree_model_release(&m);
    unmake(&made);
}

static void test_bottom_up(void **state)
{
    (void)state;
    struct made made;
    struct tree_model m;
    make(&made, (struct analysis_calltree_options){.tree = {.bottom_up = true}});
    assert_int_equal(tree_model_init(&m, &made.tree), 0);
    assert_string_equal(lines_of(&m), "[beta] .alpha .main .gamma gamma other zeta delta main");
    assert_int_equal(tree_model_hottest(&m), 0);
    assert_int_equal(m.cursor, 0);
    assert_int_equal(tree_model_hottest(&m), 0);
    assert_int_equal(m.cursor, 4);
    tree_model_release(&m);
    unmake(&made);
}

/* A tree that nobody grew: nothing to show, and no key may break it. */
static void test_empty_model(void **state)
{
    (void)state;
    struct made made = {.profile = known_profile(), .query = {.metric = ANALYSIS_METRICS}};
    struct tree_model m;
    assert_int_equal(analysis_calltree_weigh(&made.tree, made.profile, &made.query), 0);
    assert_int_equal(tree_model_init(&m, &made.tree), 0);
    tree_model_move(&m, 1);
    tree_model_move(&m, -1);
    assert_int_equal(tree_model_toggle(&m), 0);
    assert_int_equal(tree_model_right(&m), 0);
    assert_int_equal(tree_model_left(&m), 0);
    assert_int_equal(tree_model_descend(&m), 0);
    assert_int_equal(tree_model_hottest(&m), 0);
    assert_int_equal(tree_model_sort(&m, TREE_SORT_NAME), 0);
    assert_int_equal(tree_model_node(&m), 0);
    tree_model_release(&m);
    unmake(&made);
}

/* --- the text --- */

static void test_text(void **state)
{
    (void)state;
    struct made made;
    make(&made, (struct analysis_calltree_options){0});
    char *out = printed(&made.tree, VIEW_TEXT);
    const char *table = strstr(out, "total %");
    assert_non_null(table);
    assert_string_equal(table, "total %    total  self %     self  function     file:line\n"
                               " 90.0 %   900 ms   1.0 %  10.0 ms  ├ main       /srv/app.py:1\n"
                               " 50.0 %   500 ms   0.0 %      0 s  │ ├ alpha    /srv/app.py:10\n"
                               " 50.0 %   500 ms  50.0 %   500 ms  │ │ beta     /srv/app.py:20\n"
                               " 30.0 %   300 ms  10.0 %   100 ms  │ ├ gamma    /srv/app.py:30\n"
                               " 15.0 %   150 ms  15.0 %   150 ms  │ │ ├ beta   /srv/app.py:20\n"
                               "  5.0 %  50.0 ms   5.0 %  50.0 ms  │ │ └ delta  /srv/app.py:40\n"
                               "  9.0 %  90.0 ms   9.0 %  90.0 ms  │ └ zeta     /srv/app.py:50\n"
                               " 10.0 %   100 ms  10.0 %   100 ms  └ other      /srv/app.py:60\n");
    free(out);
    unmake(&made);
}

static void test_limits_fold(void **state)
{
    (void)state;
    struct made made;
    make(&made, (struct analysis_calltree_options){.tree = {.max_depth = 2, .min_share = 0.2}});
    assert_int_equal(made.tree.tree.folded, 5);
    char *out = printed(&made.tree, VIEW_TEXT);
    assert_non_null(strstr(out, "│ │ … 1 more")); /* beta under alpha: too deep */
    assert_non_null(strstr(out, "└ … 1 more"));   /* zeta, other: too light */
    assert_non_null(strstr(out, "… and 5 more branches, 89.0 % together, 50.0 % at most"));
    assert_null(strstr(out, "beta"));
    assert_null(strstr(out, "zeta"));
    free(out);
    uint64_t selves = 0;
    for (size_t i = 0; i < made.tree.tree.count; i++)
        selves += made.tree.tree.node[i].self.weight;
    assert_int_equal(selves, 1000 * NS_PER_MS);
    unmake(&made);
}

static void test_csv(void **state)
{
    (void)state;
    struct made made;
    make(&made, (struct analysis_calltree_options){.tree = {.max_nodes = 2}, .by_thread = true});
    char *out = printed(&made.tree, VIEW_CSV);
    assert_non_null(strstr(out, "special,folded,pid,tid\r\n1,thread 7,,,100,"));
    assert_non_null(strstr(out, "0,0,7,7\r\n2,,,,100,"));
    free(out);
    unmake(&made);
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_look_and_moves),
        cmocka_unit_test(test_opening_and_closing),
        cmocka_unit_test(test_hottest_one_after_the_other),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_search_goes_round),
        cmocka_unit_test(test_following_into_another_metric),
        cmocka_unit_test(test_bottom_up),
        cmocka_unit_test(test_empty_model),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_limits_fold),
        cmocka_unit_test(test_csv),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
