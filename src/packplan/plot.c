/*
 * plot.c - what algorithms make of a histogram, as curves over the depth.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chart.h"
#include "cli/report.h"

/* Room for a title or a note. */
#define LINE 96

/* Depths that are nearer than this have no tick each, in pixels. */
#define TICK_ROOM 17

/* The least excess over the bound that is drawn, per cent; less looks so. */
#define LEAST_EXCESS 0.01

/* By the index of an algorithm. */
static const char *const colours[ALGORITHMS] = {"k7", "k8", "k6", "k2", "k4",
                                                "k1", "k3", "k0", "k5"};

/* What is drawn of a row, in per cent. */
typedef double figure(const row *r);

static double get_efficiency(const row *r)
{
    return 100 * r->efficiency;
}

/* How many more packs than the bound. */
static double get_excess(const row *r)
{
    return 100 * ((double)r->packs / (double)report_bound_packs(r->bound) - 1);
}

/* ---- Depths ---- */

/* Depths in rising order, each once; no cap is drawn as twice the greatest. */
typedef struct depths {
    unsigned n;
    uint32_t of[CONF_LIST];
    double at[CONF_LIST]; /* where each is in a panel */
} depths;

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static depths sort_depths(const conf *c)
{
    depths d = {0};
    double drawn[CONF_LIST] = {0};
    double least;
    double most;
    chart_axis x;

    memcpy(d.of, c->depths, sizeof d.of);
    qsort(d.of, c->n_depths, sizeof *d.of, by_value);
    for (unsigned i = 0; i < c->n_depths; i++)
        if (d.n == 0 || d.of[i] != d.of[d.n - 1])
            d.of[d.n++] = d.of[i];
    for (unsigned i = 0; i < d.n; i++) {
        drawn[i] = d.of[i];
        if (d.of[i] == CONF_NO_CAP)
            drawn[i] = i > 0 ? 2.0 * d.of[i - 1] : 1;
    }

    least = drawn[0];
    most = drawn[d.n - 1];
    if (d.n == 1) {
        least /= 2;
        most *= 2;
    }
    x = chart_across(least, most, true);
    for (unsigned i = 0; i < d.n; i++)
        d.at[i] = chart_place(&x, drawn[i]);
    return d;
}

static void draw_depths(svg *page, const depths *d)
{
    double right = SVG_WIDTH + TICK_ROOM;

    /* From the right, since no cap comes last and is told from all others. */
    for (unsigned i = d->n; i-- > 0;) {
        const double at = d->at[i];

        chart_draw_tick(page, at);
        if (right - at < TICK_ROOM)
            continue;
        right = at;
        if (d->of[i] == CONF_NO_CAP)
            svg_text(page, at, CHART_BOTTOM + 15, "m", "max");
        else
            svg_text(page, at, CHART_BOTTOM + 15, "m x", "%" PRIu32,
                     d->of[i]);
    }
    chart_draw_base(page, "most sequences in a pack");
}

/* ---- Curves ---- */

typedef struct plot {
    svg *page;
    const conf *c;
    const rows *rs;
    uint64_t tokens; /* of all sequences */
    depths d;
} plot;

/* Whether an algorithm was asked for to which depths apply. */
static bool is_deep(const plot *p, unsigned a)
{
    return p->c->algorithms[a] && !algorithms[a].is_flat;
}

/* The row of an algorithm, which has one, at the depth of that index. */
static const row *find(const plot *p, unsigned a, unsigned depth)
{
    const row *r = p->rs->of;

    while (r->algorithm != &algorithms[a] ||
           (!algorithms[a].is_flat && r->depth != p->d.of[depth]))
        r++;
    return r;
}

/* Where a value is, which a logarithmic axis may not reach. */
static double up(const chart_axis *y, double value)
{
    return chart_place(y, y->is_log ? fmax(value, y->from) : value);
}

/* Goes on with a curve, which of one depth is a line from edge to edge. */
static void path_to(const plot *p, unsigned depth, double y)
{
    if (p->d.n > 1) {
        svg_path_to(p->page, p->d.at[depth], y);
    } else {
        svg_path_to(p->page, CHART_LEFT, y);
        svg_path_to(p->page, CHART_RIGHT, y);
    }
}

/* "spfhp at depth 3", "spfhp without a cap", or "none". */
static const char *name_row(char text[LINE], const row *r)
{
    if (r->algorithm->is_flat)
        (void)snprintf(text, LINE, "%s", r->algorithm->name);
    else if (r->depth == CONF_NO_CAP)
        (void)snprintf(text, LINE, "%s without a cap", r->algorithm->name);
    else
        (void)snprintf(text, LINE, "%s at depth %" PRIu32, r->algorithm->name,
                       r->depth);
    return text;
}

/* Draws the curve of an algorithm; `name` becomes what stands at its end. */
static void draw_curve(const plot *p, unsigned a, const chart_axis *y,
                       figure *get, chart_name *name)
{
    char row_name[LINE];
    char text[2 * LINE];

    *name = (chart_name){.name = algorithms[a].name, .colour = colours[a]};
    (void)snprintf(text, sizeof text, "line%s %s",
                   is_deep(p, a) ? "" : " dots", colours[a]);
    svg_begin_path(p->page, text);
    for (unsigned i = 0; i < p->d.n; i++) {
        name->y = up(y, get(find(p, a, i)));
        path_to(p, i, name->y);
    }
    svg_end_path(p->page);
    for (unsigned i = 0; i < p->d.n && is_deep(p, a); i++) {
        const row *r = find(p, a, i);

        (void)snprintf(text, sizeof text, "%s: %.4f%%", name_row(row_name, r),
                       get(r));
        svg_dot(p->page, p->d.at[i], up(y, get(r)), colours[a], text);
    }
}

/* ---- Panels ---- */

static void draw_efficiency(const plot *p)
{
    const bool bounded = !p->c->no_bound;
    const row *best = p->rs->of;
    chart_name names[ALGORITHMS + 1];
    unsigned n = 0;
    unsigned deep = ALGORITHMS; /* one of the algorithms that have a depth */
    double least = 100;
    chart_axis y;
    char name[LINE];
    char title[2 * LINE];

    for (size_t i = 0; i < p->rs->n; i++) {
        const row *r = &p->rs->of[i];

        least = fmin(least, get_efficiency(r));
        /* Sorted batches are no packs. */
        if (best->algorithm->is_flat > r->algorithm->is_flat ||
            (best->algorithm->is_flat == r->algorithm->is_flat &&
             r->efficiency > best->efficiency))
            best = r;
    }
    y = chart_up_from(least, 100);
    (void)snprintf(title, sizeof title, "%s is %.2f%% full",
                   name_row(name, best), get_efficiency(best));
    svg_begin_panel(p->page, title,
                    bounded ? "efficiency; dashes: no plan has more"
                            : "efficiency");
    chart_draw_up(p->page, &y, "%");
    for (unsigned a = 0; a < ALGORITHMS; a++) {
        if (p->c->algorithms[a])
            draw_curve(p, a, &y, get_efficiency, &names[n++]);
        deep = is_deep(p, a) ? a : deep;
    }

    /* What no plan of a depth exceeds. */
    if (bounded && deep < ALGORITHMS) {
        names[n] = (chart_name){.name = "bound", .colour = "k9"};
        svg_begin_path(p->page, "line dash k9");
        for (unsigned i = 0; i < p->d.n; i++) {
            const double packs =
                (double)report_bound_packs(find(p, deep, i)->bound);

            names[n].y = up(&y, 100 * (double)p->tokens / packs /
                                    p->c->options.capacity);
            path_to(p, i, names[n].y);
        }
        svg_end_path(p->page);
        n++;
    }
    chart_draw_names(p->page, names, n);
    draw_depths(p->page, &p->d);
    svg_end_panel(p->page);
}

/* Of those that have a depth: how far they are from the bound. */
static void draw_excess(const plot *p)
{
    chart_axis y = chart_up(LEAST_EXCESS, 10 * LEAST_EXCESS);
    chart_name names[ALGORITHMS];
    unsigned n = 0;
    unsigned closest = ALGORITHMS;
    double least = HUGE_VAL;
    char title[LINE];

    y.is_log = true;
    for (unsigned a = 0; a < ALGORITHMS; a++) {
        double most = 0;

        for (unsigned i = 0; i < p->d.n && is_deep(p, a); i++)
            most = fmax(most, get_excess(find(p, a, i)));
        y.to = fmax(y.to, most);
        if (is_deep(p, a) && most < least) {
            least = most;
            closest = a;
        }
    }
    if (closest == ALGORITHMS)
        return;
    if (least > 0)
        (void)snprintf(title, sizeof title,
                       "%s is at most %.3f%% above the bound",
                       algorithms[closest].name, fmax(least, 0.001));
    else
        (void)snprintf(title, sizeof title,
                       "%s needs no more packs than the bound",
                       algorithms[closest].name);
    svg_begin_panel(p->page, title,
                    "packs above the bound; at the foot 0.01% or less");
    chart_draw_up(p->page, &y, "%");
    for (unsigned a = 0; a < ALGORITHMS; a++)
        if (is_deep(p, a))
            draw_curve(p, a, &y, get_excess, &names[n++]);
    chart_draw_names(p->page, names, n);
    draw_depths(p->page, &p->d);
    svg_end_panel(p->page);
}

void plot_rows(svg *page, const conf *c, const ps_histogram *h, const rows *rs)
{
    const plot p = {.page = page,
                    .c = c,
                    .rs = rs,
                    .tokens = ps_histogram_tokens(h),
                    .d = sort_depths(c)};
    char text[LINE];
    char digits[REPORT_DIGITS];

    (void)snprintf(text, sizeof text, "Packs of %s tokens",
                   report_digits(digits, c->options.capacity));
    svg_begin_section(page, text);
    if (ps_histogram_size(h) == 0) {
        svg_begin_panel(page, "No sequences: nothing to draw", "");
        svg_end_low_panel(page, 30);
        return;
    }
    draw_efficiency(&p);
    if (!c->no_bound)
        draw_excess(&p);
    chart_draw_lengths(page, h);
}
