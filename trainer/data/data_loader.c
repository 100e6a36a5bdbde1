/*
 * data_loader.c - batches out of pack streams.
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
#include "ranks/assignment.h"
#include "ranks/exchange.h"

struct feed {
    feed_options options;
    fill *fill;
    source *source;     /* NULL: the first rank reads for us */
    share *share;       /* NULL: all of it is ours */
    exchange *exchange; /* NULL: what we learn from we read ourselves */
    feed_form form;
};

/* ---- The feed ---- */

static ps_result check_options(const feed_options *o, ps_error *err)
{
    const uint32_t amount = o->packs > 0 ? o->packs : o->sequences;
    uint32_t pipes = 0;

    for (uint32_t i = 0; i < o->n_names; i++)
        pipes += inputs_is_stdin(o->names[i]);
    if (pipes > 1 || (pipes == 1 && o->epochs > 1))
        return error_set(err, PS_ERR_ARGUMENT,
                         "standard input can be read only once");
    if (o->input == FEED_SHARDS && amount > 0 && amount < o->ranks)
        return error_set(
            err, PS_ERR_ARGUMENT,
            "--%s=%" PRIu32 " is less than one for each of %" PRIu32
            " ranks with shards of their own",
            o->packs > 0 ? "packs" : "sequences", amount, o->ranks);
    return PS_OK;
}

static bool exchanges(const feed_options *o)
{
    return o->ranks > 1 && o->input != FEED_SHARED;
}

static bool reads(const feed_options *o)
{
    return o->rank == 0 || o->input != FEED_FIRST;
}

static ps_result open_source(feed *f, ps_error *err)
{
    ps_result r = source_open(&f->source, &f->options, f->fill, err);

    if (r == PS_OK)
        f->form = fill_form(f->fill);
    return r;
}

ps_result feed_open(feed **to, const feed_options *options, ps_error *err)
{
    const bool shares = options->ranks > 1 && !exchanges(options);
    feed *f = calloc(1, sizeof *f);
    ps_result r;

    *to = f;
    if (f == NULL)
        return error_set(err, PS_ERR_MEMORY, "no memory for a feed");
    f->options = *options;
    f->options.ahead = exchanges(options);
    f->fill = fill_open(options);
    if (shares)
        f->share = share_open(options);
    if (f->fill == NULL || (shares && f->share == NULL))
        return error_set(err, PS_ERR_MEMORY, "no memory for a feed");
    r = check_options(options, err);
    if (r == PS_OK && reads(options))
        r = open_source(f, err);
    if (r == PS_OK && exchanges(options))
        r = exchange_open(&f->exchange, &f->options, f->source, f->fill,
                          err);
    return r;
}

ps_result feed_join(feed *f, const workers *w, ps_error *err)
{
    return f->exchange != NULL
               ? exchange_join(f->exchange, w, &f->form, err)
               : PS_OK;
}

void feed_free(feed *f)
{
    if (f == NULL)
        return;
    exchange_free(f->exchange);
    source_free(f->source);
    fill_free(f->fill);
    share_free(f->share);
    free(f);
}

const char *feed_name(const feed *f)
{
    if (f->source != NULL)
        return source_name(f->source);
    return inputs_is_stdin(f->options.names[0]) ? "stdin"
                                                : f->options.names[0];
}

const feed_form *feed_shape(const feed *f)
{
    return &f->form;
}

const bert_batch *feed_batch(const feed *f)
{
    return fill_batch(f->exchange != NULL ? exchange_fill(f->exchange)
                                          : f->fill);
}

feed_counts feed_count(const feed *f)
{
    return f->exchange != NULL ? exchange_count(f->exchange)
                               : fill_count(f->fill);
}

feed_times feed_time(const feed *f)
{
    return f->exchange != NULL ? exchange_time(f->exchange)
                               : (feed_times){0};
}

/* ---- Batches ---- */

static bool is_full(const feed *f)
{
    const feed_counts n = fill_count(f->fill);

    return (f->options.packs > 0 && n.packs == f->options.packs) ||
           (f->options.sequences > 0 && n.sequences == f->options.sequences);
}

/* Adds the next pack, or none where an epoch ended and another begins. */
static ps_result add_pack(feed *f, bool *turned, ps_error *err)
{
    ps_result r = source_add(f->source, f->options.sequences, err);

    if (r != PS_END)
        return r;
    r = source_turn(f->source, err);
    *turned = r == PS_OK;
    return r;
}

static ps_result keep_share(feed *f, ps_error *err)
{
    const uint32_t *ranks;
    ps_result r = share_deal(f->share, fill_batch(f->fill), &ranks, err);

    if (r == PS_OK)
        fill_keep(f->fill, ranks, f->options.rank);
    return r;
}

ps_result feed_next(feed *f, ps_error *err)
{
    ps_result r = PS_OK;
    bool turned = false;

    if (f->exchange != NULL)
        return exchange_next(f->exchange, err);
    fill_begin(f->fill);
    while (r == PS_OK && !is_full(f) &&
           !(turned && fill_count(f->fill).packs > 0))
        r = add_pack(f, &turned, err);
    if (r != PS_OK && (r != PS_END || fill_count(f->fill).packs == 0))
        return r;
    fill_end(f->fill);
    return f->share != NULL ? keep_share(f, err) : PS_OK;
}

/* ---- Places ---- */

feed_place feed_save(const feed *f)
{
    return f->exchange != NULL ? exchange_places(f->exchange)[0]
                               : source_save(f->source);
}

const feed_place *feed_places(const feed *f, uint32_t *n)
{
    const bool several = f->exchange != NULL &&
                         f->options.input == FEED_SHARDS;

    *n = several ? f->options.ranks - 1 : 0;
    return several ? exchange_places(f->exchange) + 1 : NULL;
}

void feed_limit(feed *f, uint64_t batches)
{
    if (f->exchange != NULL)
        exchange_limit(f->exchange, batches);
}

ps_result feed_resume(feed *f, const feed_place *place, ps_error *err)
{
    if (f->exchange != NULL)
        exchange_resume(f->exchange, place->epoch);
    return f->source != NULL ? source_resume(f->source, place, err) : PS_OK;
}
