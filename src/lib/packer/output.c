/*
 * output.c - how the stream of packs begins and ends, its digest, and the
 * proof that packs that are made anew are those that were made before.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "format/digest.h"
#include "format/pack_header.h"
#include "packer/packer.h"

/* ---- The hooks of the output ---- */

/* The checksums are made by the threads that write. */
static void finalize_records(void *context, unsigned char *bytes, size_t n)
{
    const ps_packer *p = context;

    for (size_t at = 0; at < n; at += p->info.record_bytes)
        ps_record_finalize(bytes + at, p->info.record_bytes);
}

/* The digest is a chain of the checksums, so one link proves all before. */
static void follow(void *context, const unsigned char *bytes, size_t n)
{
    ps_packer *p = context;
    ps_replay *replay = &p->replay;

    for (size_t at = 0; at < n; at += p->info.record_bytes) {
        p->digest = ps_pack_digest(p->digest, bytes + at);
        replay->followed++;
        if (replay->followed == replay->packs && p->digest != replay->digest)
            replay->differs = true;
    }
}

static void end_frame(void *context)
{
    ps_packer *p = context;

    p->frames_digest = p->digest;
}

ps_result ps_packer_check_replay(const ps_packer *p, ps_error *err)
{
    if (p->replay.packs <= p->replay.followed && !p->replay.differs)
        return PS_OK;
    return ps_fail(err, PS_ERR_CORRUPT,
                   "the input is not what it was when the state was saved, "
                   "or was flushed elsewhere: the first %" PRIu64
                   " packs are other ones",
                   p->replay.packs);
}

/* ---- The beginning ---- */

/* Writes the header, and has packs that are not asked for left out. */
static ps_result put_header(ps_packer *p, ps_error *err)
{
    uint64_t skip = p->options.first_record - p->totals.packs;
    unsigned char header[PS_PACK_HEADER_BYTES];
    ps_result r;

    ps_pack_header_encode(&p->info, header);
    /* A header in front of later packs does not restart the digest. */
    if (p->totals.packs == 0)
        p->digest = ps_pack_digest_begin(header);
    r = ps_output_put(p->output, header, sizeof header, err);
    if (r == PS_OK)
        r = ps_output_cut(p->output, err);
    if (r != PS_OK || skip == 0)
        return r;
    r = ps_output_flush(p->output, err);
    ps_output_discard(p->output, skip * p->info.record_bytes);
    return r;
}

ps_result ps_packer_start(ps_packer *p, const ps_output_place *place,
                          ps_error *err)
{
    const ps_output_finalizer finalizer = {finalize_records, follow, end_frame,
                                           p};
    uint64_t first = p->options.first_record;
    ps_engine_options engine;
    ps_output_options output;
    ps_histogram *expected;
    ps_result r;

    if (first > 0 && first < p->totals.packs)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state was saved behind %" PRIu64
                       " packs, and does not lead back to pack %" PRIu64,
                       p->totals.packs, first);

    /* What the engine is to learn from chooses a depth that is open. */
    r = ps_packer_expected(p, &expected, err);
    if (r == PS_OK && p->info.depth == PS_DEPTH_AUTO)
        r = ps_packer_choose_depth(p, expected, err);
    engine = ps_packer_engine_options(p);
    engine.learn_from = expected;
    if (r == PS_OK)
        r = ps_engine_open(&p->engine, &engine, err);
    ps_histogram_free(expected);
    if (r != PS_OK)
        return r;

    /* The places of the fields in a record depend on the depth, too. */
    p->n_columns = ps_payload_columns(&p->info, p->columns);
    p->form = ps_form_of(&p->info);
    p->max_blocks = ps_packer_max_blocks(p);
    p->held = calloc(p->engine->n_slots, sizeof *p->held);
    if (p->held == NULL)
        return ps_fail_memory(err);
    r = ps_store_open(&p->store, p->engine->n_slots, err);
    if (r != PS_OK)
        return r;

    output = ps_packer_output_options(p);
    output.finalizer = &finalizer;
    if (place != NULL) {
        output.written = place->written;
        output.table = place->table;
        output.table_bytes = place->table_bytes;
    }
    r = ps_output_open(&p->output, p->fd, &output, err);
    if (r != PS_OK)
        return r;
    if (place == NULL || first > 0)
        return put_header(p, err);
    return ps_output_put(p->output, place->pending, place->pending_bytes, err);
}

/* ---- The end ---- */

ps_result ps_packer_end_output(ps_packer *p, ps_error *err)
{
    unsigned char *record;
    uint64_t digest;
    ps_result r = ps_output_settle(p->output, err);

    if (r == PS_OK)
        r = ps_packer_check_replay(p, err);
    if (r == PS_OK && p->options.first_record > p->totals.packs)
        r = ps_fail(err, PS_ERR_ARGUMENT,
                    "there are %" PRIu64 " packs, none behind them has the "
                    "index %" PRIu64,
                    p->totals.packs, p->options.first_record);
    if (r == PS_OK)
        r = ps_output_reserve(p->output, p->info.record_bytes, &record, err);
    if (r != PS_OK)
        return r;
    digest = p->digest;
    ps_end_encode(&p->info, &p->totals, digest, record);
    r = ps_output_finish(p->output, err);
    /* END itself is no link of the chain. */
    p->digest = digest;
    return r;
}
