/*
 * grown.c - bytes in memory that grow, and little-endian integers in them.
 *
 * SPDX-License-Identifier: MIT
 */

#include "grown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Header of a regrow allocation.  All of them can be reached from `all`, so
 * leak checkers do not report memory that a test has not freed.
 */
typedef union link {
    struct {
        union link *next;
        union link *before;
    } to;
    max_align_t alignment;
} link;

static link all = {.to = {&all, &all}};

static void *put_between(link *before, link *l, link *next)
{
    l->to.before = before;
    l->to.next = next;
    before->to.next = l;
    next->to.before = l;
    return l + 1;
}

static link *take_out(void *p)
{
    link *l = p;

    if (p == NULL)
        return NULL;
    l--;
    l->to.before->to.next = l->to.next;
    l->to.next->to.before = l->to.before;
    return l;
}

void *regrow(void *p, size_t n)
{
    link *l = realloc(take_out(p), sizeof *l + n);

    if (l == NULL) {
        fputs("no memory for a test\n", stderr);
        abort();
    }
    return put_between(&all, l, all.to.next);
}

void drop_memory(void *p)
{
    free(take_out(p));
}

/* Extends `b` by `n` bytes, which count as written. */
static unsigned char *extend(bytes *b, size_t n)
{
    if (n > b->room - b->size) {
        b->room = 2 * (b->size + n);
        b->data = regrow(b->data, b->room);
    }
    b->size += n;
    return b->data + b->size - n;
}

void put_bytes(bytes *b, const void *data, size_t n)
{
    if (n > 0)
        memcpy(extend(b, n), data, n);
}

void put_number(bytes *b, uint64_t value, unsigned width)
{
    set_number(extend(b, width), value, width);
}

void put_u8(bytes *b, unsigned value)
{
    put_number(b, value, 1);
}

void put_u16(bytes *b, unsigned value)
{
    put_number(b, value, 2);
}

void put_u32(bytes *b, uint32_t value)
{
    put_number(b, value, 4);
}

void put_u64(bytes *b, uint64_t value)
{
    put_number(b, value, 8);
}

void put_zeros(bytes *b, size_t n)
{
    if (n > 0)
        memset(extend(b, n), 0, n);
}

void free_bytes(bytes *b)
{
    drop_memory(b->data);
    *b = (bytes){0};
}

uint32_t get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

uint64_t get_u64(const unsigned char *p)
{
    return (uint64_t)get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

void set_number(unsigned char *p, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        p[i] = (unsigned char)(value >> 8 * i & 0xff);
}

void set_u32(unsigned char *p, uint32_t value)
{
    set_number(p, value, 4);
}

void set_u64(unsigned char *p, uint64_t value)
{
    set_number(p, value, 8);
}
