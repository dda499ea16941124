/* pyrometer selftest: proves on the user's machine what the README claims.
 *
 * For every interpreter that is found, a program of known truth is recorded by this very binary, as
 * a user would do it, and what the recording says is compared with the truth. One line for each
 * claim, green or red; exit status 1 if any is red. */
#include "analysis/rows.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/progress.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"
#include "profile/profile.h"
#include "record/rights.h"
#include "view/emit.h"
#include "view/run.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
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
/* They are missed while others have the machine, which is not at random: the rest is no fair draw. */
enum { MANY_MISSED_PERCENT = 5 };
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
    char line[sizeof text + 64];
    int n = snprintf(line, sizeof line, "%s%s%s  %s\n", on, good ? "ok  " : "FAIL",
                     s->colour ? "\x1b[0m" : "", text);
    cmd_progress_print(stdout, line, (size_t)n);
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

/* What it had to complain of, when it has ended: it must not mix with the line of progress. */
static void pass_on(int fd)
{
    struct buf text;
    char path[32];
    buf_init(&text, 1 << 20);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && io_read_file(path, &text) == 0 && text.len)
        cmd_progress_say((const char *)text.data, text.len);
    buf_release(&text);
}

/* Runs ourselves: `pyrometer run --quiet -o file python -c program`. The exit status, or -1; the
 * times that the program says are true go to `held`. */
static int record_truth(const char *python, const char *file, double held[FUNCTIONS])
{
    char *argv[] = {"pyrometer",
                    "run",
                    "--quiet",
                    "--no-history",
                    "--force",
                    "-o",
                    (char *)file,
                    "--",
                    (char *)python,
                    "-c",
                    (char *)truth_program,
                    NULL};
    int fds[2], status = -1;
    pid_t pid;
    _cleanup_close_ int complaints = memfd_create("pyrometer-selftest", MFD_CLOEXEC);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    if (complaints >= 0)
        posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
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
    pass_on(complaints);
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

/* Of the looks that were due, those that the sampler came too late for. */
static double missed_percent(const struct profile *p)
{
    double due = view_run_stat(p, RECORD_STAT_TICKS_REQUESTED);
    return due > 0 ? 100 * view_run_stat(p, RECORD_STAT_TICKS_MISSED) / due : 0;
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
    char busy[128] = "";
    double missed = missed_percent(rows->weights->profile);
    if (!good && missed >= MANY_MISSED_PERCENT)
        snprintf(busy, sizeof busy,
                 "; %.0f %% of the looks were missed: the machine is too busy to tell, try again "
                 "when it is quiet",
                 missed);
    verdict(s, good, "%s: shares %.1f / %.1f / %.1f %%, true %.1f / %.1f / %.1f%s", label,
            100 * found[0] / sum, 100 * found[1] / sum, 100 * found[2] / sum, 100 * held[0] / truth,
            100 * held[1] / truth, 100 * held[2] / truth, busy);
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

enum { NOBODY = 65534 };
static const uint64_t mark = 0x70797265746f6e21; /* in the same place in a process that we fork */

/* Waits until the pipe closes. A child of ours, or of nobody; with another user's rights, if told so. */
static noreturn void be_read(int until, int say, bool other_user)
{
    pid_t pid = getpid();
    char byte;
    if (other_user && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                       setresuid(NOBODY, NOBODY, NOBODY) < 0))
        pid = 0;
    if (write(say, &pid, sizeof pid) == (ssize_t)sizeof pid && pid)
        while (read(until, &byte, 1) < 0 && errno == EINTR)
            ;
    _exit(0);
}

enum stranger { CHILD, NOBODYS_CHILD, OTHER_USERS };

/* The two things that the sampler reads: where memory is, and what is in it. */
static int read_mark(pid_t pid)
{
    char path[64];
    uint64_t found = 0;
    struct iovec to = {&found, sizeof found}, from = {(void *)(uintptr_t)&mark, sizeof mark};
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    _cleanup_close_ int maps = open(path, O_RDONLY | O_CLOEXEC);
    if (maps < 0 || process_vm_readv(pid, &to, 1, &from, 1, 0) < 0)
        return errno == ENOENT || errno == ESRCH ? E_NOPROC : E_PERM;
    return found == mark ? 0 : E_BADMEM;
}

/* Reads a process that is forked for it, as the sampler would. 0, or a negative code, E_PERM with a line in `why`;
 * E_NOPROC: there could be no such process. */
static int try_to_read(enum stranger who, enum rights_rule *ret_rule, char *why, size_t size)
{
    int until[2], say[2];
    if (pipe2(until, O_CLOEXEC) < 0)
        return E_NOPROC;
    if (pipe2(say, O_CLOEXEC) < 0) {
        close(until[0]);
        close(until[1]);
        return E_NOPROC;
    }
    pid_t first = fork(), pid = 0;
    if (first == 0) {
        close(until[1]);
        if (who == CHILD || fork() == 0)
            be_read(until[0], say[1], who == OTHER_USERS);
        _exit(0);
    }
    close(until[0]);
    close(say[1]);
    if (first > 0 && who != CHILD) /* its parent has to be gone, or it descends from us */
        waitpid(first, NULL, 0);
    bool there = read(say[0], &pid, sizeof pid) == (ssize_t)sizeof pid && pid > 0;
    close(say[0]);
    int rc = there ? read_mark(pid) : E_NOPROC;
    struct rights_facts facts;
    if (rc == E_PERM && rights_gather(pid, &facts) == 0) {
        *ret_rule = rights_decide(&facts);
        rights_describe(&facts, *ret_rule, why, size);
    }
    close(until[1]);
    if (first > 0 && who == CHILD)
        waitpid(first, NULL, 0);
    return rc;
}

/* Not what ought to be allowed, but what is. */
static void check_rights(struct selftest *s)
{
    bool root = geteuid() == 0;
    char why[512] = "the kernel does not say why";
    enum rights_rule rule = RIGHTS_UNKNOWN, unasked;
    int rc = root ? try_to_read(OTHER_USERS, &rule, why, sizeof why) : E_NOPROC;
    const char *whose = "of other users";
    if (rc == E_NOPROC) { /* a root that cannot be anybody else has no others to read */
        whose = "of yours that run already";
        rc = try_to_read(NOBODYS_CHILD, &rule, why, sizeof why);
    }
    char ignored[512];
    if (rc == 0)
        verdict(s, true, "rights: processes %s can be read", whose);
    else if (rule == RIGHTS_YAMA && try_to_read(CHILD, &unasked, ignored, sizeof ignored) == 0)
        verdict(s, true, "rights: `run` works; for `attach` and `dump` %s", why);
    else
        verdict(s, false, "rights: no right to read processes %s: %s", whose, why);
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
    if (!isatty(STDOUT_FILENO))
        cmd_progress_make_way(STDOUT_FILENO);
    cmd_progress_begin();
    find_interpreters(&list);
    verdict(&s, list.paths.len > 0, "%zu interpreter%s found", list.paths.len,
            list.paths.len == 1 ? "" : "s");
    for (size_t i = 0; i < list.paths.len; i++) {
        progress_begin("recording a program of known truth with each", list.paths.len);
        progress_reach(i);
        check_interpreter(&s, list.paths.data[i], file);
    }
    cmd_progress_end();
    release_interpreters(&list);
    unlink(file);
    if (s.red)
        printf("%u of the claims do%s not hold on this machine\n", s.red, s.red == 1 ? "es" : "");
    return s.red ? CMD_FAILED : CMD_OK;
}
