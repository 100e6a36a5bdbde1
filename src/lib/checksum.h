/*
 * checksum.h - XXH3, as fast as the processor has it.
 *
 * Where libxxhash can choose at run time between its versions for different
 * processors, its header for that gives the same names another meaning.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_CHECKSUM_H
#define LIB_CHECKSUM_H

#include <stdint.h>

#include <xxhash.h>

#ifdef HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

#include "bytes.h"

/*
 * The digests of END are chains, so that 64 bits are all there is to keep of
 * what came so far: each link is the seed of the next.
 */

/* The digest of packs after one more, whose checksum is given. */
static inline uint64_t ps_pack_digest(uint64_t digest,
                                      const unsigned char *checksum)
{
    return XXH3_64bits_withSeed(checksum, 8, digest);
}

/*
 * The digest of framed records after one more: of its count, and of the hash
 * of the bytes behind that.
 */
static inline uint64_t ps_token_digest(uint64_t digest, uint32_t count,
                                       uint64_t hash)
{
    unsigned char link[12];

    store_u32(link, count);
    store_u64(link + 4, hash);
    return XXH3_64bits_withSeed(link, sizeof link, digest);
}

#endif
