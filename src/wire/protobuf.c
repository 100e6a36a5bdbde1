/*
 * protobuf.c - the wire format of Protocol Buffers.
 *
 * SPDX-License-Identifier: MIT
 */

#include "wire/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

/* The longest varint: 64 bits, seven in a byte. */
#define VARINT_BYTES 10

/* ---------------------------------------------------------------------
 * In
 */

/* Moves on by `n` bytes, and gives those; NULL if there are fewer. */
static const unsigned char *take(proto_in *in, uint64_t n)
{
    const unsigned char *p = in->at;

    if (n > in->left)
        return NULL;
    in->at += n;
    in->left -= (size_t)n;
    return p;
}

/* The tenth byte has room for one bit. */
static bool take_varint(proto_in *in, uint64_t *value)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < VARINT_BYTES && i < in->left; i++) {
        const unsigned char byte = in->at[i];

        if (i == VARINT_BYTES - 1 && byte > 1)
            return false;
        v |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80) {
            *value = v;
            return take(in, i + 1) != NULL;
        }
    }
    return false;
}

static bool take_fixed(proto_in *in, size_t width, uint64_t *value)
{
    const unsigned char *p = take(in, width);

    if (p != NULL)
        *value = width == 8 ? load_u64(p) : load_u32(p);
    return p != NULL;
}

static bool take_bytes(proto_in *in, proto_in *bytes)
{
    uint64_t n;

    if (!take_varint(in, &n) || n > in->left)
        return false;
    bytes->left = (size_t)n;
    bytes->at = take(in, n);
    return true;
}

static bool take_value(proto_in *in, proto_field *field)
{
    switch (field->wire) {
    case PROTO_VARINT:
        return take_varint(in, &field->value);
    case PROTO_FIXED64:
        return take_fixed(in, 8, &field->value);
    case PROTO_FIXED32:
        return take_fixed(in, 4, &field->value);
    case PROTO_BYTES:
        return take_bytes(in, &field->bytes);
    }
    return false;
}

proto_result proto_next(proto_in *in, proto_field *field)
{
    uint64_t key;

    if (in->left == 0)
        return PROTO_END;
    if (!take_varint(in, &key) || key > UINT32_MAX || key < 8)
        return PROTO_BAD;
    *field = (proto_field){.number = (uint32_t)(key >> 3)};
    switch (key & 7) {
    case PROTO_VARINT:
    case PROTO_FIXED64:
    case PROTO_BYTES:
    case PROTO_FIXED32:
        field->wire = (proto_wire)(key & 7);
        return take_value(in, field) ? PROTO_OK : PROTO_BAD;
    default:
        return PROTO_BAD;
    }
}

proto_result proto_next_varint(proto_in *in, uint64_t *value)
{
    if (in->left == 0)
        return PROTO_END;
    return take_varint(in, value) ? PROTO_OK : PROTO_BAD;
}

proto_result proto_next_fixed32(proto_in *in, uint32_t *value)
{
    uint64_t v;

    if (in->left == 0)
        return PROTO_END;
    if (!take_fixed(in, 4, &v))
        return PROTO_BAD;
    *value = (uint32_t)v;
    return PROTO_OK;
}

/* ---------------------------------------------------------------------
 * Out
 */

void proto_free(proto_out *out)
{
    free(out->bytes);
    *out = (proto_out){.n = 0};
}

/* Makes room for `n` more bytes; false, now and later, without memory. */
static bool make_room(proto_out *out, size_t n)
{
    size_t room = out->room < 256 ? 256 : out->room;
    unsigned char *bytes;

    if (out->failed || n <= out->room - out->n)
        return !out->failed;
    out->failed = true;
    if (n > SIZE_MAX / 2 - out->n)
        return false;
    while (room - out->n < n)
        room *= 2;
    bytes = realloc(out->bytes, room);
    if (bytes == NULL)
        return false;
    out->bytes = bytes;
    out->room = room;
    out->failed = false;
    return true;
}

static size_t store_varint(unsigned char *to, uint64_t value)
{
    size_t n = 0;

    while (value > 0x7f) {
        to[n++] = (unsigned char)(value & 0x7f) | 0x80;
        value >>= 7;
    }
    to[n++] = (unsigned char)value;
    return n;
}

void proto_put_varint(proto_out *out, uint64_t value)
{
    if (make_room(out, VARINT_BYTES))
        out->n += store_varint(out->bytes + out->n, value);
}

void proto_put_fixed32(proto_out *out, uint32_t value)
{
    if (!make_room(out, 4))
        return;
    store_u32(out->bytes + out->n, value);
    out->n += 4;
}

void proto_put_bytes(proto_out *out, uint32_t number, const void *bytes,
                     size_t n)
{
    proto_put_varint(out, (uint64_t)number << 3 | PROTO_BYTES);
    proto_put_varint(out, n);
    if (n == 0 || !make_room(out, n))
        return;
    memcpy(out->bytes + out->n, bytes, n);
    out->n += n;
}

size_t proto_begin(proto_out *out, uint32_t number)
{
    proto_put_varint(out, (uint64_t)number << 3 | PROTO_BYTES);
    return out->n;
}

/* How long it is comes before it, and is known only now. */
void proto_end(proto_out *out, size_t begun)
{
    unsigned char length[VARINT_BYTES];
    size_t n;

    if (out->failed)
        return;
    n = store_varint(length, out->n - begun);
    if (!make_room(out, n))
        return;
    memmove(out->bytes + begun + n, out->bytes + begun, out->n - begun);
    memcpy(out->bytes + begun, length, n);
    out->n += n;
}
