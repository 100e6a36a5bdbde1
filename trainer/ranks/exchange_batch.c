/*
 * exchange_batch.c - build one batch together with all ranks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ranks/exchange_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "data/error.h"

/* ---- Offers ---- */

/* Records the first failure of this rank.  Returns true if r is PS_OK. */
static bool note(tr_exchange *x, ps_result r)
{
    if (r != PS_OK && x->failed == PS_OK)
        x->failed = r;
    return r == PS_OK;
}

static offer *ours(const tr_exchange *x)
{
    return &x->offers[x->workers->rank];
}

static bool has_source(const tr_exchange *x, uint32_t rank)
{
    return rank == 0 || x->options->input == TR_INPUT_SHARDS;
}

void tr_exchange_expect(tr_exchange *x)
{
    for (uint32_t i = 0; i < x->workers->ranks; i++)
        x->offers[i].more = has_source(x, i);
}

/* Gathers all offers.  Returns false if a rank has failed. */
static bool tell(tr_exchange *x)
{
    ours(x)->failed = x->failed != PS_OK;
    tr_workers_gather(x->workers, x->offers, sizeof *x->offers);
    for (uint32_t i = 0; i < x->workers->ranks; i++)
        x->over = x->over || x->offers[i].failed != 0;
    return !x->over;
}

/* This rank's share of `amount`, divided among ranks that have packs left. */
static uint32_t part_of(const tr_exchange *x, uint64_t amount)
{
    uint64_t before = 0, among = 0;

    for (uint32_t i = 0; i < x->workers->ranks; i++) {
        before += x->offers[i].more != 0 && i < x->workers->rank;
        among += x->offers[i].more != 0;
    }
    if (ours(x)->more == 0)
        return 0;
    return (uint32_t)(amount / among + (before < amount % among));
}

/* Number of packs that the batch still lacks. */
static uint64_t missing(const tr_exchange *x)
{
    uint64_t packs = 0;

    for (uint32_t i = 0; i < x->workers->ranks; i++)
        packs += x->offers[i].packs;
    return packs < x->options->packs ? x->options->packs - packs : 0;
}

static bool some_have_more(const tr_exchange *x)
{
    bool more = false;

    for (uint32_t i = 0; i < x->workers->ranks; i++)
        more = more || x->offers[i].more != 0;
    return more;
}

/* Reads this rank's share, or up to the end of the epoch. */
static void read_part(tr_exchange *x)
{
    const uint32_t packs = x->options->packs;
    const uint32_t part =
        packs > 0 ? part_of(x, missing(x))
                  : part_of(x, x->options->sequences);
    const uint32_t goal =
        part + (packs > 0 ? tr_builder_counts(x->mine).packs : 0);
    tr_batch_counts n = tr_builder_counts(x->mine);
    ps_result r = x->failed;

    while (r == PS_OK && (packs > 0 ? n.packs : n.sequences) < goal) {
        r = tr_source_add(x->source, packs > 0 ? 0 : goal, &x->err);
        n = tr_builder_counts(x->mine);
    }
    if (r == PS_END)
        ours(x)->more = 0;
    else if (!note(x, r))
        return;
    ours(x)->packs = n.packs;
    ours(x)->totals = tr_builder_totals(x->mine);
    if (x->source != NULL)
        ours(x)->position = tr_source_position(x->source);
}

/*
 * With --sequences, each rank contributes its share, or fewer at the end of the
 * epoch.  Other ranks cannot supply the rest, because their next pack might
 * have too many sequences.
 */
static void read_batch(tr_exchange *x)
{
    tr_builder_begin(x->mine);
    for (uint32_t i = 0; i < x->workers->ranks; i++)
        x->offers[i].packs = 0;
    if (x->options->sequences > 0)
        tr_exchange_expect(x);
    do {
        read_part(x);
    } while (tell(x) && missing(x) > 0 && some_have_more(x));
}

/* Reads the next nonempty batch, unless the last epoch has ended. */
static void read_some(tr_exchange *x)
{
    uint64_t packs = 0;

    while (packs == 0 && !x->over) {
        read_batch(x);
        for (uint32_t i = 0; i < x->workers->ranks; i++)
            packs += x->offers[i].packs > 0;
        if (packs > 0 || x->over)
            return;
        x->over = ++x->epoch >= x->options->epochs;
        tr_exchange_expect(x);
        if (!x->over && x->source != NULL && x->failed == PS_OK)
            (void)note(x, tr_source_next_epoch(x->source, &x->err));
    }
}

/* ---- The table ---- */

static bool make_room(tr_exchange *x, numbers *n, uint64_t count)
{
    int32_t *more;

    if (count <= n->room)
        return true;
    more = count > SIZE_MAX / sizeof *n->at
               ? NULL : realloc(n->at, (size_t)count * sizeof *n->at);
    if (more == NULL)
        return note(x, tr_error(&x->err, PS_ERR_MEMORY,
                                "no memory for an exchange"));
    n->at = more;
    n->room = (size_t)count;
    return true;
}

/*
 * Serialises this rank's packs and fills in their rows of the table.  If out of
 * memory, writes dummy rows that pass the checks of other ranks.
 */
static void list_ours(tr_exchange *x)
{
    const tr_batch_counts n = tr_builder_counts(x->mine);
    tr_plan_pack *row = x->plan.packs + x->plan.first[x->workers->rank];
    tr_builder_cursor at = {0};
    int32_t *to;

    if (!make_room(x, &x->own,
                   tr_pack_numbers(n.sequences, (uint32_t)n.tokens))) {
        for (uint32_t i = 0; i < n.packs; i++)
            row[i] = (tr_plan_pack){.pack = {1, 1, 1}};
        return;
    }
    to = x->own.at;
    for (; at.pack < n.packs; row++) {
        const tr_pack_size pack = tr_builder_peek(x->mine, &at);
        const size_t count = (size_t)tr_pack_numbers(pack.n_seq, pack.n_tok);

        tr_builder_get(x->mine, &at, to);
        *row = (tr_plan_pack){.pack = pack,
                              .digest = XXH3_64bits(to, count * sizeof *to)};
        to += count;
    }
}

/*
 * All ranks see an invalid offer or table, and end.  Lack of memory is local
 * and is reported in the ready phase.
 */
static bool make_table(tr_exchange *x)
{
    for (uint32_t i = 0; i < x->workers->ranks; i++)
        x->packs[i] = x->offers[i].packs;
    x->over = !note(x, tr_plan_begin(&x->plan, x->shape.capacity, x->packs,
                                     &x->err));
    if (x->over)
        return false;
    list_ours(x);
    tr_workers_gather_parts(x->workers, x->plan.packs, &x->plan.told,
                            sizeof *x->plan.packs);
    x->over = !note(x, tr_plan_check(&x->plan, &x->err));
    return !x->over;
}

/* ---- Packs ---- */

/* Size of the packs that this rank receives, in numbers. */
static uint64_t arrivals(const tr_exchange *x)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < x->workers->ranks; i++)
        n += (uint64_t)x->plan.got.count[i];
    return n;
}

/* Assigns the packs and makes room for packs that this rank receives. */
static void prepare(tr_exchange *x, slot *s)
{
    const tr_batch_counts n = tr_builder_counts(x->mine);
    uint32_t packs = 0;

    if (!note(x, tr_plan_assign(&x->plan, x->assigner, &s->time.imbalance,
                                &x->err)) ||
        !note(x, tr_plan_count(&x->plan, &x->err)))
        return;
    for (uint32_t i = 0; i < x->plan.n; i++)
        packs += x->plan.to[i] == x->workers->rank;
    if (make_room(x, &x->in, arrivals(x)) &&
        make_room(x, &x->out,
                  tr_pack_numbers(n.sequences, (uint32_t)n.tokens)))
        (void)note(
            x, tr_builder_reserve(s->builder, packs > 0 ? packs : 1, &x->err));
}

static size_t count_of(const tr_exchange *x, uint32_t i)
{
    const tr_pack_size *const pack = &x->plan.packs[i].pack;

    return (size_t)tr_pack_numbers(pack->n_seq, pack->n_tok);
}

/* Groups packs by receiving rank, in stable order. */
static void sort_out(tr_exchange *x)
{
    const uint32_t rank = x->workers->rank;
    const int32_t *from = x->own.at;
    uint64_t *const at = x->plan.loads;

    for (uint32_t i = 0; i < x->workers->ranks; i++)
        at[i] = (uint64_t)x->plan.sent.begin[i];
    for (uint32_t i = x->plan.first[rank]; i < x->plan.first[rank + 1]; i++) {
        const size_t n = count_of(x, i);

        memcpy(x->out.at + at[x->plan.to[i]], from, n * sizeof *from);
        at[x->plan.to[i]] += n;
        from += n;
    }
}

static void trade(tr_exchange *x)
{
    sort_out(x);
    tr_workers_trade(x->workers, x->out.at, &x->plan.sent, x->in.at,
                     &x->plan.got);
}

/* Adds the received packs in batch order. */
static ps_result fill_slot(tr_exchange *x, slot *s)
{
    const int32_t *from = x->in.at;
    ps_result r = PS_OK;

    tr_builder_begin(s->builder);
    for (uint32_t i = 0; i < x->plan.n && r == PS_OK; i++) {
        const tr_plan_pack *const row = &x->plan.packs[i];
        const size_t n = count_of(x, i);

        if (x->plan.to[i] != x->workers->rank)
            continue;
        if (XXH3_64bits(from, n * sizeof *from) != row->digest)
            return tr_error(&x->err, PS_ERR_CORRUPT,
                            "pack %" PRIu32
                            " of a batch arrived damaged from rank %" PRIu32,
                            i, tr_plan_reader(&x->plan, i));
        r = tr_builder_insert(s->builder, i, &row->pack, from, &x->err);
        from += n;
    }
    return r;
}

/* ---- Exchanges ---- */

/* Counts and digest of the whole batch, which all ranks compare. */
static void count_all(tr_exchange *x, slot *s)
{
    const tr_plan *const p = &x->plan;
    tr_batch_totals all = {0};

    for (uint32_t i = 0; i < x->workers->ranks; i++) {
        all.masked += x->offers[i].totals.masked;
        all.labelled += x->offers[i].totals.labelled;
        s->positions[i] = x->offers[i].position;
    }
    for (uint32_t i = 0; i < p->n; i++)
        all.sequences += p->packs[i].pack.n_seq;
    tr_builder_finish_among(s->builder, &all);
    s->count =
        (tr_batch_counts){.packs = p->n,
                          .sequences = (uint32_t)all.sequences,
                          .rows = p->n * p->capacity,
                          .targets = (uint32_t)(all.masked + all.labelled)};
    for (uint32_t i = 0; i < p->n; i++)
        s->count.tokens += p->packs[i].pack.n_tok;
    s->count.digest = XXH3_64bits(p->packs, p->n * sizeof *p->packs);
    s->count.digest = XXH3_64bits_withSeed(p->to, p->n * sizeof *p->to,
                                           s->count.digest);
}

/* All ranks take the same branches, so all or none take part in a phase. */
void tr_exchange_make(tr_exchange *x, slot *s)
{
    read_some(x);
    if (x->over || !make_table(x))
        return;
    if (x->failed == PS_OK)
        prepare(x, s);
    if (!tell(x))
        return;
    trade(x);
    if (note(x, fill_slot(x, s)))
        count_all(x, s);
}
