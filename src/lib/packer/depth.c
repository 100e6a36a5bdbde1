/*
 * depth.c - how many sequences a pack may hold, where no option says so.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/auto_depth.h"
#include "format/record_layout.h"
#include "packer/packer.h"

uint32_t ps_packer_max_depth(const ps_packer *p)
{
    uint32_t fit = p->info.capacity / p->info.align;
    uint32_t max = fit < PS_MAX_DEPTH ? fit : PS_MAX_DEPTH;
    ps_pack_info info = p->info;

    if (max > p->options.window)
        max = p->options.window;
    while (max > 1) {
        info.depth = max;
        if (ps_layout(&info, NULL) == PS_OK)
            break;
        max /= 2;
    }
    return max;
}

ps_result ps_packer_choose_depth(ps_packer *p, const ps_histogram *lengths,
                                 ps_error *err)
{
    ps_engine_options options = ps_packer_engine_options(p);
    ps_pack_info deeper;
    ps_result r;

    options.depth = ps_packer_max_depth(p);
    r = ps_depth_choose(lengths, &options, &p->info.depth, err);
    if (r == PS_OK)
        r = ps_layout(&p->info, err);

    /* Records are padded to whole units: what fits in the padding is free. */
    deeper = p->info;
    while (r == PS_OK && deeper.depth < options.depth) {
        deeper.depth++;
        if (ps_layout(&deeper, NULL) != PS_OK ||
            deeper.record_bytes > p->info.record_bytes)
            break;
        p->info = deeper;
    }
    return r;
}
