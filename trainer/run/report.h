/*
 * report.h - print the progress of a run.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_REPORT_H
#define TR_RUN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* One step; or several, of which losses are then means. */
typedef struct report_step {
    uint64_t step;      /* the last one */
    uint64_t sequences; /* up to there */
    double loss, mlm, nsp;
    double gradient; /* its norm */
    double rate;
    uint64_t packs, tokens, rows, learnt; /* in these steps: `rows` counts */
    double seconds;   /* padding, too, and `learnt` sequences */
    double processor; /* seconds of all threads */
    uint64_t graphs, launches; /* as tr_results has them */
    double exchange, waited, imbalance; /* tr_exchange_times, added up */
    uint32_t steps;
} report_step;

/* Adds a step to those that were not printed yet. */
void report_add(report_step *sum, const report_step *step);

/* Prints them, and empties the sum; false if they cannot be written. */
bool report_print(report_step *sum, bool json);

#endif /* TR_RUN_REPORT_H */
