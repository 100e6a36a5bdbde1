/*
 * summary.h - what a stream holds, for a human.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_SUMMARY_H
#define PACKSTAT_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "histogram.h"
#include "order_stats.h"
#include "packstream.h"

/* What is found in a pack stream besides its totals. */
typedef struct pack_figures {
    ps_totals so_far;  /* of the packs that were read */
    uint32_t streams;  /* one after another in the file; 0 if no packs */
    bool ranged;       /* only some packs of the file were read: */
    uint64_t first;    /* from this one on, */
    uint64_t packs;    /* of so many, or PS_UNKNOWN */
    histogram lengths; /* of sequences and of pieces */
    histogram depths;
    order order;
} pack_figures;

/* What is found in a stream of token records. */
typedef struct token_figures {
    uint64_t sequences;
    uint64_t tokens;
    histogram lengths;
} token_figures;

/* Leaves a line free between summaries. */
void summary_separate(FILE *out, bool *summarised);

/* Prints a summary headed by `name`; the histograms must be sorted. */
void summary_packs(FILE *out, const char *name, const ps_pack_info *info,
                   const ps_totals *totals, const pack_figures *found);
void summary_tokens(FILE *out, const char *name, const ps_schema *schema,
                    const token_figures *found);

#endif
