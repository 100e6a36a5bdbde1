/*
 * deal.h - packs for many ranks, with equal work; part of <packstream.h>.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_DEAL_H
#define PACKSTREAM_DEAL_H

#include <stdint.h>

#include "packs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------
 * Deals
 *
 * R ranks that train together take B packs each, a global batch of R * B, and
 * every step waits for the slowest.  A deal gives each rank exactly B of
 * them, so that the greatest cost of a rank is small.  It follows from the
 * costs alone: ranks that know these get the same deal without a word.
 */

/* What a pack costs: tokens * its tokens + squares * their squared lengths. */
typedef struct ps_cost {
    uint64_t tokens;
    uint64_t squares; /* not both 0 */
} ps_cost;

/*
 * The cost of a transformer whose attention stays within sequences.  A
 * sequence of s tokens at width h takes 12 h^2 s + 2 h s^2 multiplications a
 * layer; a common factor does not matter, so 6 h tokens, 1 squares.
 * h is at most PS_MAX_HIDDEN.
 */
#define PS_MAX_HIDDEN (UINT32_C(1) << 24)
ps_cost ps_cost_attention(uint32_t hidden);

/*
 * The cost of a pack.  It trusts sum_len_sq, which only ps_pack_check checks:
 * a wrong one makes a deal less even, and nothing worse.
 * PS_OK, PS_ERR_LIMIT (above 64 bits).
 */
PS_MUST_CHECK ps_result ps_pack_cost(const ps_cost *cost, const ps_pack *pack,
                                     uint64_t *value, ps_error *err);

/* The most items of a deal, ranks * per_rank. */
#define PS_MAX_DEAL (UINT32_C(1) << 22)

typedef struct ps_deal ps_deal;

/*
 * Allocates all that deals of these numbers need, about 50 bytes for each of
 * the ranks * per_rank items.
 * PS_OK, PS_ERR_ARGUMENT (one is 0, or there are too many), PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_deal_open(ps_deal **deal, uint32_t ranks,
                                     uint32_t per_rank, ps_error *err);

/*
 * Deals ranks * per_rank items: writes the rank of item i to ranks[i].  Equal
 * costs give equal ranks, on every machine.
 * PS_OK, PS_ERR_LIMIT (all costs together exceed 63 bits).
 */
PS_MUST_CHECK ps_result ps_deal_make(ps_deal *deal, const uint64_t *costs,
                                     uint32_t *ranks, ps_error *err);

/*
 * Of the last deal: the greatest cost of a rank, and a bound below which no
 * deal brings it.  That is the mean; or the costliest item and the per_rank - 1
 * cheapest; or likewise of two, as some rank has two of the ranks + 1 costliest;
 * and so on.
 */
uint64_t ps_deal_max(const ps_deal *deal);
uint64_t ps_deal_bound(const ps_deal *deal);

void ps_deal_free(ps_deal *deal);

#ifdef __cplusplus
}
#endif

#endif
