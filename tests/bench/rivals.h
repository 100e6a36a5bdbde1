/*
 * rivals.h - how full the rows of other packers are, by their algorithms as
 * read in their sources, on lengths alone.
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
