/*
 * grown.h - growing byte buffers for tests, with little-endian integers.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_GROWN_H
#define TESTS_GROWN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reallocates `p`, or allocates if it is NULL, to `n` bytes.  Tests need not
 * free the memory unless a program would accumulate too much of it.
 */
void *regrow(void *p, size_t n);
void drop_memory(void *p);

/* A buffer from regrow; all zeros is an empty one. */
typedef struct bytes {
    unsigned char *data;
    size_t size;
    size_t room;
} bytes;

/* Appends to a buffer; exits if memory runs out. */
void put_bytes(bytes *b, const void *data, size_t n);
void put_number(bytes *b, uint64_t value, unsigned width);
void put_u8(bytes *b, unsigned value);
void put_u16(bytes *b, unsigned value);
void put_u32(bytes *b, uint32_t value);
void put_u64(bytes *b, uint64_t value);
void put_zeros(bytes *b, size_t n);
void free_bytes(bytes *b);

/* Reads or writes an integer at any address. */
uint32_t get_u32(const unsigned char *p);
uint64_t get_u64(const unsigned char *p);
void set_number(unsigned char *p, uint64_t value, size_t width);
void set_u32(unsigned char *p, uint32_t value);
void set_u64(unsigned char *p, uint64_t value);

#endif
