/*
 * shuffle.c - hold chosen packs and emit them in random order.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/shuffle.h"

#include <stdlib.h>

#include "base/random.h"
#include "engine/window.h"

ps_shuffle *ps_shuffle_open(uint64_t seed, uint32_t window, uint32_t slots,
                            ps_mem *mem)
{
    ps_shuffle *s = ps_mem_alloc(mem, 1, sizeof *s);
    uint32_t *next = ps_mem_alloc(mem, slots, sizeof *next);

    if (s == NULL || next == NULL) {
        free(s);
        free(next);
        return NULL;
    }
    s->random = seed;
    s->max_sequences = s->least = window;
    s->enough = UINT64_MAX;
    s->next = next;
    return s;
}

void ps_shuffle_free(ps_shuffle *s)
{
    if (s == NULL)
        return;
    free(s->next);
    free(s);
}

bool ps_shuffle_is_full(const ps_shuffle *s)
{
    return s->n_packs == PS_SHUFFLE_MAX_PACKS ||
           s->sequences >= s->max_sequences ||
           (s->sequences >= s->least && s->tokens >= s->enough);
}

void ps_shuffle_put(ps_shuffle *s, const uint32_t *slots, uint32_t n,
                    uint64_t tokens, uint32_t oldest, uint64_t time)
{
    for (uint32_t i = 0; i + 1 < n; i++)
        s->next[slots[i]] = slots[i + 1];
    s->packs[s->n_packs] = (ps_shuffle_pack){
        .time = time,
        .oldest = oldest,
        .first = slots[0],
        .n = n,
        .tokens = tokens};
    if (s->n_packs == 0 || time < s->packs[s->oldest].time)
        s->oldest = s->n_packs;
    s->n_packs++;
    s->sequences += n;
    s->tokens += tokens;
}

uint32_t ps_shuffle_oldest(const ps_shuffle *s)
{
    return s->n_packs == 0 ? PS_NO_SLOT : s->packs[s->oldest].oldest;
}

uint32_t ps_shuffle_slots(const ps_shuffle *s, uint32_t pack,
                          uint32_t *slots)
{
    uint32_t slot = s->packs[pack].first;

    for (uint32_t k = 0; k < s->packs[pack].n; k++) {
        slots[k] = slot;
        slot = s->next[slot];
    }
    return s->packs[pack].n;
}

uint32_t ps_shuffle_take(ps_shuffle *s, bool the_oldest, uint32_t *slots)
{
    uint32_t taken = the_oldest ? s->oldest
                                : (uint32_t)ps_random_below(&s->random,
                                                            s->n_packs);
    uint32_t n = ps_shuffle_slots(s, taken, slots);

    s->sequences -= n;
    s->tokens -= s->packs[taken].tokens;
    /* Move the last pack to the place of this one. */
    s->packs[taken] = s->packs[--s->n_packs];
    if (taken != s->oldest) {
        if (s->oldest == s->n_packs)
            s->oldest = taken;
        return n;
    }
    s->oldest = 0;
    for (uint32_t k = 1; k < s->n_packs; k++)
        if (s->packs[k].time < s->packs[s->oldest].time)
            s->oldest = k;
    return n;
}
