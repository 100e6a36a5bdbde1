/*
 * length_counter.c - count sequences by length.
 *
 * SPDX-License-Identifier: MIT
 */

#include "stream/length_counter.h"

#include <stdlib.h>

#include "base/error.h"

#define MIN_BITS 8

/* Returns the slot of a length, or the free slot in which to store it. */
static ps_length_slot *find(ps_length_slot *slots, unsigned bits,
                            uint32_t length)
{
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    uint32_t i = ps_length_slot_of(length, bits);

    while (slots[i].length != length && slots[i].length != 0)
        i = (i + 1) & mask;
    return &slots[i];
}

void ps_length_counter_clear(ps_length_counter *c)
{
    free(c->slots);
    *c = (ps_length_counter){0};
}

/* Creates the table, or doubles its size. */
static ps_result grow(ps_length_counter *c, ps_error *err)
{
    const unsigned bits = c->bits == 0 ? MIN_BITS : c->bits + 1;
    ps_length_slot *slots = calloc((size_t)1 << bits, sizeof *slots);

    if (slots == NULL)
        return ps_fail_memory(err);
    for (size_t i = 0; c->bits > 0 && i < (size_t)1 << c->bits; i++)
        if (c->slots[i].length != 0)
            *find(slots, bits, c->slots[i].length) = c->slots[i];
    free(c->slots);
    c->slots = slots;
    c->bits = bits;
    return PS_OK;
}

/* Adds a length that is not in the table. */
static ps_result add_new(ps_length_counter *c, uint32_t length,
                         uint64_t count, ps_error *err)
{
    if (c->full)
        return PS_OK;
    if (c->n == PS_LENGTHS_MAX) {
        ps_length_counter_clear(c);
        c->full = true;
        return PS_OK;
    }
    if (c->bits == 0 || c->n == UINT32_C(1) << (c->bits - 1)) {
        const ps_result r = grow(c, err);

        if (r != PS_OK)
            return r;
    }
    *find(c->slots, c->bits, length) = (ps_length_slot){count, length};
    c->n++;
    return PS_OK;
}

ps_result ps_length_counter_add(ps_length_counter *c, uint32_t length,
                                uint64_t count, ps_error *err)
{
    if (c->bits > 0) {
        ps_length_slot *slot = find(c->slots, c->bits, length);

        if (slot->length == length) {
            slot->count += count;
            return PS_OK;
        }
    }
    return add_new(c, length, count, err);
}

uint64_t ps_length_counter_count(const ps_length_counter *c, uint32_t length)
{
    return c->bits == 0 ? 0 : find(c->slots, c->bits, length)->count;
}

static int compare_entries(const void *a, const void *b)
{
    const uint32_t x = ps_lengths_length(a);
    const uint32_t y = ps_lengths_length(b);

    return (x > y) - (x < y);
}

void ps_length_counter_encode(const ps_length_counter *c,
                              uint64_t stream_bytes, unsigned char *to)
{
    unsigned char *entries = to + PS_LENGTHS_HEAD_BYTES;
    unsigned char *entry = entries;

    for (size_t i = 0; c->bits > 0 && i < (size_t)1 << c->bits; i++)
        if (c->slots[i].length != 0) {
            ps_lengths_store(entry, c->slots[i].length, c->slots[i].count);
            entry += PS_LENGTHS_ENTRY_BYTES;
        }
    qsort(entries, c->n, PS_LENGTHS_ENTRY_BYTES, compare_entries);
    ps_lengths_seal(to, c->n, stream_bytes);
}
