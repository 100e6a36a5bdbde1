/*
 * rivals.h - row occupancy of other packers, computed from lengths alone by
 * algorithms read from their sources.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_BENCH_RIVALS_H
#define TESTS_BENCH_RIVALS_H

#include <stddef.h>
#include <stdint.h>

/* The rows that TRL packs at a time: datasets.map's batch_size. */
#define TRL_ROWS 1000

/*
 * Rows of grain's BestFitPackIterDataset with its usual number of bins, of at
 * most `depth` sequences.
 */
uint64_t grain_rows(const uint32_t *lengths, size_t n, uint32_t capacity,
                    uint32_t depth);

#endif
