/*
 * packer.c - opens, flushes, finishes and frees a packer, and tells what it
 * did.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packer/packer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"

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
    r = ps_packer_set_options(p, schema, options, err);
    if (r == PS_OK)
        r = ps_length_counts_open(&p->packed,
                                  p->info.capacity / p->info.align, err);
    if (r == PS_OK) {
        p->n_columns = ps_payload_columns(&p->info, p->columns);
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
    r = p->info.depth == PS_DEPTH_AUTO && options->learn_from == NULL
            ? ps_store_open(&p->lookahead_store, p->options.window, err)
            : ps_packer_start(p, NULL, err);
    if (r != PS_OK) {
        ps_packer_free(p);
        return r;
    }
    *packer = p;
    return PS_OK;
}

ps_result ps_packer_flush(ps_packer *p, ps_flush flush, ps_error *err)
{
    bool packs_all = flush == PS_FLUSH_DRAIN || flush == PS_FLUSH_FINISH;
    ps_result r = PS_OK;

    if (packs_all && p->finished)
        return ps_fail(err, PS_ERR_ARGUMENT, "the stream has ended");
    if (packs_all && ps_refill_waits(p))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the input is not what it was when the state was "
                       "saved: not all of the %" PRIu64
                       " sequences before came again",
                       p->totals.input_sequences);

    switch (flush) {
    case PS_FLUSH_NOWAIT:
        return p->output == NULL ? PS_OK : ps_output_push(p->output, err);
    case PS_FLUSH_DECIDED:
        break;
    case PS_FLUSH_DRAIN:
        if (p->n_lookahead > 0)
            r = ps_lookahead_end(p, err);
        if (r == PS_OK && p->engine != NULL)
            r = ps_packer_emit(p, PS_EMIT_DRAIN, err);
        break;
    case PS_FLUSH_FINISH:
        p->finished = true;
        if (p->engine == NULL)
            r = ps_lookahead_end(p, err);
        if (r == PS_OK)
            r = ps_packer_emit(p, PS_EMIT_FINISH, err);
        if (r == PS_OK && !ps_totals_balance(&p->totals))
            r = ps_fail(err, PS_ERR_CORRUPT,
                        "internal error: %" PRIu64 " sequences came, %" PRIu64
                        " were packed and %" PRIu64 " rejected",
                        p->totals.input_sequences,
                        p->totals.sequences - p->totals.extra_pieces,
                        p->totals.rejected_sequences);
        return r == PS_OK ? ps_packer_end_output(p, err) : r;
    case PS_FLUSH_ABANDON:
        p->finished = true;
        if (p->output != NULL)
            r = ps_output_cut(p->output, err);
        break;
    default:
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "no way to flush has the number %u", (unsigned)flush);
    }
    if (r == PS_OK && p->output != NULL)
        r = ps_output_flush(p->output, err);
    return r;
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
    return &p->info;
}

uint64_t ps_packer_delay(const ps_packer *p)
{
    uint64_t delay = p->engine == NULL ? 0 : p->engine->delay;

    return delay > p->lookahead_delay ? delay : p->lookahead_delay;
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
    uint32_t slots;

    if (p == NULL)
        return;
    slots = p->held == NULL ? 0 : p->engine->n_slots;
    for (uint32_t i = 0; i < slots; i++)
        if (p->held[i].part.block != NULL)
            ps_block_release(p->held[i].part.block);
    ps_lookahead_free(p);
    ps_refill_free(p);
    ps_engine_free(p->engine);
    ps_store_free(p->store);
    ps_output_free(p->output);
    ps_length_counts_free(&p->packed);
    free(p->held);
    free(p);
}
