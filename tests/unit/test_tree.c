/* The call tree, the forests it grows from, and stacks along time, on a recording of known truth
 * whose answers can be worked out on paper. */
#include "analysis/merged.h"
#include "analysis/sequence.h"
#include "analysis/tree.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "format/writer.h"

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

static uint32_t code(const char *name, const char *file, uint32_t line)
{
    return format_writer_code(
        w, &(struct record_code){.name = text(name), .file = text(file), .first_line = line});
}

static uint32_t node(uint32_t parent, uint32_t code_id, uint32_t line)
{
    return format_writer_stack(w, &(struct record_stack){parent, code_id, line});
}

/* `count` samples of 1 ms each. */
static void sample(uint32_t thread, uint32_t stack, uint32_t count, uint64_t at_ms)
{
    format_writer_sample(w, &(struct record_sample){.thread = thread,
                                                    .stack = stack,
                                                    .state = RECORD_ON_CPU,
                                                    .count = count,
                                                    .start_ns = at_ms * NS_PER_MS,
                                                    .duration_ns = count * NS_PER_MS});
}

/* In ms, with the lines of main in brackets:
 *   thread 1: main[2] 10, main[2]>f 20, main[3]>f 30, main[3]>f>g 40, then 1 s of nothing, main>g
 * 50 thread 2: f>g 60, (no frame) 5 */
static struct profile *known_profile(const char *folder)
{
    struct format_writer_options options = {.force = true};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    format_writer_process(w, &(struct record_process){.id = 1, .pid = 100, .command = text("app")});
    format_writer_thread(
        w, &(struct record_thread){.id = 1, .process = 1, .tid = 100, .name = text("main")});
    format_writer_thread(
        w, &(struct record_thread){.id = 2, .process = 1, .tid = 101, .name = text("worker")});
    char file[64];
    snprintf(file, sizeof file, "%s/app.py", folder);
    uint32_t m = code("main", file, 1), f = code("f", file, 10), g = code("g", file, 20);
    uint32_t m2 = node(0, m, 2), m3 = node(0, m, 3);
    uint32_t m2f = node(m2, f, 11), m3f = node(m3, f, 12), m3fg = node(m3f, g, 21);
    uint32_t m3g = node(m3, g, 21), lone = node(node(0, f, 13), g, 21);
    sample(1, m2, 10, 0);
    sample(1, m2f, 20, 10);
    sample(1, m3f, 30, 30);
    sample(1, m3fg, 40, 60);
    sample(1, m3g, 50, 1100);
    sample(2, lone, 60, 0);
    sample(2, 0, 5, 60);
    struct profile *p = NULL;
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    assert_int_equal(profile_load(path, &p), 0);
    return p;
}

enum { WHOLE_MS = 215 };

struct made {
    struct profile *profile;
    struct analysis_query query;
    struct analysis_weights weights;
    struct analysis_rows rows;
};

static void make(struct made *m, const char *folder, enum analysis_by by)
{
    *m = (struct made){.profile = known_profile(folder)};
    m->query.metric = ANALYSIS_METRICS;
    assert_int_equal(analysis_weights_init(m->profile, &m->query, &m->weights), 0);
    assert_int_equal(analysis_rows_init(&m->weights, by, &m->rows), 0);
}

static void unmake(struct made *m)
{
    analysis_rows_release(&m->rows);
    analysis_weights_release(&m->weights);
    profile_free(m->profile);
}

static const char *row_name(const struct made *m, uint32_t row)
{
    return row < m->rows.count ? m->rows.row[row].name.text : "?";
}

/* The node at the end of a path of names ("main/f/g"); 0 if there is none. */
static uint32_t find(const struct made *m, const struct analysis_tree *tree, const char *names)
{
    uint32_t at = 0;
    while (*names) {
        size_t len = strcspn(names, "/");
        uint32_t child = tree->node[at].first_child;
        while (child && (tree->node[child].row == ANALYSIS_ROW_NONE ||
                         strlen(row_name(m, tree->node[child].row)) != len ||
                         strncmp(row_name(m, tree->node[child].row), names, len) != 0))
            child = tree->node[child].next;
        if (!child)
            return 0;
        at = child;
        names += len + (names[len] == '/');
    }
    return at;
}

static uint64_t self_ms(const struct analysis_tree *tree, uint32_t at)
{
    assert_int_not_equal(at, 0);
    assert_int_equal(tree->node[at].self.weight, tree->node[at].self.samples * NS_PER_MS);
    return tree->node[at].self.samples;
}

static uint64_t total_ms(const struct analysis_tree *tree, uint32_t at)
{
    assert_int_not_equal(at, 0);
    assert_int_equal(tree->node[at].total.weight, tree->node[at].total.samples * NS_PER_MS);
    return tree->node[at].total.samples;
}

/* Whatever the tree: totals are selves and children, children fall, the walk meets every node. */
static void check_sums(const struct analysis_tree *tree)
{
    size_t met = 0;
    uint32_t at = 0;
    do {
        const struct analysis_tree_node *n = &tree->node[at];
        uint64_t sum = n->self.weight, last = UINT64_MAX;
        for (uint32_t c = n->first_child; c; c = tree->node[c].next) {
            assert_int_equal(tree->node[c].parent, at);
            sum += tree->node[c].total.weight;
            if (!tree->node[c].folded && !tree->before_total)
                assert_true(tree->node[c].total.weight <= last);
            last = tree->node[c].total.weight;
        }
        assert_int_equal(sum, n->total.weight);
        met++;
        at = analysis_tree_next(tree, at);
    } while (at);
    assert_int_equal(met, tree->count);
    assert_int_equal(tree->node[0].total.weight, tree->total.weight);
}

static void grow(const struct made *m, struct analysis_tree_options options,
                 struct analysis_tree *ret)
{
    struct analysis_forest forest;
    analysis_forest_init(&m->rows, &forest);
    assert_int_equal(analysis_tree_init(&forest, &options, ret), 0);
    analysis_forest_release(&forest);
    assert_int_equal(ret->total.samples, WHOLE_MS);
    check_sums(ret);
}

static void test_top_down(void **state ATTR_UNUSED)
{
    struct made m;
    struct analysis_tree tree;
    make(&m, "/srv", ANALYSIS_BY_FUNCTION);
    grow(&m, (struct analysis_tree_options){0}, &tree);
    assert_int_equal(tree.count, 8);
    assert_int_equal(total_ms(&tree, find(&m, &tree, "main")), 150);
    assert_int_equal(self_ms(&tree, find(&m, &tree, "main")), 10);
    assert_int_equal(total_ms(&tree, find(&m, &tree, "main/f")), 90);
    assert_int_equal(self_ms(&tree, find(&m, &tree, "main/f")), 50);
    assert_int_equal(self_ms(&tree, find(&m, &tree, "main/f/g")), 40);
    assert_int_equal(self_ms(&tree, find(&m, &tree, "main/g")), 50);
    assert_int_equal(total_ms(&tree, find(&m, &tree, "f/g")), 60);
    assert_int_equal(self_ms(&tree, find(&m, &tree, "<no Python frame>")), 5);
    assert_int_equal(tree.folded, 0);
    analysis_tree_release(&tree);
    unmake(&m);
}

static void test_by_line(void **state ATTR_UNUSED)
{
    struct made m;
    struct analysis_tree tree;
    make(&m, "/srv", ANALYSIS_BY_LINE);
    grow(&m, (struct analysis_tree_options){0}, &tree);
    assert_int_equal(tree.count, 10); /* main is two lines, f under it two */
    analysis_tree_release(&tree);
    unmake(&m);
}

static void test_bottom_up(void **state ATTR_UNUSED)
{
    struct made m;
    struct analysis_tree tree;
    make(&m, "/srv", ANALYSIS_BY_FUNCTION);
    grow(&m, (struct analysis_tree_options){.bottom_up = true}, &tree);
    assert_int_equal(total_ms(&tree, find(&m, &tree, "g")), 150);
    assert_int_equal(total_ms(&tree, find(&m, &tree, "g/f")), 100);
    assert_int_equal(self_ms(&tree, find(&m, &tree, "g/f")), 60); /* begun by f */
    assert_int_equal(total_ms(&tree, find(&m, &tree, "g/f/main")), 40);
    assert_int_equal(total_ms(&tree, find(&m, &tree, "g/main")), 50);
    assert_int_equal(total_ms(&tree, find(&m, &tree, "f/main")), 50);
    assert_int_equal(total_ms(&tree, find(&m, &tree, "main")), 10);
    assert_int_equal(total_ms(&tree, find(&m, &tree, "<no Python frame>")), 5);
    analysis_tree_release(&tree);
    unmake(&m);
}

/* Of a limited tree the heaviest nodes are there, and the sums still hold. */
static void test_folding(void **state ATTR_UNUSED)
{
    struct made m;
    make(&m, "/srv", ANALYSIS_BY_FUNCTION);
    for (int up = 0; up < 2; up++)
        for (size_t max = 1; max < 12; max++) {
            struct analysis_tree tree;
            grow(&m, (struct analysis_tree_options){.bottom_up = up, .max_nodes = max}, &tree);
            uint64_t heaviest = 0, lightest = UINT64_MAX;
            size_t own = 0;
            for (size_t i = 0; i < tree.count; i++) {
                if (!tree.node[i].folded && ++own)
                    lightest = min_u64(lightest, tree.node[i].total.weight);
                else
                    heaviest = max_u64(heaviest, tree.node[i].total.weight);
            }
            assert_true(own <= max);
            assert_true(tree.folded_heaviest <= lightest);
            assert_true((tree.folded == 0) == (heaviest == 0));
            analysis_tree_release(&tree);
        }
    unmake(&m);
}

static void test_by_thread(void **state ATTR_UNUSED)
{
    struct made m;
    struct analysis_forest forest;
    struct analysis_tree tree;
    make(&m, "/srv", ANALYSIS_BY_FUNCTION);
    assert_int_equal(analysis_forest_init_threads(&m.rows, &m.query, false, &forest), 0);
    assert_int_equal(analysis_tree_init(&forest, &(struct analysis_tree_options){0}, &tree), 0);
    check_sums(&tree);
    assert_int_equal(tree.total.samples, WHOLE_MS);
    uint32_t first = tree.node[0].first_child, second = tree.node[first].next;
    assert_int_equal(tree.node[first].row, m.rows.count + 1);
    assert_int_equal(total_ms(&tree, first), 150);
    assert_int_equal(tree.node[second].row, m.rows.count + 2);
    assert_int_equal(total_ms(&tree, second), 65);
    assert_int_equal(self_ms(&tree, second), 0);
    assert_int_equal(tree.node[second].next, 0);
    analysis_tree_release(&tree);
    analysis_forest_release(&forest);
    unmake(&m);
}

/* --- by thread, against the samples themselves --- */

enum { RANDOM_CODES = 7, RANDOM_NODES = 200, RANDOM_THREADS = 5, RANDOM_SAMPLES = 12000 };
enum { PATH_MAX_ROWS = 64 };

struct random_sample {
    uint32_t thread, stack;
    uint64_t ms;
};

static uint32_t pick(uint32_t below)
{
    static uint64_t rng = 88172645463325252ull;
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)((rng >> 32) % below);
}

/* Deep and bushy, with siblings of one function; more samples than a thread's list holds at first. */
static void make_random(struct made *m, struct random_sample *samples)
{
    uint32_t codes[RANDOM_CODES], nodes[RANDOM_NODES] = {0};
    struct format_writer_options options = {.force = true};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    format_writer_process(w, &(struct record_process){.id = 1, .pid = 100, .command = text("app")});
    for (uint32_t i = 1; i <= RANDOM_THREADS; i++)
        format_writer_thread(w, &(struct record_thread){.id = i, .process = 1, .tid = 100 + i});
    for (uint32_t i = 0; i < RANDOM_CODES; i++)
        codes[i] = code((char[]){(char)('a' + i), 0}, "/app.py", 10 * i + 10);
    for (uint32_t i = 1; i < RANDOM_NODES; i++) {
        uint32_t near = pick(2) ? i - 1 - pick(i < 8 ? i : 8) : pick(i); /* some deep, some bushy */
        nodes[i] = node(nodes[near], codes[pick(RANDOM_CODES)], 1000 + i);
    }
    for (uint32_t i = 0; i < RANDOM_SAMPLES; i++) {
        uint32_t thread = pick(9) ? 1 : 2 + pick(RANDOM_THREADS - 2); /* the last has none */
        samples[i] = (struct random_sample){thread, nodes[pick(RANDOM_NODES)], 1 + pick(3)};
        sample(thread, samples[i].stack, (uint32_t)samples[i].ms, 3ull * i);
    }
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    *m = (struct made){.query.metric = ANALYSIS_METRICS};
    assert_int_equal(profile_load(path, &m->profile), 0);
    assert_int_equal(analysis_weights_init(m->profile, &m->query, &m->weights), 0);
    assert_int_equal(analysis_rows_init(&m->weights, ANALYSIS_BY_FUNCTION, &m->rows), 0);
}

/* The rows of a sample as the tree has them from its root on; their number. */
static size_t rows_of(const struct made *m, const struct random_sample *s, bool bottom_up,
                      uint32_t *row)
{
    const struct profile_tables *t = profile_tables(m->profile);
    size_t n = 0;
    for (uint32_t at = s->stack; at; at = t->node_parent[at])
        row[n++] = m->rows.node_row[at];
    if (!s->stack)
        row[n++] = (uint32_t)m->rows.count - 1;
    row[n++] = (uint32_t)m->rows.count + s->thread;
    assert_true(n <= PATH_MAX_ROWS);
    for (size_t i = 0; !bottom_up && i < n / 2; i++) {
        uint32_t swap = row[i];
        row[i] = row[n - 1 - i];
        row[n - 1 - i] = swap;
    }
    return n;
}

/* Walks every sample down the tree: what arrives at each node is its total, what ends there its self. */
static void check_against(const struct made *m, const struct analysis_tree *tree,
                          const struct random_sample *samples, bool bottom_up)
{
    uint64_t *total = calloc(tree->count, sizeof *total), *self = calloc(tree->count, sizeof *self);
    assert_true(total && self);
    for (size_t i = 0; i < RANDOM_SAMPLES; i++) {
        uint32_t row[PATH_MAX_ROWS], at = 0;
        size_t n = rows_of(m, &samples[i], bottom_up, row);
        for (size_t k = 0; k < n; k++) {
            total[at] += samples[i].ms;
            at = tree->node[at].first_child;
            while (at && tree->node[at].row != row[k])
                at = tree->node[at].next;
            assert_int_not_equal(at, 0);
        }
        total[at] += samples[i].ms;
        self[at] += samples[i].ms;
    }
    for (uint32_t i = 0; i < tree->count; i++) {
        assert_int_equal(tree->node[i].total.samples, total[i]);
        assert_int_equal(tree->node[i].self.samples, self[i]);
        assert_int_equal(tree->node[i].total.weight, total[i] * NS_PER_MS);
        assert_int_equal(tree->node[i].self.weight, self[i] * NS_PER_MS);
    }
    free(total);
    free(self);
}

static void test_by_thread_is_the_samples(void **state ATTR_UNUSED)
{
    static struct random_sample samples[RANDOM_SAMPLES];
    struct made m;
    make_random(&m, samples);
    for (int bottom_up = 0; bottom_up <= 1; bottom_up++) {
        struct analysis_forest forest;
        struct analysis_tree tree;
        struct analysis_tree_options options = {.bottom_up = bottom_up};
        assert_int_equal(analysis_forest_init_threads(&m.rows, &m.query, bottom_up, &forest), 0);
        assert_int_equal(analysis_tree_init(&forest, &options, &tree), 0);
        check_sums(&tree);
        check_against(&m, &tree, samples, bottom_up);
        analysis_tree_release(&tree);
        analysis_forest_release(&forest);
    }
    unmake(&m);
}

/* A run against itself, moved to another folder: nothing changed. */
static void test_diff_of_equals(void **state ATTR_UNUSED)
{
    struct made a, b;
    struct analysis_forest forest;
    struct analysis_tree tree;
    make(&a, "/srv", ANALYSIS_BY_FUNCTION);
    make(&b, "/home/me", ANALYSIS_BY_FUNCTION);
    assert_int_equal(analysis_forest_init_diff(&a.rows, &b.rows, &forest), 0);
    assert_int_equal(analysis_tree_init(&forest, &(struct analysis_tree_options){0}, &tree), 0);
    check_sums(&tree);
    assert_int_equal(tree.count, 8);
    for (size_t i = 0; i < tree.count; i++) {
        assert_int_equal(tree.before_total[i].weight, tree.node[i].total.weight);
        assert_int_equal(tree.before_self[i].samples, tree.node[i].self.samples);
    }
    analysis_tree_release(&tree);
    analysis_forest_release(&forest);
    unmake(&a);
    unmake(&b);
}

static const struct analysis_block *block_at(const struct made *m,
                                             const struct analysis_sequence *s, uint32_t lane,
                                             uint32_t depth, uint64_t at_ms, const char *name)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct analysis_block *b = &s->block[i];
        if (b->lane == lane && b->depth == depth && b->start_ns == at_ms * NS_PER_MS &&
            b->row != ANALYSIS_ROW_NONE && strcmp(row_name(m, b->row), name) == 0)
            return b;
    }
    fail_msg("no block %s at %u ms", name, (unsigned)at_ms);
    return NULL;
}

static void test_sequence(void **state ATTR_UNUSED)
{
    struct made m;
    struct analysis_sequence s;
    make(&m, "/srv", ANALYSIS_BY_FUNCTION);
    assert_int_equal(analysis_sequence_init(&m.rows, &m.query, 1000, &s), 0);
    assert_int_equal(s.lane_count, 2);
    assert_int_equal(s.lane[0].total.samples, 150);
    assert_int_equal(s.lane[1].total.samples, 65);
    assert_int_equal(s.from_ns, 0);
    assert_int_equal(s.to_ns, 1150 * NS_PER_MS);
    /* lines and code do not matter: main is one block until the gap, f one from 10 to 100 */
    const struct analysis_block *b = block_at(&m, &s, 0, 0, 0, "main");
    assert_int_equal(b->end_ns, 100 * NS_PER_MS);
    assert_int_equal(b->self.samples, 10);
    assert_int_equal(b->total.samples, 100);
    b = block_at(&m, &s, 0, 1, 10, "f");
    assert_int_equal(b->end_ns, 100 * NS_PER_MS);
    assert_int_equal(b->self.samples, 50);
    assert_int_equal(b->total.samples, 90);
    b = block_at(&m, &s, 0, 2, 60, "g");
    assert_int_equal(b->end_ns, 100 * NS_PER_MS);
    block_at(&m, &s, 0, 0, 1100, "main");
    block_at(&m, &s, 0, 1, 1100, "g");
    block_at(&m, &s, 1, 0, 0, "f");
    block_at(&m, &s, 1, 1, 0, "g");
    block_at(&m, &s, 1, 0, 60, "<no Python frame>");
    assert_int_equal(s.count, 8);
    assert_int_equal(s.folded + s.dropped, 0);
    analysis_sequence_release(&s);
    unmake(&m);
}

/* With room for two blocks only, the longest stay and the rest is counted. */
static void test_sequence_limit(void **state ATTR_UNUSED)
{
    struct made m;
    struct analysis_sequence s;
    make(&m, "/srv", ANALYSIS_BY_FUNCTION);
    assert_int_equal(analysis_sequence_init(&m.rows, &m.query, 2, &s), 0);
    assert_true(s.count <= 2);
    assert_int_equal(s.count + s.dropped, 8);
    block_at(&m, &s, 0, 0, 0, "main");
    analysis_sequence_release(&s);
    unmake(&m);
}

static void test_shared(void **state ATTR_UNUSED)
{
    struct made m;
    make(&m, "/srv", ANALYSIS_BY_FUNCTION);
    struct analysis_merged merged;
    assert_int_equal(analysis_merged_init(&m.rows, &merged), 0);
    assert_int_equal(analysis_merged_index(&merged), 0);
    assert_int_equal(merged.count, 9); /* root, six places, no frame, and the profile's <lost> */
    for (uint32_t a = 0; a < merged.count; a++)
        for (uint32_t b = 0; b < merged.count; b++) {
            uint32_t x = a, y = b;
            while (x != y) {
                if (x > y)
                    x = merged.parent[x];
                else
                    y = merged.parent[y];
            }
            assert_int_equal(analysis_merged_shared(&merged, a, b), merged.depth[x]);
        }
    analysis_merged_release(&merged);
    unmake(&m);
}

static int make_path(void **state ATTR_UNUSED)
{
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state ATTR_UNUSED)
{
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_down),       cmocka_unit_test(test_by_line),
        cmocka_unit_test(test_bottom_up),      cmocka_unit_test(test_folding),
        cmocka_unit_test(test_by_thread),      cmocka_unit_test(test_by_thread_is_the_samples),
        cmocka_unit_test(test_diff_of_equals), cmocka_unit_test(test_sequence),
        cmocka_unit_test(test_sequence_limit), cmocka_unit_test(test_shared),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
