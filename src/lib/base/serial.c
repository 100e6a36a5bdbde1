/*
 * serial.c - saving values to bytes, and loading untrusted bytes.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/serial.h"

#include <string.h>

#include "base/mem_bound.h"
#include "bytes.h"

#define FIRST_BYTES 4096

void ps_save_bytes(ps_saver *s, const void *bytes, size_t n)
{
    unsigned char *grown = NULL;

    if (!s->failed && n <= SIZE_MAX - s->n)
        grown = ps_array_grow(s->bytes, &s->capacity, s->n + n, FIRST_BYTES,
                              1);
    if (grown == NULL) {
        s->failed = true;
        return;
    }
    s->bytes = grown;
    if (n > 0)
        memcpy(s->bytes + s->n, bytes, n);
    s->n += n;
}

void ps_save_u32(ps_saver *s, uint32_t value)
{
    unsigned char bytes[4];

    store_u32(bytes, value);
    ps_save_bytes(s, bytes, sizeof bytes);
}

void ps_save_u64(ps_saver *s, uint64_t value)
{
    unsigned char bytes[8];

    store_u64(bytes, value);
    ps_save_bytes(s, bytes, sizeof bytes);
}

void ps_save_double(ps_saver *s, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    ps_save_u64(s, bits);
}

const unsigned char *ps_load_bytes(ps_restorer *l, uint64_t n)
{
    const unsigned char *bytes = l->at;

    if (l->failed || n > l->left) {
        l->failed = true;
        return NULL;
    }
    l->at += n;
    l->left -= (size_t)n;
    return bytes;
}

uint32_t ps_load_u32(ps_restorer *l)
{
    const unsigned char *from = ps_load_bytes(l, 4);

    return from == NULL ? 0 : load_u32(from);
}

uint64_t ps_load_u64(ps_restorer *l)
{
    const unsigned char *from = ps_load_bytes(l, 8);

    return from == NULL ? 0 : load_u64(from);
}

double ps_load_double(ps_restorer *l)
{
    uint64_t bits = ps_load_u64(l);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

uint32_t ps_load_within(ps_restorer *l, uint32_t min, uint32_t max)
{
    uint32_t value = ps_load_u32(l);

    if (!l->failed && value >= min && value <= max)
        return value;
    l->failed = true;
    return min;
}

uint32_t ps_load_count(ps_restorer *l, uint32_t max, size_t each)
{
    uint32_t n = ps_load_within(l, 0, max);

    if (n > l->left / each) {
        l->failed = true;
        return 0;
    }
    return n;
}
