/*
 * protobuf.c - the wire format of Protocol Buffers.
 *
 * SPDX-License-Identifier: MIT
 */

#include "wire/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

/* Maximum length of a varint: 64 bits, seven per byte. */
#define VARINT_BYTES 10

/* ---------------------------------------------------------------------
 * Reading
 */

/* Returns the next `n` bytes and advances; NULL if fewer are left. */
static const unsigned char *take(proto_in *in, uint64_t n)
{
    const unsigned char *p = in->at;

    if (n > in->left)
        return NULL;
    in->at += n;
    in->left -= (size_t)n;
    return p;
}

/* A varint of 64 bits uses only one bit of its tenth byte. */
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

proto_result proto_next(proto_in *in, proto_field *field)
{
    uint64_t key;
    uint64_t n;

    if (in->left == 0)
        return PROTO_END;
    if (!take_varint(in, &key) || key > UINT32_MAX || key < 8)
        return PROTO_BAD;
    *field = (proto_field){.number = (uint32_t)(key >> 3)};
    field->wire = (proto_wire)(key & 7);
    if (field->wire != PROTO_BYTES)
        return proto_next_element(in, field->wire, &field->value) == PROTO_OK
                   ? PROTO_OK
                   : PROTO_BAD;
    if (!take_varint(in, &n) || n > in->left)
        return PROTO_BAD;
    field->bytes.left = (size_t)n;
    field->bytes.at = take(in, n);
    return PROTO_OK;
}

proto_result proto_next_element(proto_in *in, proto_wire wire,
                                uint64_t *value)
{
    const size_t bytes = wire == PROTO_FIXED64 ? 8 : 4;
    const unsigned char *p;

    if (in->left == 0)
        return PROTO_END;
    if (wire == PROTO_VARINT)
        return take_varint(in, value) ? PROTO_OK : PROTO_BAD;
    if (wire != PROTO_FIXED64 && wire != PROTO_FIXED32)
        return PROTO_BAD;
    p = take(in, bytes);
    if (p == NULL)
        return PROTO_BAD;
    *value = bytes == 8 ? load_u64(p) : load_u32(p);
    return PROTO_OK;
}

/* ---------------------------------------------------------------------
 * Writing
 */

void proto_free(proto_out *out)
{
    free(out->bytes);
    *out = (proto_out){.n = 0};
}

/* Reserves `n` more bytes.  Sets `failed` if memory runs out. */
static bool reserve(proto_out *out, size_t n)
{
    size_t capacity = out->capacity < 256 ? 256 : out->capacity;
    unsigned char *bytes;

    if (out->failed || n <= out->capacity - out->n)
        return !out->failed;
    out->failed = true;
    if (n > SIZE_MAX / 2 - out->n)
        return false;
    while (capacity - out->n < n)
        capacity *= 2;
    bytes = realloc(out->bytes, capacity);
    if (bytes == NULL)
        return false;
    out->bytes = bytes;
    out->capacity = capacity;
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
    if (reserve(out, VARINT_BYTES))
        out->n += store_varint(out->bytes + out->n, value);
}

void proto_put_fixed32(proto_out *out, uint32_t value)
{
    if (!reserve(out, 4))
        return;
    store_u32(out->bytes + out->n, value);
    out->n += 4;
}

void proto_put_bytes(proto_out *out, uint32_t number, const void *bytes,
                     size_t n)
{
    proto_put_varint(out, (uint64_t)number << 3 | PROTO_BYTES);
    proto_put_varint(out, n);
    if (n == 0 || !reserve(out, n))
        return;
    memcpy(out->bytes + out->n, bytes, n);
    out->n += n;
}

size_t proto_begin(proto_out *out, uint32_t number)
{
    proto_put_varint(out, (uint64_t)number << 3 | PROTO_BYTES);
    return out->n;
}

/* Insert the length before the field, now that it is known. */
void proto_end(proto_out *out, size_t begun)
{
    unsigned char length[VARINT_BYTES];
    size_t n;

    if (out->failed)
        return;
    n = store_varint(length, out->n - begun);
    if (!reserve(out, n))
        return;
    memmove(out->bytes + begun + n, out->bytes + begun, out->n - begun);
    memcpy(out->bytes + begun, length, n);
    out->n += n;
}
