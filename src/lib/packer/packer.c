/*
 * packer.c - open, flush, finish and free a packer, and report its results.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packer/emit.h"
#include "packer/group.h"
#include "packer/packer.h"
#include "packer/refill.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

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
    r = ps_settings_set(&p->set, schema, options, err);
    if (r == PS_OK) {
        p->max_blocks = ps_settings_max_blocks(&p->set);
        return PS_OK;
    }
    ps_packer_free(p);
    *packer = NULL;
    return r;
}

ps_result ps_packer_start(ps_packer *p, const ps_output_place *place,
                          ps_error *err)
{
    ps_engine_options engine = ps_settings_engine(&p->set);
    ps_output_options output = ps_settings_output(&p->set);
    ps_histogram *expected;
    uint32_t slots;
    ps_result r = ps_settings_expected(&p->set, &expected, err);

    engine.learn_from = expected;
    if (r == PS_OK)
        r = ps_engine_open(&p->engine, &engine, err);
    ps_histogram_free(expected);
    if (r != PS_OK)
        return r;
    slots = p->engine->n_slots + ps_settings_spare(&p->set);
    p->held = calloc(slots, sizeof *p->held);
    if (p->held == NULL)
        return ps_fail_memory(err);
    r = ps_store_open(&p->store, slots, err);
    if (r != PS_OK)
        return r;
    if (place != NULL) {
        output.written = place->written;
        output.table = place->table;
        output.table_bytes = place->table_bytes;
    }
    p->output.first_pack = p->set.options.first_pack;
    return ps_block_output_open(&p->output, p->fd, &p->set.info, &output, err);
}

ps_result ps_packer_begin(ps_packer *p, bool goes_on, ps_error *err)
{
    const uint64_t first = p->set.options.first_pack;

    if (first > 0 && first < p->output.followed)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state was saved after %" PRIu64 " packs and cannot "
                       "reproduce pack %" PRIu64,
                       p->output.followed, first);
    return ps_block_output_begin(&p->output, goes_on, err);
}

ps_result ps_packer_open(ps_packer **packer, int fd, const ps_schema *schema,
                         const ps_packer_options *options, ps_error *err)
{
    ps_packer *p;
    ps_result r = ps_packer_prepare(&p, fd, schema, options, err);

    *packer = NULL;
    if (p == NULL)
        return r;
    r = ps_packer_start(p, NULL, err);
    if (r == PS_OK)
        r = ps_packer_begin(p, false, err);
    if (r != PS_OK) {
        ps_packer_free(p);
        return r;
    }
    *packer = p;
    return PS_OK;
}

ps_result ps_packer_check_replay(const ps_packer *p, ps_error *err)
{
    const ps_block_output *b = &p->output;

    if (b->proof_packs <= b->followed && !b->differs)
        return PS_OK;
    return ps_fail(err, PS_ERR_CORRUPT,
                   "the input has changed since the state was saved, or was "
                   "flushed differently: the first %" PRIu64 " packs differ",
                   b->proof_packs);
}

/*
 * Packs everything held and ends the stream, after checking that nothing was
 * lost.
 */
static ps_result finish(ps_packer *p, ps_error *err)
{
    ps_result r = ps_packer_emit(p, PS_EMIT_FINISH, err);

    p->finished = true;
    if (r == PS_OK && !ps_totals_balance(&p->totals))
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "internal error: %" PRIu64 " input sequences, but %" PRIu64
                    " packed and %" PRIu64 " rejected",
                    p->totals.input_sequences,
                    p->totals.sequences - p->totals.extra_pieces,
                    p->totals.rejected_sequences);
    if (r == PS_OK)
        r = ps_block_output_settle(&p->output, err);
    if (r == PS_OK)
        r = ps_packer_check_replay(p, err);
    if (r == PS_OK && p->set.options.first_pack > p->totals.packs)
        r = ps_fail(err, PS_ERR_ARGUMENT,
                    "the stream has %" PRIu64 " packs, so none has the index "
                    "%" PRIu64,
                    p->totals.packs, p->set.options.first_pack);
    if (r == PS_OK)
        r = ps_block_output_end(&p->output, &p->totals, err);
    return r == PS_OK ? ps_output_finish(p->output.output, err) : r;
}

ps_result ps_packer_flush(ps_packer *p, ps_flush flush, ps_error *err)
{
    bool packs_all = flush == PS_FLUSH_DRAIN || flush == PS_FLUSH_FINISH;
    ps_result r = PS_OK;

    if (packs_all && p->finished)
        return ps_fail(err, PS_ERR_ARGUMENT, "the stream has ended");
    if (packs_all && ps_refill_waits(p))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the input has changed since the state was saved: fewer "
                       "than %" PRIu64 " sequences arrived",
                       p->totals.input_sequences);
    /* A packer opened from a finished stream has no output. */
    if (p->output.output == NULL)
        return PS_OK;

    if (packs_all)
        r = ps_group_close(p, p->totals.input_sequences, err);
    if (r != PS_OK)
        return r;
    switch (flush) {
    case PS_FLUSH_NOWAIT:
        return ps_output_push(p->output.output, err);
    case PS_FLUSH_DECIDED:
        return ps_output_flush(p->output.output, err);
    case PS_FLUSH_DRAIN:
        r = ps_packer_emit(p, PS_EMIT_DRAIN, err);
        return r == PS_OK ? ps_block_output_settle(&p->output, err) : r;
    case PS_FLUSH_FINISH:
        return finish(p, err);
    case PS_FLUSH_ABANDON:
        p->finished = true;
        return ps_block_output_settle(&p->output, err);
    default:
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "unknown flush mode %u", (unsigned)flush);
    }
}

ps_result ps_packer_replay_verified(ps_packer *p, ps_error *err)
{
    ps_result r = ps_packer_flush(p, PS_FLUSH_DECIDED, err);

    return r == PS_OK ? ps_packer_check_replay(p, err) : r;
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
    return &p->set.info;
}

uint64_t ps_packer_delay(const ps_packer *p)
{
    return p->engine == NULL ? p->ended_delay
                             : ps_mem_max(p->engine->delay, p->ended_delay);
}

ps_groups ps_packer_groups(const ps_packer *p)
{
    return p->groups;
}

ps_scarce ps_packer_scarce(const ps_packer *p)
{
    return p->engine == NULL ? (ps_scarce){0}
                             : (ps_scarce){.by_window = p->engine->scarce,
                                           .by_bytes = p->engine->evicted};
}

void ps_packer_free(ps_packer *p)
{
    uint32_t slots;

    if (p == NULL)
        return;
    slots = p->held == NULL ? 0 : p->engine->window.made;
    for (uint32_t i = 0; i < slots; i++)
        if (p->held[i].block != NULL)
            ps_block_release(p->held[i].block);
    ps_refill_free(p);
    ps_engine_free(p->engine);
    ps_store_free(p->store);
    ps_block_output_free(&p->output);
    free(p->held);
    free(p);
}
