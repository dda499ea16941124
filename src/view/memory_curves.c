/* The curves as data: one row for each place that has a number. */
#include "view/memory_plot.h"
#include "view/run.h"

#include <math.h>

static void put_marks(struct json *j, const struct profile_tables *t,
                      const struct analysis_curves *c)
{
    json_key(j, "marks");
    json_array_begin(j);
    for (size_t i = 0; i < c->mark.len; i++) {
        const struct profile_string *name = &t->strings[c->mark.data[i].name];
        json_object_begin(j);
        json_kv_real(j, "time", (double)c->mark.data[i].time_ns * 1e-9);
        json_kv_u64(j, "pid", t->processes[c->mark.data[i].process].pid);
        json_key(j, "name");
        json_text_n(j, name->text, name->len);
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_processes(struct json *j, const struct profile_tables *t,
                          const struct analysis_curves *c)
{
    json_key(j, "processes");
    json_array_begin(j);
    for (size_t i = 0; i < c->count; i++) {
        const struct record_process *process = &t->processes[c->curve[i].process];
        const struct profile_string *command = &t->strings[process->command];
        json_object_begin(j);
        json_kv_u64(j, "pid", process->pid);
        json_key(j, "command");
        json_text_n(j, command->text, command->len);
        json_kv_u64(j, "peak_bytes", c->curve[i].peak_bytes);
        json_kv_real(j, "peak_time", (double)c->curve[i].peak_ns * 1e-9);
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_rows(struct view_emit *e, const struct profile_tables *t,
                     const struct analysis_curves *c)
{
    struct view_column columns[2 + ANALYSIS_CURVE_KINDS] = {
        {"pid", NULL, VIEW_ID, VIEW_ONLY_DATA},
        {"time", NULL, VIEW_SECONDS, VIEW_ONLY_DATA},
    };
    for (int k = 0; k < ANALYSIS_CURVE_KINDS; k++)
        columns[2 + k] =
            (struct view_column){ANALYSIS_CURVE_NAMES[k], NULL, VIEW_BYTES, VIEW_ONLY_DATA};
    view_emit_table_begin(e, "rows", columns, ARRAY_LEN(columns), false);
    for (size_t i = 0; i < c->count; i++)
        for (size_t place = 0; place < c->places; place++) {
            struct view_cell cells[ARRAY_LEN(columns)] = {
                {.count = t->processes[c->curve[i].process].pid},
                {.real = (double)analysis_curves_time(c, place) * 1e-9},
            };
            bool any = false;
            for (int k = 0; k < ANALYSIS_CURVE_KINDS; k++) {
                double value = c->curve[i].value[k][place];
                cells[2 + k] = (struct view_cell){.real = value, .absent = isnan(value)};
                any |= !isnan(value);
            }
            if (!any)
                continue;
            view_emit_row_begin(e, cells);
            view_emit_row_end(e);
        }
    view_emit_table_end(e);
}

int view_memory_plot_data(const struct profile *profile, const struct analysis_curves *curves,
                          FILE *out, enum view_format format)
{
    const struct profile_tables *t = profile_tables(profile);
    struct view_emit e;
    view_emit_init(&e, out, format, (struct view_style){0});
    struct json *j = view_emit_json(&e);
    if (j) {
        view_run_json(j, profile);
        json_kv_text(j, "unit", "bytes");
        put_processes(j, t, curves);
        put_marks(j, t, curves);
        view_run_losses_json(j, profile, 0);
    }
    put_rows(&e, t, curves);
    return view_emit_finish(&e);
}
