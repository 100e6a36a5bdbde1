/*
 * audit.h - check guarantees of a pack stream that involve several packs.
 *
 * Every sequence occurs once and completely, or was rejected.  Its pieces have
 * equal per-sequence values.  It does not occur after a watermark that excludes
 * it, and was not delayed longer than the window allows.  The totals in END
 * match the packs.
 *
 * Pieces are logged as they are read and checked later.  Once a watermark
 * guarantees that a sequence is complete, the log is sorted, which groups its
 * pieces, and the sequence is checked and removed.
 *
 * The log takes 48 bytes for each sequence or piece ahead of the watermark, and
 * several times as much while it grows and is sorted.  The window limits the
 * number of these sequences and pieces.  The memory is never more than a few
 * times the size of the input.
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
    /* the pack that contains the piece; if merged, its first part */
    fault_place place;
    uint64_t values; /* hash of per-sequence values; 0 for a whole sequence */
} logged_piece;

typedef struct audit {
    const ps_pack_info *info;
    faults *faults;
    logged_piece *log; /* pieces to check; owned */
    size_t n_logged;     /* number of pieces in `log` */
    size_t log_capacity; /* number of pieces allocated */
    bool cut;            /* the file is incomplete */
    ps_totals seen;      /* totals of the packs, over all streams */
    ps_totals declared;  /* totals declared by the ENDs of earlier streams */
    /* The members below are about the current stream. */
    uint32_t stream;    /* number of the stream, from 0 */
    uint64_t packs;     /* number of packs so far */
    fault_place place;  /* place of the last pack */
    uint64_t greatest;  /* greatest sequence id so far */
    uint64_t watermark; /* greatest watermark so far */
    uint64_t marked_by; /* index of the pack with this watermark */
    uint64_t sequences; /* sequences checked; pieces are joined */
    uint64_t full;      /* number of sequences of `capacity` tokens */
    bool doubtful;      /* ids are wrong, so sums over them are unreliable */
    bool lost;          /* too many ids are ahead; tracking stopped */
} audit;

/* Starts an audit.  `info` and `f` must outlive it. */
void audit_begin(audit *a, const ps_pack_info *info, faults *f);

/*
 * Adds the next pack.  `totals` are the totals of its reader.  Returns false if
 * out of memory.
 */
bool audit_pack(audit *a, const ps_pack *pack, const ps_totals *totals);

/*
 * Adds the totals at the end of the last stream; NULL if the file could not be
 * read to its end.
 */
void audit_end(audit *a, const ps_totals *totals);

void audit_free(audit *a);

#endif
