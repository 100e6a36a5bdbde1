/*
 * schedule.h - the learning rate as a function of the sequences seen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_OPTIM_SCHEDULE_H
#define TR_OPTIM_SCHEDULE_H

#include <stdint.h>

typedef enum tr_decay {
    TR_DECAY_POWER,  /* polynomial to 0; linear if the power is 1 */
    TR_DECAY_COSINE, /* half a cosine to 0 */
    TR_DECAY_STABLE  /* the peak, then a linear decay to 0 in the last
                      * `cooldown` sequences ("WSD") */
} tr_decay;

/* A linear rise to `peak`, then a decay to 0 at `total`. */
typedef struct tr_schedule {
    double peak;
    uint64_t warmup; /* sequences until the peak */
    uint64_t total;  /* sequences until the rate is 0; 0: no decay */
    tr_decay decay;
    double power;    /* exponent of TR_DECAY_POWER */
    uint64_t cooldown; /* sequences, of TR_DECAY_STABLE */
} tr_schedule;

/* Returns the rate of the step that ends after this number of sequences. */
double tr_schedule_rate(const tr_schedule *s, uint64_t sequences);

#endif /* TR_OPTIM_SCHEDULE_H */
