/*
 * audit.h - the promises of a pack stream that no single pack can show.
 *
 * Every sequence is there once and whole or was rejected, its pieces have
 * equal per-sequence values, none comes after a watermark that said it had
 * come, none waited longer than the window allows, and the totals of END are
 * those of the packs.
 *
 * Pieces are logged as they come and judged later: once a watermark says
 * that nothing more of a sequence can follow, the log is sorted, all pieces
 * of the sequence stand side by side, and it shows whether it came whole and
 * once.  What has been judged is forgotten.
 *
 * Memory: 48 bytes for each sequence or piece ahead of the watermark, whose
 * number the window bounds, and the same again a few times over to grow and to
 * sort; never more than a few times the input.
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
    fault_place place; /* the pack that it is, or begins, in */
    uint64_t values; /* a hash of its per-sequence values; 0 if it is whole */
} logged_piece;

typedef struct audit {
    const ps_pack_info *info;
    faults *faults;
    logged_piece *log;
    size_t n_logged;
    size_t log_capacity;
    bool cut;            /* the file ended before its end */
    ps_totals seen;      /* what the packs make, all streams added up */
    ps_totals declared;  /* what the ENDs of earlier streams said */
    /* Of the stream that is being read: */
    uint32_t stream;     /* which it is */
    uint64_t packs;      /* so far */
    fault_place place;   /* of the last of them */
    uint64_t greatest;   /* sequence id so far */
    uint64_t watermark;  /* the highest so far */
    uint64_t marked_by;  /* the index of the pack that has it */
    uint64_t sequences;  /* judged, pieces joined */
    uint64_t full;       /* sequences of `capacity` tokens */
    bool doubtful;       /* the ids are wrong, so sums over them are, too */
    bool lost;           /* too many ids are ahead to follow them */
} audit;

/* Starts; `info` and `f` must outlive the audit. */
void audit_begin(audit *a, const ps_pack_info *info, faults *f);

/*
 * Takes the next pack.  `totals` are those of the reader that gave it.
 * False if memory ran out.
 */
bool audit_pack(audit *a, const ps_pack *pack, const ps_totals *totals);

/*
 * Takes the totals at the end of the last stream; NULL if the file could not
 * be read to its end.
 */
void audit_end(audit *a, const ps_totals *totals);

void audit_free(audit *a);

#endif
