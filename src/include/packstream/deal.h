/*
 * deal.h - assign packs to ranks with equal work; part of <packstream.h>.
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
 * Deals: assignments of packs to ranks
 *
 * R ranks train together with B packs each per step, a global batch of R * B
 * packs, and every step takes as long as its slowest rank.  A deal assigns
 * exactly B packs of the batch to each rank and keeps the maximum cost of a
 * rank small.  It depends on the costs alone, so ranks that know the same costs
 * compute the same deal without communication.
 */

/* Cost of a pack: tokens * n_tok + squares * sum_len_sq. */
typedef struct ps_cost {
    uint64_t tokens;  /* per token */
    uint64_t squares; /* per unit of sum_len_sq */
} ps_cost;

/*
 * Cost of a transformer of width `hidden` with attention within sequences.  For
 * a sequence of s tokens, a layer of width h needs 12 h^2 s + 2 h s^2
 * multiplications.  Divided by 2 h, that is 6 h per token and 1 per unit of
 * sum_len_sq.
 */
ps_cost ps_cost_attention(uint32_t hidden);

/*
 * Cost of a pack.  If only the head of the pack was read, sum_len_sq and n_tok
 * are unverified: see ps_pack_file_head.
 * PS_OK, PS_ERR_LIMIT (the cost exceeds 64 bits).
 */
PS_MUST_CHECK ps_result ps_pack_cost(const ps_cost *cost, const ps_pack *pack,
                                     uint64_t *value, ps_error *err);

/* Maximum of ranks * per_rank. */
#define PS_MAX_DEAL (UINT32_C(1) << 22)

typedef struct ps_deal ps_deal;

/*
 * Allocates all memory for deals of ranks * per_rank items: 56 bytes per item,
 * 36 * ranks bytes and 4 * per_rank bytes.
 * PS_OK, PS_ERR_ARGUMENT (a 0, or more than PS_MAX_DEAL items), PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_deal_open(ps_deal **deal, uint32_t ranks,
                                     uint32_t per_rank, ps_error *err);

/*
 * Assigns ranks * per_rank items: item i has cost costs[i], and its rank is
 * written to ranks[i].  Equal costs give equal assignments on every machine.
 * Ranks are numbered in the order of their first items.  If at least `ranks`
 * items cost more than 0, each rank gets at least one of them.
 * PS_OK, PS_ERR_LIMIT (the sum of costs exceeds 63 bits; `ranks` is unchanged).
 */
PS_MUST_CHECK ps_result ps_deal_make(ps_deal *deal, const uint64_t *costs,
                                     uint32_t *ranks, ps_error *err);

/*
 * Maximum cost of a rank in the last deal, and a lower bound on the maximum for
 * any deal of the same items.  The bound is at least the mean cost per rank,
 * rounded up.  It can be higher because each rank gets per_rank items: the rank
 * with the costliest item also has per_rank - 1 other items, which cost at
 * least as much as the per_rank - 1 cheapest items.  The same argument applies
 * to the two costliest items with twice as many other items, and so on.
 */
uint64_t ps_deal_max(const ps_deal *deal);
uint64_t ps_deal_bound(const ps_deal *deal);

void ps_deal_free(ps_deal *deal);

/* ---------------------------------------------------------------------
 * The sequences of one step
 */

/* Each member must be set. */
typedef struct ps_balance_options {
    uint32_t ranks;
    uint32_t capacity; /* tokens per pack, 1 to PS_MAX_CAPACITY */
    uint32_t align;    /* as in ps_packer_options; 1: no gaps */
    ps_cost cost;      /* of a sequence of s tokens: tokens * s + squares *
                          s^2; not both 0 */
} ps_balance_options;

/*
 * Packs the `n` sequences of one step, such as the roll-outs of a step of
 * reinforcement learning, so that each rank gets the same number of packs and
 * all ranks have nearly the same cost.  No pack exceeds the capacity.
 *
 * order[n] is set to the numbers of the sequences, pack by pack, and ascending
 * in a pack.  Pack p ends before order[ends[p]]; `ends` needs room for
 * n + ranks packs.  *n_packs is a multiple of `ranks`: rank r has the packs
 * from r * (*n_packs / ranks) on, the costliest first, so that the packs that
 * ranks train on at the same time have similar costs.  No pack is empty unless
 * there are fewer sequences than packs.  The result depends on the arguments
 * alone.
 *
 * Source: best fit decreasing; the largest differencing method of Karmarkar and
 * Karp for the packs; then exchanges of sequences.
 *
 * PS_OK, PS_ERR_ARGUMENT (options out of range; fewer sequences than ranks),
 * _EMPTY (a length of 0), _OVERLONG (a length above the capacity), _LIMIT (the
 * sum of costs exceeds 63 bits), _MEMORY.
 */
PS_MUST_CHECK ps_result ps_balance(const uint32_t *lengths, uint32_t n,
                                   const ps_balance_options *options,
                                   uint32_t *order, uint32_t *ends,
                                   uint32_t *n_packs, ps_error *err);

/* ---------------------------------------------------------------------
 * Epoch order
 *
 * Each epoch visits the n packs in its own order, which depends on a seed.  The
 * order is the same on every machine, with packdeal(1) --seed, and with
 * packstream.Deal in the Python package.
 */

/*
 * Returns the pack (0 to n - 1) at position `place` (0 to n - 1) of an epoch's
 * order, which is a permutation.  Runs in constant time and memory.  If `place`
 * >= n, returns it unchanged.
 */
uint64_t ps_shuffled(uint64_t n, uint64_t seed, uint64_t epoch,
                     uint64_t place);

/*
 * Returns the position at which an epoch's order has pack `number`: the inverse
 * of ps_shuffled.  If `number` >= n, returns it unchanged.
 */
uint64_t ps_shuffled_place(uint64_t n, uint64_t seed, uint64_t epoch,
                           uint64_t number);

#ifdef __cplusplus
}
#endif

#endif
