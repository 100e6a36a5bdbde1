/*
 * bucket_pad.c - round up the counts of a batch.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/bucket_pad.h"

#include <stdlib.h>
#include <string.h>

#include "model/sizes.h"

#define PADDING_ROWS 128 /* maximum rows in a span of padding */
#define MOST_ROWS (INT32_MAX - TR_BUCKET_ROWS)

/* Positions of the next output arrays. */
typedef struct rounding {
    real *reals;
    int32_t *numbers;
} rounding;

/* Copies n numbers and appends `more` zeros. */
static const int32_t *extend(rounding *to, const int32_t *x, size_t n,
                             size_t more)
{
    int32_t *const longer = to->numbers;

    to->numbers += n + more;
    memcpy(longer, x, n * sizeof *x);
    memset(longer + n, 0, more * sizeof *x);
    return longer;
}

/* Appends rows of padding, in separate spans. */
static void add_rows(rounding *to, tr_batch *b, uint32_t more)
{
    const uint32_t spans = tr_round_up(more, PADDING_ROWS) / PADDING_ROWS;
    int32_t *cu;

    b->token = extend(to, b->token, b->n_rows, more);
    b->type = extend(to, b->type, b->n_rows, more);
    b->position = extend(to, b->position, b->n_rows, more);
    b->segment = extend(to, b->segment, b->n_rows, more);
    b->place = extend(to, b->place, b->n_rows, more);
    cu = to->numbers;
    b->cu = extend(to, b->cu, (size_t)b->n_spans + 1, spans);
    for (uint32_t left = more; left > 0;) {
        const uint32_t length = left < PADDING_ROWS ? left : PADDING_ROWS;

        cu[b->n_spans + 1] = cu[b->n_spans] + (int32_t)length;
        b->n_spans++;
        b->max_span = length > b->max_span ? length : b->max_span;
        left -= length;
    }
    b->n_rows += more;
    b->capacity = 0;
}

/* The rows picked for a loss, and their labels, weights and sequences. */
typedef struct picked {
    const int32_t **row;
    const int32_t **label;
    const real **weight;
    const int32_t **seq; /* may be NULL */
} picked;

/*
 * Extends the n picked rows to `all` rows by picking the lowest unpicked rows.
 * Picked rows stay in ascending order.  `all` must not exceed the number of
 * rows in the batch.
 */
static void add_picked(rounding *to, uint32_t n, uint32_t all, picked p)
{
    int32_t *const row = to->numbers, *const label = row + all;
    int32_t *const seq = label + all;
    real *const weight = to->reals;
    uint32_t at = 0, from = 0;

    to->numbers = seq + (p.seq ? all : 0);
    to->reals += all;
    for (int32_t next = 0; at < all; next++) {
        const bool own = from < n && (*p.row)[from] <= next;

        if (!own && at - from == all - n)
            continue;
        row[at] = own ? (*p.row)[from] : next;
        label[at] = own ? (*p.label)[from] : -1;
        weight[at] = own ? (*p.weight)[from] : 0;
        if (p.seq)
            seq[at] = own ? (*p.seq)[from] : 0;
        at++;
        from += own;
    }
    *p.row = row;
    *p.label = label;
    *p.weight = weight;
    if (p.seq)
        *p.seq = seq;
}

/* Rounds the number n of picked rows up to a multiple, limited by `most`. */
static uint32_t picks(uint32_t n, uint32_t multiple, uint32_t most)
{
    const uint32_t all = tr_round_up(n, multiple);

    if (all <= most)
        return all;
    return n > most ? n : most;
}

static bool make_room(tr_bucket_pad *r, size_t numbers, size_t reals)
{
    const size_t bytes = tr_plus(tr_times(numbers, sizeof(int32_t)),
                                 tr_times(reals, sizeof(real)));

    if (bytes <= r->room)
        return true;
    tr_bucket_pad_free(r);
    r->block = malloc(bytes);
    if (r->block)
        r->room = bytes;
    return r->block;
}

const tr_batch *tr_bucket_pad_batch(tr_bucket_pad *r, const tr_batch *batch,
                                    bool rows)
{
    const uint32_t more =
        rows ? tr_round_up(batch->n_rows, TR_BUCKET_ROWS) - batch->n_rows
             : 0;
    const uint32_t all = batch->n_rows + more;
    const uint32_t n_mlm = picks(batch->n_mlm, TR_BUCKET_MLM, all);
    const uint32_t n_seq = picks(batch->n_seq, TR_BUCKET_SEQ, all);
    const size_t reals = (size_t)n_mlm + n_seq;
    const size_t numbers = tr_plus(tr_times(5, all),
                                   3 * (size_t)n_mlm + 2 * (size_t)n_seq
                                       + batch->n_spans + 1 + more);
    tr_batch *const b = &r->batch;
    rounding to;

    if (batch->n_rows > MOST_ROWS || !make_room(r, numbers, reals))
        return NULL;
    to.reals = r->block;
    to.numbers = (int32_t *)(void *)(to.reals + reals);
    *b = *batch;
    b->rounded = true;
    if (more > 0)
        add_rows(&to, b, more);
    add_picked(&to, batch->n_mlm, n_mlm,
               (picked){&b->mlm_row, &b->mlm_label, &b->mlm_weight,
                        &b->mlm_seq});
    add_picked(&to, batch->n_seq, n_seq,
               (picked){&b->cls_row, &b->nsp_label, &b->nsp_weight, NULL});
    b->n_mlm = n_mlm;
    b->n_seq = n_seq;
    return b;
}

void tr_bucket_pad_free(tr_bucket_pad *r)
{
    free(r->block);
    *r = (tr_bucket_pad){0};
}
