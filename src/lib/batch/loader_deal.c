/*
 * loader_deal.c - rounds of which each rank gets packs of equal cost.
 *
 * Who gets a pack is known when the costs of all packs of its round are, so a
 * round is kept until it is whole.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/loader.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

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
    if (n * l->info.record_bytes <= SIZE_MAX / 2)
        round->records = malloc((size_t)(n * l->info.record_bytes));
    round->heads = calloc((size_t)n, sizeof *round->heads);
    round->costs = calloc((size_t)n, sizeof *round->costs);
    round->ranks = calloc((size_t)n, sizeof *round->ranks);
    if (round->records == NULL || round->heads == NULL ||
        round->costs == NULL || round->ranks == NULL)
        return ps_fail_memory(err);
    return PS_OK;
}

void ps_loader_free_round(ps_loader *l)
{
    ps_deal_free(l->round.deal);
    free(l->round.records);
    free(l->round.heads);
    free(l->round.costs);
    free(l->round.ranks);
}

ps_result ps_loader_keep(ps_loader *l, uint64_t i, const ps_pack *pack,
                         ps_error *err)
{
    const size_t size = l->info.record_bytes;
    unsigned char *record = l->round.records + (size_t)i * size;

    memcpy(record, pack->record, size);
    l->round.heads[i] = *pack;
    l->round.heads[i].record = record;
    return ps_pack_cost(&l->options.cost, pack, &l->round.costs[i], err);
}

ps_result ps_loader_deal(ps_loader *l, uint64_t n, ps_error *err)
{
    ps_loader_round *round = &l->round;
    const uint32_t ranks = l->options.ranks;
    ps_result r = PS_OK;

    /*
     * The last packs are too few for a round: places that stay empty are dealt
     * as packs without cost, in a round that is no larger than it must be.
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
