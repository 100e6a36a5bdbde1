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
#include "packer/budget.h"
#include "packer/emit.h"
#include "packer/group.h"
#include "packer/refill.h"

struct ps_refill {
    bool begun;            /* a sequence has been put */
    uint64_t next;         /* id expected next, if begun */
    ps_held_piece *pieces; /* in input order */
    uint32_t n;            /* number of pieces */
    uint32_t at;           /* pieces below it have their payloads */
    uint64_t hash;         /* of the payloads so far */
    uint64_t wanted;       /* of all payloads */
    ps_store_cursor cursor; /* in the group of piece `at` */
    uint64_t bytes; /* of the pieces so far in the slot of piece `at`, without
                       their lists */
    uint64_t lists; /* bytes of the elements of their lists */
};

static int compare_pieces(const void *a, const void *b)
{
    const ps_held_piece *x = a;
    const ps_held_piece *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->seq_off > y->seq_off) - (x->seq_off < y->seq_off);
}

ps_held_piece *ps_refill_list(const ps_packer *p, const uint32_t *slots,
                              uint32_t n)
{
    ps_held_piece *pieces = malloc(((size_t)n + 1) * sizeof *pieces);

    if (pieces == NULL)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const ps_held *h = &p->held[slots[i]];

        pieces[i] = (ps_held_piece){.id = h->id,
                                    .seq_off = h->seq_off,
                                    .seq_len = h->seq_len,
                                    .n_tok = ps_packer_length(p, slots[i]),
                                    .slot = slots[i]};
    }
    qsort(pieces, n, sizeof *pieces, compare_pieces);
    return pieces;
}

/*
 * Extends the hash `before` by the payload of pieces[i].  `cursor` is kept for
 * the next piece, which may be in the same group.
 */
static uint64_t chain(const ps_packer *p, const ps_held_piece *pieces,
                      uint32_t i, ps_store_cursor *cursor,
                      unsigned char *payload, uint64_t before)
{
    const ps_held_piece *piece = &pieces[i];
    size_t n;

    if (i == 0 || pieces[i - 1].slot != piece->slot)
        *cursor = ps_store_start(p->store, piece->slot);
    if (p->set.by != NULL)
        ps_store_skip(p->store, cursor, sizeof *piece);
    n = ps_packer_get(p, piece, cursor, payload);
    return ps_token_digest(before, piece->n_tok, ps_hash(payload, n));
}

ps_result ps_refill_hash(const ps_packer *p, const ps_held_piece *pieces,
                         uint32_t n, uint64_t *hash, ps_error *err)
{
    unsigned char *payload = malloc(ps_settings_max_payload(&p->set));
    ps_store_cursor cursor;

    *hash = 0;
    if (payload == NULL)
        return ps_fail_memory(err);
    for (uint32_t i = 0; i < n; i++)
        *hash = chain(p, pieces, i, &cursor, payload, *hash);
    free(payload);
    return PS_OK;
}

ps_result ps_refill_begin(ps_packer *p, ps_held_piece *pieces, uint32_t n,
                          uint64_t hash, ps_error *err)
{
    ps_refill *f = calloc(1, sizeof *f);

    if (f == NULL) {
        free(pieces);
        return ps_fail_memory(err);
    }
    p->refill = f;
    f->wanted = hash;
    f->n = n;
    f->pieces = pieces;
    return PS_OK;
}

static ps_result fail_input_changed(const ps_packer *p, uint64_t id,
                                    ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT,
                   "the input has changed since the state was saved: sequence "
                   "%" PRIu64 ", or another that was in the window, differs",
                   id < p->totals.input_sequences ? id : 0);
}

/*
 * Counts the lists of a piece, which the state does not have.  Slots take whole
 * chunks, so they are counted at the last piece of the slot.
 */
static void count_lists(ps_packer *p, const ps_held_piece *piece,
                        uint64_t lists)
{
    ps_refill *f = p->refill;

    f->bytes += p->set.by == NULL
                    ? ps_settings_payload_bytes(&p->set, piece->n_tok)
                    : ps_settings_piece_bytes(&p->set, piece->n_tok, 0);
    f->lists += lists;
    if (f->at < f->n && f->pieces[f->at].slot == piece->slot)
        return;
    if (p->set.by != NULL && piece->slot == ps_packer_group_slot(p))
        p->group.bytes += f->lists;
    else
        p->bytes += round_up(f->bytes + f->lists, PS_STORE_CHUNK_BYTES) -
                    round_up(f->bytes, PS_STORE_CHUNK_BYTES);
    f->bytes = f->lists = 0;
}

/* Restores the payloads of a sequence's held pieces. */
static ps_result give_back(ps_packer *p, const ps_sequence *sequence,
                           ps_error *err)
{
    ps_refill *f = p->refill;
    unsigned char *payload;
    ps_result r = PS_OK;

    if (f->at == f->n || f->pieces[f->at].id != sequence->id)
        return PS_OK;
    payload = malloc(ps_settings_max_payload(&p->set));
    if (payload == NULL)
        return ps_fail_memory(err);
    while (r == PS_OK && f->at < f->n &&
           f->pieces[f->at].id == sequence->id) {
        const ps_held_piece *piece = &f->pieces[f->at];

        if (piece->seq_len != sequence->n_tok ||
            !ps_settings_is_payload(&p->set, sequence) ||
            !ps_budget_allows(&p->set, sequence))
            r = fail_input_changed(p, sequence->id, err);
        else
            r = p->set.by == NULL
                    ? ps_packer_keep(p, piece->slot, sequence, err)
                    : ps_group_store(p, piece, sequence->payload, err);
        if (r == PS_OK)
            f->hash = chain(p, f->pieces, f->at++, &f->cursor, payload,
                            f->hash);
        if (r == PS_OK && p->set.shape.n_lists > 0)
            count_lists(p, piece, ps_settings_lists(&p->set, sequence));
    }
    free(payload);
    return r;
}

ps_result ps_refill_put(ps_packer *p, const ps_sequence *sequence,
                        bool *is_new, ps_error *err)
{
    ps_refill *f = p->refill;
    uint64_t seen = p->totals.input_sequences;
    uint64_t needed = f->n > 0 ? f->pieces[0].id : seen;
    ps_result r = PS_OK;

    /* The caller may start at any sequence up to the first one needed. */
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
        free(p->refill->pieces);
    free(p->refill);
    p->refill = NULL;
}
