/*
 * loader_layout.c - the options of a loader, and where everything lies in its
 * buffers.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/loader.h"

#include <inttypes.h>

#include "base/error.h"
#include "batch/spans.h"
#include "bytes.h"

/*
 * Small batches are read in groups of so many bytes.  All that is filled
 * ahead should stay in the caches.
 */
#define GROUP_BYTES ((uint64_t)256 << 10)
#define GROUP_MAX 64

static ps_result check_options(const ps_loader_options *o, ps_error *err)
{
    if (o->packs == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "a batch has at least one pack");
    if (o->rank >= o->ranks)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "rank %" PRIu32 " is not one of %" PRIu32
                       ", which count from 0",
                       o->rank, o->ranks);
    if (!ps_is_view(o->view))
        return ps_fail(err, PS_ERR_ARGUMENT, "there is no view %d",
                       (int)o->view);
    if (o->last != PS_LAST_SHORT && o->last != PS_LAST_DROP &&
        o->last != PS_LAST_PAD)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "no last batches are of kind %d", (int)o->last);
    if (o->last == PS_LAST_PAD && o->view == PS_VIEW_RAGGED)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the ragged view has no packs of padding");

    if (o->keep >= PS_LOADER_BUFFERS || o->buffers > PS_LOADER_BUFFERS)
        return ps_fail(err, PS_ERR_ARGUMENT, "more than %d buffers",
                       PS_LOADER_BUFFERS);
    if (o->buffers == 0 && o->memory != NULL)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "how many buffers there are is not said");
    if (o->buffers != 0 && o->buffers <= o->keep)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "to keep %" PRIu32 " batches takes more than %" PRIu32
                       " buffers",
                       o->keep, o->buffers);
    for (uint32_t i = 0; o->memory != NULL && i < o->buffers; i++)
        if (o->memory[i] == NULL || (uintptr_t)o->memory[i] % 16 != 0)
            return ps_fail(err, PS_ERR_ARGUMENT,
                           "buffer %" PRIu32
                           " does not lie at a multiple of 16 bytes",
                           i);
    return PS_OK;
}

/* No size can overflow: all stay below 2^62, whatever the numbers. */
static ps_result lay_out(const ps_pack_info *info, uint32_t packs,
                         ps_loader_layout *layout, ps_error *err)
{
    const uint64_t cu = (uint64_t)packs * info->record_bytes;
    const uint64_t spans = (uint64_t)packs * ((uint64_t)info->depth + 1);
    const uint64_t rows = (uint64_t)packs * info->capacity;
    const uint64_t n_seqs = round_up(cu + 4 * (spans + 1), 16);
    const uint64_t lengths = round_up(n_seqs + 4 * (uint64_t)packs, 16);
    const uint64_t places =
        info->seq_tok_field == 0 ? 0 : (uint64_t)packs * info->depth;
    const uint64_t bytes = round_up(lengths + 4 * places, 64);

    if (spans >= INT32_MAX || rows > INT32_MAX)
        return ps_fail(err, PS_ERR_LIMIT,
                       "%" PRIu32 " packs have more rows or spans than 31 "
                       "bits can count",
                       packs);
    if (bytes > SIZE_MAX / 2)
        return ps_fail(err, PS_ERR_LIMIT,
                       "a batch takes %" PRIu64 " bytes", bytes);
    *layout = (ps_loader_layout){.records = 0,
                                 .cu = (size_t)cu,
                                 .n_seqs = (size_t)n_seqs,
                                 .lengths = places == 0 ? 0 : (size_t)lengths,
                                 .bytes = (size_t)bytes};
    return PS_OK;
}

uint32_t ps_loader_group(uint64_t bytes)
{
    const uint64_t n = GROUP_BYTES / bytes;

    if (n < 2)
        return 1;
    return n < GROUP_MAX ? (uint32_t)n : GROUP_MAX;
}

ps_result ps_loader_settle(const ps_pack_info *info,
                           const ps_loader_options *options,
                           ps_loader_options *settled,
                           ps_loader_layout *layout, ps_error *err)
{
    ps_loader_options *o = settled;
    uint32_t group, round, min;
    ps_result r;

    *o = *options;
    if (o->ranks == 0)
        o->ranks = 1;
    if (o->keep == 0)
        o->keep = 1;
    r = check_options(o, err);
    if (r == PS_OK)
        r = lay_out(info, o->packs, layout, err);
    if (r != PS_OK || o->buffers != 0)
        return r;

    /*
     * As many buffers as do well: for each thread a group that is filled and
     * one that is being filled, but fewer of large batches.  A multiple of a
     * round gives each thread the same buffers again and again, so that its
     * cache need not fetch them from the other's.
     */
    group = ps_loader_group((uint64_t)o->packs * info->record_bytes);
    round = group * PS_LOADER_THREADS;
    min = o->keep + (group == 1 ? round + 1 : 2 * round);
    o->buffers = (min + round - 1) / round * round;
    return PS_OK;
}

ps_result ps_loader_plan(const ps_pack_info *info,
                         const ps_loader_options *options,
                         ps_loader_layout *layout, ps_error *err)
{
    ps_loader_options o = *options;

    /* The buffers are not made before the layout is known. */
    if (o.buffers != 0)
        o.memory = NULL;
    return ps_loader_settle(info, &o, &o, layout, err);
}
