/* The call graph's analysis on a recording of known truth: pruning, sums, circles, modules. */
#include "analysis/callgraph.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "format/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char path[] = "/tmp/pyrometer-test-XXXXXX";
static struct format_writer *w;

static uint32_t text(const char *t)
{
    return format_writer_string(w, t, strlen(t));
}

static uint32_t code(const char *name, const char *file)
{
    return format_writer_code(
        w, &(struct record_code){.name = text(name), .file = text(file), .first_line = 1});
}

static uint32_t node(uint32_t parent, uint32_t code_id)
{
    return format_writer_stack(w, &(struct record_stack){parent, code_id, 2});
}

/* `count` samples of 1 ms each. */
static void sample(uint32_t stack, uint32_t count)
{
    static uint64_t at;
    format_writer_sample(w, &(struct record_sample){.thread = 1,
                                                    .stack = stack,
                                                    .state = RECORD_ON_CPU,
                                                    .count = count,
                                                    .start_ns = at * NS_PER_MS,
                                                    .duration_ns = count * NS_PER_MS});
    at += count;
}

/* In ms, 1000 in all:
 *   main 100, main>f 200, main>f>f>f 300 (recursion), main>a>b>a>b 250 (a circle), main>g>h 147,
 *   main>rare 3 */
static struct profile *known_profile(void)
{
    struct format_writer_options options = {.force = true};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    format_writer_process(w, &(struct record_process){.id = 1, .pid = 100, .command = text("app")});
    format_writer_thread(
        w, &(struct record_thread){.id = 1, .process = 1, .tid = 100, .name = text("main")});
    uint32_t m = code("main", "/x/app.py"), f = code("f", "/x/app.py");
    uint32_t a = code("a", "/x/lib.py"), b = code("b", "/x/lib.py");
    uint32_t g = code("g", "/x/other.py"), h = code("h", "/x/other.py");
    uint32_t rare = code("rare", "/x/other.py");
    uint32_t top = node(0, m), mf = node(top, f), mg = node(top, g);
    sample(top, 100);
    sample(mf, 200);
    sample(node(node(mf, f), f), 300);
    sample(node(node(node(node(top, a), b), a), b), 250);
    sample(node(mg, h), 147);
    sample(node(top, rare), 3);
    struct profile *p = NULL;
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    assert_int_equal(profile_load(path, &p), 0);
    return p;
}

struct made {
    struct profile *profile;
    struct analysis_query query;
    struct analysis_weights weights;
    struct analysis_rows rows;
    struct analysis_callgraph graph;
};

static void make(struct made *m, double least_node, double least_edge, size_t max)
{
    *m = (struct made){.profile = known_profile()};
    m->query.metric = ANALYSIS_METRICS;
    assert_int_equal(analysis_weights_init(m->profile, &m->query, &m->weights), 0);
    assert_int_equal(analysis_rows_init(&m->weights, ANALYSIS_BY_FUNCTION, &m->rows), 0);
    struct analysis_callgraph_options options = {least_node, least_edge, max};
    assert_int_equal(analysis_callgraph_init(&m->rows, &options, &m->graph), 0);
}

static void unmake(struct made *m)
{
    analysis_callgraph_release(&m->graph);
    analysis_rows_release(&m->rows);
    analysis_weights_release(&m->weights);
    profile_free(m->profile);
}

static uint32_t find(const struct made *m, const char *name)
{
    for (uint32_t i = 0; i < m->graph.node_count; i++)
        if (strcmp(m->rows.row[m->graph.node[i].row].name.text, name) == 0)
            return i;
    return UINT32_MAX;
}

static const char *module_of(const struct made *m, const char *name)
{
    uint32_t at = find(m, name);
    return at < m->graph.node_count ? m->graph.module[m->graph.node[at].module] : "?";
}

static const struct analysis_callgraph_edge *edge(const struct made *m, const char *from,
                                                  const char *to)
{
    for (size_t i = 0; i < m->graph.edge_count; i++)
        if (m->graph.edge[i].from == find(m, from) && m->graph.edge[i].to == find(m, to))
            return &m->graph.edge[i];
    return NULL;
}

static uint64_t ms(uint64_t ns)
{
    return ns / NS_PER_MS;
}

/* Shown selves and what was left out are the whole, wherever the line is drawn. */
static void check_sum(const struct made *m)
{
    uint64_t sum = m->graph.left_self.weight;
    for (size_t i = 0; i < m->graph.node_count; i++)
        sum += m->rows.row[m->graph.node[i].row].self.weight;
    assert_int_equal(sum, m->weights.total.weight);
    assert_int_equal(ms(sum), 1000);
}

static void test_everything(void **state)
{
    (void)state;
    struct made m;
    make(&m, 0, 0, 0);
    assert_int_equal(m.graph.node_count, 7);
    assert_int_equal(m.graph.nodes_left, 0);
    assert_int_equal(m.graph.edges_left, 0);
    assert_int_equal(find(&m, "main"), 0); /* the heaviest first */
    check_sum(&m);
    assert_int_equal(ms(edge(&m, "main", "f")->total.weight), 500);
    assert_int_equal(ms(edge(&m, "main", "rare")->total.weight), 3);
    assert_null(edge(&m, "main", "h"));
    unmake(&m);
}

static void test_recursion_counts_once(void **state)
{
    (void)state;
    struct made m;
    make(&m, 0, 0, 0);
    const struct analysis_callgraph_edge *loop = edge(&m, "f", "f");
    assert_true(loop && loop->is_recursion);
    assert_int_equal(ms(loop->total.weight), 300);
    assert_int_equal(ms(m.rows.row[m.graph.node[find(&m, "f")].row].total.weight), 500);
    assert_int_equal(m.graph.cycle_count, 1);
    uint32_t cycle = m.graph.node[find(&m, "a")].cycle;
    assert_int_equal(cycle, m.graph.node[find(&m, "b")].cycle);
    assert_true(cycle != 0 && m.graph.node[find(&m, "f")].cycle == 0);
    assert_true(edge(&m, "a", "b")->is_recursion && edge(&m, "b", "a")->is_recursion);
    assert_false(edge(&m, "main", "a")->is_recursion || edge(&m, "g", "h")->is_recursion);
    assert_int_equal(ms(edge(&m, "a", "b")->total.weight), 250);
    unmake(&m);
}

static void test_pruning(void **state)
{
    (void)state;
    struct made m;
    make(&m, 0.005, 0.001, 0);
    assert_int_equal(find(&m, "rare"), UINT32_MAX);
    assert_int_equal(m.graph.nodes_left, 1);
    assert_int_equal(ms(m.graph.left_self.weight), 3);
    assert_int_equal(ms(m.graph.left_heaviest), 3);
    check_sum(&m);
    unmake(&m);
    make(&m, 0, 0.15, 0); /* calls alone: main>g, g>h, main>rare */
    assert_int_equal(m.graph.node_count, 7);
    assert_int_equal(m.graph.edges_left, 3);
    unmake(&m);
    make(&m, 0, 0, 3);
    assert_int_equal(m.graph.node_count, 3);
    assert_int_equal(m.graph.nodes_left, 4);
    check_sum(&m);
    unmake(&m);
    make(&m, 1, 1, 0);
    assert_int_equal(m.graph.node_count, 1); /* main has all of it */
    check_sum(&m);
    unmake(&m);
}

static void test_modules(void **state)
{
    (void)state;
    struct made m;
    make(&m, 0, 0, 0);
    assert_int_equal(m.graph.module_count, 3);
    assert_string_equal(module_of(&m, "f"), "app");
    assert_string_equal(module_of(&m, "b"), "lib");
    assert_ptr_equal(module_of(&m, "g"), module_of(&m, "rare"));
    unmake(&m);
}

static void test_only_functions(void **state)
{
    (void)state;
    struct made m;
    make(&m, 0, 0, 0);
    struct analysis_rows files = {0};
    struct analysis_callgraph graph = {0};
    struct analysis_callgraph_options options = {0};
    assert_int_equal(analysis_rows_init(&m.weights, ANALYSIS_BY_FILE, &files), 0);
    assert_int_equal(analysis_callgraph_init(&files, &options, &graph), E_INVALID);
    analysis_rows_release(&files);
    unmake(&m);
}

int main(void)
{
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),     cmocka_unit_test(test_recursion_counts_once),
        cmocka_unit_test(test_pruning),        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_only_functions),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
