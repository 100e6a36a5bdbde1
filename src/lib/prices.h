/*
 * prices.h - what sequences of each length will be worth to packs, learned
 * from those that came.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PRICES_H
#define LIB_PRICES_H

#include "packstream.h"

typedef struct ps_prices ps_prices;

/* PS_ERR_MEMORY. */
ps_result ps_prices_open(ps_prices **prices, uint32_t capacity,
                         uint32_t depth, uint32_t window_size,
                         ps_error *err);
void ps_prices_free(ps_prices *prices);

/* A sequence came. */
void ps_prices_count(ps_prices *prices, uint32_t length);

/* True if it is time to learn. */
bool ps_prices_due(const ps_prices *prices);

/*
 * Says whether the depth binds, and if so writes the price of each length
 * 0..capacity: between 0 and PS_WORTH_ONE (worth.h), not falling with the
 * length.  If not, a length is worth its part of the capacity.
 * PS_ERR_MEMORY.
 */
ps_result ps_prices_learn(ps_prices *prices, int32_t *price, bool *binding,
                          ps_error *err);

#endif
