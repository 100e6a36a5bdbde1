/*
 * weights.h - exact ratios of decimal numbers, such as 7 and 3, or 0.7 and 0.3.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_WEIGHTS_H
#define CLI_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value is digits / 10^decimals. */
typedef struct weight {
    uint64_t digits;   /* the number without its decimal point */
    unsigned decimals; /* digits after the decimal point */
} weight;

/*
 * Parses the first `n` characters of `text`.  Returns NULL on success.
 * Otherwise returns the reason why they are refused ("must be greater than 0"),
 * in static storage.
 */
const char *weight_read(weight *w, const char *text, size_t n);

/*
 * Converts weights to the smallest integers with the same ratios, whose sum is
 * less than 2^63.  Returns false if the weights have too many digits.
 */
bool weights_settle(const weight *weights, uint32_t n, uint64_t *whole);

#endif
