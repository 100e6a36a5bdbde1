/*
 * serial.h - numbers saved to bytes, and loaded from bytes that may have been
 * damaged: what a saved state is made of.
 *
 * A caller need not check each number: a saver without memory and a restorer
 * without bytes fail for good, and `failed` is checked in the end.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_SERIAL_H
#define LIB_BASE_SERIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ps_saver {
    unsigned char *bytes; /* for the caller to free; or NULL */
    size_t n;
    size_t capacity;
    bool failed; /* for want of memory */
} ps_saver;

void ps_save_u32(ps_saver *saver, uint32_t value);
void ps_save_u64(ps_saver *saver, uint64_t value);
void ps_save_double(ps_saver *saver, double value);
void ps_save_bytes(ps_saver *saver, const void *bytes, size_t n);

typedef struct ps_restorer {
    const unsigned char *at;
    size_t left;
    bool failed; /* more was asked for than there is */
} ps_restorer;

/* 0 after a failure. */
uint32_t ps_load_u32(ps_restorer *restorer);
uint64_t ps_load_u64(ps_restorer *restorer);
double ps_load_double(ps_restorer *restorer);

/* `n` bytes where they are, or NULL. */
const unsigned char *ps_load_bytes(ps_restorer *restorer, uint64_t n);

/* A number from `min` to `max`; fails, and gives `min`, on any other. */
uint32_t ps_load_within(ps_restorer *restorer, uint32_t min, uint32_t max);

/*
 * The count of elements that follow, each of at least `each` bytes.  Fails,
 * and gives 0, if it is above `max` or fewer bytes are left.
 */
uint32_t ps_load_count(ps_restorer *restorer, uint32_t max, size_t each);

#endif
