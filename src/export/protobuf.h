/* The wire format of protobuf, for messages that are few and flat enough to be written by hand. A
 * message is a row of fields, a field is a key (number << 3 | wire type) and a varint, eight bytes, or
 * a length and bytes. A nested message is built in a buffer, for its length stands before it. Inside
 * src/export only. */
#ifndef PYROMETER_EXPORT_PROTOBUF_H
#define PYROMETER_EXPORT_PROTOBUF_H

#include "base/buf.h"

enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2 };

static inline void protobuf_put_key(struct buf *b, uint32_t field, enum protobuf_wire wire)
{
    buf_put_varint(b, field << 3 | wire);
}

static inline void protobuf_put_number(struct buf *b, uint32_t field, uint64_t value)
{
    protobuf_put_key(b, field, PROTOBUF_VARINT);
    buf_put_varint(b, value);
}

static inline void protobuf_put_bytes(struct buf *b, uint32_t field, const void *data, size_t len)
{
    protobuf_put_key(b, field, PROTOBUF_BYTES);
    buf_put_varint(b, len);
    buf_append(b, data, len);
}

/* A message inside of another one, which is then empty again; its error becomes the other's. */
static inline void protobuf_put_message(struct buf *b, uint32_t field, struct buf *message)
{
    protobuf_put_bytes(b, field, message->data, message->len);
    if (buf_error(message) && !b->error)
        b->error = buf_error(message);
    buf_clear(message);
}

#endif
