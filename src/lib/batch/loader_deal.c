/*
 * loader_deal.c - assign the packs of a round to ranks with equal cost.
 *
 * SPDX-License-Identifier: MIT
 *
 * The assignment depends on the costs of all packs in the round, so the round
 * is buffered until it is complete.
 */

#include "batch/loader.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"

/* Initial size of the buffer for sequence rows, in bytes. */
#define MIN_SEQUENCES 4096

ps_result ps_loader_open_round(ps_loader *l, ps_error *err)
{
    const ps_loader_options *o = &l->options;
    const ps_cost *cost = &o->cost;
    ps_loader_round *round = &l->round;
    uint64_t n;
    ps_result r;

    if (o->ranks == 1 || (cost->tokens == 0 && cost->squares == 0))
        return PS_OK;
    r = ps_deal_open(&round->deal, o->ranks, o->packs, err);
    if (r != PS_OK)
        return r;
    n = (uint64_t)o->ranks * o->packs;
    if (n * l->info.row_bytes <= SIZE_MAX / 2)
        round->rows = malloc((size_t)(n * l->info.row_bytes));
    round->heads = calloc((size_t)n, sizeof *round->heads);
    round->costs = calloc((size_t)n, sizeof *round->costs);
    round->ranks = calloc((size_t)n, sizeof *round->ranks);
    if (round->rows == NULL || round->heads == NULL ||
        round->costs == NULL || round->ranks == NULL)
        return ps_fail_memory(err);
    return PS_OK;
}

void ps_loader_free_round(ps_loader *l)
{
    ps_deal_free(l->round.deal);
    free(l->round.rows);
    free(l->round.sequences);
    free(l->round.heads);
    free(l->round.costs);
    free(l->round.ranks);
}

ps_result ps_loader_keep(ps_loader *l, uint64_t i, const ps_pack *pack,
                         ps_error *err)
{
    ps_loader_round *round = &l->round;
    const size_t size = l->info.row_bytes;
    const size_t bytes = (size_t)pack->n_seq * l->info.seq_bytes;
    unsigned char *row = round->rows + (size_t)i * size;
    unsigned char *sequences;

    if (i == 0)
        round->sequences_used = 0;
    sequences = ps_array_grow(round->sequences, &round->sequences_size,
                              round->sequences_used + bytes, MIN_SEQUENCES, 1);
    if (sequences == NULL)
        return ps_fail_memory(err);
    round->sequences = sequences;
    memcpy(sequences + round->sequences_used, pack->sequences, bytes);
    round->sequences_used += bytes;
    memcpy(row, pack->row, size);
    round->heads[i] = *pack;
    round->heads[i].row = row;
    return ps_pack_cost(&l->options.cost, pack, &round->costs[i], err);
}

ps_result ps_loader_deal(ps_loader *l, uint64_t n, ps_error *err)
{
    ps_loader_round *round = &l->round;
    const uint32_t ranks = l->options.ranks;
    const unsigned char *sequences = round->sequences;
    ps_result r = PS_OK;

    /* The array is complete and no longer moves. */
    for (uint64_t i = 0; i < n; i++) {
        round->heads[i].sequences = sequences;
        sequences += (size_t)round->heads[i].n_seq * l->info.seq_bytes;
    }

    /*
     * The last round is incomplete.  Make it as small as possible, and fill it
     * up with packs of cost 0, which represent missing packs.
     */
    if (n < (uint64_t)l->options.packs * ranks) {
        const uint32_t per_rank = (uint32_t)((n + ranks - 1) / ranks);
        const uint64_t empty = (uint64_t)per_rank * ranks - n;

        ps_deal_free(round->deal);
        memset(round->costs + n, 0, (size_t)empty * sizeof *round->costs);
        r = ps_deal_open(&round->deal, ranks, per_rank, err);
    }
    return r == PS_OK
               ? ps_deal_make(round->deal, round->costs, round->ranks, err)
               : r;
}
