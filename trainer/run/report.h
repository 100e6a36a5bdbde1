/*
 * report.h - what a run prints on its way.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_REPORT_H
#define BERT_REPORT_H

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
    uint64_t graphs, launches; /* as bert_results has them */
    double exchange, waited, imbalance; /* feed_times, added up */
    uint32_t steps;
} report_step;

/* Adds a step to those that were not printed yet. */
void report_add(report_step *sum, const report_step *step);

/* Prints them, and empties the sum; false if they cannot be written. */
bool report_print(report_step *sum, bool json);

#endif /* BERT_REPORT_H */
