/*
 * schedule.h - the learning rate, as a function of sequences.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_OPTIM_SCHEDULE_H
#define TR_OPTIM_SCHEDULE_H

#include <stdint.h>

/* It rises in a line up to `peak`, and then falls to 0 at `total`. */
typedef struct tr_schedule {
    double peak;
    uint64_t warmup; /* sequences until the peak */
    uint64_t total;  /* sequences in all; 0: it stays at the peak */
    double power;    /* of the fall: 1 is a line */
} tr_schedule;

/* The rate of a step, by the sequences up to its end. */
double tr_schedule_rate(const tr_schedule *s, uint64_t sequences);

#endif /* TR_OPTIM_SCHEDULE_H */
