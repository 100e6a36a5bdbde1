/*
 * digest.h - digests of all packs or records so far, as END has them.
 *
 * Each is a chain in which one hash is the seed of the next, so that 64 bits
 * are all there is to keep.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_DIGEST_H
#define LIB_FORMAT_DIGEST_H

#include <stdint.h>

#include "base/hash.h"
#include "bytes.h"

/* The digest of packs after one more, whose checksum is given. */
static inline uint64_t ps_pack_digest(uint64_t digest, uint64_t checksum)
{
    unsigned char link[8];

    store_u64(link, checksum);
    return XXH3_64bits_withSeed(link, sizeof link, digest);
}

/*
 * The digest of framed records after one more: of its count, and of the hash
 * of the bytes behind that.
 */
static inline uint64_t ps_token_digest(uint64_t digest, uint32_t count,
                                       uint64_t hash)
{
    unsigned char link[12];

    /* Written as count and hash, compilers would store byte by byte. */
    store_u64(link, count | hash << 32);
    store_u32(link + 8, (uint32_t)(hash >> 32));
    return XXH3_64bits_withSeed(link, sizeof link, digest);
}

#endif
