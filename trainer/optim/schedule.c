/*
 * schedule.c - the learning rate as a function of sequences.
 *
 * Steps on packs have different numbers of sequences, so the number of steps
 * does not measure progress.
 *
 * SPDX-License-Identifier: MIT
 */
#include "optim/schedule.h"

#include <math.h>

#define PI 3.14159265358979323846

/* The share of the peak after a share of the decay. */
static double share_left(const tr_schedule *s, uint64_t sequences)
{
    const uint64_t left = s->total - sequences;
    const double share = (double)left / (double)(s->total - s->warmup);

    switch (s->decay) {
    case TR_DECAY_COSINE: return 0.5 - 0.5 * cos(PI * share);
    case TR_DECAY_STABLE:
        return left < s->cooldown ? (double)left / (double)s->cooldown : 1;
    case TR_DECAY_POWER: break;
    }
    return pow(share, s->power);
}

double tr_schedule_rate(const tr_schedule *s, uint64_t sequences)
{
    if (sequences < s->warmup)
        return s->peak * (double)sequences / (double)s->warmup;
    if (s->total == 0)
        return s->peak;
    return sequences < s->total ? s->peak * share_left(s, sequences) : 0;
}
