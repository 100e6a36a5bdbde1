/*
 * refill.c - get back the payloads of held sequences after a resume, as the
 * sequences are put again.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "format/digest.h"
#include "packer/emit.h"
#include "packer/refill.h"

/* A held sequence or piece. */
typedef struct item {
    uint64_t id;
    uint32_t seq_off; /* offset of the piece, tokens */
    uint32_t slot;    /* of the engine */
} item;

struct ps_refill {
    bool begun;      /* a sequence was put */
    uint64_t next;   /* id expected next, if begun */
    item *items;     /* in input order */
    uint32_t n;      /* number of items */
    uint32_t at;     /* items below it have their payloads */
    uint64_t hash;   /* of the payloads so far */
    uint64_t wanted; /* of all payloads */
};

static int compare_items(const void *a, const void *b)
{
    const item *x = a;
    const item *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->seq_off > y->seq_off) - (x->seq_off < y->seq_off);
}

/* Lists the contents of some slots in input order; NULL if out of memory. */
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

/* Extends the hash `before` by the payload in a slot. */
static uint64_t chain(const ps_packer *p, uint32_t slot,
                      unsigned char *payload, uint64_t before)
{
    uint32_t n_tok = ps_packer_length(p, slot);

    ps_packer_get(p, slot, n_tok, payload);
    return ps_token_digest(
        before, n_tok,
        ps_hash(payload, ps_settings_payload_bytes(&p->set, n_tok)));
}

ps_result ps_refill_hash(const ps_packer *p, const uint32_t *slots, uint32_t n,
                         uint64_t *hash, ps_error *err)
{
    item *items = in_order(p, slots, n);
    unsigned char *payload =
        malloc(ps_settings_payload_bytes(&p->set, p->set.info.capacity));
    bool have_memory = items != NULL && payload != NULL;

    *hash = 0;
    for (uint32_t i = 0; have_memory && i < n; i++)
        *hash = chain(p, items[i].slot, payload, *hash);
    free(items);
    free(payload);
    return have_memory ? PS_OK : ps_fail_memory(err);
}

ps_result ps_refill_begin(ps_packer *p, const uint32_t *slots, uint32_t n,
                          uint64_t hash, ps_error *err)
{
    ps_refill *f = calloc(1, sizeof *f);

    if (f == NULL)
        return ps_fail_memory(err);
    p->refill = f;
    f->wanted = hash;
    f->n = n;
    f->items = in_order(p, slots, n);
    return f->items == NULL ? ps_fail_memory(err) : PS_OK;
}

static ps_result fail_input_changed(const ps_packer *p, uint64_t id,
                                    ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT,
                   "the input has changed since the state was saved: sequence "
                   "%" PRIu64 ", or another that was in the window, differs",
                   id < p->totals.input_sequences ? id : 0);
}

/* Restores the payloads of a sequence's held pieces. */
static ps_result give_back(ps_packer *p, const ps_sequence *sequence,
                           ps_error *err)
{
    ps_refill *f = p->refill;
    unsigned char *payload;
    ps_result r = PS_OK;

    if (f->at == f->n || f->items[f->at].id != sequence->id)
        return PS_OK;
    payload = malloc(ps_settings_payload_bytes(&p->set, p->set.info.capacity));
    if (payload == NULL)
        return ps_fail_memory(err);
    while (r == PS_OK && f->at < f->n &&
           f->items[f->at].id == sequence->id) {
        const item *i = &f->items[f->at++];

        if (sequence->payload == NULL ||
            p->held[i->slot].seq_len != sequence->n_tok ||
            sequence->payload_bytes !=
                ps_settings_payload_bytes(&p->set, sequence->n_tok))
            r = fail_input_changed(p, sequence->id, err);
        else
            r = ps_packer_keep(p, i->slot, sequence, err);
        if (r == PS_OK)
            f->hash = chain(p, i->slot, payload, f->hash);
    }
    free(payload);
    return r;
}

ps_result ps_refill_put(ps_packer *p, const ps_sequence *sequence,
                        bool *is_new, ps_error *err)
{
    ps_refill *f = p->refill;
    uint64_t seen = p->totals.input_sequences;
    uint64_t needed = f->n > 0 ? f->items[0].id : seen;
    ps_result r = PS_OK;

    /* Sequences may start anywhere up to the first one needed. */
    *is_new = false;
    if (f->begun ? sequence->id != f->next : sequence->id > needed)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "sequence %" PRIu64 " arrived, expected %" PRIu64,
                       sequence->id, f->begun ? f->next : needed);
    f->begun = true;
    f->next = sequence->id + 1;
    if (sequence->id < seen)
        r = give_back(p, sequence, err);
    else
        *is_new = true;
    if (r == PS_OK && f->at == f->n && f->hash != f->wanted)
        r = fail_input_changed(p, sequence->id, err);
    if (r == PS_OK && f->next >= seen)
        ps_refill_free(p);
    return r;
}

bool ps_refill_waits(const ps_packer *p)
{
    const ps_refill *f = p->refill;

    return f != NULL && (f->at < f->n ||
                         (f->begun && f->next < p->totals.input_sequences));
}

void ps_refill_free(ps_packer *p)
{
    if (p->refill != NULL)
        free(p->refill->items);
    free(p->refill);
    p->refill = NULL;
}
