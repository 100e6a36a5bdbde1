/*
 * metrics.h - a file of losses and evaluations, as JSON Lines.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_METRICS_H
#define TR_RUN_METRICS_H

#include <stdio.h>

#include "run/report.h"

typedef struct metrics {
    const char *name;
    FILE *file; /* NULL: no file */
} metrics;

/*
 * Opens a file for appending; does nothing if `name` is NULL.  Returns
 * STATUS_OK, or STATUS_FAILURE after a message, as do the functions below, or
 * STATUS_USAGE if the file has other data.
 */
int metrics_open(metrics *m, const char *name);
int metrics_close(metrics *m);

/* Writes a line, as --stats=json prints it. */
int metrics_step(const metrics *m, const report_step *s, bool pairs);
int metrics_eval(const metrics *m, const report_eval *e);

#endif /* TR_RUN_METRICS_H */
