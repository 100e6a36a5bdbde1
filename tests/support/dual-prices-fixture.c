/*
 * dual-prices-fixture.c - dual prices that learn from streams of lengths.
 *
 * SPDX-License-Identifier: MIT
 */

#include "dual-prices-fixture.h"

#include <stdlib.h>

/* Distance of a dual from the optimum: the relaxation stops near it. */
#define NEAR 0.003

ps_dual_prices *open_prices(uint32_t capacity, uint32_t depth,
                            uint32_t window)
{
    ps_dual_prices *p = must_alloc(sizeof *p);
    ps_mem mem = {0};

    ps_dual_prices_init(p, capacity, depth, window, &mem);
    assert_false(mem.failed);
    return p;
}

void close_prices(ps_dual_prices *p)
{
    ps_dual_prices_destroy(p);
    free(p);
}

void come(ps_dual_prices *p, uint32_t length, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        ps_dual_prices_admit(p, length);
        ps_dual_prices_take(p, length);
    }
}

bool learn(ps_dual_prices *p)
{
    ps_error err;
    bool ended;

    (void)ps_dual_prices_coarsen(p);
    assert_ok(ps_dual_prices_learn(p, &err), &err);
    ended = ps_dual_prices_follow(p);
    assert_int_equal(ps_dual_price_of(p, 0), 0);
    for (uint32_t l = 1; l <= p->capacity; l++)
        assert_true(ps_dual_price_of(p, l) >= ps_dual_price_of(p, l - 1));
    assert_true(ps_dual_price_of(p, p->capacity) <= PS_SCORE_ONE);
    for (uint32_t u = 1; u <= p->units.count; u++)
        assert_true(p->price[u] >= p->price[u - 1] - 1e-12);
    return ended;
}

void assert_near(double is, double wanted, double by)
{
    if (!(is - wanted <= by && wanted - is <= by))
        fail_msg("%f, not %f", is, wanted);
}

void assert_dual(const ps_dual_prices *p, uint32_t length, double wanted)
{
    assert_near(p->price[ps_units_round(&p->units, length)],
                wanted, NEAR);
}

void stream(ps_dual_prices *p, const uint32_t *lengths, uint32_t n,
            uint64_t records, uint64_t *random)
{
    for (uint64_t i = 0; i < records; i++) {
        come(p, lengths[random_below(random, n)], 1);
        if (p->arrivals >= p->next)
            learn(p);
    }
}
