/*
 * compare.h - check that packs contain their input byte for byte, each sequence
 * once and completely unless it was rejected.
 *
 * Input and packs are read once, in parallel.  The input is held from the first
 * sequence that is not in a pack yet to the last sequence that is in a pack, so
 * the memory grows with the displacement.
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
    pending pending; /* sequences, numbered through all streams */
    ps_totals made;  /* totals of the input, over all streams */
    /* The members below are about the current stream. */
    uint32_t stream;   /* index of the stream, from 0 */
    uint64_t base;     /* number of the first sequence of the stream */
    uint64_t oldest;   /* number of the first sequence not in a pack yet */
    uint64_t ahead;    /* later sequences and pieces packed before it */
    fault_place place; /* the current pack, or END */
} comparison;

/*
 * Opens the input, and the rejects if any are given.  Adds status and faults to
 * `f`.  `f` and `info` must outlive the comparison.
 */
void compare_open(comparison *c, const packstat_conf *conf,
                  const ps_pack_info *info, faults *f);

/*
 * Compares the next pack, which audit_pack must have seen.  `totals` are the
 * totals of its reader.  Returns false if out of memory.
 */
bool compare_pack(comparison *c, const ps_pack *pack, const ps_totals *totals);

/*
 * Compares the totals at the end of the last stream.  Returns false if out of
 * memory.
 */
bool compare_end(comparison *c, const ps_totals *totals);

void compare_close(comparison *c);

#endif
