#include "view/history.h"

#include "base/err.h"
#include "view/text.h"
#include "view/units.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

enum { SHOWN_OUTPUT = 4000, SHORT_COMMIT = 9 };

struct view_history_time view_history_local(int64_t us)
{
    struct view_history_time t = {"?"};
    struct tm tm;
    time_t s = (time_t)(us / 1000000);
    if (localtime_r(&s, &tm))
        strftime(t.text, sizeof t.text, "%Y-%m-%d %H:%M:%S", &tm);
    return t;
}

struct view_history_time view_history_utc(int64_t us)
{
    struct view_history_time t = {""};
    struct tm tm;
    time_t s = (time_t)(us / 1000000);
    char day[24] = "?";
    if (gmtime_r(&s, &tm))
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(t.text, sizeof t.text, "%s.%06dZ", day, (int)(us % 1000000));
    return t;
}

static struct view_cell text_cell(const char *text)
{
    return (struct view_cell){
        .absent = !text, .text = text ? text : "", .len = text ? strlen(text) : 0};
}

static struct view_cell count_cell(uint64_t count)
{
    return (struct view_cell){.count = count, .real = (double)count};
}

static struct view_cell real_cell(double value)
{
    return (struct view_cell){
        .absent = isnan(value), .real = value, .count = value > 0 ? (uint64_t)value : 0};
}

/* --- commands --- */

int view_history_commands(const char *path, const struct history_commands *commands,
                          enum view_format format, FILE *out, struct view_style style)
{
    static const struct view_column columns[] = {
        {"runs", "runs", VIEW_COUNT, VIEW_BOTH},      {NULL, "last", VIEW_WORD, VIEW_ONLY_TEXT},
        {"command", "command", VIEW_NAME, VIEW_BOTH}, {"key", NULL, VIEW_NAME, VIEW_ONLY_DATA},
        {"first", NULL, VIEW_NAME, VIEW_ONLY_DATA},   {"last", NULL, VIEW_NAME, VIEW_ONLY_DATA},
    };
    struct view_emit e;
    view_emit_init(&e, out, format, style);
    struct json *j = view_emit_json(&e);
    if (j)
        json_kv_text(j, "database", path);
    view_emit_table_begin(&e, "commands", columns, ARRAY_LEN(columns), false);
    for (size_t i = 0; i < commands->list.len; i++) {
        const struct history_command *c = &commands->list.data[i];
        struct view_history_time local = view_history_local(c->last_us);
        struct view_history_time first = view_history_utc(c->first_us),
                                 last = view_history_utc(c->last_us);
        struct view_cell cells[] = {
            count_cell(c->runs), text_cell(local.text), text_cell(c->command),
            text_cell(c->key),   text_cell(first.text), text_cell(last.text),
        };
        view_emit_row_begin(&e, cells);
        view_emit_row_end(&e);
    }
    view_emit_table_end(&e);
    return view_emit_finish(&e);
}

/* --- runs --- */

static const struct view_column run_columns[] = {
    {NULL, "run", VIEW_ID, VIEW_ONLY_TEXT},      {NULL, "when", VIEW_WORD, VIEW_ONLY_TEXT},
    {NULL, "status", VIEW_ID, VIEW_ONLY_TEXT},   {NULL, "elapsed", VIEW_SECONDS, VIEW_ONLY_TEXT},
    {NULL, "CPU", VIEW_SECONDS, VIEW_ONLY_TEXT}, {NULL, "peak memory", VIEW_BYTES, VIEW_ONLY_TEXT},
    {NULL, "commit", VIEW_WORD, VIEW_ONLY_TEXT}, {NULL, "python", VIEW_WORD, VIEW_ONLY_TEXT},
    {NULL, "tags", VIEW_NAME, VIEW_ONLY_TEXT},
};

/* Only what a table of numbers can hold; the rest is in JSON. */
static const char *const csv_context[] = {
    "id",         "uid",        "started",   "command", "key",    "python_version",
    "git_commit", "git_branch", "git_dirty", "group",   "warmup", "tags"};

static void csv_text(FILE *out, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (const char *p = text; *p; p++) {
        if (*p == '"')
            putc('"', out);
        putc(*p, out);
    }
    putc('"', out);
}

static bool is_classic(const char *name)
{
    for (size_t i = 0; VIEW_HISTORY_METRICS[i]; i++)
        if (!strcmp(name, VIEW_HISTORY_METRICS[i]))
            return true;
    return false;
}

static void csv_heading(const struct view_history_runs *v)
{
    for (size_t i = 0; i < ARRAY_LEN(csv_context); i++)
        fprintf(v->out, "%s%s", i ? "," : "", csv_context[i]);
    for (size_t i = 0; VIEW_HISTORY_METRICS[i]; i++)
        fprintf(v->out, ",%s", VIEW_HISTORY_METRICS[i]);
    for (size_t i = 0; v->names && i < v->names->list.len; i++)
        if (!is_classic(v->names->list.data[i])) {
            putc(',', v->out);
            csv_text(v->out, v->names->list.data[i]);
        }
    putc('\n', v->out);
}

static void csv_number(FILE *out, double value)
{
    if (isnan(value))
        return;
    if (value == nearbyint(value) && fabs(value) < 9e15)
        fprintf(out, "%" PRId64, (int64_t)value);
    else
        fprintf(out, "%.17g", value);
}

static void put_tags(const struct history_run *run, struct buf *b)
{
    for (size_t i = 0; i < run->facts.len; i++)
        if (run->facts.data[i].kind == HISTORY_FACT_TAG)
            buf_printf(b, "%s%s=%s", b->len ? " " : "", run->facts.data[i].key,
                       run->facts.data[i].value);
}

static void csv_run(const struct view_history_runs *v, const struct history_run *run)
{
    struct buf tags;
    buf_init(&tags, HISTORY_MAX_TEXT);
    put_tags(run, &tags);
    struct view_history_time started = view_history_utc(run->started_us);
    const char *dirty = run->git_dirty < 0 ? "" : run->git_dirty ? "true" : "false";
    const char *texts[] = {
        run->uid,        started.text,    run->command, run->key,   run->python,
        run->git_commit, run->git_branch, dirty,        run->group, run->warmup ? "true" : "false",
        buf_cstr(&tags)};
    fprintf(v->out, "%" PRId64, run->id);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        putc(',', v->out);
        csv_text(v->out, texts[i] ? texts[i] : "");
    }
    for (size_t i = 0; VIEW_HISTORY_METRICS[i]; i++) {
        putc(',', v->out);
        csv_number(v->out, history_run_metric(run, VIEW_HISTORY_METRICS[i]));
    }
    for (size_t i = 0; v->names && i < v->names->list.len; i++)
        if (!is_classic(v->names->list.data[i])) {
            putc(',', v->out);
            csv_number(v->out, history_run_metric(run, v->names->list.data[i]));
        }
    putc('\n', v->out);
    buf_release(&tags);
}

void view_history_runs_begin(struct view_history_runs *v, enum view_format format, FILE *out,
                             struct view_style style, const struct history_names *names)
{
    *v = (struct view_history_runs){.format = format, .out = out, .names = names};
    if (format == VIEW_JSON) {
        json_init(&v->json, out);
        json_array_begin(&v->json);
    } else if (format == VIEW_CSV) {
        csv_heading(v);
    } else {
        view_emit_init(&v->emit, out, format, style);
        view_emit_table_begin(&v->emit, "runs", run_columns, ARRAY_LEN(run_columns), false);
    }
}

static void text_run(struct view_history_runs *v, const struct history_run *run)
{
    struct buf tags;
    buf_init(&tags, HISTORY_MAX_TEXT);
    put_tags(run, &tags);
    if (run->warmup)
        buf_printf(&tags, "%s(warm-up)", tags.len ? " " : "");
    char commit[SHORT_COMMIT + 2] = "";
    if (run->git_commit)
        snprintf(commit, sizeof commit, "%.*s%s", SHORT_COMMIT, run->git_commit,
                 run->git_dirty > 0 ? "+" : "");
    struct view_history_time when = view_history_local(run->started_us);
    double cpu =
        history_run_metric(run, "user_time_sec") + history_run_metric(run, "system_time_sec");
    struct view_cell cells[] = {
        count_cell((uint64_t)run->id),
        text_cell(when.text),
        {.absent = !run->has_exit_status, .count = (uint64_t)run->exit_status},
        real_cell(history_run_metric(run, "elapsed_time_sec")),
        real_cell(cpu),
        real_cell(1024 * history_run_metric(run, "max_res_set_sz_kb")),
        text_cell(commit),
        text_cell(run->python),
        text_cell(buf_cstr(&tags)),
    };
    view_emit_row_begin(&v->emit, cells);
    view_emit_row_end(&v->emit);
    buf_release(&tags);
}

int view_history_runs_add(void *ctx, const struct history_run *run)
{
    struct view_history_runs *v = ctx;
    v->count++;
    if (v->format == VIEW_JSON)
        view_history_run_json(&v->json, run);
    else if (v->format == VIEW_CSV)
        csv_run(v, run);
    else
        text_run(v, run);
    return 0;
}

int view_history_runs_end(struct view_history_runs *v)
{
    if (v->format == VIEW_TEXT) {
        view_emit_table_end(&v->emit);
        return view_emit_finish(&v->emit);
    }
    if (v->format == VIEW_JSON) {
        json_array_end(&v->json);
        putc('\n', v->out);
    }
    errno = 0;
    return fflush(v->out) == 0 && !ferror(v->out) ? 0 : err_from_errno(errno ? errno : EIO);
}

/* --- one run --- */

static void line(FILE *out, const char *name, const char *text)
{
    if (!text)
        return;
    struct buf b;
    buf_init(&b, 1 << 20);
    view_text_escape(&b, text, strlen(text));
    fprintf(out, "%-12s %s\n", name, buf_cstr(&b));
    buf_release(&b);
}

static void show_facts(const struct history_run *run, enum history_fact_kind kind, FILE *out)
{
    bool any = false;
    for (size_t i = 0; i < run->facts.len; i++) {
        const struct history_fact *f = &run->facts.data[i];
        if (f->kind != kind)
            continue;
        if (!any)
            fprintf(out, "\n%s\n", history_fact_kind_name(kind));
        any = true;
        struct buf b;
        buf_init(&b, 1 << 20);
        view_text_escape(&b, f->key, strlen(f->key));
        buf_puts(&b, " ");
        view_text_escape(&b, f->value, strlen(f->value));
        fprintf(out, "  %s\n", buf_cstr(&b));
        buf_release(&b);
    }
}

static void show_metrics(const struct history_run *run, FILE *out)
{
    struct buf name;
    buf_init(&name, (size_t)8 * HISTORY_MAX_NAME);
    fputs("\nmetrics\n", out);
    for (size_t i = 0; i < run->metrics.len; i++) {
        const struct history_metric *m = &run->metrics.data[i];
        buf_clear(&name);
        view_text_escape(&name, m->name, strlen(m->name));
        if (isnan(m->value))
            fprintf(out, "  %-40s unknown\n", buf_cstr(&name));
        else
            fprintf(out, "  %-40s %.15g\n", buf_cstr(&name), m->value);
    }
    buf_release(&name);
}

/* The beginning, harmless; lines stay lines. */
static void show_output(const struct history_output *o, FILE *out)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    view_text_escape(&b, o->name, strlen(o->name));
    fprintf(out, "\n%s, %s%s\n", buf_cstr(&b), view_units_bytes((double)o->total).text,
            o->total > o->len ? " (its beginning and end are kept)" : "");
    buf_clear(&b);
    size_t shown = min_u64(o->len, SHOWN_OUTPUT);
    const char *at = (const char *)o->bytes, *end = at + shown;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        view_text_escape(&b, at, (size_t)(stop - at));
        buf_puts(&b, "\n");
        at = stop + 1;
    }
    fputs(buf_cstr(&b), out);
    if (shown < o->len)
        fprintf(out, "… %zu more bytes are kept: --json has them\n", o->len - shown);
    buf_release(&b);
}

static void show_text(const struct history_run *run, FILE *out)
{
    char text[64];
    fprintf(out, "run %" PRId64 ", %s\n", run->id, run->uid);
    line(out, "command", run->command);
    line(out, "started", view_history_local(run->started_us).text);
    line(out, "directory", run->cwd);
    if (run->has_exit_status) {
        snprintf(text, sizeof text, "%d", run->exit_status);
        line(out, "exit status", text);
    }
    line(out, "python", run->python);
    line(out, "git commit", run->git_commit);
    line(out, "git branch", run->git_branch);
    if (run->git_commit)
        line(out, "work tree",
             run->git_dirty < 0 ? "unknown"
             : run->git_dirty   ? "changed"
                                : "as committed");
    line(out, "group", run->group);
    if (run->warmup)
        line(out, "warm-up", "yes");
    line(out, "recording", run->profile);
    line(out, "source", run->source);
    for (int kind = HISTORY_FACT_TAG; kind <= HISTORY_FACT_LAUNCH; kind++)
        show_facts(run, (enum history_fact_kind)kind, out);
    show_metrics(run, out);
    for (size_t i = 0; i < run->outputs.len; i++)
        show_output(&run->outputs.data[i], out);
}

int view_history_show(const struct history_run *run, enum view_format format, FILE *out,
                      struct view_style style)
{
    (void)style;
    if (format == VIEW_JSON) {
        struct json j;
        json_init(&j, out);
        view_history_run_json(&j, run);
        putc('\n', out);
    } else {
        show_text(run, out);
    }
    errno = 0;
    return fflush(out) == 0 && !ferror(out) ? 0 : err_from_errno(errno ? errno : EIO);
}
