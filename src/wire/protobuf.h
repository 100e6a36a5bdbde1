/*
 * protobuf.h - read and write the wire format of Protocol Buffers.
 *
 * Module wire implements the framing of foreign formats that several programs
 * read or write:
 *
 *   protobuf    messages, such as a tf.train.Example
 *   tfrecord    the framing of records in a TFRecord file
 *
 * It works on bytes in memory, does no I/O, prints nothing, and uses no other
 * module.
 *
 * A message is a list of fields.  Each has a key (field number and wire type)
 * and a value.  The meaning of the numbers is up to the caller.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef WIRE_PROTOBUF_H
#define WIRE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Wire types.  Groups (3 and 4) are refused. */
typedef enum proto_wire {
    PROTO_VARINT = 0,
    PROTO_FIXED64 = 1,
    PROTO_BYTES = 2, /* bytes, strings, messages and packed lists */
    PROTO_FIXED32 = 5
} proto_wire;

/* ---------------------------------------------------------------------
 * Reading
 */

/* The unread rest of a message. */
typedef struct proto_in {
    const unsigned char *at;
    size_t left;
} proto_in;

typedef struct proto_field {
    uint32_t number; /* at least 1 */
    proto_wire wire;
    uint64_t value; /* value of a varint, a fixed64 or a fixed32 */
    proto_in bytes; /* contents with PROTO_BYTES; inside the message */
} proto_field;

typedef enum proto_result {
    PROTO_OK,
    PROTO_END, /* end of the message */
    PROTO_BAD  /* malformed or truncated */
} proto_result;

proto_result proto_next(proto_in *in, proto_field *field);

/* Reads the next element of a packed list, of any type except PROTO_BYTES. */
proto_result proto_next_element(proto_in *in, proto_wire wire,
                                uint64_t *value);

/* ---------------------------------------------------------------------
 * Writing
 */

/*
 * A message being written.  Zero-initialise it.  When memory runs out, `failed`
 * is set and further calls do nothing, so check it once at the end.  To reuse
 * the buffer for another message, set `n` to 0.
 */
typedef struct proto_out {
    unsigned char *bytes;
    size_t n;
    size_t capacity;
    bool failed;
} proto_out;

void proto_free(proto_out *out);

/* Append an element to a packed list, between proto_begin and proto_end. */
void proto_put_varint(proto_out *out, uint64_t value);
void proto_put_fixed32(proto_out *out, uint32_t value);

/* Appends a field of type PROTO_BYTES. */
void proto_put_bytes(proto_out *out, uint32_t number, const void *bytes,
                     size_t n);

/*
 * Begin and end a field of bytes, a message or a packed list.  Append its
 * contents in between; fields can be nested.  Pass the result of proto_begin to
 * proto_end.
 */
size_t proto_begin(proto_out *out, uint32_t number);
void proto_end(proto_out *out, size_t begun);

#endif
