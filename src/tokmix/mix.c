/*
 * mix.c - choose the next source.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/mix.h"

#include <stddef.h>

/* A 128-bit product, for compilers without a 128-bit type. */
typedef struct product {
    uint64_t high;
    uint64_t low;
} product;

static product multiply(uint64_t a, uint64_t b)
{
    const uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
    const uint64_t left = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
    const uint64_t right = (a & UINT32_MAX) * (b >> 32) + (left & UINT32_MAX);

    return (product){.high = (a >> 32) * (b >> 32) + (left >> 32) +
                             (right >> 32),
                     .low = right << 32 | (low & UINT32_MAX)};
}

/* True if a * b < c * d. */
static bool is_less(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const product x = multiply(a, b);
    const product y = multiply(c, d);

    return x.high < y.high || (x.high == y.high && x.low < y.low);
}

void mix_begin(mix *m, mix_source *sources, const uint64_t *weights,
               uint32_t n)
{
    *m = (mix){.sources = sources, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        sources[i] =
            (mix_source){.weight = weights[i], .left = weights[i] == 0};
        m->weight += weights[i];
    }
}

bool mix_is_due(const mix *m, uint32_t source)
{
    const mix_source *s = &m->sources[source];

    /* taken / total taken <= weight / total weight */
    return !s->left && !is_less(s->weight, m->taken, s->taken, m->weight);
}

uint32_t mix_next(const mix *m)
{
    const mix_source *best = NULL;

    for (uint32_t i = 0; i < m->n; i++) {
        const mix_source *s = &m->sources[i];

        if (mix_is_due(m, i) &&
            (best == NULL || is_less(s->taken + s->next, best->weight,
                                     best->taken + best->next, s->weight)))
            best = s;
    }
    /* The shares add up to 1, so at least one source is due. */
    return best == NULL ? 0 : (uint32_t)(best - m->sources);
}

void mix_take(mix *m, uint32_t source)
{
    mix_source *s = &m->sources[source];

    s->taken += s->next;
    m->taken += s->next;
}

bool mix_leave(mix *m, uint32_t source)
{
    m->sources[source].left = true;
    m->weight -= m->sources[source].weight;
    m->taken = 0;
    for (uint32_t i = 0; i < m->n; i++)
        m->sources[i].taken = 0;
    return m->weight > 0;
}
