/*
 * bfd-blocks.h - a baseline for the engine: a stream cut into blocks, each
 * packed separately by best fit decreasing.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_BFD_BLOCKS_H
#define TESTS_BFD_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "packstream.h"

/* A histogram of `n` lengths.  PS_ERR_MEMORY. */
ps_result lengths_histogram(const uint32_t *lengths, size_t n,
                            ps_histogram **histogram, ps_error *err);

/* Packs for consecutive blocks of `block` lengths.  PS_ERR_MEMORY. */
ps_result bfd_blocks(const uint32_t *lengths, size_t n, size_t block,
                     uint32_t capacity, uint32_t depth, uint64_t *packs,
                     ps_error *err);

#endif
