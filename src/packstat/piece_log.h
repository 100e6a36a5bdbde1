/*
 * piece_log.h - which pieces of which sequences a pack stream has given.
 *
 * Pieces are written down as they come and judged later: when a watermark
 * says that nothing more of a sequence can follow, all that is known of it
 * stands side by side once the journal is sorted, and it is seen whether it
 * came whole and once.  What has been judged is forgotten, so memory
 * follows what is ahead of the watermark.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_PIECE_LOG_H
#define PACKSTAT_PIECE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packstream.h"

typedef struct piece_log_entry {
    ps_piece piece;
    uint64_t record; /* the index of the record it is, or begins, in */
} piece_log_entry;

typedef struct piece_log {
    piece_log_entry *entries;
    size_t n;
    size_t room;
} piece_log;

/* Called with all entries of a sequence, by offset and then by record. */
typedef void piece_log_judge(void *context, const piece_log_entry *entries,
                             size_t n);

/* True if there is room for another entry. */
bool piece_log_has_room(const piece_log *j);

/* Makes more room; false if memory ran out. */
bool piece_log_grow(piece_log *j);

/* Writes a piece down; there must be room. */
void piece_log_add(piece_log *j, const ps_piece *piece, uint64_t record);

/*
 * Has every sequence below `watermark` judged (without one, every sequence)
 * and forgets it.  Of the others, pieces that touch become one entry, so
 * that a sequence of very many pieces does not fill the journal.
 */
void piece_log_settle(piece_log *j, const uint64_t *watermark,
                      piece_log_judge *judge, void *context);

void piece_log_free(piece_log *j);

#endif
