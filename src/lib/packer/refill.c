/*
 * refill.c - the sequences that come again to a packer that was
 * resumed: those that it held when it was saved get their payloads back.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/digest.h"
#include "packer/packer.h"

/* A sequence that is held, or a piece of one. */
typedef struct item {
    uint64_t id;
    uint32_t seq_off;
    uint32_t slot;
} item;

struct ps_refill {
    uint64_t next; /* the id that is to come, when one has come */
    bool begun;
    item *items;
    uint32_t n;
    uint32_t at;   /* before it, all have their payloads */
    uint64_t hash; /* of these */
    uint64_t wanted;
};

static int compare_items(const void *a, const void *b)
{
    const item *x = a;
    const item *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->seq_off > y->seq_off) - (x->seq_off < y->seq_off);
}

/* What is in some slots, in the order of the input. */
static item *in_order(const ps_packer *p, const uint32_t *slots, uint32_t n)
{
    item *items = malloc(((size_t)n + 1) * sizeof *items);

    for (uint32_t i = 0; items != NULL && i < n; i++)
        items[i] = (item){p->held[slots[i]].id, p->held[slots[i]].seq_off,
                          slots[i]};
    if (items != NULL)
        qsort(items, n, sizeof *items, compare_items);
    return items;
}

/* The hash of what came before and a payload, as ps_packer_copy gives it. */
static uint64_t chain(const ps_packer *p, const unsigned char *payload,
                      uint32_t n_tok, uint64_t before)
{
    return ps_token_digest(before, n_tok,
                           XXH3_64bits(payload,
                                       ps_packer_payload_bytes(p, n_tok)));
}

static unsigned char *payload_room(const ps_packer *p)
{
    return malloc(ps_packer_payload_bytes(p, p->info.capacity));
}

ps_result ps_refill_hash(const ps_packer *p, const uint32_t *slots, uint32_t n,
                         uint64_t *hash, ps_error *err)
{
    item *items = in_order(p, slots, n);
    unsigned char *payload = payload_room(p);

    *hash = 0;
    for (uint32_t i = 0; items != NULL && payload != NULL && i < n; i++) {
        uint32_t n_tok = ps_packer_length(p, items[i].slot);

        ps_packer_copy(p, items[i].slot, n_tok, payload);
        *hash = chain(p, payload, n_tok, *hash);
    }
    if (items == NULL || payload == NULL) {
        free(items);
        free(payload);
        return ps_fail_memory(err);
    }
    free(items);
    free(payload);
    return PS_OK;
}

ps_result ps_refill_begin(ps_packer *p, const uint32_t *slots, uint32_t n,
                          uint64_t hash, ps_error *err)
{
    ps_refill *a = calloc(1, sizeof *a);

    if (a == NULL)
        return ps_fail_memory(err);
    p->refill = a;
    a->wanted = hash;
    a->n = n;
    a->items = in_order(p, slots, n);
    return a->items == NULL ? ps_fail_memory(err) : PS_OK;
}

static ps_result is_other(const ps_packer *p, uint64_t id, ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT,
                   "the input is not what it was when the state was saved: "
                   "sequence %" PRIu64
                   ", or one that was held with it, is another one",
                   id < p->totals.input_sequences ? id : 0);
}

/* One piece of the sequence that came. */
static ps_result give_back(ps_packer *p, const item *i,
                           const ps_sequence *sequence,
                           unsigned char *payload, ps_error *err)
{
    ps_refill *a = p->refill;
    uint32_t n_tok = ps_packer_length(p, i->slot);
    ps_block *block =
        sequence->payload == sequence->lent ? sequence->block : NULL;
    const ps_part part = {sequence->payload, sequence->n_tok, i->seq_off,
                          block};
    ps_result r;

    if (sequence->payload == NULL ||
        p->held[i->slot].seq_len != sequence->n_tok)
        return is_other(p, sequence->id, err);
    r = ps_packer_keep(p, i->slot, n_tok, &part, err);
    if (r != PS_OK)
        return r;
    ps_packer_copy(p, i->slot, n_tok, payload);
    a->hash = chain(p, payload, n_tok, a->hash);
    return PS_OK;
}

static ps_result give_all_back(ps_packer *p, const ps_sequence *sequence,
                               ps_error *err)
{
    ps_refill *a = p->refill;
    unsigned char *payload;
    ps_result r = PS_OK;

    if (a->at == a->n || a->items[a->at].id != sequence->id)
        return PS_OK;
    payload = payload_room(p);
    if (payload == NULL)
        return ps_fail_memory(err);
    for (; r == PS_OK && a->at < a->n &&
           a->items[a->at].id == sequence->id;
         a->at++)
        r = give_back(p, &a->items[a->at], sequence, payload, err);
    free(payload);
    return r;
}

/* It may begin anywhere, but not behind the first that is needed. */
static ps_result check_id(const ps_packer *p, uint64_t id, ps_error *err)
{
    const ps_refill *a = p->refill;
    uint64_t needs = a->n > 0 ? a->items[0].id : p->totals.input_sequences;

    if (a->begun ? id == a->next : id <= needs)
        return PS_OK;
    return ps_fail(err, PS_ERR_ARGUMENT,
                   "sequence %" PRIu64 " comes where %" PRIu64 " is due", id,
                   a->begun ? a->next : needs);
}

ps_result ps_refill_put(ps_packer *p, const ps_sequence *sequence,
                        bool *is_new, ps_error *err)
{
    ps_refill *a = p->refill;
    ps_result r = check_id(p, sequence->id, err);

    *is_new = false;
    if (r != PS_OK)
        return r;
    a->begun = true;
    a->next = sequence->id + 1;
    if (sequence->id < p->totals.input_sequences)
        r = give_all_back(p, sequence, err);
    else
        *is_new = true;
    if (r == PS_OK && a->at == a->n && a->hash != a->wanted)
        r = is_other(p, sequence->id, err);
    if (r == PS_OK && a->next >= p->totals.input_sequences)
        ps_refill_free(p);
    return r;
}

bool ps_refill_waits(const ps_packer *p)
{
    const ps_refill *a = p->refill;

    return a != NULL && (a->at < a->n ||
                         (a->begun && a->next < p->totals.input_sequences));
}

void ps_refill_free(ps_packer *p)
{
    if (p->refill != NULL)
        free(p->refill->items);
    free(p->refill);
    p->refill = NULL;
}
