/*
 * protobuf.h - the wire format of Protocol Buffers: fields read, fields
 * written.
 *
 * The wire room knows the framing of other people's files, which more than
 * one program reads or writes:
 *
 *   protobuf    messages: what is in a tf.train.Example
 *   tfrecord    the frame of a record in a TFRecord file
 *
 * Its functions work on bytes in memory, and know neither files nor messages
 * to the user.  They call nothing of the other rooms.
 *
 * A message is a run of fields, each a key (number and wire type) and a
 * value.  What the numbers mean is for the caller to know.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef WIRE_PROTOBUF_H
#define WIRE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a value is written.  Groups (3 and 4) are refused. */
typedef enum proto_wire {
    PROTO_VARINT = 0,
    PROTO_FIXED64 = 1,
    PROTO_BYTES = 2, /* strings, messages and packed lists, too */
    PROTO_FIXED32 = 5
} proto_wire;

/* ---------------------------------------------------------------------
 * Reading
 */

/* What is left of a message. */
typedef struct proto_in {
    const unsigned char *at;
    size_t left;
} proto_in;

typedef struct proto_field {
    uint32_t number; /* at least 1 */
    proto_wire wire;
    uint64_t value; /* of a varint, a fixed64 or a fixed32 */
    proto_in bytes; /* of PROTO_BYTES: they lie in the message */
} proto_field;

typedef enum proto_result {
    PROTO_OK,
    PROTO_END, /* nothing is left */
    PROTO_BAD  /* malformed, or cut off */
} proto_result;

proto_result proto_next(proto_in *in, proto_field *field);

/* The next element of a packed list, of any type but PROTO_BYTES. */
proto_result proto_next_element(proto_in *in, proto_wire wire,
                                uint64_t *value);

/* ---------------------------------------------------------------------
 * Writing
 */

/*
 * A message being written: {0} at first.  Once memory runs out `failed` is
 * set and the calls do nothing, so it is enough to check it at the end.  To
 * use the buffer for another message set n to 0.
 */
typedef struct proto_out {
    unsigned char *bytes;
    size_t n;
    size_t capacity;
    bool failed;
} proto_out;

void proto_free(proto_out *out);

/* Elements of a packed list, within proto_begin and proto_end. */
void proto_put_varint(proto_out *out, uint64_t value);
void proto_put_fixed32(proto_out *out, uint32_t value);

/* A whole field of bytes. */
void proto_put_bytes(proto_out *out, uint32_t number, const void *bytes,
                     size_t n);

/*
 * A field of bytes, a message or a packed list: what is put between the two
 * calls, which nest.  Pass what proto_begin returns to proto_end.
 */
size_t proto_begin(proto_out *out, uint32_t number);
void proto_end(proto_out *out, size_t begun);

#endif
