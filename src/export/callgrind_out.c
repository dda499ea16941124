/* "fl=(3) app.py" the first time, "fl=(3)" from then on. */
#include "base/err.h"
#include "base/idxmap.h"
#include "export/callgrind.h"

enum { NAME_BYTES_MAX = 4096 };

static uint32_t hash_texts(const struct analysis_row *row, bool file_only)
{
    uint64_t name = file_only ? 0 : (uint64_t)(uintptr_t)row->name.text;
    return hash_u64(name * 31 + (uint64_t)(uintptr_t)row->file.text);
}

/* Texts are interned, so equal ones are at equal places. */
static int find_names(struct callgrind_out *o)
{
    struct idxmap functions = {0}, files = {0};
    uint32_t next_file = 1, at;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < o->row_count; i++) {
        const struct analysis_row *row = &o->row[i];
        uint32_t hash = hash_texts(row, false);
        IDXMAP_FIND(&functions, hash, k,
                    o->row[k].name.text == row->name.text && o->row[k].file.text == row->file.text,
                    at);
        if (at != IDXMAP_NONE)
            o->ambiguous[at] = o->ambiguous[i] = 1;
        else
            r = idxmap_insert(&functions, hash, i);
        hash = hash_texts(row, true);
        IDXMAP_FIND(&files, hash, k, o->row[k].file.text == row->file.text, at);
        o->file_id[i] = at == IDXMAP_NONE ? next_file++ : o->file_id[at];
        if (r == 0 && at == IDXMAP_NONE)
            r = idxmap_insert(&files, hash, i);
    }
    idxmap_release(&functions);
    idxmap_release(&files);
    return r;
}

static void put_key(struct callgrind_out *o, const char *key, uint32_t id)
{
    buf_puts(&o->buf, key);
    buf_puts(&o->buf, "=(");
    export_put_u64(&o->buf, id);
    buf_put_u8(&o->buf, ')');
}

/* "fl=(3) app.py" the first time, "fl=(3)" from then on. */
static void put_file(struct callgrind_out *o, const char *key, uint32_t at)
{
    const struct analysis_row *row = &o->row[at];
    uint32_t id = o->file_id[at];
    put_key(o, key, id);
    if (!o->file_named[id]) {
        buf_put_u8(&o->buf, ' ');
        if (row->file.len)
            export_put_line(&o->buf, row->file, NAME_BYTES_MAX);
        else
            buf_puts(&o->buf, "???");
        o->file_named[id] = 1;
    }
    buf_put_u8(&o->buf, '\n');
}

static void put_name(struct callgrind_out *o, const char *key, uint32_t at)
{
    const struct analysis_row *row = &o->row[at];
    put_key(o, key, at + 1);
    if (!o->row_named[at]) {
        buf_put_u8(&o->buf, ' ');
        export_put_line(&o->buf, row->name, NAME_BYTES_MAX);
        if (o->ambiguous[at])
            buf_printf(&o->buf, ":%u", row->line);
        o->row_named[at] = 1;
    }
    buf_put_u8(&o->buf, '\n');
}

int callgrind_out_init(struct callgrind_out *o, const struct analysis_row *row, size_t count,
                       FILE *out)
{
    size_t places = count + 2;
    *o = (struct callgrind_out){.row = row, .row_count = count, .out = out};
    buf_init(&o->buf, EXPORT_BUF_MAX);
    o->ambiguous = calloc(places, 1);
    o->file_id = calloc(places, sizeof *o->file_id);
    o->row_named = calloc(places, 1);
    o->file_named = calloc(places, 1);
    return o->ambiguous && o->file_id && o->row_named && o->file_named ? find_names(o) : E_NOMEM;
}

void callgrind_out_release(struct callgrind_out *o)
{
    free(o->ambiguous);
    free(o->file_id);
    free(o->row_named);
    free(o->file_named);
    buf_release(&o->buf);
}

void callgrind_put_heading(struct callgrind_out *o, const struct analysis_weights *weights,
                           const char *note, const char *second, const char *second_text)
{
    const struct analysis_metric *m = weights->metric;
    const char *command = profile_meta_value(weights->profile, "command");
    struct profile_string text = {command ? command : "", (uint32_t)strlen(command ? command : "")};
    const char *unit = m->scale == 1e-9 ? "ns" : m->unit;
    buf_puts(&o->buf,
             "# callgrind format\nversion: 1\ncreator: pyrometer " PYROMETER_VERSION "\ncmd: ");
    export_put_line(&o->buf, text, NAME_BYTES_MAX);
    if (note)
        buf_printf(&o->buf, "\ndesc: %s", note);
    buf_printf(&o->buf, "\npositions: line\nevent: %s_%s : %s\nevent: %s : %s\n", m->name, unit,
               m->text, second, second_text);
    buf_printf(&o->buf, "events: %s_%s %s\nsummary: ", m->name, unit, second);
    export_put_u64(&o->buf, weights->total.weight);
    buf_put_u8(&o->buf, ' ');
    export_put_u64(&o->buf, weights->total.samples);
    buf_puts(&o->buf, "\n\n");
}

void callgrind_put_function(struct callgrind_out *o, uint32_t row)
{
    put_file(o, "\nfl", row);
    put_name(o, "fn", row);
}

void callgrind_put_call(struct callgrind_out *o, uint32_t from_row, uint32_t row, uint64_t calls)
{
    if (o->file_id[row] != o->file_id[from_row])
        put_file(o, "cfi", row);
    put_name(o, "cfn", row);
    buf_puts(&o->buf, "calls=");
    export_put_u64(&o->buf, calls);
    buf_put_u8(&o->buf, ' ');
    export_put_u64(&o->buf, o->row[row].line);
    buf_put_u8(&o->buf, '\n');
}

void callgrind_put_costs(struct callgrind_out *o, uint32_t line, struct analysis_weight cost)
{
    export_put_u64(&o->buf, line);
    buf_put_u8(&o->buf, ' ');
    export_put_u64(&o->buf, cost.weight);
    buf_put_u8(&o->buf, ' ');
    export_put_u64(&o->buf, cost.samples);
    buf_put_u8(&o->buf, '\n');
}
