/*
 * chart.c - axes, histograms and curves in a panel of an SVG page.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"

/* About as many ticks as an axis has. */
#define TICKS_ACROSS 5
#define TICKS_UP 4

/* As many equal ranges as a histogram has, or one more. */
#define BARS 48

/* As many bars an axis has room for at least, or a single one would fill it. */
#define MIN_BARS 5

/* A digit is about so wide, and labels are so far apart, in pixels. */
#define DIGIT_WIDTH 6.3
#define LABEL_GAP 6

/* Names of curves are so far apart. */
#define NAME_HEIGHT 12

/* Room for a title. */
#define LINE 96

/* Room for a number. */
#define NUMBER 32

/* A number that a tick, or a short text, has room for: "1,024", "12.5k". */
static const char *write_number(char text[NUMBER], double number)
{
    static const char units[] = "kMGTPE";
    int unit = -1;

    /* 1024 is better known than 1.024k. */
    if (number < 10000 && number == floor(number) && fmod(number, 100) != 0)
        return report_digits(text, (uint64_t)number);
    for (; number >= 1000 && unit < 5; unit++)
        number /= 1000;
    if (unit < 0)
        (void)snprintf(text, NUMBER, "%.6g", number);
    else
        (void)snprintf(text, NUMBER, "%.4g%c", number, units[unit]);
    return text;
}

/* ---- Axes ---- */

chart_axis chart_across(double from, double to, bool is_log)
{
    return (chart_axis){.from = from,
                        .to = to,
                        .is_log = is_log,
                        .low = CHART_LEFT,
                        .high = CHART_RIGHT};
}

chart_axis chart_up(double from, double to)
{
    return (chart_axis){
        .from = from, .to = to, .low = CHART_BOTTOM, .high = CHART_TOP};
}

/* 1, 2 or 5 times a power of ten: so that about `n` steps make up a range. */
static double round_step(double range, int n)
{
    const double least = range / n;
    const double power = pow(10, floor(log10(least)));
    const double share = least / power;

    return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}

chart_axis chart_up_to(double most, double step)
{
    step = fmax(step, round_step(fmax(most, step), TICKS_UP));
    return chart_up(0, fmax(1, ceil(most / step)) * step);
}

chart_axis chart_up_from(double least, double most)
{
    double next = round_step(fmax(most - least, most / 100), TICKS_UP);
    double step;
    double from;
    double to;

    /* Rounding may make the range so long that its ticks are farther apart. */
    do {
        step = next;
        to = ceil(most / step - 1e-9) * step;
        from = fmin(floor(least / step + 1e-9) * step, to - 2 * step);
        next = round_step(to - from, TICKS_UP);
    } while (next > step);
    return chart_up(from, to);
}

double chart_place(const chart_axis *axis, double value)
{
    const double share =
        axis->is_log ? log(value / axis->from) / log(axis->to / axis->from)
                     : (value - axis->from) / (axis->to - axis->from);

    return axis->low + share * (axis->high - axis->low);
}

void chart_draw_tick(svg *s, double at)
{
    svg_line(s, at, CHART_BOTTOM, at, CHART_BOTTOM + 4, "axis");
}

void chart_draw_base(svg *s, const char *what)
{
    svg_line(s, CHART_LEFT, CHART_BOTTOM, CHART_RIGHT, CHART_BOTTOM, "axis");
    svg_text(s, (CHART_LEFT + CHART_RIGHT) / 2.0, CHART_BOTTOM + 30, "m",
             "%s", what);
}

static void draw_tick(svg *s, const chart_axis *x, double value)
{
    const double at = chart_place(x, value);
    char text[NUMBER];

    chart_draw_tick(s, at);
    svg_text(s, at, CHART_BOTTOM + 15, "m x", "%s", write_number(text, value));
}

void chart_draw_across(svg *s, const chart_axis *x, const char *what)
{
    static const double parts[] = {1, 2, 5};
    const double decades = x->is_log ? log10(x->to / x->from) : 0;
    /* Of a decade only as many ticks as have room. */
    const int n = decades > 4 ? 1 : decades > 2.5 ? 2 : 3;
    const double step = fmax(1, round_step(x->to - x->from, TICKS_ACROSS));

    if (x->is_log)
        for (double ten = pow(10, floor(log10(x->from))); ten <= x->to;
             ten *= 10)
            for (int i = 0; i < n; i++) {
                /* 1 and 3 where there are two, or they would not be even. */
                const double value = ten * (n == 2 && i == 1 ? 3 : parts[i]);

                if (value >= x->from && value <= x->to)
                    draw_tick(s, x, value);
            }
    else
        for (double k = ceil(x->from / step); k * step <= x->to; k++)
            draw_tick(s, x, k * step);
    chart_draw_base(s, what);
}

static void draw_tick_up(svg *s, const chart_axis *y, double value,
                         const char *unit)
{
    const double at = chart_place(y, value);
    char text[NUMBER];

    svg_line(s, CHART_LEFT, at, CHART_RIGHT, at, "grid");
    svg_text(s, CHART_LEFT - 5, at + 4, "e y", "%s%s",
             write_number(text, value), unit);
}

void chart_draw_up(svg *s, const chart_axis *y, const char *unit)
{
    const double round = round_step(y->to - y->from, TICKS_UP);
    /* What has no unit is counted. */
    const double step = unit[0] == '\0' ? fmax(1, round) : round;

    if (y->is_log)
        for (double ten = pow(10, ceil(log10(y->from) - 1e-9)); ten <= y->to;
             ten *= 10)
            draw_tick_up(s, y, ten, unit);
    else
        /* To add 0 turns -0 into it. */
        for (double k = ceil(y->from / step - 1e-9) + 0.0;
             k * step <= y->to + 1e-9 * step; k++)
            draw_tick_up(s, y, k * step, unit);
}

/* ---- Curves ---- */

static chart_bin add_bins(const chart_bin *a, const chart_bin *b)
{
    chart_bin both = {.n = a->n + b->n};

    for (unsigned i = 0; i < CHART_SUMS; i++)
        both.sums[i] = a->sums[i] + b->sums[i];
    return both;
}

static int by_place(const void *a, const void *b)
{
    const double x = ((const chart_name *)a)->y;
    const double y = ((const chart_name *)b)->y;

    return x != y ? (x > y) - (x < y)
                  : strcmp(((const chart_name *)a)->name,
                           ((const chart_name *)b)->name);
}

void chart_draw_names(svg *s, chart_name *names, unsigned n)
{
    double at[CHART_NAMES];
    double below = CHART_BOTTOM - 4; /* there are the numbers of ticks */

    qsort(names, n, sizeof *names, by_place);
    for (unsigned i = 0; i < n; i++) {
        const double above = i > 0 ? at[i - 1] + NAME_HEIGHT : 0;

        at[i] = fmax(names[i].y, above);
    }
    /* Those that were pushed too low go up again, and others before them. */
    for (unsigned i = n; i-- > 0; below -= NAME_HEIGHT) {
        at[i] = fmin(at[i], below);
        below = at[i];
        svg_line(s, CHART_RIGHT + 1, names[i].y, CHART_RIGHT + 6, at[i],
                 "axis");
        svg_text(s, CHART_RIGHT + 8, at[i] + 4, names[i].colour, "%s",
                 names[i].name);
    }
}

void chart_bins_add(chart_bins *bins, const double sums[CHART_SUMS])
{
    chart_bin *bin;

    if (bins->n == CHART_BINS && bins->of[CHART_BINS - 1].n == bins->step) {
        for (unsigned i = 0; i < CHART_BINS / 2; i++)
            bins->of[i] = add_bins(&bins->of[2 * i], &bins->of[2 * i + 1]);
        bins->n = CHART_BINS / 2;
        bins->step *= 2;
    }
    if (bins->n == 0)
        bins->step = 1;
    if (bins->n == 0 || bins->of[bins->n - 1].n == bins->step)
        bins->of[bins->n++] = (chart_bin){0};
    bin = &bins->of[bins->n - 1];
    bin->n++;
    for (unsigned i = 0; i < CHART_SUMS; i++)
        bin->sums[i] += sums[i];
}

void chart_bins_finish(chart_bins *bins)
{
    chart_bin *last;

    if (bins->n < 2 || bins->of[bins->n - 1].n >= bins->step / 2)
        return;
    last = &bins->of[--bins->n];
    last[-1] = add_bins(&last[-1], last);
}

double chart_draw_bins(svg *s, const chart_bins *bins, const chart_axis *x,
                       const chart_axis *y, const char *class,
                       chart_figure *get, const void *context)
{
    double n = x->from;
    double at = 0;

    svg_begin_path(s, class);
    for (unsigned i = 0; i < bins->n; i++) {
        at = chart_place(y, get(&bins->of[i], context));
        svg_path_to(s, chart_place(x, n), at);
        n += (double)bins->of[i].n;
        svg_path_to(s, chart_place(x, n), at);
    }
    svg_end_path(s);
    return at;
}

/* ---- Histograms ---- */

/* How often values occurred, in ranges. */
#define MAX_BARS CHART_POWERS
typedef struct bars {
    unsigned n;
    double from[MAX_BARS + 1]; /* bar i: from[i] and above, below the next */
    uint64_t count[MAX_BARS];
    uint64_t sum;
    uint64_t most; /* of one */
} bars;

/* "7: 1,234 packs", or "33-64: 1,234 packs". */
static void name_bar(char *text, size_t size, double from, double to,
                     uint64_t count, const char *what)
{
    char digits[REPORT_DIGITS];

    if (from == to)
        (void)snprintf(text, size, "%.0f: %s %s", from,
                       report_digits(digits, count), what);
    else
        (void)snprintf(text, size, "%.0f-%.0f: %s %s", from, to,
                       report_digits(digits, count), what);
}

/*
 * Draws the share of all up to each value, with an axis at the right: in steps,
 * if each bar is of one value.
 */
static void draw_shares(svg *s, const bars *b, const chart_axis *x)
{
    const chart_axis y = chart_up(0, 1);
    const bool has_steps = b->from[b->n] - b->from[0] == b->n;
    uint64_t sum = 0;

    svg_begin_path(s, "line k1");
    if (!has_steps)
        svg_path_to(s, chart_place(x, b->from[0]), CHART_BOTTOM);
    for (unsigned i = 0; i < b->n; i++) {
        sum += b->count[i];
        if (has_steps)
            svg_path_to(s, chart_place(x, b->from[i]),
                        chart_place(&y, (double)sum / (double)b->sum));
        svg_path_to(s, chart_place(x, b->from[i + 1]),
                    chart_place(&y, (double)sum / (double)b->sum));
    }
    svg_end_path(s);
    for (int percent = 0; percent <= 100; percent += 50)
        svg_text(s, CHART_RIGHT + 5, chart_place(&y, percent / 100.0) + 4,
                 "k1", "%d%%", percent);
}

/* The least value that a share of all does not exceed. */
static uint32_t quantile(const ps_histogram *h, double share)
{
    const double all = (double)ps_histogram_sequences(h);
    uint64_t sum = 0;
    size_t i = 0;

    for (; i + 1 < ps_histogram_size(h); i++) {
        sum += ps_histogram_count(h, i);
        if ((double)sum >= share * all)
            break;
    }
    return ps_histogram_length(h, i);
}

/*
 * Ranges of a histogram that is not empty: equal ones, or, where most values
 * would fall into the first few of these, ranges that grow by a factor.
 * Returns the axis.
 */
static chart_axis make_bars(bars *b, const ps_histogram *h)
{
    const size_t n = ps_histogram_size(h);
    const double least = ps_histogram_length(h, 0);
    const double greatest = ps_histogram_length(h, n - 1);
    const bool is_log = greatest > 64 && 8.0 * quantile(h, 0.5) < greatest;
    double step = 1;
    unsigned bar = 0;

    *b = (bars){.sum = ps_histogram_sequences(h)};
    if (is_log) {
        /* Of half an octave, as far as these hold a whole number; lengths are
           below 2^32, so that no more than 63 are needed. */
        for (int k = 0; k <= 64 && b->from[b->n] <= greatest; k++) {
            const double edge = ceil(exp2(k / 2.0) - 1e-9);

            if (edge > least && edge > b->from[b->n])
                b->n++;
            b->from[b->n] = edge;
        }
    } else {
        for (int i = 0; (greatest + 1) / step > BARS; i++)
            step *= i % 3 == 1 ? 2.5 : 2;
        for (double from = step > 1 ? 0 : 0.5; from <= greatest; from += step)
            b->from[b->n++] = from;
        while (b->n < MIN_BARS) {
            b->from[b->n] = b->from[b->n - 1] + step;
            b->n++;
        }
        b->from[b->n] = b->from[b->n - 1] + step;
    }
    for (size_t i = 0; i < n; i++) {
        while (ps_histogram_length(h, i) >= b->from[bar + 1])
            bar++;
        b->count[bar] += ps_histogram_count(h, i);
        b->most = b->count[bar] > b->most ? b->count[bar] : b->most;
    }
    return chart_across(b->from[0], b->from[b->n], is_log);
}

void chart_draw_histogram(svg *s, const char *title, const char *note,
                          const ps_histogram *h, const char *across,
                          const char *what)
{
    bars b;
    const chart_axis x = make_bars(&b, h);
    const chart_axis y = chart_up_to((double)b.most, 1);
    char text[128];

    svg_begin_panel(s, title, note);
    chart_draw_up(s, &y, "");
    for (unsigned i = 0; i < b.n; i++) {
        const double left = chart_place(&x, b.from[i]);
        const double width = chart_place(&x, b.from[i + 1]) - left;
        double top = chart_place(&y, (double)b.count[i]);

        if (b.count[i] == 0)
            continue;
        /* What occurs is seen, however rare it is. */
        if (top > CHART_BOTTOM - 0.5)
            top = CHART_BOTTOM - 0.5;
        name_bar(text, sizeof text, ceil(b.from[i]), ceil(b.from[i + 1]) - 1,
                 b.count[i], what);
        svg_rect(s, left, top, width > 4 ? width - 1 : width * 0.8,
                 CHART_BOTTOM - top, "bar", text);
    }
    draw_shares(s, &b, &x);
    chart_draw_across(s, &x, across);
    svg_end_panel(s);
}

void chart_draw_lengths(svg *s, const ps_histogram *h)
{
    char median[REPORT_DIGITS];
    char longest[REPORT_DIGITS];
    char title[LINE];

    (void)snprintf(
        title, sizeof title, "Median length %s token%s, longest %s",
        report_digits(median, quantile(h, 0.5)),
        quantile(h, 0.5) == 1 ? "" : "s",
        report_digits(longest,
                      ps_histogram_length(h, ps_histogram_size(h) - 1)));
    chart_draw_histogram(s, title, "sequences; line: share up to a length", h,
                         "length, tokens", "sequences");
}

void chart_add_power(uint64_t counts[CHART_POWERS], uint64_t value)
{
    unsigned i = 0;

    for (; value > 0 && i + 1 < CHART_POWERS; value >>= 1)
        i++;
    counts[i]++;
}

/* The least value of a bar of powers; bars are named by it. */
static double first_of_power(unsigned i)
{
    return i == 0 ? 0 : ldexp(1, (int)i - 1);
}

static const char *name_power(char text[NUMBER], unsigned i)
{
    const double first = first_of_power(i);

    return first < 1e6 ? report_digits(text, (uint64_t)first)
                       : write_number(text, first);
}

static void name_powers(svg *s, const chart_axis *x, unsigned n)
{
    const double width = chart_place(x, 1) - x->low;
    char text[NUMBER];
    const double longest = (double)strlen(name_power(text, n - 1));
    const unsigned step =
        (unsigned)ceil((longest * DIGIT_WIDTH + LABEL_GAP) / width);

    for (unsigned i = 0; i < n; i += step)
        svg_text(s, chart_place(x, i + 0.5), CHART_BOTTOM + 15, "m x", "%s",
                 name_power(text, i));
}

void chart_draw_powers(svg *s, const uint64_t counts[CHART_POWERS],
                       const char *across, const char *what)
{
    bars b = {0};
    chart_axis x;
    chart_axis y;
    char text[128];

    for (unsigned i = 0; i < CHART_POWERS; i++) {
        b.count[i] = counts[i];
        b.sum += counts[i];
        b.most = counts[i] > b.most ? counts[i] : b.most;
        b.n = counts[i] > 0 ? i + 1 : b.n;
        b.from[i + 1] = i + 1;
    }
    b.n = b.n > MIN_BARS ? b.n : MIN_BARS;
    x = chart_across(0, b.n, false);
    y = chart_up_to((double)b.most, 1);
    chart_draw_up(s, &y, "");
    for (unsigned i = 0; i < b.n; i++) {
        const double from = first_of_power(i);
        const double left = chart_place(&x, i);
        const double width = chart_place(&x, i + 1) - left;
        const double top = chart_place(&y, (double)b.count[i]);

        name_bar(text, sizeof text, from, i == 0 ? 0 : 2 * from - 1,
                 b.count[i], what);
        if (b.count[i] > 0)
            svg_rect(s, left + 1, fmin(top, CHART_BOTTOM - 0.5), width - 2,
                     fmax(CHART_BOTTOM - top, 0.5), "bar", text);
    }
    name_powers(s, &x, b.n);
    draw_shares(s, &b, &x);
    chart_draw_base(s, across);
}
