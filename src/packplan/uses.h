/*
 * uses.h - read token records, and count the sequences by their use of the
 * capacity and of each budget.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_USES_H
#define PACKPLAN_USES_H

#include <stddef.h>

#include "packplan/conf.h"
#include "packstream.h"

/* Resource 0 is tokens, rounded up to the alignment; budgets follow. */
typedef struct uses_table {
    ps_uses *items; /* [n], sorted and distinct after uses_read; owned */
    size_t n;
    size_t n_sorted; /* items at the start that are sorted and distinct */
    size_t capacity; /* items allocated */
    uint32_t n_limits;
    uint64_t limits[PS_MAX_RESOURCES];
    char names[PS_MAX_RESOURCES][PS_NAME_BYTES];
    uint64_t totals[PS_MAX_RESOURCES]; /* used by all sequences */
    uint64_t sequences;                /* sequences and pieces to be packed */
    uint64_t tokens;                   /* their tokens, without gaps */
    uint64_t long_sequences;           /* above the capacity or a budget */
    uint64_t lost_tokens;              /* tokens dropped or cut off */
} uses_table;

/*
 * Reads the files of c->names, which have one schema, with the budgets of
 * c->budgets.  As in packstream, each list without a budget gets one.  `u` must
 * be all zeros.  Returns an exit status; prints a message on failure.
 */
int uses_read(uses_table *u, const conf *c);

void uses_free(uses_table *u);

#endif
