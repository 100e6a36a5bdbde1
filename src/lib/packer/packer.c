/*
 * packer.c - token records in, pack records out: how a stream begins and
 * ends.
 *
 * A packer joins the engine, which decides by lengths alone, with the store
 * of payloads and the output.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packer/packer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bytes.h"
#include "format/pack_header.h"
#include "format/record_layout.h"
#include "format/totals.h"
#include "format/version.h"
#include "io/seek_table.h"

/* More do not fit 64 bits of bytes, however small they are. */
#define MOST_RECORDS (UINT64_MAX / PS_MAX_RECORD_BYTES)

/* Places for concat: of sequences of so many tokens, but so many at least. */
#define CONCAT_MEAN 64
#define CONCAT_DEPTH 16

/* The options as they decide the output, for info.options_digest. */
static uint64_t digest_of_options(const ps_packer_options *o)
{
    unsigned char text[96] = {0};
    const char *policy = ps_policy_name(o->policy);

    store_u32(text, o->capacity);
    store_u32(text + 4, o->depth);
    store_u32(text + 8, o->window);
    store_u32(text + 12, o->pad_id);
    store_u32(text + 16, (uint32_t)o->overlong);
    store_u32(text + 20, (uint32_t)o->order);
    store_u64(text + 24, o->seed);
    memcpy(text + 32, policy, strnlen(policy, 32));
    store_u64(text + 64, o->max_delay);
    store_u64(text + 72, o->max_bytes);
    text[80] = o->even_cost;
    store_u32(text + 84, o->align > 1 ? o->align : 0);
    return XXH3_64bits(text, sizeof text);
}

static ps_result check_policy(const ps_packer_options *o, ps_error *err)
{
    if ((unsigned)o->overlong > PS_OVERLONG_SPLIT)
        return ps_fail(err, PS_ERR_ARGUMENT, "unknown policy for sequences "
                                             "longer than the capacity");
    if (ps_policy_name(o->policy) == NULL)
        return ps_fail(err, PS_ERR_ARGUMENT, "unknown policy for packing");
    if (o->policy == PS_POLICY_CONCAT && o->overlong != PS_OVERLONG_ERROR)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "concat cuts all sequences, so there is nothing to "
                       "do with longer ones");
    return PS_OK;
}

static ps_result check_order(const ps_packer_options *o, ps_error *err)
{
    if ((unsigned)o->order > PS_PACKS_SHUFFLED)
        return ps_fail(err, PS_ERR_ARGUMENT, "unknown order of packs");
    if (o->order == PS_PACKS_SHUFFLED && o->seed == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the seed to shuffle with must not be 0");
    if (o->max_delay > PS_MAX_WINDOW)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the delay must be at most %" PRIu32,
                       PS_MAX_WINDOW);
    return PS_OK;
}

static ps_result check_options(const ps_schema *schema,
                               const ps_packer_options *o, ps_error *err)
{
    ps_result r = check_policy(o, err);

    if (r == PS_OK)
        r = check_order(o, err);
    if (r != PS_OK)
        return r;
    if (o->window == 0 || o->window > PS_MAX_WINDOW)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the window must be between 1 and %" PRIu32,
                       PS_MAX_WINDOW);
    if (o->first_record > 0 && o->compressed)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "a compressed stream cannot start in the middle");
    if (o->first_record > MOST_RECORDS)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "no stream has a pack %" PRIu64, o->first_record);
    if (schema->token_type == PS_U16 && o->pad_id > UINT16_MAX)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the pad id %" PRIu32 " does not fit u16 tokens",
                       o->pad_id);
    return PS_OK;
}

/* The depth where it is not chosen by what comes; AUTO where it is. */
static uint32_t default_depth(const ps_packer_options *o)
{
    if (o->depth != PS_DEPTH_AUTO)
        return o->depth;
    if (o->policy == PS_POLICY_NONE)
        return 1;
    if (o->policy != PS_POLICY_CONCAT)
        return PS_DEPTH_AUTO;
    if (o->capacity > PS_MAX_DEPTH * CONCAT_MEAN)
        return PS_MAX_DEPTH;
    return o->capacity < CONCAT_DEPTH * CONCAT_MEAN
               ? CONCAT_DEPTH
               : o->capacity / CONCAT_MEAN;
}

/* With all defaults worked out; the depth may still be open. */
static ps_packer_options complete_options(const ps_packer_options *options)
{
    ps_packer_options o = *options;
    bool shuffled = o.order == PS_PACKS_SHUFFLED;

    if (o.align == 0)
        o.align = 1;
    o.depth = default_depth(&o);
    if (o.depth > o.capacity / o.align)
        o.depth = o.capacity / o.align;
    if (!shuffled)
        o.seed = 0;
    if (o.max_delay == 0)
        o.max_delay = (uint64_t)o.window * (shuffled ? 4 : 2);
    if (o.max_delay > PS_MAX_WINDOW)
        o.max_delay = PS_MAX_WINDOW;
    return o;
}

/* The header, for options that were completed. */
static ps_result make_info(ps_pack_info *info, const ps_schema *schema,
                           const ps_packer_options *o, ps_error *err)
{
    ps_result r;

    *info = (ps_pack_info){
        .version_major = PS_FORMAT_MAJOR,
        .version_minor = PS_FORMAT_MINOR,
        .capacity = o->capacity,
        .depth = o->depth == PS_DEPTH_AUTO ? 1 : o->depth,
        /* What came since a sequence did is what can overtake it. */
        .window = (uint32_t)o->max_delay,
        .split = o->overlong == PS_OVERLONG_SPLIT ||
                 o->policy == PS_POLICY_CONCAT,
        .align = o->align,
        .pad_id = o->pad_id,
        .schema = *schema,
        .seed = o->seed,
        .options_digest = digest_of_options(o),
        .n_records = PS_UNKNOWN,
        .n_sequences = PS_UNKNOWN,
        .n_tokens = PS_UNKNOWN,
        .max_seqlen = PS_UNKNOWN,
        .min_fill = PS_UNKNOWN,
    };
    r = ps_layout(info, err);
    info->depth = o->depth;
    return r;
}

/* Checks all there is to check, and fills in options and header. */
static ps_result prepare(ps_packer *p, const ps_schema *schema,
                         const ps_packer_options *options, ps_error *err)
{
    uint64_t bytes;
    ps_result r = ps_schema_check(schema, err);

    if (r == PS_OK)
        r = check_options(schema, options, err);
    if (r != PS_OK)
        return r;
    p->options = complete_options(options);
    p->shape = ps_schema_shape(schema);
    r = make_info(&p->info, schema, &p->options, err);
    if (r != PS_OK)
        return r;
    bytes = ps_packer_room(p, p->info.capacity);
    if (p->options.max_bytes != 0 && bytes > p->options.max_bytes)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "a sequence of %" PRIu32 " tokens takes %" PRIu64
                       " bytes of memory, more than the %" PRIu64
                       " that are allowed",
                       p->info.capacity, bytes, p->options.max_bytes);
    return PS_OK;
}

ps_result ps_packer_check(const ps_schema *schema,
                          const ps_packer_options *options, ps_error *err)
{
    ps_packer p = {.fd = -1};

    return prepare(&p, schema, options, err);
}

ps_engine_options ps_packer_engine_options(const ps_packer *p)
{
    return (ps_engine_options){
        .capacity = ps_packer_units(p, p->info.capacity),
        .depth = p->info.depth,
        .window = p->options.window,
        .policy = p->options.policy,
        .order = p->options.order,
        .seed = p->options.seed,
        .max_delay = p->options.max_delay,
        .even_cost = p->options.even_cost,
    };
}

/* The digest starts with the header's checksum. */
static ps_result put_header(ps_packer *p, ps_error *err)
{
    unsigned char header[PS_PACK_HEADER_BYTES];
    ps_result r;

    ps_pack_header_encode(&p->info, header);
    p->digest = ps_pack_digest_begin(header);
    r = ps_sink_put(p->sink, header, sizeof header, err);
    return r == PS_OK ? ps_sink_cut(p->sink, err) : r;
}

/* The checksums are made where there is time for it. */
static void seal_records(void *context, unsigned char *bytes, size_t n)
{
    const ps_packer *p = context;

    for (size_t at = 0; at < n; at += p->info.record_bytes)
        ps_record_seal(bytes + at, p->info.record_bytes);
}

/* A frame holds the same number of records as any other, but the last. */
ps_sink_options ps_packer_sink_options(const ps_packer *p)
{
    size_t record = p->info.record_bytes;

    return (ps_sink_options){
        .largest = record,
        .threads = p->options.threads,
        .compressed = p->options.compressed,
        .level = p->options.level,
        .frame = record * ps_frame_records(p->info.record_bytes),
        .most_frames = p->options.max_frames};
}

static ps_result open_sink(ps_packer *p, const ps_sink_place *place,
                           ps_error *err)
{
    const ps_sink_seal seal = {seal_records, ps_packer_follow, p};
    ps_sink_options options = ps_packer_sink_options(p);

    options.seal = &seal;
    options.written = place->written;
    options.table = place->table;
    options.table_bytes = place->table_bytes;
    return ps_sink_open(&p->sink, p->fd, &options, err);
}

/* All that needs the depth, but for the output. */
static ps_result open_window(ps_packer *p, ps_error *err)
{
    const ps_engine_options options = ps_packer_engine_options(p);
    ps_result r = ps_engine_open(&p->engine, &options, err);

    /* Once more: their places depend on the depth. */
    p->n_lanes = ps_lanes(&p->info, p->lanes);
    p->form = ps_form_of(&p->info);
    if (r != PS_OK)
        return r;
    p->held = calloc(ps_engine_slots(p->engine), sizeof *p->held);
    if (p->held == NULL)
        return ps_fail_memory(err);
    p->most_blocks = ps_packer_most_blocks(p);
    return ps_store_open(&p->store, ps_engine_slots(p->engine), err);
}

/* The header, and what of the packs behind it is not to be written. */
static ps_result begin_output(ps_packer *p, ps_error *err)
{
    uint64_t digest = p->digest;
    uint64_t skip = p->options.first_record - p->totals.packs;
    ps_result r = put_header(p, err);

    /* It is the first link of a chain that may be longer by now. */
    if (p->totals.packs > 0)
        p->digest = digest;
    if (r != PS_OK || skip == 0)
        return r;
    r = ps_sink_flush(p->sink, err);
    ps_sink_discard(p->sink, skip * p->info.record_bytes);
    return r;
}

ps_result ps_packer_start(ps_packer *p, ps_error *err)
{
    const ps_sink_place start = {0};
    ps_result r = open_window(p, err);

    if (r == PS_OK)
        r = open_sink(p, &start, err);
    return r == PS_OK ? begin_output(p, err) : r;
}

ps_result ps_packer_go_on(ps_packer *p, const ps_sink_place *place,
                          ps_error *err)
{
    uint64_t first = p->options.first_record;
    ps_result r;

    if (first > 0 && first < p->totals.packs)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state was saved behind %" PRIu64
                       " packs, and does not lead back to pack %" PRIu64,
                       p->totals.packs, first);
    r = open_window(p, err);
    if (r == PS_OK)
        r = open_sink(p, place, err);
    if (r != PS_OK)
        return r;
    if (first > 0)
        return begin_output(p, err);
    return ps_sink_put(p->sink, place->pending, place->pending_bytes, err);
}

ps_result ps_packer_prepare(ps_packer **packer, int fd,
                            const ps_schema *schema,
                            const ps_packer_options *options, ps_error *err)
{
    ps_packer *p = calloc(1, sizeof *p);
    ps_result r;

    *packer = p;
    if (p == NULL)
        return ps_fail_memory(err);
    p->fd = fd;
    r = prepare(p, schema, options, err);
    if (r == PS_OK)
        r = ps_length_counts_open(&p->packed,
                                  p->info.capacity / p->info.align, err);
    if (r == PS_OK) {
        p->n_lanes = ps_lanes(&p->info, p->lanes);
        return PS_OK;
    }
    ps_packer_free(p);
    *packer = NULL;
    return r;
}

ps_result ps_packer_open(ps_packer **packer, int fd, const ps_schema *schema,
                         const ps_packer_options *options, ps_error *err)
{
    ps_packer *p;
    ps_result r = ps_packer_prepare(&p, fd, schema, options, err);

    *packer = NULL;
    if (p == NULL)
        return r;
    r = p->info.depth == PS_DEPTH_AUTO ? ps_early_open(p, err)
                                       : ps_packer_start(p, err);
    if (r != PS_OK) {
        ps_packer_free(p);
        return r;
    }
    *packer = p;
    return PS_OK;
}

static ps_result has_ended(ps_error *err)
{
    return ps_fail(err, PS_ERR_ARGUMENT, "the stream has ended");
}

static ps_result is_not_back(const ps_packer *p, ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT,
                   "the input is not what it was when the state was saved: "
                   "not all of the %" PRIu64 " sequences before came again",
                   p->totals.input_sequences);
}

/* Nothing but END would be left of it, or less. */
static ps_result check_first(const ps_packer *p, ps_error *err)
{
    if (p->options.first_record <= p->totals.packs)
        return PS_OK;
    return ps_fail(err, PS_ERR_ARGUMENT,
                   "there are %" PRIu64 " packs, none behind them has the "
                   "index %" PRIu64,
                   p->totals.packs, p->options.first_record);
}

ps_result ps_packer_flush(ps_packer *p, ps_error *err)
{
    return p->sink == NULL ? PS_OK : ps_sink_flush(p->sink, err);
}

ps_result ps_packer_abandon(ps_packer *p, ps_error *err)
{
    ps_result r;

    p->finished = true;
    if (p->sink == NULL)
        return PS_OK;
    r = ps_sink_cut(p->sink, err);
    return r == PS_OK ? ps_sink_flush(p->sink, err) : r;
}

ps_result ps_packer_push(ps_packer *p, ps_error *err)
{
    return p->sink == NULL ? PS_OK : ps_sink_push(p->sink, err);
}

ps_result ps_packer_drain(ps_packer *p, ps_error *err)
{
    ps_result r = PS_OK;

    if (p->finished)
        return has_ended(err);
    if (ps_again_waits(p))
        return is_not_back(p, err);
    if (p->n_early > 0)
        r = ps_early_end(p, err);
    if (r == PS_OK && p->engine != NULL)
        r = ps_packer_emit(p, PS_LEAVE_FLUSH, err);
    return r == PS_OK ? ps_packer_flush(p, err) : r;
}

static ps_result put_end(ps_packer *p, ps_error *err)
{
    unsigned char *room;
    uint64_t digest;
    ps_result r =
        ps_sink_reserve(p->sink, p->info.record_bytes, &room, err);

    if (r != PS_OK)
        return r;
    digest = p->digest;
    ps_end_encode(&p->info, &p->totals, digest, room);
    r = ps_sink_finish(p->sink, err);
    /* END itself is no link of the chain. */
    p->digest = digest;
    return r;
}

ps_result ps_packer_finish(ps_packer *p, ps_error *err)
{
    ps_result r = PS_OK;

    if (p->finished)
        return has_ended(err);
    if (ps_again_waits(p))
        return is_not_back(p, err);
    p->finished = true;
    if (p->engine == NULL)
        r = ps_early_end(p, err);
    if (r == PS_OK)
        r = ps_packer_emit(p, PS_LEAVE_LAST, err);
    if (r != PS_OK)
        return r;
    if (!ps_totals_balance(&p->totals))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "internal error: %" PRIu64 " sequences came, %" PRIu64
                       " were packed and %" PRIu64 " rejected",
                       p->totals.input_sequences,
                       p->totals.sequences - p->totals.extra_pieces,
                       p->totals.rejected_sequences);
    r = ps_sink_settle(p->sink, err);
    if (r == PS_OK)
        r = ps_packer_is_proved(p, err);
    if (r == PS_OK)
        r = check_first(p, err);
    return r == PS_OK ? put_end(p, err) : r;
}

const ps_totals *ps_packer_totals(const ps_packer *p)
{
    return &p->totals;
}

ps_rejected ps_packer_rejected(const ps_packer *p, ps_reject reason)
{
    return (unsigned)reason < PS_REJECTS ? p->rejected[reason]
                                         : (ps_rejected){0};
}

const ps_pack_info *ps_packer_info(const ps_packer *p)
{
    return &p->info;
}

uint64_t ps_packer_delay(const ps_packer *p)
{
    uint64_t delay = p->engine == NULL ? 0 : ps_engine_delay(p->engine);

    return delay > p->early_delay ? delay : p->early_delay;
}

ps_result ps_packer_depth_cost(const ps_packer *p, ps_depth_cost *cost,
                               ps_error *err)
{
    *cost = (ps_depth_cost){0};
    /* Some do not care, and no pack has more than a window. */
    if (p->options.policy == PS_POLICY_NONE ||
        p->options.policy == PS_POLICY_CONCAT || p->totals.packs == 0 ||
        p->options.window <= p->info.depth)
        return PS_OK;
    return ps_depth_cost_of(&p->packed, p->info.depth, p->totals.packs, cost,
                            err);
}

void ps_packer_free(ps_packer *p)
{
    if (p == NULL)
        return;
    ps_early_free(p);
    ps_again_free(p);
    ps_packer_release(p);
    ps_engine_free(p->engine);
    ps_store_free(p->store);
    ps_sink_free(p->sink);
    ps_length_counts_free(&p->packed);
    free(p->held);
    free(p);
}
