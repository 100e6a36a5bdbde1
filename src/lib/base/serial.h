/*
 * serial.h - saving values to bytes, and loading untrusted bytes.  Used for
 * saved states.
 *
 * SPDX-License-Identifier: MIT
 *
 * Errors are sticky, so callers need not check every call.  A saver that runs
 * out of memory, or a restorer that runs out of bytes, sets `failed`; check it
 * once at the end.
 */

#ifndef LIB_BASE_SERIAL_H
#define LIB_BASE_SERIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ps_saver {
    unsigned char *bytes; /* owned by the caller; NULL if empty */
    size_t n;             /* bytes saved */
    size_t capacity;      /* bytes allocated */
    bool failed;          /* out of memory */
} ps_saver;

void ps_save_u32(ps_saver *saver, uint32_t value);
void ps_save_u64(ps_saver *saver, uint64_t value);
void ps_save_double(ps_saver *saver, double value);
void ps_save_bytes(ps_saver *saver, const void *bytes, size_t n);

typedef struct ps_restorer {
    const unsigned char *at; /* next byte; not owned */
    size_t left;             /* bytes left */
    bool failed;             /* too few bytes, or a value out of range */
} ps_restorer;

/* Load a value.  Return 0 after a failure. */
uint32_t ps_load_u32(ps_restorer *restorer);
uint64_t ps_load_u64(ps_restorer *restorer);
double ps_load_double(ps_restorer *restorer);

/* Returns a pointer to the next `n` bytes, or NULL. */
const unsigned char *ps_load_bytes(ps_restorer *restorer, uint64_t n);

/*
 * Loads a number, which must be from `min` to `max`.  Otherwise fails and
 * returns `min`.
 */
uint32_t ps_load_within(ps_restorer *restorer, uint32_t min, uint32_t max);

/*
 * Loads the number of elements that follow, each of at least `each` bytes.
 * Fails and returns 0 if the number exceeds `max`, or if too few bytes are
 * left.
 */
uint32_t ps_load_count(ps_restorer *restorer, uint32_t max, size_t each);

#endif
