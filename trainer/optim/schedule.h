/*
 * schedule.h - the learning rate as a function of the sequences seen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_OPTIM_SCHEDULE_H
#define TR_OPTIM_SCHEDULE_H

#include <stdint.h>

/* A linear rise to `peak`, then a polynomial decay to 0 at `total`. */
typedef struct tr_schedule {
    double peak;
    uint64_t warmup; /* sequences until the peak */
    uint64_t total;  /* sequences until the rate is 0; 0: no decay */
    double power;    /* exponent of the decay; 1 is linear */
} tr_schedule;

/* Returns the rate of the step that ends after this number of sequences. */
double tr_schedule_rate(const tr_schedule *s, uint64_t sequences);

#endif /* TR_OPTIM_SCHEDULE_H */
