/* A row for each function, heaviest first, as RFC 4180 has it: for spreadsheets and data frames.
 * The keys are those of `report --csv`; the numbers are whole. */
#include "analysis/select.h"
#include "export/source.h"

#include <inttypes.h>

static void put_field(struct buf *b, struct profile_string text)
{
    bool quote = false;
    for (uint32_t i = 0; i < text.len && !quote; i++)
        quote = strchr("\",\r\n", text.text[i]) != NULL; /* also for NUL */
    if (!quote) {
        buf_append(b, text.text, text.len);
        return;
    }
    buf_put_u8(b, '"');
    for (uint32_t i = 0; i < text.len; i++) {
        if (text.text[i] == '"')
            buf_put_u8(b, '"');
        if (text.text[i])
            buf_put_u8(b, (uint8_t)text.text[i]);
    }
    buf_put_u8(b, '"');
}

static double percent(const struct export_source *s, struct analysis_weight w)
{
    uint64_t total = s->weights.total.weight;
    return total ? (double)w.weight / (double)total * 100 : 0;
}

static void put_row(struct buf *b, const struct export_source *s, const struct analysis_row *row)
{
    const struct analysis_metric *m = s->query.metric;
    put_field(b, row->name);
    buf_put_u8(b, ',');
    put_field(b, row->file);
    buf_put_u8(b, ',');
    if (row->line)
        export_put_u64(b, row->line);
    buf_put_u8(b, ',');
    export_put_weight(b, m, row->self.weight);
    buf_printf(b, ",%.6f,", percent(s, row->self));
    export_put_weight(b, m, row->total.weight);
    buf_printf(b, ",%.6f,", percent(s, row->total));
    export_put_u64(b, row->self.samples);
    buf_put_u8(b, ',');
    export_put_u64(b, row->total.samples);
    buf_printf(b, ",%d,%s,%s", row->special, m->name, m->unit);
    if (analysis_weights_counted(&s->weights))
        buf_printf(b, ",%" PRIu64 ",%" PRIu64, row->calls, row->primitive_calls);
    buf_puts(b, "\r\n");
}

static int write_rows(const struct export_source *s, FILE *out)
{
    struct analysis_select select = {.sort = ANALYSIS_SORT_SELF};
    struct analysis_selection selection;
    int r = analysis_selection_init(&s->rows, &select, &selection);
    if (r < 0)
        return r;
    struct buf b;
    buf_init(&b, EXPORT_BUF_MAX);
    buf_puts(&b, "name,file,line,self,self_percent,total,total_percent,samples,total_samples,"
                 "special,metric,unit");
    buf_puts(&b, analysis_weights_counted(&s->weights) ? ",calls,primitive_calls\r\n" : "\r\n");
    for (size_t i = 0; r == 0 && i < selection.count; i++) {
        put_row(&b, s, &s->rows.row[selection.row[i]]);
        r = export_drain(&b, out, false);
    }
    if (r == 0)
        r = export_drain(&b, out, true);
    buf_release(&b);
    analysis_selection_release(&selection);
    return r < 0 ? r : export_finish(out);
}

int export_csv_write(const struct profile *profile, const struct export_options *options, FILE *out)
{
    struct export_source source;
    int r = export_source_init(profile, &options->query, ANALYSIS_BY_FUNCTION, &source);
    if (r < 0)
        return r;
    r = write_rows(&source, out);
    export_source_release(&source);
    return r;
}
