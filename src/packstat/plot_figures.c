/*
 * plot_figures.c - what --plot draws besides the other figures of a pack
 * stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/plot_figures.h"

/* Counts a pack in the last bin; all bins are full, or there is room for it. */
static void add_to_bins(plot_figures *p, uint64_t tokens)
{
    plot_bin *bin;

    if (p->n_bins == PLOT_BINS && p->bins[PLOT_BINS - 1].packs == p->step) {
        for (unsigned i = 0; i < PLOT_BINS / 2; i++)
            p->bins[i] = (plot_bin){
                p->bins[2 * i].packs + p->bins[2 * i + 1].packs,
                p->bins[2 * i].tokens + p->bins[2 * i + 1].tokens};
        p->n_bins = PLOT_BINS / 2;
        p->step *= 2;
    }
    if (p->n_bins == 0)
        p->step = 1;
    if (p->n_bins == 0 || p->bins[p->n_bins - 1].packs == p->step)
        p->bins[p->n_bins++] = (plot_bin){0};
    bin = &p->bins[p->n_bins - 1];
    bin->packs++;
    bin->tokens += tokens;
}

/* Ids begin again in each of joined streams. */
static void add_displacements(plot_figures *p, const ps_pack_info *info,
                              const ps_pack *pack)
{
    if (pack->stream != p->stream) {
        p->stream = pack->stream;
        p->greatest = 0;
    }
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const uint64_t id = ps_pack_piece(info, pack, i).id;

        p->greatest = id > p->greatest ? id : p->greatest;
    }
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const uint64_t behind =
            p->greatest - ps_pack_piece(info, pack, i).id;

        chart_add_power(p->displaced, behind);
        if (behind > p->displacement)
            p->displacement = behind;
    }
}

/* Keeps the parts of a pack that are high enough to be seen. */
static void add_parts(plot_figures *p, const ps_pack_info *info,
                      const ps_pack *pack)
{
    const double unit = (double)PLOT_COLUMN / (double)info->capacity;

    if (p->has_more || p->n_packs == PLOT_PACKS ||
        p->n_parts + PLOT_COLUMN > p->max_parts) {
        p->has_more = true;
        return;
    }
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const ps_piece piece = ps_pack_piece(info, pack, i);
        const uint16_t from = (uint16_t)(piece.begin * unit + 0.5);
        const uint16_t to =
            (uint16_t)((piece.begin + piece.n_tok) * unit + 0.5);

        if (to > from)
            p->parts[p->n_parts++] = (plot_part){
                from, to, (uint8_t)p->n_packs, (uint8_t)(i % 4)};
    }
    p->n_packs++;
}

void plot_figures_add(plot_figures *p, const ps_pack_info *info,
                      const ps_pack *pack)
{
    add_to_bins(p, pack->n_tok);
    add_displacements(p, info, pack);
    add_parts(p, info, pack);
    chart_add_power(p->empty, info->capacity - pack->n_tok);
    p->full += pack->n_tok == info->capacity;
}

void plot_figures_finish(plot_figures *p)
{
    plot_bin *last;

    if (p->n_bins < 2 || p->bins[p->n_bins - 1].packs >= p->step / 2)
        return;
    last = &p->bins[--p->n_bins];
    last[-1].packs += last->packs;
    last[-1].tokens += last->tokens;
}
