/*
 * plot.c - how even steps are, as curves.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packdeal/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/chart.h"
#include "cli/report.h"

/* Room for a title or a note. */
#define LINE 96

/* Ticks are not nearer than this, and the axis is not shorter, in per cent. */
#define LEAST_STEP 0.01
#define LEAST_TOP 0.04

enum { DEALT, IN_ORDER, MEAN };

/* How far the costliest rank is above the mean of all, in per cent. */
static double excess(double costliest, double mean)
{
    return mean > 0 ? 100 * (costliest / mean - 1) : 0;
}

/* That of a step, dealt or in order, as the `context` says. */
static double get_excess(const chart_bin *steps, const void *context)
{
    const unsigned *which = context;

    return excess(steps->sums[*which], steps->sums[MEAN]);
}

/* What a step costs, in per cent of the `context`, the mean of all. */
static double get_cost(const chart_bin *steps, const void *context)
{
    const double *mean = context;

    return *mean > 0 ? 100 * steps->sums[DEALT] / (double)steps->n / *mean
                     : 100;
}

/* "WHAT, of 4 steps each", or "WHAT, each step". */
static const char *note(char text[LINE], const char *what,
                        const chart_bins *bins)
{
    char digits[REPORT_DIGITS];

    if (bins->step > 1)
        (void)snprintf(text, LINE, "%s, of %s steps each", what,
                       report_digits(digits, bins->step));
    else
        (void)snprintf(text, LINE, "%s, each step", what);
    return text;
}

static void draw_balance(svg *page, const batch *b, const chart_axis *x)
{
    const chart_bins *bins = &b->bins;
    const unsigned which[] = {DEALT, IN_ORDER};
    chart_name names[] = {{0, "dealt", "k0"}, {0, "undealt", "k1"}};
    double most = LEAST_TOP;
    chart_axis y;
    char text[LINE];
    char title[LINE];

    for (unsigned i = 0; i < bins->n; i++)
        most = fmax(most, fmax(get_excess(&bins->of[i], &which[0]),
                               get_excess(&bins->of[i], &which[1])));
    y = chart_up_to(most, LEAST_STEP);
    (void)snprintf(title, sizeof title,
                   "Dealt %.2f%% above the mean, undealt %.2f%%",
                   excess(b->all.dealt, b->all.mean),
                   excess(b->all.in_order, b->all.mean));
    svg_begin_panel(page, title,
                    note(text, "costliest rank above the mean", bins));
    chart_draw_up(page, &y, "%");
    /* The deal, which is often lower, is drawn over what it would be. */
    names[1].y = chart_draw_bins(page, bins, x, &y, "line k1", get_excess,
                                 &which[1]);
    names[0].y = chart_draw_bins(page, bins, x, &y, "line k0", get_excess,
                                 &which[0]);
    chart_draw_names(page, names, 2);
    chart_draw_across(page, x, "steps");
    svg_end_panel(page);
}

static void draw_costs(svg *page, const batch *b, const chart_axis *x)
{
    const chart_bins *bins = &b->bins;
    const double mean = b->all.dealt / (x->to - x->from);
    double least = 100;
    double most = 100;
    chart_axis y;
    char text[LINE];
    char title[LINE];

    for (unsigned i = 0; i < bins->n; i++) {
        least = fmin(least, get_cost(&bins->of[i], &mean));
        most = fmax(most, get_cost(&bins->of[i], &mean));
    }
    y = chart_up_from(least, most);
    (void)snprintf(title, sizeof title,
                   "Steps cost %.1f%% to %.1f%% of the mean", least, most);
    svg_begin_panel(page, title, note(text, "the costliest rank", bins));
    chart_draw_up(page, &y, "%");
    (void)chart_draw_bins(page, bins, x, &y, "line k0", get_cost, &mean);
    chart_draw_across(page, x, "steps");
    svg_end_panel(page);
}

void plot_steps(svg *page, batch *b)
{
    const double first = (double)b->conf->start;
    char text[LINE];
    chart_axis x;

    chart_bins_finish(&b->bins);
    (void)snprintf(text, sizeof text,
                   "%" PRIu32 " rank%s, %" PRIu32 " %s%s each",
                   b->conf->ranks, b->conf->ranks == 1 ? "" : "s",
                   b->conf->per_rank, b->has_tokens ? "sequence" : "pack",
                   b->conf->per_rank == 1 ? "" : "s");
    svg_begin_section(page, text);
    x = chart_across(first, fmax((double)b->steps, first + 1), false);
    draw_balance(page, b, &x);
    draw_costs(page, b, &x);
}
