/*
 * packs.h - reading packs in every way there is, for the targets that have
 * some.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_FUZZ_PACKS_H
#define TESTS_FUZZ_PACKS_H

#include "fuzz.h"

/* What came of reading packs. */
typedef struct pack_yield {
    ps_result result;
    uint64_t packs;
    uint64_t sequences; /* pieces */
    uint64_t tokens;
    uint64_t faults; /* packs that ps_pack_check does not like */
    uint64_t hash; /* the sum of that of each pack: in any order */
    ps_totals totals;
} pack_yield;

/*
 * Reads FEED_FD to its end or to a failure, and checks what every reader
 * promises.
 */
pack_yield read_packs(void);

/*
 * The same through an unpacker: gives how it ends, and how many sequences
 * came, which with PS_ORDER_INPUT rise in each stream.
 */
ps_result unpack_packs(ps_order order, uint64_t *sequences);

/*
 * The bytes as a file, its packs from the last to the first: the packs that
 * could be read, and PS_END if all could.
 */
pack_yield read_pack_file(const unsigned char *data, size_t n);

/* Writes all packs of the bytes, as a file, as a share to feed_written(). */
ps_result hand_on(const unsigned char *data, size_t n);

/* The same packs and, member by member, the same totals. */
bool is_same_yield(const pack_yield *a, const pack_yield *b);

#endif
