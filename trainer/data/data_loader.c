/*
 * data_loader.c - read batches from pack streams.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data/data_loader.h"

#include <inttypes.h>
#include <stdlib.h>

#include "data/batch_builder.h"
#include "data/error.h"
#include "data/input_files.h"
#include "data/source.h"
#include "ranks/assigner.h"
#include "ranks/exchange.h"

struct tr_loader {
    tr_loader_options options;
    tr_builder *builder;
    tr_source *source;     /* NULL if rank 0 reads for this rank */
    tr_assigner *assigner; /* NULL with one rank, or if packs are exchanged */
    tr_exchange *exchange; /* NULL if this rank trains on the packs it reads */
    tr_batch_shape shape;
};

/* ---- Opening ---- */

static ps_result check_options(const tr_loader_options *o, ps_error *err)
{
    const uint32_t amount = o->packs > 0 ? o->packs : o->sequences;
    uint32_t pipes = 0;

    for (uint32_t i = 0; i < o->n_names; i++)
        pipes += tr_input_is_stdin(o->names[i]);
    if (pipes > 1 || (pipes == 1 && o->epochs > 1))
        return tr_error(err, PS_ERR_ARGUMENT,
                        "standard input can be read only once");
    if (o->input == TR_INPUT_SHARDS && amount > 0 && amount < o->ranks)
        return tr_error(
            err, PS_ERR_ARGUMENT,
            "--%s=%" PRIu32 " is less than one for each of %" PRIu32
            " ranks with shards",
            o->packs > 0 ? "packs" : "sequences", amount, o->ranks);
    return PS_OK;
}

static bool exchanges(const tr_loader_options *o)
{
    return o->ranks > 1 && o->input != TR_INPUT_SHARED;
}

static bool reads(const tr_loader_options *o)
{
    return o->rank == 0 || o->input != TR_INPUT_RANK0;
}

static ps_result open_source(tr_loader *l, ps_error *err)
{
    ps_result r = tr_source_open(&l->source, &l->options, l->builder, err);

    if (r == PS_OK)
        l->shape = tr_builder_shape(l->builder);
    return r;
}

ps_result tr_loader_open(tr_loader **to, const tr_loader_options *options,
                         ps_error *err)
{
    const bool shares = options->ranks > 1 && !exchanges(options);
    tr_loader *l = calloc(1, sizeof *l);
    ps_result r;

    *to = l;
    if (l == NULL)
        return tr_error(err, PS_ERR_MEMORY, "no memory for a data loader");
    l->options = *options;
    l->options.ahead = exchanges(options);
    l->builder = tr_builder_open(options);
    if (shares)
        l->assigner = tr_assigner_open(options);
    if (l->builder == NULL || (shares && l->assigner == NULL))
        return tr_error(err, PS_ERR_MEMORY, "no memory for a data loader");
    r = check_options(options, err);
    if (r == PS_OK && reads(options))
        r = open_source(l, err);
    if (r == PS_OK && exchanges(options))
        r = tr_exchange_open(&l->exchange, &l->options, l->source, l->builder,
                             err);
    return r;
}

ps_result tr_loader_join(tr_loader *l, const tr_workers *w, ps_error *err)
{
    return l->exchange != NULL
               ? tr_exchange_join(l->exchange, w, &l->shape, err)
               : PS_OK;
}

void tr_loader_free(tr_loader *l)
{
    if (l == NULL)
        return;
    tr_exchange_free(l->exchange);
    tr_source_free(l->source);
    tr_builder_free(l->builder);
    tr_assigner_free(l->assigner);
    free(l);
}

const char *tr_loader_name(const tr_loader *l)
{
    if (l->source != NULL)
        return tr_source_name(l->source);
    return tr_input_is_stdin(l->options.names[0]) ? "stdin"
                                                : l->options.names[0];
}

const tr_batch_shape *tr_loader_shape(const tr_loader *l)
{
    return &l->shape;
}

const tr_batch *tr_loader_batch(const tr_loader *l)
{
    return tr_builder_batch(
        l->exchange != NULL ? tr_exchange_builder(l->exchange) : l->builder);
}

tr_batch_counts tr_loader_counts(const tr_loader *l)
{
    return l->exchange != NULL ? tr_exchange_count(l->exchange)
                               : tr_builder_counts(l->builder);
}

tr_exchange_times tr_loader_times(const tr_loader *l)
{
    return l->exchange != NULL ? tr_exchange_time(l->exchange)
                               : (tr_exchange_times){0};
}

/* ---- Batches ---- */

static bool is_full(const tr_loader *l)
{
    const tr_batch_counts n = tr_builder_counts(l->builder);

    return (l->options.packs > 0 && n.packs == l->options.packs) ||
           (l->options.sequences > 0 && n.sequences == l->options.sequences);
}

/* Adds the next pack, or sets *ended if an epoch ends within the batch. */
static ps_result add_pack(tr_loader *l, bool *ended, ps_error *err)
{
    ps_result r = tr_source_add(l->source, l->options.sequences, err);

    if (r != PS_END)
        return r;
    r = tr_source_next_epoch(l->source, err);
    *ended = r == PS_OK && tr_builder_counts(l->builder).packs > 0;
    return r;
}

static ps_result keep_share(tr_loader *l, ps_error *err)
{
    const uint32_t *ranks;
    ps_result r = tr_assigner_assign(l->assigner, tr_builder_batch(l->builder),
                                     &ranks, err);

    if (r == PS_OK)
        tr_builder_select(l->builder, ranks, l->options.rank);
    return r;
}

ps_result tr_loader_next(tr_loader *l, ps_error *err)
{
    ps_result r = PS_OK;
    bool ended = false;

    if (l->exchange != NULL)
        return tr_exchange_next(l->exchange, err);
    tr_builder_begin(l->builder);
    while (r == PS_OK && !is_full(l) && !ended)
        r = add_pack(l, &ended, err);
    if (r != PS_OK && (r != PS_END || tr_builder_counts(l->builder).packs == 0))
        return r;
    tr_builder_finish(l->builder);
    return l->assigner != NULL ? keep_share(l, err) : PS_OK;
}

/* ---- Input positions ---- */

tr_input_position tr_loader_position(const tr_loader *l)
{
    return l->exchange != NULL ? tr_exchange_positions(l->exchange)[0]
                               : tr_source_position(l->source);
}

const tr_input_position *tr_loader_positions(const tr_loader *l, uint32_t *n)
{
    const bool several = l->exchange != NULL &&
                         l->options.input == TR_INPUT_SHARDS;

    *n = several ? l->options.ranks - 1 : 0;
    return several ? tr_exchange_positions(l->exchange) + 1 : NULL;
}

void tr_loader_limit(tr_loader *l, uint64_t batches)
{
    if (l->exchange != NULL)
        tr_exchange_limit(l->exchange, batches);
}

ps_result tr_loader_resume(tr_loader *l, const tr_input_position *position,
                           ps_error *err)
{
    if (l->exchange != NULL)
        tr_exchange_resume(l->exchange, position->epoch);
    return l->source != NULL ? tr_source_resume(l->source, position, err)
                             : PS_OK;
}
