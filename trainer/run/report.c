/*
 * report.c - print the progress of a run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/report.h"

#include <inttypes.h>
#include <math.h>
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
    sum->idle += step->idle;
}

/* The mean over the steps that had targets. */
static double mean(const report_step *s, double sum)
{
    return s->idle < s->steps ? sum / (s->steps - s->idle) : 0;
}

/* ---- JSON ---- */

static bool flush(FILE *file)
{
    return fflush(file) == 0 && ferror(file) == 0;
}

/* 17 digits distinguish any two doubles. */
bool report_write(FILE *file, const report_step *s, bool pairs)
{
    (void)fprintf(file,
                  "{\"step\": %" PRIu64 ", \"sequences\": %" PRIu64
                  ", \"loss\": %.17g",
                  s->step, s->sequences, mean(s, s->loss));
    if (pairs)
        (void)fprintf(file, ", \"mlm\": %.17g, \"nsp\": %.17g",
                      mean(s, s->mlm), mean(s, s->nsp));
    (void)fprintf(file,
                  ", \"gradient\": %.17g, \"rate\": %.17g"
                  ", \"packs\": %" PRIu64 ", \"tokens\": %" PRIu64
                  ", \"rows\": %" PRIu64 ", \"learnt\": %" PRIu64
                  ", \"seconds\": %.6f, \"processor\": %.6f",
                  s->gradient, s->rate, s->packs, s->tokens, s->rows,
                  s->learnt, s->seconds, s->processor);
    if (s->exchange > 0)
        (void)fprintf(file,
                      ", \"exchange\": %.6f, \"waited\": %.6f"
                      ", \"imbalance\": %.6f",
                      s->exchange, s->waited, s->imbalance / s->steps);
    if (s->launches > 0)
        (void)fprintf(file,
                      ", \"graphs\": %" PRIu64 ", \"launches\": %" PRIu64,
                      s->graphs, s->launches);
    (void)fputs("}\n", file);
    return flush(file);
}

/* JSON has no infinity and no NaN. */
static void print_number(FILE *file, const char *name, double x)
{
    if (isfinite(x))
        (void)fprintf(file, "\"%s\": %.17g", name, x);
    else
        (void)fprintf(file, "\"%s\": null", name);
}

static void print_sums(FILE *file, const report_sums *s)
{
    print_number(file, "eval_loss", s->loss / s->targets);
    (void)fputs(", ", file);
    print_number(file, "eval_perplexity", exp(s->loss / s->targets));
    (void)fputs(", ", file);
    print_number(file, "eval_accuracy", s->right / s->targets);
    (void)fprintf(file, ", \"eval_targets\": %.0f", s->targets);
}

bool report_write_eval(FILE *file, const report_eval *e)
{
    const char *separator = "";

    (void)fprintf(file, "{\"step\": %" PRIu64 ", ", e->step);
    print_sums(file, &e->all);
    if (e->sources > 0)
        (void)fputs(", \"sources\": {", file);
    for (uint32_t i = 0; i < e->sources; i++) {
        if (e->by[i].targets <= 0)
            continue;
        (void)fprintf(file, "%s\"%" PRIu32 "\": {", separator, i);
        print_sums(file, &e->by[i]);
        (void)fputs("}", file);
        separator = ", ";
    }
    (void)fputs(e->sources > 0 ? "}}\n" : "}\n", file);
    return flush(file);
}

/* ---- Text ---- */

static void print_text(const report_step *s, bool pairs)
{
    (void)printf("step %" PRIu64 ": %" PRIu64 " sequences, loss %.4f", s->step,
                 s->sequences, mean(s, s->loss));
    if (pairs)
        (void)printf(" (mlm %.4f, nsp %.4f)", mean(s, s->mlm),
                     mean(s, s->nsp));
    (void)printf(", rate %.3g, %.0f sequences/s, %.0f tokens/s, rows %.1f%% "
                 "full\n",
                 s->rate, (double)s->learnt / s->seconds,
                 (double)s->tokens / s->seconds,
                 100.0 * (double)s->tokens / (double)s->rows);
}

bool report_print(report_step *sum, bool json, bool pairs)
{
    bool written = true;

    if (sum->steps > 0 && json)
        written = report_write(stdout, sum, pairs);
    else if (sum->steps > 0)
        print_text(sum, pairs);
    *sum = (report_step){0};
    return written && flush(stdout);
}

static void print_eval(const report_eval *e)
{
    const double loss = e->all.loss / e->all.targets;

    (void)printf("step %" PRIu64 ": eval loss %.4f, perplexity %.4g, accuracy "
                 "%.2f%%, %.0f targets\n",
                 e->step, loss, exp(loss), 100 * e->all.right / e->all.targets,
                 e->all.targets);
    for (uint32_t i = 0; i < e->sources; i++)
        if (e->by[i].targets > 0)
            (void)printf("    source %" PRIu32 ": loss %.4f, perplexity %.4g, "
                         "%.0f targets\n",
                         i, e->by[i].loss / e->by[i].targets,
                         exp(e->by[i].loss / e->by[i].targets),
                         e->by[i].targets);
}

bool report_print_eval(const report_eval *e, bool json)
{
    if (json)
        return report_write_eval(stdout, e);
    print_eval(e);
    return flush(stdout);
}
