/*
 * weights.h - decimal numbers of which only the ratio matters, such as 7 and
 * 3, or 0.7 and 0.3, exactly.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_WEIGHTS_H
#define CLI_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* digits / 10^decimals */
typedef struct weight {
    uint64_t digits;
    unsigned decimals;
} weight;

/*
 * Reads the first `n` characters of a text.  Returns NULL, or why they are no
 * weight ("must be above 0"), in static storage.
 */
const char *weight_read(weight *w, const char *text, size_t n);

/*
 * Makes the least whole numbers of them that have the same ratio, whose sum is
 * below 2^63.
 * False if they have too many digits for that.
 */
bool weights_settle(const weight *weights, uint32_t n, uint64_t *whole);

#endif
