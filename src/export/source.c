/* What the formats share. */
#include "export/source.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/utf8.h"

#include <errno.h>

int export_source_init(const struct profile *profile, const struct analysis_query *query,
                       enum analysis_by by, struct export_source *ret)
{
    ret->query = *query;
    int r = analysis_weights_init(profile, query, &ret->weights);
    if (r < 0)
        return r;
    ret->query.metric = ret->weights.metric;
    r = analysis_rows_init(&ret->weights, by, &ret->rows);
    if (r < 0)
        analysis_weights_release(&ret->weights);
    return r;
}

void export_source_release(struct export_source *s)
{
    analysis_rows_release(&s->rows);
    analysis_weights_release(&s->weights);
}

int export_finish(FILE *out)
{
    if (fflush(out) != 0)
        return err_from_errno(errno);
    return ferror(out) ? E_IO : 0;
}

int export_drain(struct buf *b, FILE *out, bool all)
{
    if (buf_error(b))
        return buf_error(b);
    if (!all && b->len < EXPORT_CHUNK_BYTES)
        return 0;
    if (b->len && fwrite(b->data, 1, b->len, out) != b->len)
        return errno ? err_from_errno(errno) : E_IO;
    buf_clear(b);
    return 0;
}

void export_thread_name(const struct profile_tables *t, uint32_t thread, struct buf *out)
{
    const struct record_thread *th = &t->threads[thread];
    buf_clear(out);
    if (t->strings[th->name].len)
        buf_append(out, t->strings[th->name].text, t->strings[th->name].len);
    else
        buf_printf(out, "thread %u", th->tid);
    size_t processes = 0;
    for (uint32_t i = 0; i < t->process_count && processes < 2; i++)
        processes += analysis_process_is_known(t, i);
    if (processes > 1)
        buf_printf(out, " [pid %u]", t->processes[th->process].pid);
}

void export_put_u64(struct buf *b, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    buf_append(b, digits + at, sizeof digits - at);
}

void export_put_weight(struct buf *b, const struct analysis_metric *metric, uint64_t weight)
{
    if (metric->scale != 1e-9) {
        export_put_u64(b, weight);
        return;
    }
    uint64_t part = weight % NS_PER_SEC;
    export_put_u64(b, weight / NS_PER_SEC);
    if (!part)
        return;
    char digits[10] = ".";
    for (int i = 9; i >= 1; i--) {
        digits[i] = (char)('0' + part % 10);
        part /= 10;
    }
    size_t len = sizeof digits;
    while (digits[len - 1] == '0')
        len--;
    buf_append(b, digits, len);
}

void export_put_line(struct buf *b, struct profile_string text, size_t max)
{
    for (uint32_t i = 0; i < text.len;) {
        uint32_t c;
        size_t n = utf8_decode(text.text + i, text.len - i, &c);
        if (i + n > max) {
            buf_puts(b, "…");
            return;
        }
        if (!n)
            buf_put_u8(b, '?');
        else if (c < 0x20 || c == 0x7f)
            buf_put_u8(b, '_');
        else
            buf_append(b, text.text + i, n);
        i += n ? (uint32_t)n : 1;
    }
}
