/*
 * packs.h - reads packs in every possible way, for targets that have some.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_FUZZ_PACKS_H
#define TESTS_FUZZ_PACKS_H

#include "fuzz.h"

/* Results of reading packs. */
typedef struct pack_yield {
    ps_result result;
    uint64_t packs;
    uint64_t sequences; /* pieces */
    uint64_t tokens;
    uint64_t faults; /* packs that ps_pack_check refuses */
    uint64_t hash; /* the sum of the packs' hashes, so order does not matter */
    ps_totals totals;
} pack_yield;

/*
 * Reads FEED_FD to its end or to a failure, and checks the guarantees of every
 * reader.
 */
pack_yield read_packs(void);

/*
 * The same with an unpacker: returns its last result, and the number of
 * sequences.  With PS_ORDER_INPUT ids must rise in each stream.
 */
ps_result unpack_packs(ps_order order, uint64_t *sequences);

/*
 * Reads the bytes as a file, from the last pack to the first: returns the packs
 * that could be read, and PS_END if all could.
 */
pack_yield read_pack_file(const unsigned char *data, size_t n);

/* Reads the bytes as a file; writes all packs as a share to feed_written(). */
ps_result hand_on(const unsigned char *data, size_t n);

/* True if the packs, and every member of the totals, are the same. */
bool is_same_yield(const pack_yield *a, const pack_yield *b);

#endif
