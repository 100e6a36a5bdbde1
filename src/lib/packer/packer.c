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

#include "base/error.h"
#include "format/totals.h"

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
    r = p->info.depth == PS_DEPTH_AUTO ? ps_lookahead_open(p, err)
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

ps_result ps_packer_abandon(ps_packer *p, ps_error *err)
{
    ps_result r;

    p->finished = true;
    if (p->output == NULL)
        return PS_OK;
    r = ps_output_cut(p->output, err);
    return r == PS_OK ? ps_output_flush(p->output, err) : r;
}

ps_result ps_packer_drain(ps_packer *p, ps_error *err)
{
    ps_result r = PS_OK;

    if (p->finished)
        return has_ended(err);
    if (ps_refill_waits(p))
        return is_not_back(p, err);
    if (p->n_lookahead > 0)
        r = ps_lookahead_end(p, err);
    if (r == PS_OK && p->engine != NULL)
        r = ps_packer_emit(p, PS_EMIT_FLUSH, err);
    return r == PS_OK ? ps_packer_flush(p, err) : r;
}

ps_result ps_packer_finish(ps_packer *p, ps_error *err)
{
    ps_result r = PS_OK;

    if (p->finished)
        return has_ended(err);
    if (ps_refill_waits(p))
        return is_not_back(p, err);
    p->finished = true;
    if (p->engine == NULL)
        r = ps_lookahead_end(p, err);
    if (r == PS_OK)
        r = ps_packer_emit(p, PS_EMIT_LAST, err);
    if (r != PS_OK)
        return r;
    if (!ps_totals_balance(&p->totals))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "internal error: %" PRIu64 " sequences came, %" PRIu64
                       " were packed and %" PRIu64 " rejected",
                       p->totals.input_sequences,
                       p->totals.sequences - p->totals.extra_pieces,
                       p->totals.rejected_sequences);
    return ps_packer_end_output(p, err);
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
    if (p == NULL)
        return;
    ps_lookahead_free(p);
    ps_refill_free(p);
    ps_packer_release(p);
    ps_engine_free(p->engine);
    ps_store_free(p->store);
    ps_output_free(p->output);
    ps_length_counts_free(&p->packed);
    free(p->held);
    free(p);
}
