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

/*
 * Print to stdout.  The first two return an exit status and print a message on
 * failure.
 */
int report_rows(const conf *c, const length_counts *of, const rows *rs);
int report_scaling(const conf *c, const scaling *s, const row *packing);
void report_plan(const ps_plan *plan);

#endif
