/*
 * digest.h - running digests of packs and records, as stored in END.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each step hashes one item with the previous digest as the seed, so the state
 * is a single 64-bit number.
 */

#ifndef LIB_FORMAT_DIGEST_H
#define LIB_FORMAT_DIGEST_H

#include <stdint.h>

#include "base/hash.h"
#include "bytes.h"

/* Adds a pack with this checksum to a digest. */
static inline uint64_t ps_pack_digest(uint64_t digest, uint64_t checksum)
{
    unsigned char link[8];

    store_u64(link, checksum);
    return XXH3_64bits_withSeed(link, sizeof link, digest);
}

/*
 * Adds a framed record to a digest.  `hash` covers the bytes after `count`.
 */
static inline uint64_t ps_token_digest(uint64_t digest, uint32_t count,
                                       uint64_t hash)
{
    unsigned char link[12];

    /* If count and hash are stored separately, compilers emit byte stores. */
    store_u64(link, count | hash << 32);
    store_u32(link + 8, (uint32_t)(hash >> 32));
    return XXH3_64bits_withSeed(link, sizeof link, digest);
}

#endif
