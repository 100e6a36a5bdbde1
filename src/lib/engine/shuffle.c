/*
 * shuffle.c - packs that were decided and leave in random order.
 *
 * A pool of fixed size: when it is full, one of its packs leaves, each with
 * the same probability.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/shuffle.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "base/random.h"
#include "engine/window.h"

#define MAX_PACKS 512

typedef struct pack {
    uint64_t time;   /* of the oldest sequence */
    uint32_t oldest; /* its slot */
    uint32_t first;  /* slot; the others follow by `next` */
    uint32_t n;
} pack;

struct ps_shuffle {
    uint64_t random;
    uint32_t *next; /* by slot */
    pack packs[MAX_PACKS];
    uint32_t n_packs;
    uint32_t sequences;
    uint32_t max_sequences; /* it is full with as many */
    uint32_t oldest;         /* the pack with the least time, if any */
};

/* One more pack may come while there are fewer than a window full. */
uint32_t ps_shuffle_sequences(uint32_t window, uint32_t depth)
{
    return window + depth;
}

uint64_t ps_shuffle_bytes(uint32_t slots)
{
    return ps_mem_sum(sizeof(ps_shuffle),
                      ps_mem_array(slots, sizeof(uint32_t)));
}

uint32_t ps_shuffle_max_packs(void)
{
    return MAX_PACKS;
}

ps_result ps_shuffle_open(ps_shuffle **shuffle, uint64_t seed,
                          uint32_t window, uint32_t slots, ps_error *err)
{
    ps_shuffle *s = calloc(1, sizeof *s);

    *shuffle = s;
    if (s == NULL)
        return ps_fail_memory(err);
    s->random = seed;
    s->max_sequences = window;
    s->next = calloc(slots, sizeof *s->next);
    if (s->next != NULL)
        return PS_OK;
    ps_shuffle_free(s);
    *shuffle = NULL;
    return ps_fail_memory(err);
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
    return s->n_packs == MAX_PACKS || s->sequences >= s->max_sequences;
}

uint32_t ps_shuffle_count(const ps_shuffle *s)
{
    return s->sequences;
}

void ps_shuffle_put(ps_shuffle *s, const uint32_t *slots, uint32_t n,
                    uint32_t oldest, uint64_t time)
{
    for (uint32_t i = 0; i + 1 < n; i++)
        s->next[slots[i]] = slots[i + 1];
    s->packs[s->n_packs] = (pack){time, oldest, slots[0], n};
    if (s->n_packs == 0 || time < s->packs[s->oldest].time)
        s->oldest = s->n_packs;
    s->n_packs++;
    s->sequences += n;
}

static uint32_t find_oldest(const ps_shuffle *s)
{
    uint32_t oldest = 0;

    for (uint32_t k = 1; k < s->n_packs; k++)
        if (s->packs[k].time < s->packs[oldest].time)
            oldest = k;
    return oldest;
}

uint32_t ps_shuffle_oldest(const ps_shuffle *s)
{
    return s->n_packs == 0 ? PS_NO_SLOT : s->packs[s->oldest].oldest;
}

uint32_t ps_shuffle_packs(const ps_shuffle *s)
{
    return s->n_packs;
}

uint32_t ps_shuffle_pack(const ps_shuffle *s, uint32_t i, uint32_t *slots)
{
    uint32_t slot = s->packs[i].first;

    for (uint32_t k = 0; k < s->packs[i].n; k++) {
        slots[k] = slot;
        slot = s->next[slot];
    }
    return s->packs[i].n;
}

void ps_shuffle_save(const ps_shuffle *s, ps_saver *saver)
{
    ps_save_u64(saver, s->random);
}

void ps_shuffle_load(ps_shuffle *s, ps_restorer *restorer)
{
    s->random = ps_load_u64(restorer);
}

uint32_t ps_shuffle_take(ps_shuffle *s, bool the_oldest, uint32_t *slots)
{
    uint32_t k = the_oldest ? s->oldest
                            : (uint32_t)ps_random_below(&s->random,
                                                        s->n_packs);
    uint32_t n = ps_shuffle_pack(s, k, slots);

    s->packs[k] = s->packs[--s->n_packs];
    s->sequences -= n;
    if (k == s->oldest)
        s->oldest = find_oldest(s);
    else if (s->oldest == s->n_packs)
        s->oldest = k; /* it was the last and has moved */
    return n;
}
