/*
 * compare.h - check that packs contain their input: each sequence once, whole
 * or rejected, byte for byte.
 *
 * Input and packs are read once, in parallel.  The input is held from the first
 * sequence that is not in a pack yet to the last one that is, so memory grows
 * with the displacement.
 *
 * audit.h checks that sequences are unique and that pieces join.
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
    bool open;    /* a comparison was requested */
    bool stopped; /* comparison is impossible; the reason was reported */
    rejects rejects;
    columns columns;
    pending pending; /* numbered through all streams */
    ps_totals made;  /* totals of the input, over all streams */
    /* Of the current stream: */
    uint32_t stream;   /* its index, from 0 */
    uint64_t base;     /* number of its first sequence */
    uint64_t oldest;   /* number of the first sequence not in a pack yet */
    uint64_t ahead;    /* sequences and pieces that overtook it */
    fault_place place; /* the current pack, or END */
} comparison;

/*
 * Opens the input, and the rejects if there are any.  Status and faults are
 * added to `f`.  `f` and `info` must outlive the comparison.
 */
void compare_open(comparison *c, const packstat_conf *conf,
                  const ps_pack_info *info, faults *f);

/*
 * Compares the next pack, which must have passed through the audit.  `totals`
 * are those of its reader.  Returns false if out of memory.
 */
bool compare_pack(comparison *c, const ps_pack *pack, const ps_totals *totals);

/*
 * Compares the totals at the end of the last stream.  Returns false if out of
 * memory.
 */
bool compare_end(comparison *c, const ps_totals *totals);

void compare_close(comparison *c);

#endif
