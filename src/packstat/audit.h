/*
 * audit.h - check guarantees of a pack stream that no single pack shows.
 *
 * Every sequence occurs once and whole or was rejected; its pieces have equal
 * per-sequence values; none occurs after a watermark that excludes it; none was
 * delayed longer than the window allows; and the totals in END match the packs.
 *
 * Pieces are logged as they are read and checked later.  Once a watermark
 * guarantees that a sequence is complete, the log is sorted, which groups its
 * pieces, and the sequence is checked and removed.
 *
 * Memory: 48 bytes for each sequence or piece ahead of the watermark, whose
 * number is limited by the window, and several times that while the log grows
 * and is sorted; never more than a few times the input.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_AUDIT_H
#define PACKSTAT_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packstat/faults.h"
#include "packstream.h"

typedef struct logged_piece {
    ps_piece piece;
    /* the pack that contains it, or its first piece if merged */
    fault_place place;
    uint64_t values; /* hash of its per-sequence values; 0 if it is whole */
} logged_piece;

typedef struct audit {
    const ps_pack_info *info;
    faults *faults;
    logged_piece *log; /* pieces to be checked; owned */
    size_t n_logged;
    size_t log_capacity; /* pieces allocated */
    bool cut;            /* the file is incomplete */
    ps_totals seen;      /* totals of the packs, over all streams */
    ps_totals declared;  /* totals declared by the ENDs of earlier streams */
    /* Of the current stream: */
    uint32_t stream;    /* its number, from 0 */
    uint64_t packs;     /* packs so far */
    fault_place place;  /* of the last pack */
    uint64_t greatest;  /* highest sequence id so far */
    uint64_t watermark; /* highest watermark so far */
    uint64_t marked_by; /* index of the pack that set it */
    uint64_t sequences; /* sequences checked, with pieces joined */
    uint64_t full;      /* sequences of `capacity` tokens */
    bool doubtful;      /* ids are wrong, so sums over them are unreliable */
    bool lost;          /* too many ids are ahead; tracking stopped */
} audit;

/* Starts an audit.  `info` and `f` must outlive it. */
void audit_begin(audit *a, const ps_pack_info *info, faults *f);

/*
 * Adds the next pack.  `totals` are those of its reader.  Returns false if out
 * of memory.
 */
bool audit_pack(audit *a, const ps_pack *pack, const ps_totals *totals);

/*
 * Adds the totals at the end of the last stream; NULL if the file could not be
 * read to its end.
 */
void audit_end(audit *a, const ps_totals *totals);

void audit_free(audit *a);

#endif
