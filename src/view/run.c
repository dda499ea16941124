/* The recording itself: identity, sampling, losses. */
#include "view/run.h"

#include "base/clock.h"
#include "profile/events.h"
#include "view/text.h"
#include "view/units.h"

enum { VERSIONS_MAX = 16 };

void view_run_day(const struct profile *p, struct buf *out)
{
    char created[PROFILE_TIME_SIZE] = "";
    profile_created_text(p, created);
    if (profile_summary(p)->header.created_ns && strlen(created) >= 16 && created[10] == 'T')
        buf_printf(out, "%.10s %.5s UTC", created, created + 11);
}

void view_run_command(const struct profile *p, struct buf *out)
{
    const char *command = profile_meta_value(p, "command");
    if (command)
        view_text_escape(out, command, strlen(command));
}

/* The distinct versions, as string ids; more than `max` are not worth listing. */
static size_t distinct_versions(const struct profile_tables *t, uint32_t *ids, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < t->process_count && n < max; i++) {
        uint32_t version = t->processes[i].python_version;
        size_t k = 0;
        while (k < n && ids[k] != version)
            k++;
        if (k == n && t->strings[version].len)
            ids[n++] = version;
    }
    return n;
}

void view_run_pythons(const struct profile *p, struct buf *out)
{
    const struct profile_tables *t = profile_tables(p);
    uint32_t ids[VERSIONS_MAX];
    size_t n = distinct_versions(t, ids, VERSIONS_MAX);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? ", " : "");
        view_text_escape(out, t->strings[ids[i]].text, t->strings[ids[i]].len);
    }
}

double view_run_stat(const struct profile *p, enum record_stat stat)
{
    const struct profile_tables *t = profile_tables(p);
    return t->stat_known[stat] ? (double)t->stats.value[stat] : -1;
}

double view_run_achieved_hz(const struct profile *p)
{
    double taken = view_run_stat(p, RECORD_STAT_TICKS_TAKEN);
    double ns = view_run_stat(p, RECORD_STAT_SAMPLED_NS);
    return taken >= 0 && ns > 0 ? taken / ns * (double)NS_PER_SEC : -1;
}

/* --- JSON --- */

static void stat_u64(struct json *j, const struct profile *p, const char *key,
                     enum record_stat stat)
{
    const struct profile_tables *t = profile_tables(p);
    json_key(j, key);
    if (t->stat_known[stat])
        json_u64(j, t->stats.value[stat]);
    else
        json_null(j);
}

static void real_or_null(struct json *j, const char *key, double v)
{
    json_key(j, key);
    if (v >= 0)
        json_real(j, v);
    else
        json_null(j);
}

static void stat_real(struct json *j, const struct profile *p, const char *key,
                      enum record_stat stat, double scale)
{
    double v = view_run_stat(p, stat);
    real_or_null(j, key, v < 0 ? v : v / scale);
}

static void pythons_json(struct json *j, const struct profile_tables *t)
{
    uint32_t ids[VERSIONS_MAX];
    size_t n = distinct_versions(t, ids, VERSIONS_MAX);
    json_key(j, "python_versions");
    json_array_begin(j);
    for (size_t i = 0; i < n; i++)
        json_text_n(j, t->strings[ids[i]].text, t->strings[ids[i]].len);
    json_array_end(j);
}

void view_run_json(struct json *j, const struct profile *p)
{
    json_key(j, "run");
    json_object_begin(j);
    profile_identity_json(j, p);
    pythons_json(j, profile_tables(p));
    stat_real(j, p, "elapsed_seconds", RECORD_STAT_ELAPSED_NS, (double)NS_PER_SEC);
    stat_real(j, p, "user_seconds", RECORD_STAT_USER_NS, (double)NS_PER_SEC);
    stat_real(j, p, "system_seconds", RECORD_STAT_SYSTEM_NS, (double)NS_PER_SEC);
    stat_u64(j, p, "peak_rss_bytes", RECORD_STAT_PEAK_RSS_BYTES);
    stat_u64(j, p, "exit_status", RECORD_STAT_EXIT_STATUS);
    json_kv_bool(j, "finished", profile_summary(p)->finished);
    json_object_end(j);
}

void view_run_sampling_json(struct json *j, const struct profile *p)
{
    json_key(j, "sampling");
    json_object_begin(j);
    stat_u64(j, p, "requested", RECORD_STAT_TICKS_REQUESTED);
    stat_u64(j, p, "taken", RECORD_STAT_TICKS_TAKEN);
    stat_u64(j, p, "missed", RECORD_STAT_TICKS_MISSED);
    stat_u64(j, p, "samples", RECORD_STAT_SAMPLES);
    stat_u64(j, p, "retried", RECORD_STAT_SAMPLES_RETRIED);
    stat_u64(j, p, "marked", RECORD_STAT_SAMPLES_MARKED);
    stat_u64(j, p, "damaged", RECORD_STAT_SAMPLES_DAMAGED);
    stat_u64(j, p, "failed", RECORD_STAT_SAMPLES_FAILED);
    stat_real(j, p, "requested_hz", RECORD_STAT_RATE_MILLIHERTZ, 1000);
    real_or_null(j, "achieved_hz", view_run_achieved_hz(p));
    stat_real(j, p, "sampled_seconds", RECORD_STAT_SAMPLED_NS, (double)NS_PER_SEC);
    stat_real(j, p, "sampler_cpu_seconds", RECORD_STAT_SAMPLER_CPU_NS, (double)NS_PER_SEC);
    stat_real(j, p, "writer_cpu_seconds", RECORD_STAT_WRITER_CPU_NS, (double)NS_PER_SEC);
    json_object_end(j);
}

/* A thread that switches between greenlets has many stacks, and the guest hears of calls and returns alone. Whoever uses them has
 * run the code of their package. */
static bool has_unseen_greenlets(const struct profile *p)
{
    static const char package[] = "/greenlet/__init__.py";
    const struct profile_tables *t = profile_tables(p);
    const size_t n = sizeof package - 1;
    const char *instruments = profile_meta_value(p, "instruments");
    if (!instruments || !(strstr(instruments, "calls") || strstr(instruments, "trace") ||
                          strstr(instruments, "lines")))
        return false;
    for (size_t i = 0; i < t->code_count; i++) {
        const struct profile_string *file = &t->strings[t->codes[i].file];
        if (file->len >= n && memcmp(file->text + file->len - n, package, n) == 0)
            return true;
    }
    return false;
}

void view_run_losses_json(struct json *j, const struct profile *p, uint32_t damaged)
{
    const struct format_summary *s = profile_summary(p);
    json_key(j, "losses");
    json_object_begin(j);
    json_kv_u64(j, "damaged_chunks", (uint64_t)s->damaged_chunks + damaged);
    json_kv_u64(j, "missing_chunks", s->missing_chunks);
    json_kv_u64(j, "torn_bytes", s->torn ? s->file_bytes - s->good_bytes : 0);
    stat_u64(j, p, "processes_short", RECORD_STAT_PROCESSES_SHORT);
    stat_u64(j, p, "processes_refused", RECORD_STAT_PROCESSES_REFUSED);
    stat_u64(j, p, "processes_left", RECORD_STAT_PROCESSES_LEFT);
    stat_u64(j, p, "events_lost", RECORD_STAT_EVENTS_LOST);
    stat_u64(j, p, "events_damaged", RECORD_STAT_EVENTS_DAMAGED);
    stat_u64(j, p, "threads_refused", RECORD_STAT_THREADS_REFUSED);
    stat_u64(j, p, "agents_refused", RECORD_STAT_AGENTS_REFUSED);
    stat_u64(j, p, "agents_unhooked", RECORD_STAT_AGENTS_UNHOOKED);
    stat_u64(j, p, "own_new", RECORD_STAT_OWN_NEW);
    stat_u64(j, p, "interpreters_untraced", RECORD_STAT_INTERPRETERS_UNTRACED);
    json_kv_bool(j, "greenlets_unseen", has_unseen_greenlets(p));
    stat_real(j, p, "event_wait_seconds", RECORD_STAT_EVENT_WAIT_NS, (double)NS_PER_SEC);
    stat_real(j, p, "event_paused_seconds", RECORD_STAT_EVENT_PAUSED_NS, (double)NS_PER_SEC);
    json_kv_bool(j, "write_error", !s->finished);
    json_object_end(j);
}

/* --- words --- */

static void say(struct buf *out, double count, const char *one, const char *many)
{
    if (count <= 0)
        return;
    if (out->len)
        buf_puts(out, ", ");
    buf_puts(out, view_units_count((uint64_t)count).text);
    buf_printf(out, " %s", count == 1 ? one : many);
}

/* A time that is not nothing: "… for 12.3 ms". */
static void say_time(struct buf *out, double ns, const char *what)
{
    if (ns <= 0)
        return;
    buf_printf(out, "%s%s for %s", out->len ? ", " : "", what, view_units_seconds(ns / 1e9).text);
}

bool view_run_is_sampled(const struct profile *p)
{
    const char *instruments = profile_meta_value(p, "instruments");
    return !instruments || strstr(instruments, "sample") || profile_sample_records(p);
}

const char *view_run_untraced(const struct profile *p)
{
    if (view_run_stat(p, RECORD_STAT_AGENTS_REFUSED) > 0 ||
        view_run_stat(p, RECORD_STAT_AGENTS_UNHOOKED) > 0)
        return "the agent could not get in";
    if (!profile_summary(p)->finished)
        return "it was cut off before the first event";
    if (view_run_stat(p, RECORD_STAT_FUNCTIONS_LEFT_OUT) > 0)
        return VIEW_RUN_UNSELECTED;
    if (view_run_stat(p, RECORD_STAT_PROCESSES_PYTHON) > 0)
        return "Python was seen, but it took in no agent (is it static, setuid, or in a container "
               "of its own?)";
    return "no Python program was seen";
}

const char *view_run_unsampled(const struct profile *p)
{
    if (!profile_summary(p)->finished)
        return "the file was cut off before the first of them was written";
    if (view_run_stat(p, RECORD_STAT_PROCESSES_PYTHON) != 0)
        return "too short to sample: try --sample=10000 or --calls, or a longer run";
    if (view_run_stat(p, RECORD_STAT_PROCESSES_SHORT) > 0)
        return "no Python process was seen, or it was gone before it could be looked at: try "
               "--calls, or a longer run";
    return "no Python process was seen: other programs can be metered, with pyrometer run "
           "--no-profile";
}

bool view_run_refusal(const struct profile *p, struct buf *out)
{
    const char *why = profile_meta_value(p, "refused");
    if (!why && view_run_stat(p, RECORD_STAT_PROCESSES_REFUSED) > 0)
        why = "there was no right to read a process"; /* as older recordings tell it */
    if (!why || !view_run_is_sampled(p))
        return false;
    view_text_escape(out, why, strlen(why));
    return true;
}

/* Of what was seen from outside. */
static void look_losses(const struct profile *p, struct buf *out)
{
    say(out, view_run_stat(p, RECORD_STAT_TICKS_MISSED), "look missed", "looks missed");
    say(out, view_run_stat(p, RECORD_STAT_SAMPLES_MARKED), "sample marked <moving>",
        "samples marked <moving>");
    say(out, view_run_stat(p, RECORD_STAT_SAMPLES_DAMAGED), "sample with an <unreadable> frame",
        "samples with an <unreadable> frame");
    say(out, view_run_stat(p, RECORD_STAT_SAMPLES_FAILED), "stack not found", "stacks not found");
    say(out, view_run_stat(p, RECORD_STAT_PROCESSES_SHORT), "process too short to look at",
        "processes too short to look at");
    say(out, view_run_stat(p, RECORD_STAT_PROCESSES_REFUSED), "process not readable",
        "processes not readable");
}

static void say_own_new(const struct profile *p, struct buf *out)
{
    const char *file = profile_meta_value(p, "memory.allocator"); /* of the first of them */
    double count = view_run_stat(p, RECORD_STAT_OWN_NEW);
    say(out, count, "process whose allocator", "processes whose allocators");
    if (count <= 0)
        return;
    if (file) {
        buf_puts(out, " (");
        view_text_escape(out, file, strlen(file));
        buf_puts(out, ")");
    }
    buf_printf(out, " %s, which is not watched",
               count == 1 ? "has a C++ new of its own" : "have a C++ new of their own");
}

/* Of what came from inside the program. Waits are no loss, but they tell that it was slowed down. */
static void event_losses(const struct profile *p, struct buf *out)
{
    say(out, view_run_stat(p, RECORD_STAT_EVENTS_LOST), "event dropped", "events dropped");
    say(out, view_run_stat(p, RECORD_STAT_EVENTS_DAMAGED), "event not understood",
        "events not understood");
    say(out, view_run_stat(p, RECORD_STAT_THREADS_REFUSED), "thread not traced for want of a ring",
        "threads not traced for want of a ring");
    say(out, view_run_stat(p, RECORD_STAT_AGENTS_REFUSED),
        "process not traced: an agent of another version",
        "processes not traced: an agent of another version");
    bool memory = profile_meta_value(p, "memory.mode") != NULL;
    say(out, view_run_stat(p, RECORD_STAT_AGENTS_UNHOOKED),
        memory
            ? "process not watched, or not to its end: hooks could not be set, or were taken out "
              "(tracemalloc stopped, or Python's allocators replaced?)"
            : "process not traced, or not to its end: hooks could not be set, or were taken out "
              "(all ids of sys.monitoring taken, or ours given free?)",
        memory
            ? "processes not watched, or not to their ends: hooks could not be set, or were taken "
              "out (tracemalloc stopped, or Python's allocators replaced?)"
            : "processes not traced, or not to their ends: hooks could not be set, or were taken "
              "out (all ids of sys.monitoring taken, or ours given free?)");
    say_own_new(p, out);
    say(out, view_run_stat(p, RECORD_STAT_INTERPRETERS_UNTRACED), "sub-interpreter not traced",
        "sub-interpreters not traced");
    if (has_unseen_greenlets(p))
        buf_printf(out, "%sswitches of greenlets: of what they ran, callers and lines are wrong",
                   out->len ? ", " : "");
    say_time(out, view_run_stat(p, RECORD_STAT_EVENT_PAUSED_NS),
             "threads that could not be traced");
}

void view_run_losses(const struct profile *p, uint32_t damaged, struct buf *out)
{
    const struct format_summary *s = profile_summary(p);
    if (view_run_is_sampled(p)) /* else nobody wanted to look */
        look_losses(p, out);
    event_losses(p, out);
    say(out, view_run_stat(p, RECORD_STAT_PROCESSES_LEFT),
        "process that went on unrecorded after the command's end",
        "processes that went on unrecorded after the command's end");
    say(out, (double)s->damaged_chunks + damaged, "chunk damaged", "chunks damaged");
    say(out, (double)s->missing_chunks, "chunk missing", "chunks missing");
    if (!s->finished)
        buf_printf(out, "%sthe end, which was not written", out->len ? ", " : "");
}

void view_run_left_out(const struct profile *p, struct buf *out)
{
    double count = view_run_stat(p, RECORD_STAT_EVENTS_LEFT_OUT);
    if (count > 0)
        buf_printf(out, "%s call%s left out, as run --min-duration or --max-depth asked",
                   view_units_count((uint64_t)count).text, count == 1 ? " is" : "s are");
    uint64_t start_ns = profile_window_start(p);
    if (start_ns)
        buf_printf(out, "%swhat was before %s is forgotten, as run --last asked",
                   out->len ? "; " : "",
                   view_units_seconds((double)start_ns / (double)NS_PER_SEC).text);
}
