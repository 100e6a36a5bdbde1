/*
 * stages.c - the stages of a mix.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/stages.h"

#include <stdlib.h>

bool stages_open(stages *s, const conf *c)
{
    *s = (stages){.conf = c,
                  .lengths = calloc(c->n_stages, sizeof *s->lengths),
                  .counts = calloc(c->n_stages, c->n * sizeof *s->counts),
                  .totals = calloc(c->n_stages, sizeof *s->totals)};
    if (s->lengths == NULL || s->counts == NULL || s->totals == NULL)
        return false;
    for (uint32_t i = 0; i < c->n_stages; i++)
        s->lengths[i] = c->stages[i].length;
    return true;
}

stage_count *stages_counts(const stages *s, uint32_t stage)
{
    return s->counts + (size_t)stage * s->conf->n;
}

uint64_t stages_amount(const stages *s, uint32_t stage)
{
    const stage_count *total = &s->totals[stage];

    return s->conf->by_sequences ? total->sequences : total->tokens;
}

bool stages_are_over(const stages *s)
{
    return s->current == s->conf->n_stages;
}

void stages_begin(stages *s, mix *m)
{
    /* A stage that was ended by `now` before its first sequence has none. */
    while (!stages_are_over(s) && s->lengths[s->current] == 0)
        s->current++;
    if (!stages_are_over(s))
        mix_begin(m, m->sources, s->conf->stages[s->current].weights,
                  s->conf->n);
}

void stages_advance(stages *s, mix *m)
{
    s->current++;
    stages_begin(s, m);
}

bool stages_take(stages *s, uint32_t i, uint64_t n_tok)
{
    stage_count *count = &stages_counts(s, s->current)[i];
    stage_count *total = &s->totals[s->current];

    count->sequences++;
    count->tokens += n_tok;
    total->sequences++;
    total->tokens += n_tok;
    return stages_amount(s, s->current) >= s->lengths[s->current];
}

void stages_close(stages *s)
{
    free(s->lengths);
    free(s->counts);
    free(s->totals);
}
