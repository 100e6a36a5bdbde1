/*
 * packer.c - token records in, pack records out: joins the engine, which
 * decides by lengths alone, with the store of payloads and the output.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "bytes.h"
#include "engine.h"
#include "error.h"
#include "layout.h"
#include "pack_header.h"
#include "record.h"
#include "schema.h"
#include "sink.h"
#include "store.h"
#include "totals.h"
#include "version.h"

/* What a slot of the window stands for. */
typedef struct held {
    uint64_t id;
    uint32_t seq_off;
    uint32_t seq_len;
} held;

struct ps_packer {
    ps_pack_info info;
    ps_overlong overlong;
    bool finished;
    ps_shape shape;
    ps_lane lanes[PS_MAX_FIELDS]; /* in payload order */
    uint32_t n_lanes;
    ps_engine *engine;
    ps_store *store;
    held *held; /* by slot */
    ps_sink *sink;
    XXH3_state_t *digest;
    ps_totals totals;
    uint64_t next_id;    /* sequences still to be admitted have this id
                            or a greater one */
    uint64_t newest_out; /* greatest id that has left */
};

/* The options as they decide the output, for info.options_digest. */
static uint64_t digest_of_options(const ps_packer_options *o,
                                  uint32_t depth, const ps_policy *policy)
{
    unsigned char text[64] = {0};

    store_u32(text, o->capacity);
    store_u32(text + 4, depth);
    store_u32(text + 8, o->window);
    store_u32(text + 12, o->pad_id);
    store_u32(text + 16, (uint32_t)o->overlong);
    memcpy(text + 32, policy->name, strnlen(policy->name, 32));
    return XXH3_64bits(text, sizeof text);
}

static ps_result check_options(const ps_schema *schema,
                               const ps_packer_options *o, ps_error *err)
{
    if ((unsigned)o->overlong > PS_OVERLONG_SPLIT)
        return ps_fail(err, PS_ERR_ARGUMENT, "unknown policy for sequences "
                                             "longer than the capacity");
    if (schema->token_type == PS_U16 && o->pad_id > UINT16_MAX)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the pad id %" PRIu32 " does not fit u16 tokens",
                       o->pad_id);
    return PS_OK;
}

static ps_result make_info(ps_pack_info *info, const ps_schema *schema,
                           const ps_packer_options *o, ps_error *err)
{
    uint32_t depth = o->depth < o->capacity ? o->depth : o->capacity;
    ps_result r = ps_schema_check(schema, err);

    if (r == PS_OK)
        r = check_options(schema, o, err);
    if (r != PS_OK)
        return r;
    *info = (ps_pack_info){
        .version_major = PS_FORMAT_MAJOR,
        .version_minor = PS_FORMAT_MINOR,
        .capacity = o->capacity,
        .depth = depth,
        .window = o->window,
        .split = o->overlong == PS_OVERLONG_SPLIT,
        .pad_id = o->pad_id,
        .schema = *schema,
        .options_digest = digest_of_options(o, depth, &ps_policy_exact),
        .n_records = PS_UNKNOWN,
        .n_sequences = PS_UNKNOWN,
        .n_tokens = PS_UNKNOWN,
        .max_seqlen = PS_UNKNOWN,
        .min_fill = PS_UNKNOWN,
    };
    return ps_layout(info, err);
}

ps_result ps_packer_check(const ps_schema *schema,
                          const ps_packer_options *options, ps_error *err)
{
    ps_pack_info info;

    return make_info(&info, schema, options, err);
}

/* The digest starts with the header's checksum. */
static ps_result put_header(ps_packer *p, ps_error *err)
{
    unsigned char header[PS_PACK_HEADER_BYTES];

    ps_pack_header_encode(&p->info, header);
    ps_pack_digest_begin(p->digest, header);
    return ps_sink_put(p->sink, header, sizeof header, err);
}

static ps_result open_parts(ps_packer *p, int fd, ps_error *err)
{
    const ps_pack_info *info = &p->info;
    ps_result r = PS_OK;

    p->shape = ps_schema_shape(&info->schema);
    p->n_lanes = ps_lanes(info, p->lanes);
    p->digest = XXH3_createState();
    p->held = calloc(info->window, sizeof *p->held);
    if (p->digest == NULL || p->held == NULL)
        r = ps_fail_memory(err);
    if (r == PS_OK)
        r = ps_engine_open(&p->engine, &ps_policy_exact, info->capacity,
                           info->depth, info->window, err);
    if (r == PS_OK)
        r = ps_store_open(&p->store, info->window, err);
    if (r == PS_OK)
        r = ps_sink_open(&p->sink, fd, info->record_bytes, err);
    if (r == PS_OK)
        r = put_header(p, err);
    return r;
}

ps_result ps_packer_open(ps_packer **packer, int fd, const ps_schema *schema,
                         const ps_packer_options *options, ps_error *err)
{
    ps_packer *p = calloc(1, sizeof *p);
    ps_result r;

    *packer = NULL;
    if (p == NULL)
        return ps_fail_memory(err);
    p->overlong = options->overlong;
    r = make_info(&p->info, schema, options, err);
    if (r == PS_OK)
        r = open_parts(p, fd, err);
    if (r != PS_OK) {
        ps_packer_free(p);
        return r;
    }
    *packer = p;
    return PS_OK;
}

/* Copies a payload from the store to the lanes of a record. */
static void copy_payload(const ps_packer *p, const ps_record *record,
                         uint32_t slot, uint32_t n_tok)
{
    ps_store_cursor cursor = ps_store_start(p->store, slot);

    for (uint32_t l = 0; l < p->n_lanes; l++) {
        const ps_lane *lane = &p->lanes[l];
        size_t first = lane->per_token ? record->n_tok : record->n_seq;
        size_t n = lane->per_token ? n_tok : 1;

        ps_store_read(p->store, &cursor,
                      record->bytes + lane->offset + first * lane->bytes,
                      n * lane->bytes);
    }
}

static void emit_sequence(ps_packer *p, ps_record *record, uint32_t slot)
{
    const held *h = &p->held[slot];
    ps_piece piece = {.id = h->id,
                      .n_tok = ps_engine_length(p->engine, slot),
                      .seq_off = h->seq_off,
                      .seq_len = h->seq_len};

    copy_payload(p, record, slot, piece.n_tok);
    ps_store_clear(p->store, slot);
    ps_record_add(record, &piece);
}

/* How far the sequences of a pack fell behind the newest that has left. */
static void note_displacement(ps_packer *p, const uint32_t *slots,
                              uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (p->held[slots[i]].id > p->newest_out)
            p->newest_out = p->held[slots[i]].id;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t behind = p->newest_out - p->held[slots[i]].id;

        if (behind > p->totals.max_displacement)
            p->totals.max_displacement = behind;
    }
}

/* Ids below it have left: that of the oldest held, or the next to come. */
static uint64_t watermark(const ps_packer *p)
{
    uint32_t oldest = ps_engine_oldest(p->engine);

    return oldest == PS_NO_SLOT ? p->next_id : p->held[oldest].id;
}

static ps_result emit_pack(ps_packer *p, const uint32_t *slots, uint32_t n,
                           ps_error *err)
{
    unsigned char checksum[8];
    unsigned char *room;
    ps_record record;
    ps_result r = ps_sink_reserve(p->sink, p->info.record_bytes, &room, err);

    if (r != PS_OK)
        return r;
    record = ps_record_begin(&p->info, room);
    for (uint32_t i = 0; i < n; i++)
        emit_sequence(p, &record, slots[i]);
    note_displacement(p, slots, n);
    store_u64(checksum,
              ps_record_end(&record, p->totals.packs, watermark(p)));
    (void)XXH3_64bits_update(p->digest, checksum, sizeof checksum);
    ps_totals_add_pack(&p->totals, record.n_seq, record.n_tok,
                       record.max_seqlen);
    return PS_OK;
}

/* Emits all packs that are due. */
static ps_result emit_due(ps_packer *p, bool flush, ps_error *err)
{
    const uint32_t *slots;
    uint32_t n;
    ps_result r = PS_OK;

    while (r == PS_OK &&
           (n = ps_engine_decide(p->engine, flush, &slots)) > 0)
        r = emit_pack(p, slots, n, err);
    return r;
}

/* Stores the part of a sequence's payload that belongs to a piece. */
static ps_result store_piece(ps_packer *p, uint32_t slot,
                             const ps_sequence *sequence, uint32_t off,
                             uint32_t n_tok, ps_error *err)
{
    uint64_t fixed_at = (uint64_t)p->shape.per_token * sequence->n_tok;
    ps_result r = PS_OK;

    if (n_tok == sequence->n_tok)
        return ps_store_append(p->store, slot, sequence->payload,
                               (size_t)(fixed_at + p->shape.fixed), err);
    for (uint32_t l = 0; l < p->n_lanes && r == PS_OK; l++) {
        const ps_lane *lane = &p->lanes[l];
        uint64_t at = lane->per_token
                          ? (uint64_t)lane->before * sequence->n_tok +
                                (uint64_t)off * lane->bytes
                          : fixed_at + lane->before;
        size_t n = lane->per_token ? n_tok : 1;

        r = ps_store_append(p->store, slot, sequence->payload + at,
                            n * lane->bytes, err);
    }
    return r;
}

static ps_result admit(ps_packer *p, const ps_sequence *sequence,
                       uint32_t off, uint32_t n_tok, ps_error *err)
{
    uint32_t slot = ps_engine_admit(p->engine, n_tok);
    ps_result r = store_piece(p, slot, sequence, off, n_tok, err);

    p->held[slot] = (held){sequence->id, off, sequence->n_tok};
    if (r != PS_OK)
        return r;
    return emit_due(p, false, err);
}

static ps_result put_truncated(ps_packer *p, const ps_sequence *sequence,
                               ps_error *err)
{
    p->totals.truncated_sequences++;
    p->totals.truncated_tokens += sequence->n_tok - p->info.capacity;
    return admit(p, sequence, 0, p->info.capacity, err);
}

/* Until the last piece is in, the sequence's own id is still to come. */
static ps_result put_split(ps_packer *p, const ps_sequence *sequence,
                           ps_error *err)
{
    uint32_t left = sequence->n_tok;
    ps_result r = PS_OK;

    p->totals.split_sequences++;
    p->next_id = sequence->id;
    while (left > 0 && r == PS_OK) {
        uint32_t n = left < p->info.capacity ? left : p->info.capacity;

        if (n == left)
            p->next_id = sequence->id + 1;
        else
            p->totals.extra_pieces++;
        r = admit(p, sequence, sequence->n_tok - left, n, err);
        left -= n;
    }
    return r;
}

static ps_result put_overlong(ps_packer *p, const ps_sequence *sequence,
                              ps_error *err)
{
    switch (p->overlong) {
    case PS_OVERLONG_DROP:
        p->totals.rejected_sequences++;
        p->totals.rejected_tokens += sequence->n_tok;
        return PS_OK;
    case PS_OVERLONG_TRUNCATE:
        return put_truncated(p, sequence, err);
    case PS_OVERLONG_SPLIT:
        return put_split(p, sequence, err);
    case PS_OVERLONG_ERROR:
        break;
    }
    return ps_fail(err, PS_ERR_OVERLONG,
                   "record %" PRIu64 " at byte %" PRIu64 ": %" PRIu32
                   " tokens, more than the capacity of %" PRIu32,
                   sequence->id, sequence->offset, sequence->n_tok,
                   p->info.capacity);
}

/* A payload may be left out only where it will not be looked at. */
static bool is_payload_right(const ps_packer *p, const ps_sequence *sequence,
                             uint64_t bytes)
{
    if (sequence->payload == NULL)
        return sequence->n_tok > p->info.capacity &&
               (p->overlong == PS_OVERLONG_DROP ||
                p->overlong == PS_OVERLONG_ERROR);
    return sequence->payload_bytes == bytes;
}

static ps_result check_sequence(const ps_packer *p,
                                const ps_sequence *sequence, ps_error *err)
{
    uint64_t bytes =
        (uint64_t)p->shape.per_token * sequence->n_tok + p->shape.fixed;

    if (p->finished)
        return ps_fail(err, PS_ERR_ARGUMENT, "the stream has ended");
    if (sequence->id != p->totals.input_sequences)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "sequence %" PRIu64 " comes where %" PRIu64 " is due",
                       sequence->id, p->totals.input_sequences);
    if (sequence->n_tok == 0 || !is_payload_right(p, sequence, bytes))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "sequence %" PRIu64 " has %" PRIu32
                       " tokens, but not a payload for them",
                       sequence->id, sequence->n_tok);
    if (sequence->payload != NULL && bytes > PS_MAX_SEQUENCE_BYTES)
        return ps_fail(err, PS_ERR_LIMIT,
                       "sequence %" PRIu64 " is %" PRIu64
                       " bytes, the limit is %" PRIu32,
                       sequence->id, bytes, PS_MAX_SEQUENCE_BYTES);
    return PS_OK;
}

ps_result ps_packer_put(ps_packer *p, const ps_sequence *sequence,
                        ps_error *err)
{
    ps_result r = check_sequence(p, sequence, err);

    if (r != PS_OK)
        return r;
    p->totals.input_sequences++;
    p->totals.input_tokens += sequence->n_tok;
    p->next_id = sequence->id + 1;
    if (sequence->n_tok > p->info.capacity)
        return put_overlong(p, sequence, err);
    return admit(p, sequence, 0, sequence->n_tok, err);
}

ps_result ps_packer_flush(ps_packer *p, ps_error *err)
{
    return ps_sink_flush(p->sink, err);
}

static ps_result put_end(ps_packer *p, ps_error *err)
{
    unsigned char *room;
    ps_result r = ps_sink_reserve(p->sink, p->info.record_bytes, &room, err);

    if (r != PS_OK)
        return r;
    ps_end_encode(&p->info, &p->totals, XXH3_64bits_digest(p->digest), room);
    return ps_sink_flush(p->sink, err);
}

ps_result ps_packer_finish(ps_packer *p, ps_error *err)
{
    ps_result r;

    if (p->finished)
        return ps_fail(err, PS_ERR_ARGUMENT, "the stream has ended");
    p->finished = true;
    r = emit_due(p, true, err);
    if (r != PS_OK)
        return r;
    if (!ps_totals_balance(&p->totals))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "internal error: %" PRIu64 " sequences came, %" PRIu64
                       " were packed and %" PRIu64 " rejected",
                       p->totals.input_sequences,
                       p->totals.sequences - p->totals.extra_pieces,
                       p->totals.rejected_sequences);
    return put_end(p, err);
}

const ps_totals *ps_packer_totals(const ps_packer *p)
{
    return &p->totals;
}

const ps_pack_info *ps_packer_info(const ps_packer *p)
{
    return &p->info;
}

void ps_packer_free(ps_packer *p)
{
    if (p == NULL)
        return;
    ps_engine_free(p->engine);
    ps_store_free(p->store);
    ps_sink_free(p->sink);
    (void)XXH3_freeState(p->digest);
    free(p->held);
    free(p);
}
