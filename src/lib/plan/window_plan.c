/*
 * window_plan.c - fast plans for the sequences in a window.
 *
 * SPDX-License-Identifier: MIT
 *
 * The best of the fast plans often has the minimum number of packs.  If not,
 * packs are made by the prices of the LP relaxation and improved by local
 * search (repack.h).  The full relaxation would take too long.  It is solved
 * for a few classes of lengths, each represented by its mean, and prices are
 * interpolated linearly.  The full relaxation is tried, by the fit of nnlshp,
 * only if there are many sequences of each length.
 */

#include "plan/window_plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "lp/column_gen.h"
#include "plan/nnls.h"
#include "plan/repack.h"

/*
 * Work limits of an effort.  The number of classes grows with the square root
 * of the number of sequences, because the relaxation takes about 300 additions
 * times the square of the number of lengths.  Class lengths are in units of
 * tokens.
 */
typedef struct budget {
    double classes;          /* times the square root of the sequences... */
    uint32_t max_classes;    /* ...up to this */
    uint32_t max_units;      /* maximum capacity in units */
    uint32_t max_units_deep; /* in pricing, from depth 4 on */
    double price_work;       /* additions for prices, per sequence... */
    double pack_work;        /* ...and steps for packs, per sequence... */
    double max_work;         /* ...each limited to this */
    double fit_work;         /* additions for a fit, per sequence */
    double repair_work;      /* steps for its remainder, per sequence */
} budget;

/*
 * Flushes can be frequent.  The end comes once and its window can hold most of
 * a short stream, so up to 0.1 s is acceptable.
 */
static const budget budgets[] = {
    [PS_EFFORT_LOW] = {1, 128, 512, 128, 150, 100, HUGE_VAL, 150, 100},
    [PS_EFFORT_MEDIUM] = {1, 128, 512, 128, 150, 100, HUGE_VAL, 2000, 500},
    [PS_EFFORT_HIGH] = {4, 256, 1024, 512, 1000, 1500, 6e7, 3000, 100},
};

/* For a second attempt at the end, if two or more packs above the bound. */
static const budget hard = {16, 256, 1024, 512, 30000, 15000, 1e8, 0, 0};

#define MIN_PACK_WORK 100.0 /* minimum steps per sequence */
#define MIN_CLASSES 8
#define MAX_CLASSES 256
#define GAP 1e-3 /* relative; smaller gaps make no difference */

/*
 * With this many sequences per length, on average, the relaxation of all
 * lengths is tried first, since it can be solved in time.
 */
#define MANY 16

typedef struct classes {
    uint32_t unit;               /* tokens */
    uint32_t n;                  /* number of classes */
    uint32_t units[MAX_CLASSES]; /* length in units, ascending */
    double length[MAX_CLASSES];  /* mean length in tokens */
    double count[MAX_CLASSES];   /* sequences */
} classes;

/*
 * Divides the lengths into classes with about equally many sequences.  Classes
 * with the same length in units are merged.
 */
static void classify(classes *c, const ps_histogram *h, uint32_t capacity,
                     const budget *with)
{
    double all = (double)ps_histogram_sequences(h);
    double max = fmin(fmax(floor(with->classes * sqrt(all)), MIN_CLASSES),
                      with->max_classes);
    double seen = 0;
    double count = 0;
    double tokens = 0;

    *c = (classes){.unit = (capacity - 1) / with->max_units + 1};
    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        double n = (double)ps_histogram_count(h, i);
        double mean;
        uint32_t units;

        seen += n;
        count += n;
        tokens += n * ps_histogram_length(h, i);
        if (seen < all && seen * max < all * (c->n + 1))
            continue;

        mean = tokens / count;
        units = (uint32_t)(mean / c->unit + 0.5);
        units = units < 1 ? 1 : units;
        units = units > capacity / c->unit ? capacity / c->unit : units;
        if (c->n == 0 || c->units[c->n - 1] < units) {
            c->units[c->n] = units;
            c->length[c->n] = mean;
            c->count[c->n++] = 0;
        }
        c->count[c->n - 1] += count;
        count = 0;
        tokens = 0;
    }
}

/* Interpolates prices linearly between the classes. */
static void spread(const classes *c, const double *class_price,
                   const ps_histogram *h, uint32_t capacity, double *price)
{
    double from = 0;
    double before = 0;
    uint32_t k = 0;

    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        double length = ps_histogram_length(h, i);
        double to, after;

        for (; k < c->n && c->length[k] < length; k++) {
            from = c->length[k];
            before = class_price[k];
        }
        to = k < c->n ? c->length[k] : capacity;
        after = k < c->n ? class_price[k] : 1;
        price[i] = to > from
                       ? before + (after - before) * (length - from) /
                                      (to - from)
                       : after;
    }
}

/* Makes packs at the prices of the relaxation for the classes. */
static ps_result repack(ps_plan **plan, const ps_histogram *h,
                        const ps_plan_options *o, const budget *with,
                        double min_packs, ps_error *err)
{
    double n = (double)ps_histogram_sequences(h);
    double *price = calloc(ps_histogram_size(h), sizeof *price);
    ps_repack_options ro = {
        .capacity = o->capacity,
        .depth = o->depth,
        .price = price,
        .min_packs = min_packs,
        .work = fmax(fmin(with->pack_work * n, with->max_work),
                     MIN_PACK_WORK * n)};
    ps_lp_limits limits = {.work = fmin(with->price_work * n,
                                        with->max_work),
                           .gap = GAP * min_packs,
                           .max_units = with->max_units_deep};
    ps_lp_instance s;
    classes c;
    ps_lp *lp;
    ps_result r;

    if (price == NULL)
        return ps_fail_memory(err);
    classify(&c, h, o->capacity, with);
    s = (ps_lp_instance){.n = c.n,
                         .length = c.units,
                         .count = c.count,
                         .capacity = o->capacity / c.unit};
    s.depth = o->depth < s.capacity ? o->depth : s.capacity;
    r = ps_lp_open(&lp, &s, &limits, err);
    if (r == PS_OK) {
        spread(&c, ps_lp_prices(lp), h, o->capacity, price);
        ps_lp_free(lp);
        r = ps_plan_repack(plan, h, &ro, err);
    }
    free(price);
    return r;
}

/*
 * The maximum of three cases: a fast plan; a plan, prices and another plan; a
 * plan and a fit.
 */
uint64_t ps_plan_window_bytes(const ps_plan_size *size, ps_effort effort)
{
    const budget *with = &budgets[effort];
    uint32_t n = (uint32_t)ps_mem_min(size->lengths, with->max_classes);
    uint32_t units = (uint32_t)ps_mem_min(size->capacity, with->max_units);
    uint64_t plan = ps_plan_bytes(size->sequences);
    uint64_t prices = ps_lp_bytes(
        n, units, (uint32_t)ps_mem_min(size->depth, units),
        with->max_units_deep);
    uint64_t packs = ps_mem_sum(
        ps_plan_repack_bytes(size->sequences, size->lengths), plan);
    uint64_t bytes = ps_mem_sum(ps_mem_array(size->lengths, sizeof(double)),
                                ps_mem_max(prices, packs));
    ps_plan_size fitted = *size;

    /* Except at medium effort, a fit is tried only if there are few lengths. */
    if (effort != PS_EFFORT_MEDIUM)
        fitted.lengths = (uint32_t)ps_mem_min(size->lengths,
                                              size->sequences / MANY);
    bytes = ps_mem_max(bytes, ps_plan_nnlshp_bytes(&fitted));
    return ps_mem_max(ps_plan_quick_bytes(size), ps_mem_sum(plan, bytes));
}

/*
 * Lower bound on the packs of any plan, by tokens.  For a length up to half the
 * capacity, sequences too long to share a pack with it need one pack each, as
 * do all others above half the capacity; sequences shorter than it are ignored
 * (L2: Martello and Toth 1990).
 */
static double min_by_tokens(const ps_histogram *h, uint32_t capacity)
{
    size_t to = ps_histogram_size(h);
    double tokens = (double)ps_histogram_tokens(h);
    double alone = 0;
    double above = 0;
    double min = 0;

    for (size_t i = to; i > 0 && ps_histogram_length(h, i - 1) >
                                     capacity / 2; i--)
        above += (double)ps_histogram_count(h, i - 1);
    for (size_t i = 0; i < to; i++) {
        uint32_t length = ps_histogram_length(h, i);

        for (; length <= capacity / 2 &&
               ps_histogram_length(h, to - 1) > capacity - length; to--) {
            double n = (double)ps_histogram_count(h, to - 1);

            alone += n;
            above -= n;
            tokens -= n * ps_histogram_length(h, to - 1);
        }
        min = fmax(min, alone + fmax(above, tokens / capacity));
        if (length > capacity / 2)
            break;
        tokens -= (double)ps_histogram_count(h, i) * length;
    }
    return min;
}

ps_result ps_plan_window(ps_plan **plan, const ps_histogram *h,
                         ps_effort effort, const ps_plan_options *o,
                         ps_error *err)
{
    const budget *with = &budgets[effort];
    double n = (double)ps_histogram_sequences(h);
    const ps_fit_work work = {with->fit_work * n, with->repair_work * n};
    double min_packs = fmax(min_by_tokens(h, o->capacity), n / o->depth);
    /* If everything fits one pack, as with frequent flushes, skip the fit. */
    bool fits = effort == PS_EFFORT_MEDIUM && min_packs > 1;
    ps_result r = PS_OK;

    *plan = NULL;
    if (!fits) {
        r = ps_plan_quick(plan, h, o, err);
        fits = r == PS_OK && (double)ps_plan_packs(*plan) >= min_packs + 1 &&
               ps_histogram_size(h) <= ps_histogram_sequences(h) / MANY;
    }
    if (r == PS_OK && fits)
        r = ps_plan_fit_within(plan, h, o, work, &min_packs, err);
    if (r == PS_OK && (double)ps_plan_packs(*plan) >= min_packs + 1)
        r = repack(plan, h, o, with, min_packs, err);
    if (r == PS_OK && effort == PS_EFFORT_HIGH &&
        (double)ps_plan_packs(*plan) >= min_packs + 2)
        r = repack(plan, h, o, &hard, min_packs, err);
    if (r == PS_OK && effort == PS_EFFORT_MEDIUM)
        r = ps_plan_merge(*plan, err);
    if (r != PS_OK) {
        ps_plan_free(*plan);
        *plan = NULL;
    }
    return r;
}
