/*
 * cost.c - what a pack costs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/error.h"
#include "deal/deal.h"

ps_cost ps_cost_attention(uint32_t hidden)
{
    return (ps_cost){.tokens = UINT64_C(6) * hidden, .squares = 1};
}

/* *sum += a * b; false if it does not fit. */
static bool add_product(uint64_t *sum, uint64_t a, uint64_t b)
{
    if (b != 0 && a > UINT64_MAX / b)
        return false;
    *sum += a * b;
    return *sum >= a * b;
}

ps_result ps_pack_cost(const ps_cost *cost, const ps_pack *pack,
                       uint64_t *value, ps_error *err)
{
    *value = 0;
    if (add_product(value, cost->tokens, pack->n_tok) &&
        add_product(value, cost->squares, pack->sum_len_sq))
        return PS_OK;
    return ps_fail(err, PS_ERR_LIMIT, "the cost of a pack exceeds 64 bits");
}
