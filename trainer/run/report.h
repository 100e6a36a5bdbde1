/*
 * report.h - print the progress of a run.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_REPORT_H
#define TR_RUN_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One step, or several steps with their losses summed. */
typedef struct report_step {
    uint64_t step;      /* number of the last step */
    uint64_t sequences; /* since the start, including the last step */
    double loss, mlm, nsp;
    double gradient; /* norm of the gradient */
    double rate;
    /* In these steps: `rows` includes padding, `learnt` counts sequences. */
    uint64_t packs, tokens, rows, learnt;
    double seconds;   /* duration of these steps */
    double processor; /* processor time of all threads, in seconds */
    uint64_t graphs, launches; /* as in tr_results */
    double exchange, waited, imbalance; /* sums of tr_exchange_times */
    uint32_t steps;
    uint32_t idle; /* steps without targets, whose losses do not count */
} report_step;

/* Adds a step to the unprinted steps. */
void report_add(report_step *sum, const report_step *step);

/* Sums over the targets of an evaluation. */
typedef struct report_sums {
    double targets;
    double loss;  /* negative log-likelihood, in nats */
    double right; /* targets with the highest logit */
} report_sums;

/* The result of an evaluation. */
typedef struct report_eval {
    uint64_t step;
    report_sums all;
    const report_sums *by; /* [sources] by the channel `source` */
    uint32_t sources;
} report_eval;

/* Write a line of JSON, complete when they return.  Return false if writing
 * failed. */
bool report_write(FILE *file, const report_step *s, bool pairs);
bool report_write_eval(FILE *file, const report_eval *e);

/*
 * Prints the steps and clears the sum; `pairs` adds the two parts of BERT's
 * loss.  Returns false if writing failed.
 */
bool report_print(report_step *sum, bool json, bool pairs);
bool report_print_eval(const report_eval *e, bool json);

#endif /* TR_RUN_REPORT_H */
