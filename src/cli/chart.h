/*
 * chart.h - axes, histograms and curves in a panel of an SVG page.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_CHART_H
#define CLI_CHART_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/svg.h"
#include "packstream.h"

/* Where the axes of a panel are, in pixels. */
#define CHART_LEFT 44
#define CHART_RIGHT (SVG_WIDTH - 56)
#define CHART_TOP 46
#define CHART_BOTTOM (SVG_HEIGHT - 34)

/* Values `from` to `to` lie between two places, in pixels. */
typedef struct chart_axis {
    double from;
    double to; /* above `from` */
    bool is_log; /* `from` is above 0 then */
    double low;
    double high;
} chart_axis;

/* Axes of a panel along its lower edge, and up its left one. */
chart_axis chart_across(double from, double to, bool is_log);
chart_axis chart_up(double from, double to);

/*
 * As chart_up, from 0 to a round number that is not below `most`, with ticks of
 * not less than `step`; and from and to round ones that have `least` and `most`
 * between them.
 */
chart_axis chart_up_to(double most, double step);
chart_axis chart_up_from(double least, double most);

double chart_place(const chart_axis *axis, double value);

/* Draws an axis with ticks and numbers, and `unit` behind each number. */
void chart_draw_across(svg *s, const chart_axis *x, const char *what);
void chart_draw_up(svg *s, const chart_axis *y, const char *unit);

/* Parts of an axis across: a tick at a place, and the line with its name. */
void chart_draw_tick(svg *s, double at);
void chart_draw_base(svg *s, const char *what);

/*
 * Names of curves at the right, each beside the end of its curve or, where that
 * has no room, near it.
 */
#define CHART_NAMES 16
typedef struct chart_name {
    double y; /* where the curve ends */
    const char *name;
    const char *colour;
} chart_name;

void chart_draw_names(svg *s, chart_name *names, unsigned n);

/*
 * Sums along a stream, of so many things each: when all bins are full, they
 * take twice as many.  All zeros is the start.
 */
#define CHART_BINS 256
#define CHART_SUMS 3
typedef struct chart_bin {
    uint64_t n;
    double sums[CHART_SUMS];
} chart_bin;

typedef struct chart_bins {
    uint64_t step; /* things in a full bin */
    unsigned n;
    chart_bin of[CHART_BINS];
} chart_bins;

void chart_bins_add(chart_bins *bins, const double sums[CHART_SUMS]);

/* To be called after the last: a bin of few joins the one before it. */
void chart_bins_finish(chart_bins *bins);

/* What is drawn of a bin. */
typedef double chart_figure(const chart_bin *bin, const void *context);

/* A line in steps, of a bin each; returns where it ends, in pixels. */
double chart_draw_bins(svg *s, const chart_bins *bins, const chart_axis *x,
                       const chart_axis *y, const char *class,
                       chart_figure *get, const void *context);

/*
 * A panel with a histogram of values, which is finished and not empty, in
 * ranges that are equal or, where most values are small, grow by a factor.
 * Bars show their counts of `what` where a mouse points at them; over them is
 * the share of all up to each value, with an axis at the right.
 */
void chart_draw_histogram(svg *s, const char *title, const char *note,
                          const ps_histogram *h, const char *across,
                          const char *what);
void chart_draw_lengths(svg *s, const ps_histogram *h);

/*
 * Histograms of counts by powers of two, as chart_add_power counts them: 0, 1,
 * 2 to 3, 4 to 7 and so on, the last without an end.  Each has the same room.
 */
#define CHART_POWERS 64
void chart_add_power(uint64_t counts[CHART_POWERS], uint64_t value);
void chart_draw_powers(svg *s, const uint64_t counts[CHART_POWERS],
                       const char *across, const char *what);

#endif
