/*
 * compare.h - whether packs hold what their input was: each sequence once,
 * whole or rejected, to the last byte.
 *
 * Input and packs are read once, side by side.  What is held are sequences
 * of the input from the first that is in no pack yet to the last that is in
 * one, so memory follows the displacement.
 *
 * That no sequence comes twice, and that pieces join, audit.h finds out.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_COMPARE_H
#define PACKSTAT_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "columns.h"
#include "conf.h"
#include "faults.h"
#include "inputs.h"
#include "packstream.h"
#include "pending.h"
#include "rejects_in.h"

typedef struct against {
    const ps_pack_info *info;
    faults *faults;
    inputs in;
    bool open;
    bool stopped;      /* it cannot be compared further; why was told */
    dropped dropped;
    lanes lanes;
    pending pending;   /* numbered through all streams */
    ps_totals made;    /* what the input makes, all streams added up */
    /* Of the stream that is being read: */
    uint32_t stream;   /* which it is */
    uint64_t base;     /* number of its first sequence */
    uint64_t oldest;   /* number of the first that is still to be seen */
    uint64_t ahead;    /* sequences and pieces seen behind that one */
    fault_place place; /* of the record that is compared */
} against;

/*
 * Opens the input, and the rejects if there are any.  Status and faults go
 * to `f`, which must outlive it, as must `info`.
 */
void compare_open(against *a, const packstat_conf *conf,
                  const ps_pack_info *info, faults *f);

/*
 * Compares the next record, which the audit has judged.  `totals` are those
 * of the reader that gave it.  False if memory ran out.
 */
bool compare_pack(against *a, const ps_pack *pack, const ps_totals *totals);

/* Takes the totals at the end of the last stream.  As compare_pack. */
bool compare_end(against *a, const ps_totals *totals);

void compare_close(against *a);

#endif
