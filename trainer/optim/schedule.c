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

double tr_schedule_rate(const tr_schedule *s, uint64_t sequences)
{
    double left;

    if (sequences < s->warmup)
        return s->peak * (double)sequences / (double)s->warmup;
    if (s->total == 0)
        return s->peak;
    if (sequences >= s->total)
        return 0;
    left = (double)(s->total - sequences) / (double)(s->total - s->warmup);
    return s->peak * pow(left, s->power);
}
