/*
 * grown.h - bytes in memory that grow, and little-endian integers in them;
 * for tests and what they need.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_GROWN_H
#define TESTS_GROWN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Memory of `n` bytes, with what is at `p` if that is not NULL.  A test need
 * not drop it: where it would come to much in the course of a program it does.
 */
void *regrow(void *p, size_t n);
void drop_memory(void *p);

/* All zero is an empty one; made by regrow. */
typedef struct bytes {
    unsigned char *data;
    size_t size;
    size_t room;
} bytes;

/* Puts something behind them.  Where memory runs out the program ends. */
void put_bytes(bytes *b, const void *data, size_t n);
void put_number(bytes *b, uint64_t value, unsigned width);
void put_u8(bytes *b, unsigned value);
void put_u16(bytes *b, unsigned value);
void put_u32(bytes *b, uint32_t value);
void put_u64(bytes *b, uint64_t value);
void put_zeros(bytes *b, size_t n);
void free_bytes(bytes *b);

/* Reads or writes an integer anywhere. */
uint32_t get_u32(const unsigned char *p);
uint64_t get_u64(const unsigned char *p);
void set_number(unsigned char *p, uint64_t value, size_t width);
void set_u32(unsigned char *p, uint32_t value);
void set_u64(unsigned char *p, uint64_t value);

#endif
