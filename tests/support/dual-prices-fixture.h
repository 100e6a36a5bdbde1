/*
 * dual-prices-fixture.h - dual prices that learn from streams of lengths.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_DUAL_PRICES_FIXTURE_H
#define TESTS_DUAL_PRICES_FIXTURE_H

#include "lib-fixture.h"

#include "engine/dual_prices.h"

ps_dual_prices *open_prices(uint32_t capacity, uint32_t depth,
                            uint32_t window);
void close_prices(ps_dual_prices *p);

/* Some sequences of a length arrive, and leave. */
void come(ps_dual_prices *p, uint32_t length, uint32_t times);

/*
 * Learns, in coarse units if many lengths arrived, which needs an empty window.
 * Fails the test if prices decrease with length, or end above a pack's price.
 */
bool learn(ps_dual_prices *p);

/* Draws random lengths, and learns whenever it is due. */
void stream(ps_dual_prices *p, const uint32_t *lengths, uint32_t n,
            uint64_t records, uint64_t *random);

void assert_near(double is, double wanted, double by);

/* The price is near this optimum. */
void assert_dual(const ps_dual_prices *p, uint32_t length, double wanted);

#endif
