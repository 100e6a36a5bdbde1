/*
 * report.c - print the progress of a run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/report.h"

#include <inttypes.h>
#include <stdio.h>

void report_add(report_step *sum, const report_step *step)
{
    sum->step = step->step;
    sum->sequences = step->sequences;
    sum->gradient = step->gradient;
    sum->rate = step->rate;
    sum->loss += step->loss;
    sum->mlm += step->mlm;
    sum->nsp += step->nsp;
    sum->packs += step->packs;
    sum->tokens += step->tokens;
    sum->rows += step->rows;
    sum->learnt += step->learnt;
    sum->seconds += step->seconds;
    sum->processor += step->processor;
    sum->graphs += step->graphs;
    sum->launches += step->launches;
    sum->exchange += step->exchange;
    sum->waited += step->waited;
    sum->imbalance += step->imbalance;
    sum->steps++;
}

/* 17 digits distinguish any two doubles. */
static void print_json(const report_step *s)
{
    (void)printf("{\"step\": %" PRIu64 ", \"sequences\": %" PRIu64
                 ", \"loss\": %.17g, \"mlm\": %.17g, \"nsp\": %.17g"
                 ", \"gradient\": %.17g, \"rate\": %.17g, \"packs\": %" PRIu64
                 ", \"tokens\": %" PRIu64 ", \"rows\": %" PRIu64
                 ", \"learnt\": %" PRIu64
                 ", \"seconds\": %.6f, \"processor\": %.6f",
                 s->step, s->sequences, s->loss / s->steps,
                 s->mlm / s->steps, s->nsp / s->steps, s->gradient, s->rate,
                 s->packs, s->tokens, s->rows, s->learnt, s->seconds,
                 s->processor);
    if (s->exchange > 0)
        (void)printf(", \"exchange\": %.6f, \"waited\": %.6f"
                     ", \"imbalance\": %.6f",
                     s->exchange, s->waited, s->imbalance / s->steps);
    if (s->launches > 0)
        (void)printf(", \"graphs\": %" PRIu64 ", \"launches\": %" PRIu64,
                     s->graphs, s->launches);
    (void)printf("}\n");
}

static void print_text(const report_step *s)
{
    (void)printf("step %" PRIu64 ": %" PRIu64 " sequences, loss %.4f (mlm "
                 "%.4f, nsp %.4f), rate %.3g, %.0f sequences/s, %.0f "
                 "tokens/s, rows %.1f%% full\n",
                 s->step, s->sequences, s->loss / s->steps,
                 s->mlm / s->steps, s->nsp / s->steps, s->rate,
                 (double)s->learnt / s->seconds,
                 (double)s->tokens / s->seconds,
                 100.0 * (double)s->tokens / (double)s->rows);
}

bool report_print(report_step *sum, bool json)
{
    if (sum->steps > 0 && json)
        print_json(sum);
    else if (sum->steps > 0)
        print_text(sum);
    *sum = (report_step){0};
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}
