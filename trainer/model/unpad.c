/*
 * unpad.c - remove rows of padding from a batch.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/unpad.h"

#include <stdbool.h>
#include <stdlib.h>

#include "model/sizes.h"

/* The state of one conversion from a padded batch. */
typedef struct stripping {
    const tr_batch *from;
    int32_t *start; /* [n_packs + 1] new first row of each pack */
    int32_t *next;  /* where the next array is written */
} stripping;

static uint32_t tokens_of(const tr_batch *batch, uint32_t pack)
{
    const int32_t *const segment =
        batch->segment + (size_t)pack * batch->capacity;
    uint32_t n = batch->capacity;

    while (n > 0 && segment[n - 1] == 0)
        n--;
    return n;
}

static uint32_t most_tokens(const tr_batch *batch)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < batch->n_packs; i++) {
        const uint32_t n = tokens_of(batch, i);

        most = n > most ? n : most;
    }
    return most;
}

/* Returns the number of rows per pack, or 0 if it varies. */
static uint32_t place_packs(stripping *s, tr_rows rows)
{
    const uint32_t n_packs = s->from->n_packs;
    const uint32_t same =
        rows == TR_STRIPPED ? most_tokens(s->from) : 0;

    s->start = s->next;
    s->next += n_packs + 1;
    s->start[0] = 0;
    for (uint32_t i = 0; i < n_packs; i++)
        s->start[i + 1] =
            s->start[i]
            + (int32_t)(rows == TR_STRIPPED ? same : tokens_of(s->from, i));
    return same;
}

/*
 * Copies the entries of x for the remaining rows, or the row numbers if x is
 * NULL.
 */
static const int32_t *keep(stripping *s, const int32_t *x)
{
    const int32_t *const kept = s->next;

    for (uint32_t i = 0; i < s->from->n_packs; i++) {
        const int32_t first = (int32_t)(i * s->from->capacity);
        const int32_t end = first + s->start[i + 1] - s->start[i];

        for (int32_t row = first; row < end; row++)
            *s->next++ = x ? x[row] : row;
    }
    return kept;
}

/*
 * Maps row numbers to the new batch.  Each row holds a token, or is the first
 * row of a pack or of its padding.
 */
static const int32_t *move(stripping *s, const int32_t *rows, size_t n)
{
    const int32_t *const moved = s->next;
    const uint32_t capacity = s->from->capacity;

    for (size_t i = 0; i < n; i++) {
        const uint32_t row = (uint32_t)rows[i];

        *s->next++ = s->start[row / capacity] + (int32_t)(row % capacity);
    }
    return moved;
}

static uint32_t longest(const int32_t *cu, uint32_t n)
{
    int32_t most = 0;

    for (uint32_t i = 0; i < n; i++)
        most = cu[i + 1] - cu[i] > most ? cu[i + 1] - cu[i] : most;
    return (uint32_t)most;
}

/* Allocates room for arrays as large as those of the padded batch. */
static bool make_room(tr_unpad *s, const tr_batch *batch)
{
    const size_t n =
        tr_plus(tr_times(5, batch->n_rows),
                (size_t)batch->n_packs + batch->n_spans + batch->n_seq
                    + batch->n_mlm + 2);

    if (n <= s->room)
        return true;
    tr_unpad_free(s);
    s->numbers = malloc(tr_times(n, sizeof *s->numbers));
    if (s->numbers)
        s->room = n;
    return s->numbers;
}

const tr_batch *tr_unpad_rows(tr_unpad *s, const tr_batch *batch, tr_rows rows)
{
    stripping of = {.from = batch};
    tr_batch *const b = &s->batch;

    if (rows == TR_PADDED)
        return batch;
    if (!make_room(s, batch))
        return NULL;
    of.next = s->numbers;
    *b = *batch;
    b->capacity = place_packs(&of, rows);
    b->n_rows = (uint32_t)of.start[batch->n_packs];
    b->token = keep(&of, batch->token);
    b->type = keep(&of, batch->type);
    b->position = keep(&of, batch->position);
    b->segment = keep(&of, batch->segment);
    b->place = keep(&of, batch->place);
    b->cu = move(&of, batch->cu, (size_t)batch->n_spans + 1);
    b->max_span = longest(b->cu, b->n_spans);
    b->cls_row = move(&of, batch->cls_row, batch->n_seq);
    b->mlm_row = move(&of, batch->mlm_row, batch->n_mlm);
    return b;
}

void tr_unpad_free(tr_unpad *s)
{
    free(s->numbers);
    *s = (tr_unpad){0};
}
