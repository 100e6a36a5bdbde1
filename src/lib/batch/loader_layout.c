/*
 * loader_layout.c - options of a loader, and the layout of its buffers.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/loader.h"

#include <inttypes.h>

#include "base/error.h"
#include "batch/spans.h"
#include "bytes.h"

/* Size of the packs to read ahead, in bytes. */
#define AHEAD_BYTES ((uint64_t)1 << 20)

/* Limits on the number of batches to read ahead. */
#define AHEAD_MIN 3
#define AHEAD_MAX 256

static ps_result check_options(const ps_loader_options *o, ps_error *err)
{
    if (o->packs == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "a batch needs at least one pack");
    if (o->rank >= o->ranks)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "rank %" PRIu32 " is out of range: there are %" PRIu32
                       " ranks, numbered from 0",
                       o->rank, o->ranks);
    if (!ps_is_view(o->view))
        return ps_fail(err, PS_ERR_ARGUMENT, "unknown view %d",
                       (int)o->view);
    if (o->last != PS_LAST_SHORT && o->last != PS_LAST_DROP &&
        o->last != PS_LAST_PAD)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "unknown handling of the last batch: %d",
                       (int)o->last);
    if (o->last == PS_LAST_PAD && o->view == PS_VIEW_RAGGED)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the ragged view cannot pad a batch with empty packs");

    if (o->keep >= PS_LOADER_BUFFERS || o->buffers > PS_LOADER_BUFFERS)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "too many buffers: the limit is %d",
                       PS_LOADER_BUFFERS);
    if (o->buffers == 0 && o->memory != NULL)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the number of buffers is missing");
    if (o->buffers != 0 && o->buffers <= o->keep)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "keeping %" PRIu32 " batches takes more than %" PRIu32
                       " buffers",
                       o->keep, o->buffers);
    for (uint32_t i = 0; o->memory != NULL && i < o->buffers; i++)
        if (o->memory[i] == NULL || (uintptr_t)o->memory[i] % 16 != 0)
            return ps_fail(err, PS_ERR_ARGUMENT,
                           "buffer %" PRIu32 " is not aligned to 16 bytes",
                           i);
    return PS_OK;
}

/*
 * Later streams can have deeper packs than the first header declares.  Only a
 * view with a fixed number of slots cannot represent them.
 */
uint32_t ps_loader_places(const ps_pack_info *info, ps_view view)
{
    ps_pack_info any = *info;

    if (view != PS_VIEW_STATIC)
        any.depth = 0;
    return ps_max_sequences(&any);
}

/* Sums cannot overflow: all sizes are below 2^62 for any valid input. */
static ps_result lay_out(const ps_pack_info *info,
                         const ps_loader_options *o, ps_loader_layout *layout,
                         ps_error *err)
{
    const uint64_t packs = o->packs;
    const uint64_t places = packs * ps_loader_places(info, o->view);
    const uint64_t spans = places + packs;
    const uint64_t rows = packs * info->capacity;
    const uint64_t cu = packs * info->row_bytes;
    const uint64_t n_seqs = round_up(cu + 4 * (spans + 1), 16);
    const uint64_t lengths = round_up(n_seqs + 4 * packs, 16);
    const bool gaps = info->align > 1;
    const uint64_t sequences = round_up(lengths + 4 * places * gaps, 16);
    const uint64_t bytes = round_up(sequences + places * info->seq_bytes, 64);

    if (spans >= INT32_MAX || rows > INT32_MAX)
        return ps_fail(err, PS_ERR_LIMIT,
                       "%" PRIu32 " packs have more than 2^31 - 1 rows or "
                       "spans: use smaller batches",
                       o->packs);
    if (bytes > SIZE_MAX / 2)
        return ps_fail(err, PS_ERR_LIMIT,
                       "a batch of %" PRIu64 " bytes is too large: use smaller "
                       "batches", bytes);
    *layout = (ps_loader_layout){.rows = 0,
                                 .cu = (size_t)cu,
                                 .n_seqs = (size_t)n_seqs,
                                 .lengths = gaps ? (size_t)lengths : 0,
                                 .sequences = (size_t)sequences,
                                 .bytes = (size_t)bytes};
    return PS_OK;
}

ps_result ps_loader_settle(const ps_pack_info *info,
                           const ps_loader_options *options,
                           ps_loader_options *settled,
                           ps_loader_layout *layout, ps_error *err)
{
    ps_loader_options *o = settled;
    uint64_t ahead;
    ps_result r;

    *o = *options;
    if (o->ranks == 0)
        o->ranks = 1;
    if (o->keep == 0)
        o->keep = 1;
    r = check_options(o, err);
    if (r == PS_OK)
        r = lay_out(info, o, layout, err);
    if (r != PS_OK || o->buffers != 0)
        return r;

    ahead = AHEAD_BYTES / ((uint64_t)o->packs * info->row_bytes);
    ahead = ahead < AHEAD_MIN ? AHEAD_MIN : ahead;
    o->buffers = o->keep + (uint32_t)(ahead < AHEAD_MAX ? ahead : AHEAD_MAX);
    return PS_OK;
}

ps_result ps_loader_plan(const ps_pack_info *info,
                         const ps_loader_options *options,
                         ps_loader_layout *layout, ps_error *err)
{
    ps_loader_options o = *options;

    /* The layout is needed before the caller can allocate the buffers. */
    if (o.buffers != 0)
        o.memory = NULL;
    return ps_loader_settle(info, &o, &o, layout, err);
}
