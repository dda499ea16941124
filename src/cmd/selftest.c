/* pyrometer selftest: proves on the user's machine what the README claims.
 *
 * For every interpreter that is found, a program of known truth is recorded by this very binary, as
 * a user would do it, and what the recording says is compared with the truth. One line for each
 * claim, green or red; exit status 1 if any is red. */
#include "analysis/rows.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "profile/profile.h"
#include "view/emit.h"
#include "view/run.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Three functions that hold the clock for 70, 20 and 10 % of the time, in short turns. On a busy
 * machine a turn takes longer than asked for, so they tell how long they really held it. */
static const char truth_program[] = "import time\n"
                                    "clock = time.perf_counter\n"
                                    "held = [0.0] * 3\n"
                                    "def hold(which, seconds):\n"
                                    "    start = clock()\n"
                                    "    while clock() - start < seconds: pass\n"
                                    "    held[which] += clock() - start\n"
                                    "def seventy(): hold(0, 0.0070)\n"
                                    "def twenty(): hold(1, 0.0020)\n"
                                    "def ten(): hold(2, 0.0010)\n"
                                    "for turn in range(100):\n"
                                    "    seventy(); twenty(); ten()\n"
                                    "print(*held)\n";
enum { MAX_INTERPRETERS = 64, FUNCTIONS = 3 };
static const char *const truth_functions[FUNCTIONS] = {"seventy", "twenty", "ten"};

struct selftest {
    bool colour;
    unsigned red;
};

static void verdict(struct selftest *s, bool good, const char *fmt, ...) ATTR_PRINTF(3, 4);
static void verdict(struct selftest *s, bool good, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *on = !s->colour ? "" : good ? "\x1b[32m" : "\x1b[31m";
    printf("%s%s%s  %s\n", on, good ? "ok  " : "FAIL", s->colour ? "\x1b[0m" : "", text);
    fflush(stdout);
    s->red += !good;
}

/* ---- interpreters ---- */

struct interpreters {
    VEC(char *) paths;
    VEC(struct stat) files;
};

static void add_interpreter(struct interpreters *list, const char *path)
{
    struct stat st;
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    if (list->paths.len >= MAX_INTERPRETERS || access(path, X_OK) != 0 || stat(path, &st) != 0 ||
        !S_ISREG(st.st_mode))
        return;
    /* python3.11-config and its like; and a version that we do not claim */
    if (slash && strncmp(slash + 1, "python3", 7) == 0 && slash[8] &&
        (!dot || strspn(dot + 1, "0123456789") != strlen(dot + 1) || strtol(dot + 1, NULL, 10) < 8))
        return;
    for (size_t i = 0; i < list->files.len; i++)
        if (list->files.data[i].st_dev == st.st_dev && list->files.data[i].st_ino == st.st_ino)
            return;
    char **slot = vec_push(&list->paths);
    struct stat *file = slot ? vec_push(&list->files) : NULL;
    if (!file)
        return;
    *slot = strdup(path);
    *file = st;
}

static void add_matching(struct interpreters *list, const char *pattern)
{
    glob_t g;
    if (glob(pattern, 0, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc; i++)
            add_interpreter(list, g.gl_pathv[i]);
        globfree(&g);
    }
}

static void find_interpreters(struct interpreters *list)
{
    char pattern[4096];
    const char *home = getenv("HOME"), *pyenv = getenv("PYENV_ROOT"), *path = getenv("PATH");
    if (pyenv)
        snprintf(pattern, sizeof pattern, "%s/versions/*/bin/python3.?", pyenv);
    else
        snprintf(pattern, sizeof pattern, "%s/.pyenv/versions/*/bin/python3.?", home ? home : "");
    add_matching(list, pattern);
    snprintf(pattern + strlen(pattern) - 1, 3, "??");
    add_matching(list, pattern);
    _cleanup_free_ char *copy = strdup(path ? path : "/usr/bin:/bin");
    char *rest = copy;
    for (char *dir; copy && (dir = strsep(&rest, ":"));) {
        if (strstr(dir, "/shims")) /* a shell script in front of the ones found above */
            continue;
        snprintf(pattern, sizeof pattern, "%s/python3", dir);
        add_interpreter(list, pattern);
        snprintf(pattern, sizeof pattern, "%s/python3.*", dir);
        add_matching(list, pattern);
    }
}

static void release_interpreters(struct interpreters *list)
{
    for (size_t i = 0; i < list->paths.len; i++)
        free(list->paths.data[i]);
    vec_release(&list->paths);
    vec_release(&list->files);
}

/* ---- one recording ---- */

extern char **environ;

/* Runs ourselves: `pyrometer run --quiet -o file python -c program`. The exit status, or -1; the
 * times that the program says are true go to `held`. */
static int record_truth(const char *python, const char *file, double held[FUNCTIONS])
{
    char *argv[] = {"pyrometer",  "run", "--quiet",      "--force", "-o",
                    (char *)file, "--",  (char *)python, "-c",      (char *)truth_program,
                    NULL};
    int fds[2], status = -1;
    pid_t pid;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    int error = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    FILE *in = fdopen(fds[0], "r");
    if (error || !in) {
        close(fds[0]);
        return -1;
    }
    int told = fscanf(in, "%lf %lf %lf", &held[0], &held[1], &held[2]);
    fclose(in);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    if (!WIFEXITED(status))
        return 128 + WTERMSIG(status);
    return WEXITSTATUS(status) == 0 && told != FUNCTIONS ? -1 : WEXITSTATUS(status);
}

static double share_of(const struct analysis_rows *rows, const char *function)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct analysis_row *row = &rows->row[i];
        if (row->name.len == strlen(function) && !memcmp(row->name.text, function, row->name.len))
            return (double)row->total.weight;
    }
    return 0;
}

/* Compares the three functions with the truth, as shares of their own sum: what the interpreter
 * needs to start and to end is not theirs. */
static void check_shares(struct selftest *s, const struct analysis_rows *rows,
                         const double held[FUNCTIONS], const char *label)
{
    double found[FUNCTIONS], sum = 0, truth = 0, worst = 0;
    for (int i = 0; i < FUNCTIONS; i++) {
        sum += found[i] = share_of(rows, truth_functions[i]);
        truth += held[i];
    }
    double samples = (double)rows->weights->total.samples;
    bool good = sum > 0 && truth > 0 && samples >= 100;
    for (int i = 0; i < FUNCTIONS && good; i++) {
        double p = held[i] / truth, error = fabs(found[i] / sum - p);
        worst = fmax(worst, error);
        good = error <= 4 * sqrt(p * (1 - p) / samples) + 0.005;
    }
    if (sum <= 0 || truth <= 0)
        sum = truth = 1;
    verdict(s, good, "%s: shares %.1f / %.1f / %.1f %%, true %.1f / %.1f / %.1f", label,
            100 * found[0] / sum, 100 * found[1] / sum, 100 * found[2] / sum, 100 * held[0] / truth,
            100 * held[1] / truth, 100 * held[2] / truth);
}

static void check_sampling(struct selftest *s, const struct profile *p, const char *label)
{
    double wanted = view_run_stat(p, RECORD_STAT_RATE_MILLIHERTZ) / 1000;
    double rate = view_run_achieved_hz(p);
    double samples = view_run_stat(p, RECORD_STAT_SAMPLES);
    double marked = view_run_stat(p, RECORD_STAT_SAMPLES_MARKED);
    double cpu =
        view_run_stat(p, RECORD_STAT_SAMPLER_CPU_NS) + view_run_stat(p, RECORD_STAT_WRITER_CPU_NS);
    verdict(s, rate > 0.2 * wanted,
            "%s: rate %.0f of %.0f looks a second, %.1f µs of our CPU each, %.2f %% kept as moving",
            label, rate, wanted, samples > 0 ? cpu / 1000 / samples : 0,
            samples > 0 ? 100 * marked / samples : 0);
}

static void check_interpreter(struct selftest *s, const char *python, const char *file)
{
    double held[FUNCTIONS] = {0};
    int status = record_truth(python, file, held);
    struct profile *p = NULL;
    int rc = status == 0 ? profile_load(file, &p) : 0;
    if (status != 0 || rc < 0) {
        verdict(s, false, "%s: could not be recorded (%s)", python,
                status ? "it did not run" : err_text(rc));
        return;
    }
    struct buf version;
    buf_init(&version, 256);
    view_run_pythons(p, &version);
    char label[512];
    snprintf(label, sizeof label, "CPython %s (%s)", buf_cstr(&version), python);
    struct analysis_query query = {.metric = &ANALYSIS_METRICS[0]};
    struct analysis_weights weights;
    struct analysis_rows rows;
    rc = analysis_weights_init(p, &query, &weights);
    if (rc == 0) {
        rc = analysis_rows_init(&weights, ANALYSIS_BY_FUNCTION, &rows);
        if (rc == 0) {
            check_shares(s, &rows, held, label);
            analysis_rows_release(&rows);
        }
        analysis_weights_release(&weights);
    }
    if (rc < 0)
        verdict(s, false, "%s: %s", label, err_text(rc));
    check_sampling(s, p, label);
    buf_release(&version);
    profile_free(p);
}

/* ---- rights ---- */

static void check_rights(struct selftest *s)
{
    char text[64];
    int scope =
        io_read_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text) > 0 ? atoi(text) : 0;
    if (geteuid() == 0)
        verdict(s, true, "rights: root, any process of this machine can be read");
    else if (scope == 0)
        verdict(s, true, "rights: your own processes can be attached to");
    else
        verdict(s, scope == 1,
                "rights: Yama's ptrace_scope is %d: `run` works, `attach` and `dump` need sudo or "
                "sysctl kernel.yama.ptrace_scope=0",
                scope);
}

int cmd_selftest(int argc, char **argv)
{
    const struct cmd_option options[] = {{NULL, 0, CMD_FLAG, NULL, NULL}};
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands > 0)
        return cmd_fail(CMD_USAGE, "selftest takes no operand, but '%s' was given", argv[first]);

    char file[] = "/tmp/pyrometer-selftest-XXXXXX";
    int fd = mkstemp(file);
    if (fd < 0)
        return cmd_fail(CMD_FAILED, "cannot make a file in /tmp: %s", strerror(errno));
    close(fd);
    struct selftest s = {.colour = view_style_of(stdout).colour};
    struct interpreters list = {0};
    check_rights(&s);
    find_interpreters(&list);
    verdict(&s, list.paths.len > 0, "%zu interpreter%s found", list.paths.len,
            list.paths.len == 1 ? "" : "s");
    for (size_t i = 0; i < list.paths.len; i++)
        check_interpreter(&s, list.paths.data[i], file);
    release_interpreters(&list);
    unlink(file);
    if (s.red)
        printf("%u of the claims do not hold on this machine\n", s.red);
    return s.red ? CMD_FAILED : CMD_OK;
}
