/*
 * rivals.c - row occupancy of other packers, computed from lengths alone by
 * algorithms read from their sources.
 *
 * TRL 1.16.0, trl/data_utils.py, _pack_bfd: best fit decreasing on each batch
 * of 1,000 rows, any number of sequences in a row.  Ties between rows with
 * equal space do not change the number of rows, so bfd_blocks() is equivalent.
 *
 * grain 0.2.18, packing_packed_batch.py, BestFitPackedBatch: a sequence goes
 * into the fullest bin that it fits into, the first one of equals.  If it fits
 * into none, all bins are emitted, and it goes into the first of as many empty
 * ones.
 *
 * SPDX-License-Identifier: MIT
 */

#include "rivals.h"

#define BINS 64

uint64_t grain_rows(const uint32_t *lengths, size_t n, uint32_t capacity,
                    uint32_t depth)
{
    uint32_t used[BINS] = {0};
    uint32_t held[BINS] = {0};
    uint64_t rows = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t best = BINS;

        for (uint32_t b = 0; b < BINS; b++)
            if (held[b] < depth && used[b] + lengths[i] <= capacity &&
                (best == BINS || used[b] > used[best]))
                best = b;
        if (best == BINS) {
            rows += BINS;
            for (uint32_t b = 0; b < BINS; b++)
                used[b] = held[b] = 0;
            best = 0;
        }
        used[best] += lengths[i];
        held[best]++;
    }
    for (uint32_t b = 0; b < BINS; b++)
        rows += held[b] > 0;
    return rows;
}
