/*
 * exchange_plan.c - decide which packs move between ranks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ranks/exchange_plan.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "data/error.h"

static bool open_parts(tr_workers_parts *parts, uint32_t ranks)
{
    parts->count = calloc(ranks, sizeof *parts->count);
    parts->begin = calloc(ranks, sizeof *parts->begin);
    return parts->count != NULL && parts->begin != NULL;
}

static void free_parts(tr_workers_parts *parts)
{
    free(parts->count);
    free(parts->begin);
}

ps_result tr_plan_open(tr_plan *p, uint32_t rank, uint32_t ranks, uint32_t max,
                       ps_error *err)
{
    bool opened;

    *p = (tr_plan){.rank = rank,
                   .ranks = ranks,
                   .max = max,
                   .first = calloc((size_t)ranks + 1, sizeof *p->first),
                   .packs = calloc(max, sizeof *p->packs),
                   .costs = calloc(max, sizeof *p->costs),
                   .to = calloc(max, sizeof *p->to),
                   .loads = calloc(ranks, sizeof *p->loads)};
    opened = open_parts(&p->told, ranks);
    opened = open_parts(&p->sent, ranks) && opened;
    opened = open_parts(&p->got, ranks) && opened;
    if (!opened || p->first == NULL || p->packs == NULL ||
        p->costs == NULL || p->to == NULL || p->loads == NULL)
        return tr_error(err, PS_ERR_MEMORY, "no memory for a plan");
    return PS_OK;
}

void tr_plan_free(tr_plan *p)
{
    free(p->first);
    free(p->packs);
    free(p->costs);
    free(p->to);
    free(p->loads);
    free_parts(&p->told);
    free_parts(&p->sent);
    free_parts(&p->got);
}

/* ---- Numbers from other ranks ---- */

/* Row numbers of all packs must fit in an int32_t. */
ps_result tr_plan_begin(tr_plan *p, uint32_t capacity, const uint64_t *packs,
                        ps_error *err)
{
    const uint64_t room = INT32_MAX / capacity;
    uint64_t n = 0;

    p->capacity = capacity;
    for (uint32_t i = 0; i < p->ranks; i++) {
        if (packs[i] > p->max - n)
            return tr_error(
                err, PS_ERR_CORRUPT,
                "rank %" PRIu32 " adds %" PRIu64 " packs to a batch "
                "of %" PRIu64 ", which can have %" PRIu32,
                i, packs[i], n, p->max);
        p->first[i] = (uint32_t)n;
        p->told.begin[i] = (int)n;
        p->told.count[i] = (int)packs[i];
        n += packs[i];
    }
    p->first[p->ranks] = p->n = (uint32_t)n;
    if (n > room)
        return tr_error(err, PS_ERR_LIMIT,
                        "the batch has too many tokens");
    return PS_OK;
}

ps_result tr_plan_check(const tr_plan *p, ps_error *err)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const tr_pack_size *const pack = &p->packs[i].pack;
        const uint64_t n = pack->n_tok;

        if (pack->n_seq == 0 || pack->n_seq > n || n > p->capacity ||
            pack->squares < n || pack->squares > n * n)
            return tr_error(err, PS_ERR_CORRUPT,
                            "rank %" PRIu32 " has a pack of %" PRIu32
                            " sequences and %" PRIu32 " tokens; the limit is %"
                            PRIu32, tr_plan_reader(p, i), pack->n_seq,
                            pack->n_tok, p->capacity);
    }
    return PS_OK;
}

/* ---- Where packs go ---- */

uint32_t tr_plan_reader(const tr_plan *p, uint32_t place)
{
    uint32_t low = 0, high = p->ranks;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (p->first[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static double imbalance_of(const tr_plan *p)
{
    uint64_t most = 0, all = 0;

    memset(p->loads, 0, p->ranks * sizeof *p->loads);
    for (uint32_t i = 0; i < p->n; i++) {
        p->loads[p->to[i]] += p->costs[i];
        all += p->costs[i];
        if (most < p->loads[p->to[i]])
            most = p->loads[p->to[i]];
    }
    return (double)most * p->ranks / (double)all;
}

ps_result tr_plan_assign(tr_plan *p, tr_assigner *s, double *imbalance,
                         ps_error *err)
{
    const uint32_t *dealt;
    ps_result r;

    for (uint32_t i = 0; i < p->n; i++)
        p->costs[i] = tr_assigner_cost(s, p->capacity, p->packs[i].pack.n_tok,
                                       p->packs[i].pack.squares);
    r = tr_assigner_assign_costs(s, p->costs, p->n, &dealt, err);
    if (r != PS_OK)
        return r;
    memcpy(p->to, dealt, p->n * sizeof *p->to);
    *imbalance = imbalance_of(p);
    return PS_OK;
}

/* ---- How much moves ---- */

/* Sums do not overflow: fewer than 2^31 tokens have at most 5 numbers each. */
static bool begin_parts(tr_workers_parts *parts, const uint64_t *counts,
                        uint32_t ranks)
{
    uint64_t begin = 0;

    for (uint32_t i = 0; i < ranks; i++) {
        if (begin + counts[i] > INT_MAX)
            return false;
        parts->begin[i] = (int)begin;
        parts->count[i] = (int)counts[i];
        begin += counts[i];
    }
    return true;
}

static uint64_t numbers_of(const tr_plan *p, uint32_t i)
{
    return tr_pack_numbers(p->packs[i].pack.n_seq, p->packs[i].pack.n_tok);
}

ps_result tr_plan_count(tr_plan *p, ps_error *err)
{
    bool counted;

    memset(p->loads, 0, p->ranks * sizeof *p->loads);
    for (uint32_t i = p->first[p->rank]; i < p->first[p->rank + 1]; i++)
        p->loads[p->to[i]] += numbers_of(p, i);
    counted = begin_parts(&p->sent, p->loads, p->ranks);
    memset(p->loads, 0, p->ranks * sizeof *p->loads);
    for (uint32_t rank = 0; rank < p->ranks; rank++)
        for (uint32_t i = p->first[rank]; i < p->first[rank + 1]; i++)
            p->loads[rank] += p->to[i] == p->rank ? numbers_of(p, i) : 0;
    if (counted && begin_parts(&p->got, p->loads, p->ranks))
        return PS_OK;
    return tr_error(
        err, PS_ERR_LIMIT,
        "a rank would send or receive 2^31 numbers in a step: use "
        "smaller steps");
}
