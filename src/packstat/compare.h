/*
 * compare.h - whether packs hold what their input was: each sequence once,
 * whole or rejected, to the last byte.
 *
 * Input and packs are read once, side by side.  Sequences of the input are
 * held from the first that is in no pack yet to the last that is in one, so
 * memory grows with the displacement.
 *
 * audit.h checks that no sequence comes twice and that pieces join.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_COMPARE_H
#define PACKSTAT_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "packstat/columns.h"
#include "packstat/faults.h"
#include "packstat/inputs.h"
#include "packstat/packstat.h"
#include "packstream.h"
#include "packstat/pending.h"

typedef struct comparison {
    const ps_pack_info *info;
    faults *faults;
    inputs in;
    bool open;
    bool stopped;      /* nothing more can be compared; a message said why */
    rejects rejects;
    columns columns;
    pending pending;   /* numbered through all streams */
    ps_totals made;    /* totals of the input, all streams added up */
    /* Of the stream that is being read: */
    uint32_t stream;   /* which it is */
    uint64_t base;     /* number of its first sequence */
    uint64_t oldest;   /* number of the first that no pack held yet */
    uint64_t ahead;    /* sequences and pieces that overtook it */
    fault_place place; /* of the pack that is compared, or of END */
} comparison;

/*
 * Opens the input, and the rejects if there are any.  Status and faults go
 * to `f`, which must outlive it, as must `info`.
 */
void compare_open(comparison *c, const packstat_conf *conf,
                  const ps_pack_info *info, faults *f);

/*
 * Compares the next pack, which the audit has judged.  `totals` are those
 * of the reader that gave it.  False if memory ran out.
 */
bool compare_pack(comparison *c, const ps_pack *pack, const ps_totals *totals);

/* Takes the totals at the end of the last stream.  As compare_pack. */
bool compare_end(comparison *c, const ps_totals *totals);

void compare_close(comparison *c);

#endif
