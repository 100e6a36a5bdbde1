/*
 * masking.c - choose the tokens of a sequence to mask.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data/masking.h"

#include <stdbool.h>

#include "data/rng.h"

static bool may_hide(const tr_masking *m, int32_t token)
{
    for (uint32_t i = 0; i < m->n_special; i++)
        if (m->special[i] == (uint32_t)token)
            return false;
    return true;
}

/* Finds the positions of tokens that may be masked. */
static uint32_t find_places(const tr_masking *m, uint32_t n,
                            const int32_t *token, uint32_t *place)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < n; i++)
        if (may_hide(m, token[i]))
            place[found++] = i;
    return found;
}

static uint32_t how_many(const tr_masking *m, uint32_t places)
{
    uint32_t wanted = (uint32_t)(m->share * places + 0.5);

    if (places == 0 || m->share <= 0)
        return 0;
    if (wanted == 0)
        wanted = 1;
    return m->max > 0 && wanted > m->max ? m->max : wanted;
}

static int32_t instead(const tr_masking *m, int32_t token, uint64_t *state)
{
    uint32_t tenth = tr_rng_below(state, 10);

    if (tenth < 8)
        return (int32_t)m->mask_id;
    if (tenth == 8)
        return (int32_t)tr_rng_below(state, m->vocab_size);
    return token;
}

uint32_t tr_masking_apply(const tr_masking *m, uint64_t key, uint32_t n,
                          int32_t *token, int32_t *label, uint32_t *room)
{
    uint32_t places = find_places(m, n, token, room);
    uint32_t wanted = how_many(m, places);
    uint64_t state = key;

    for (uint32_t i = 0; i < n; i++)
        label[i] = TR_MASKING_NONE;
    /* A Fisher-Yates shuffle, stopped after `wanted` draws. */
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t other = i + tr_rng_below(&state, places - i);
        uint32_t at = room[other];

        room[other] = room[i];
        label[at] = token[at];
        token[at] = instead(m, token[at], &state);
    }
    return wanted;
}
