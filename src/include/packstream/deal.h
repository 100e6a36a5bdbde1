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
 * R ranks that train together take B packs each in every step, a global batch
 * of R * B packs, and every step waits for the slowest rank.  A deal gives each
 * rank exactly B packs of the batch, so that the greatest cost of a rank is
 * small.  It follows from the costs alone: ranks that know the same costs work
 * out the same deal, without communication.
 */

/* The cost of a pack is tokens * its n_tok + squares * its sum_len_sq. */
typedef struct ps_cost {
    uint64_t tokens;  /* of each token */
    uint64_t squares; /* of each unit of sum_len_sq */
} ps_cost;

/*
 * The cost of a transformer of width `hidden` whose attention stays within
 * sequences.  A layer multiplies 12 h^2 s + 2 h s^2 times for a sequence of s
 * tokens at width h; without the common factor that is 6 h for each token and
 * 1 for each unit of sum_len_sq.
 */
ps_cost ps_cost_attention(uint32_t hidden);

/*
 * The cost of a pack.  If only its head was read, nothing proves sum_len_sq and
 * n_tok: see ps_pack_file_head.
 * PS_OK, PS_ERR_LIMIT (above 64 bits).
 */
PS_MUST_CHECK ps_result ps_pack_cost(const ps_cost *cost, const ps_pack *pack,
                                     uint64_t *value, ps_error *err);

/* The most items of a deal, ranks * per_rank. */
#define PS_MAX_DEAL (UINT32_C(1) << 22)

typedef struct ps_deal ps_deal;

/*
 * Allocates all that deals of these numbers need: 56 bytes for each of the
 * ranks * per_rank items, 36 for each rank, and 4 for each of per_rank.
 * PS_OK, PS_ERR_ARGUMENT (one is 0, or there are too many), PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_deal_open(ps_deal **deal, uint32_t ranks,
                                     uint32_t per_rank, ps_error *err);

/*
 * Deals ranks * per_rank items: writes the rank of item i, whose cost is
 * costs[i], to ranks[i].  The same costs give the same ranks on every machine.
 * Ranks are numbered in the order of the first item that each has.  If no fewer
 * items than ranks have a cost above 0, each rank has one of them.
 * PS_OK, PS_ERR_LIMIT (all costs together exceed 63 bits; ranks is unchanged).
 */
PS_MUST_CHECK ps_result ps_deal_make(ps_deal *deal, const uint64_t *costs,
                                     uint32_t *ranks, ps_error *err);

/*
 * Of the last deal: the greatest cost of a rank, and a lower bound on it for
 * any deal of these items.  The bound is the mean of all ranks, rounded up, or
 * more if equal counts force it: the costliest item needs per_rank - 1 others,
 * which cost at least as much as the cheapest of all; so do the two costliest,
 * which take twice as many of these, and so on.
 */
uint64_t ps_deal_max(const ps_deal *deal);
uint64_t ps_deal_bound(const ps_deal *deal);

void ps_deal_free(ps_deal *deal);

/* ---------------------------------------------------------------------
 * Orders of epochs
 *
 * Each epoch of a training has its n packs in an order of its own, which
 * follows from a seed: the same on every machine, and the same as packdeal(1)
 * --seed and packstream.Deal of the Python package have.
 */

/*
 * Which of the packs 0 to n - 1 comes at `place`, from 0 to n - 1; each comes
 * at one place.  Takes no memory, and the same time at every place.  Returns a
 * place that is not below n unchanged.
 */
uint64_t ps_shuffled(uint64_t n, uint64_t seed, uint64_t epoch,
                     uint64_t place);

#ifdef __cplusplus
}
#endif

#endif
