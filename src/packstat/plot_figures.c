/*
 * plot_figures.c - what --plot draws besides the other figures of a pack
 * stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/plot_figures.h"

/* Keeps a part of the pack, if it is high enough to be seen. */
static void add_part(plot_figures *p, uint16_t from, uint16_t to,
                     uint32_t shade)
{
    if (to > from)
        p->parts[p->n_parts++] = (plot_part){from, to, (uint8_t)p->n_packs,
                                             (uint8_t)shade};
}

/* Keeps the sequences of a pack, and the padding between and behind them. */
static void add_parts(plot_figures *p, const ps_pack_info *info,
                      const ps_pack *pack)
{
    const double unit = (double)PLOT_COLUMN / (double)info->capacity;
    uint16_t end = 0; /* of the part before */

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

        add_part(p, end, from, PLOT_PADDING);
        add_part(p, from, to, i % PLOT_PADDING);
        end = to;
    }
    add_part(p, end, PLOT_COLUMN, PLOT_PADDING);
    p->n_packs++;
}

void plot_figures_add(plot_figures *p, const ps_pack_info *info,
                      const ps_pack *pack)
{
    chart_bins_add(&p->bins, (const double[CHART_SUMS]){pack->n_tok});
    chart_add_power(p->empty, info->capacity - pack->n_tok);
    p->full += pack->n_tok == info->capacity;
    add_parts(p, info, pack);

    /* Ids begin again in each of joined streams. */
    if (pack->stream != p->stream) {
        p->stream = pack->stream;
        p->greatest = 0;
    }
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const uint64_t id = ps_pack_piece(info, pack, i).id;

        p->greatest = id > p->greatest ? id : p->greatest;
    }
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const uint64_t behind = p->greatest - ps_pack_piece(info, pack, i).id;

        chart_add_power(p->displaced, behind);
        if (behind > p->displacement)
            p->displacement = behind;
    }
}
