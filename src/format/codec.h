/* Records to bytes and back. Inside src/format only; docs/format.md draws each encoding.
 *
 * Encoders append to a buf. Decoders run over a whole raw payload and push records into a visitor;
 * they check every count and length and return E_CORRUPT at the first that does not fit. */
#ifndef PYROMETER_FORMAT_CODEC_H
#define PYROMETER_FORMAT_CODEC_H

#include "base/buf.h"
#include "format/reader.h"
#include "format/record.h"

/* What one SAMPLES payload remembers between records, on both sides; zero at its start. */
struct codec_sample_state {
    uint32_t thread;
    uint32_t stack;
    uint64_t end_ns;
};

/* The same of a CALLS payload. */
struct codec_calls_state {
    uint32_t thread;
    uint32_t stack;
};

/* The same of a LINES payload. */
struct codec_line_state {
    uint32_t thread;
    uint32_t code;
    uint32_t line;
};

void codec_put_text(struct buf *b, const char *text, size_t len);
void codec_put_code(struct buf *b, const struct record_code *code);
void codec_put_stack(struct buf *b, uint32_t id, const struct record_stack *node);
void codec_put_process(struct buf *b, const struct record_process *p);
void codec_put_thread(struct buf *b, const struct record_thread *t);
void codec_put_sample(struct buf *b, struct codec_sample_state *state,
                      const struct record_sample *s);
void codec_put_calls(struct buf *b, struct codec_calls_state *state, const struct record_calls *c);
void codec_put_line(struct buf *b, struct codec_line_state *state, const struct record_line *l);
void codec_put_mark(struct buf *b, const struct record_mark *m);
void codec_put_counter(struct buf *b, const struct record_counter *c);
void codec_put_source(struct buf *b, const struct record_source *s);
void codec_put_stat(struct buf *b, enum record_stat stat, uint64_t value);
void codec_put_stats(struct buf *b, const struct record_stats *stats);

/* Decodes a payload of the given kind; rows that are NULL and kinds unknown are skipped. */
int codec_visit(unsigned kind, const uint8_t *data, size_t len, uint32_t records,
                const struct format_visitor *visitor, void *ctx);

#endif
