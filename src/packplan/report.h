/*
 * report.h - print the results of packplan.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_REPORT_H
#define PACKPLAN_REPORT_H

#include "files/histogram.h"
#include "packplan/conf.h"
#include "packplan/rows.h"
#include "packplan/scaling.h"
#include "packplan/uses.h"

/*
 * Print to stdout.  All but the last return an exit status and print a message
 * on failure.
 */
int report_rows(const conf *c, const length_counts *of, const rows *rs);
int report_scaling(const conf *c, const scaling *s, const row *packing);
/* The bound of each resource alone, and the number of packs of all. */
int report_budgets(const conf *c, const uses_table *u, const double *alone,
                   double packs);
void report_plan(const ps_plan *plan);

#endif
