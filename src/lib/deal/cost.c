/*
 * cost.c - cost of a pack.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/error.h"
#include "deal/deal.h"

ps_cost ps_cost_attention(uint32_t hidden)
{
    return (ps_cost){.tokens = UINT64_C(6) * hidden, .squares = 1};
}

ps_result ps_pack_cost(const ps_cost *cost, const ps_pack *pack,
                       uint64_t *value, ps_error *err)
{
    const uint64_t products[2][2] = {{cost->tokens, pack->n_tok},
                                     {cost->squares, pack->sum_len_sq}};

    *value = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t a = products[i][0];
        const uint64_t b = products[i][1];

        if (b != 0 && a > (UINT64_MAX - *value) / b)
            return ps_fail(err, PS_ERR_LIMIT,
                           "the cost of a pack exceeds 64 bits");
        *value += a * b;
    }
    return PS_OK;
}
