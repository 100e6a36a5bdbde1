/*
 * protobuf.h - the wire format of Protocol Buffers: fields in, fields out.
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
 * In
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
    PROTO_BAD  /* no such thing stands here, or it is cut off */
} proto_result;

proto_result proto_next(proto_in *in, proto_field *field);

/* The next element of a packed list. */
proto_result proto_next_varint(proto_in *in, uint64_t *value);
proto_result proto_next_fixed32(proto_in *in, uint32_t *value);

/* ---------------------------------------------------------------------
 * Out
 */

/*
 * A message in the making: {0} at first.  Without memory for more it fails,
 * and the calls do nothing from then on; so it is enough to look at the end.
 * To start anew in the same room set n to 0.
 */
typedef struct proto_out {
    unsigned char *bytes;
    size_t n;
    size_t room;
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
 * A field of bytes, a message or a packed list, of what is put in between;
 * these nest.  proto_begin gives what proto_end is to be told.
 */
size_t proto_begin(proto_out *out, uint32_t number);
void proto_end(proto_out *out, size_t begun);

#endif
