/*
 * micro_batch.c - a part of a batch: some of its packs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/micro_batch.h"

#include <stdbool.h>
#include <stdlib.h>

#include "model/sizes.h"

/* Entries `begin` to `end` - 1 of an array. */
typedef struct range {
    uint32_t begin;
    uint32_t end;
} range;

/* The first of n ascending numbers that is at least x, or n. */
static uint32_t find(const int32_t *numbers, uint32_t n, int32_t x)
{
    uint32_t low = 0;

    while (low < n) {
        const uint32_t middle = low + (n - low) / 2;

        if (numbers[middle] < x)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* The entries whose numbers are those of these rows. */
static range find_rows(const int32_t *numbers, uint32_t n, range rows)
{
    return (range){find(numbers, n, (int32_t)rows.begin),
                   find(numbers, n, (int32_t)rows.end)};
}

/* Copies n numbers, minus `base`, to *to, and advances *to. */
static const int32_t *copy(int32_t **to, const int32_t *from, size_t n,
                           uint32_t base)
{
    int32_t *const copied = *to;

    for (size_t i = 0; i < n; i++)
        copied[i] = from[i] - (int32_t)base;
    *to += n;
    return copied;
}

/* The places of rows. */
static const int32_t *places(int32_t **to, const tr_batch *from, range rows)
{
    int32_t *const place = *to;

    for (uint32_t i = rows.begin; i < rows.end; i++)
        *(*to)++ = from->place ? from->place[i] : (int32_t)i;
    return place;
}

static bool make_room(tr_micro_batch *m, size_t n)
{
    if (n <= m->room)
        return true;
    free(m->numbers);
    m->numbers = malloc(tr_times(n, sizeof *m->numbers));
    m->room = m->numbers ? n : 0;
    return m->numbers;
}

static void take_rows(tr_batch *b, range rows)
{
    b->n_rows = rows.end - rows.begin;
    b->token += rows.begin;
    b->type += rows.begin;
    b->position += rows.begin;
    b->segment += rows.begin;
}

const tr_batch *tr_micro_batch_of(tr_micro_batch *m, const tr_batch *padded,
                                  uint32_t first, uint32_t n)
{
    const range rows = {first * padded->capacity,
                        (first + n) * padded->capacity};
    const range spans = find_rows(padded->cu, padded->n_spans, rows);
    const range seqs = find_rows(padded->cls_row, padded->n_seq, rows);
    const range targets = find_rows(padded->mlm_row, padded->n_mlm, rows);
    tr_batch *const b = &m->batch;
    int32_t *to;

    *b = *padded;
    b->n_packs = n;
    take_rows(b, rows);
    b->n_spans = spans.end - spans.begin;
    b->n_seq = seqs.end - seqs.begin;
    b->n_mlm = targets.end - targets.begin;
    if (!make_room(m, (size_t)b->n_rows + b->n_spans + 1 + b->n_seq
                          + 2 * (size_t)b->n_mlm))
        return NULL;
    to = m->numbers;
    b->place = places(&to, padded, rows);
    b->cu = copy(&to, padded->cu + spans.begin, (size_t)b->n_spans + 1,
                 rows.begin);
    b->cls_row = copy(&to, padded->cls_row + seqs.begin, b->n_seq, rows.begin);
    b->nsp_label += seqs.begin;
    b->nsp_weight += seqs.begin;
    b->mlm_row = copy(&to, padded->mlm_row + targets.begin, b->n_mlm,
                      rows.begin);
    b->mlm_seq = copy(&to, padded->mlm_seq + targets.begin, b->n_mlm,
                      seqs.begin);
    b->mlm_label += targets.begin;
    b->mlm_weight += targets.begin;
    if (b->source)
        b->source += seqs.begin;
    return b;
}

void tr_micro_batch_free(tr_micro_batch *m)
{
    free(m->numbers);
    *m = (tr_micro_batch){0};
}
