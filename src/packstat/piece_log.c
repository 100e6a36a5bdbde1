/*
 * piece_log.c - which pieces of which sequences a pack stream has given.
 *
 * Sorting, not hashing: it needs no secret to be safe from made-up ids,
 * brings the pieces of a sequence together, and judges in a fixed order.
 *
 * SPDX-License-Identifier: MIT
 */

#include "piece_log.h"

#include <stdlib.h>

enum { FIRST_ROOM = 4096 };

bool piece_log_has_room(const piece_log *j)
{
    return j->n < j->room;
}

bool piece_log_grow(piece_log *j)
{
    size_t room = j->room == 0 ? FIRST_ROOM : j->room * 2;
    piece_log_entry *entries;

    if (room > SIZE_MAX / sizeof(*entries))
        return false;
    entries = realloc(j->entries, room * sizeof(*entries));
    if (entries == NULL)
        return false;
    j->entries = entries;
    j->room = room;
    return true;
}

void piece_log_add(piece_log *j, const ps_piece *piece, uint64_t record)
{
    piece_log_entry *entry = &j->entries[j->n++];

    entry->piece = *piece;
    entry->record = record;
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* By sequence, offset in it, record, and place in the record. */
static int compare(const void *a, const void *b)
{
    const piece_log_entry *x = a;
    const piece_log_entry *y = b;
    int result = order(x->piece.id, y->piece.id);

    if (result == 0)
        result = order(x->piece.seq_off, y->piece.seq_off);
    if (result == 0)
        result = order(x->record, y->record);
    if (result == 0)
        result = order(x->piece.begin, y->piece.begin);
    return result;
}

/* True if `b` goes on where `a` ends. */
static bool follows(const ps_piece *a, const ps_piece *b)
{
    return a->id == b->id && a->seq_len == b->seq_len &&
           a->seq_off <= b->seq_off && a->n_tok == b->seq_off - a->seq_off &&
           b->n_tok <= UINT32_MAX - a->n_tok;
}

/* Moves the entries from `begin` to the front and joins what touches. */
static void compact(piece_log *j, size_t begin)
{
    size_t n = 0;

    for (size_t i = begin; i < j->n; i++) {
        const piece_log_entry *entry = &j->entries[i];

        if (n > 0 && follows(&j->entries[n - 1].piece, &entry->piece))
            j->entries[n - 1].piece.n_tok += entry->piece.n_tok;
        else
            j->entries[n++] = *entry;
    }
    j->n = n;
}

void piece_log_settle(piece_log *j, const uint64_t *watermark,
                      piece_log_judge *judge, void *context)
{
    size_t done = 0;

    if (j->n == 0)
        return;
    qsort(j->entries, j->n, sizeof(*j->entries), compare);
    while (done < j->n) {
        uint64_t id = j->entries[done].piece.id;
        size_t begin = done;

        if (watermark != NULL && id >= *watermark)
            break;
        while (done < j->n && j->entries[done].piece.id == id)
            done++;
        judge(context, &j->entries[begin], done - begin);
    }
    compact(j, done);
}

void piece_log_free(piece_log *j)
{
    free(j->entries);
    *j = (piece_log){0};
}
