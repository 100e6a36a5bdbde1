/*
 * report.h - print the progress of a run.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_REPORT_H
#define TR_RUN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* One step, or several; losses are then means. */
typedef struct report_step {
    uint64_t step;      /* the last one */
    uint64_t sequences; /* including the last step */
    double loss, mlm, nsp;
    double gradient; /* its norm */
    double rate;
    uint64_t packs, tokens, rows, learnt; /* in these steps; rows include */
    double seconds;   /* padding, `learnt` counts sequences */
    double processor; /* seconds, of all threads */
    uint64_t graphs, launches; /* as in tr_results */
    double exchange, waited, imbalance; /* sums of tr_exchange_times */
    uint32_t steps;
} report_step;

/* Adds a step to the unprinted ones. */
void report_add(report_step *sum, const report_step *step);

/* Prints them and clears the sum; false: writing failed. */
bool report_print(report_step *sum, bool json);

#endif /* TR_RUN_REPORT_H */
