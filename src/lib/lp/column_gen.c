/*
 * column_gen.c - the linear relaxation, by column generation.
 *
 * The simplex method needs only those of the countless columns that are
 * worth more than a pack at the prices of the moment, and a knapsack finds
 * them (Gilmore and Gomory 1961, 1963).  Two things make it quick:
 *
 *  - Slack columns let a slot serve the next shorter length.  For the prices
 *    they mean that no length is worth more than a longer one (dual cuts:
 *    Valerio de Carvalho 2005).
 *  - Columns are sought at prices between those of the basis and the best
 *    ones so far (Wentges 1997), for the former jump about.
 *
 * Whatever the prices, dividing them by what the best column is worth makes
 * them feasible for the dual problem, and then what the stock is worth is a
 * bound (Farley 1990); so the work may stop at any time.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/column_gen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "lp/greedy_basis.h"

#define MAX_PARTS 16    /* of first prices */
#define SLOT 0.02       /* what a sequence is worth to the first basis */
#define SMOOTH 0.8      /* how much of the best prices is taken, */
#define LESS_SMOOTH 0.3 /* and how much less when that finds nothing */
#define NEAR_BEST 0.05  /* columns this close to the best are tried */
#define ENTER_ABOVE 0.7 /* and enter if they gain that part of the most */
#define MIN_GAIN 1e-9
#define CLOSE 1e-12     /* relative gap that is as good as none */
#define PERTURB 1e-9    /* relative change of the demand: no ties */
#define STEP_WORK 60.0  /* of a step for each row, in additions */
#define MIN_WORK 1e3  /* of a step, or of a round */
#define STRETCH 1e8     /* the work after which the yield is looked at */
#define FAIR_WORK 2e8   /* for any stock, */
#define LENGTH_WORK 2e6 /* and for each length of it, */
#define PRICER_BYTES 2048 /* of the handle */
#define MAX_WORK 4e9   /* but no more than that */

struct ps_lp {
    ps_lp_instance instance;
    ps_basis basis;
    ps_pricer *pricer;
    ps_column *tried; /* candidates to enter the basis */
    uint32_t n_tried;
    double *value;    /* of the columns that the pricer has to offer */
    double *best;     /* the prices of the best bound */
    double *smoothed; /* the prices at which columns are sought */
    double smooth;
    double bound;
    double target; /* the same when prices are inexact: a guess */
    double rounds;
    double pool_work;
    double looked_work; /* at the last look: the work done, and the packs */
    double looked_packs;
};

void ps_lp_free(ps_lp *lp)
{
    if (lp == NULL)
        return;
    ps_basis_free(&lp->basis);
    ps_pricer_free(lp->pricer);
    free(lp->tried);
    free(lp->value);
    free(lp->best);
    free(lp->smoothed);
    free(lp);
}

/* How many lengths, all different, one pack can have. */
static uint32_t max_entries(uint32_t n, uint32_t capacity, uint32_t depth)
{
    uint32_t max = depth < n ? depth : n;
    uint32_t k = 0;

    for (uint64_t sum = 0; k < max && sum <= capacity; sum += k)
        k++;
    return k > 2 ? k : 2;
}

/*
 * What pricing.c takes: itself, three numbers for each length, some for
 * each token, and two tables for each bit of a depth that is worth it; then
 * there are few units.
 */
static uint64_t pricer_bytes(uint32_t n, uint32_t capacity, uint32_t depth,
                             uint32_t max_units)
{
    uint64_t units = ps_mem_min(capacity, max_units) + 1;
    uint64_t bytes = ps_mem_array((uint64_t)n + 1, 3 * sizeof(uint32_t));
    uint32_t tables = 2;

    for (uint32_t bit = 2; bit <= depth; bit *= 2)
        tables += 2;
    bytes = ps_mem_sum(bytes, PRICER_BYTES);
    bytes = ps_mem_sum(bytes, ps_mem_array((uint64_t)capacity + 1,
                                           4 * sizeof(double)));
    return depth <= 3 ? bytes
                      : ps_mem_sum(bytes,
                                   ps_mem_array(units * tables,
                                                sizeof(double)));
}

uint64_t ps_lp_bytes(uint32_t n, uint32_t capacity, uint32_t depth,
                     uint32_t max_units)
{
    uint32_t entries = max_entries(n, capacity, depth);
    uint64_t bytes = ps_mem_array(
        (uint64_t)n + 1, 2 * sizeof(ps_column) + 3 * sizeof(double));

    bytes = ps_mem_sum(bytes, sizeof(ps_lp));
    bytes = ps_mem_sum(bytes, ps_basis_bytes(n, entries));
    bytes = ps_mem_sum(bytes, ps_start_bytes(n, capacity));
    return ps_mem_sum(bytes,
                      pricer_bytes(n, capacity, depth, max_units));
}

static ps_lp *allocate(const ps_lp_instance *s, const ps_lp_limits *limits)
{
    ps_lp *lp = calloc(1, sizeof *lp);
    bool ok;

    if (lp == NULL)
        return NULL;
    lp->instance = *s;
    ok = ps_basis_open(&lp->basis, s->n,
                       max_entries(s->n, s->capacity, s->depth));
    lp->pricer = ps_pricer_open(&lp->instance, limits->max_units);
    lp->tried = malloc(2 * (size_t)s->n * sizeof *lp->tried);
    lp->value = malloc(s->n * sizeof *lp->value);
    lp->best = malloc(s->n * sizeof *lp->best);
    lp->smoothed = malloc(s->n * sizeof *lp->smoothed);
    if (ok && lp->pricer != NULL && lp->tried != NULL &&
        lp->value != NULL && lp->best != NULL && lp->smoothed != NULL)
        return lp;
    ps_lp_free(lp);
    return NULL;
}

/* Takes prices if they bound better than those before them. */
static void try_prices(ps_lp *lp, double (*price_of)(const ps_lp_instance *s,
                                                     uint32_t i, uint32_t k),
                       uint32_t k)
{
    const ps_lp_instance *s = &lp->instance;
    double packs = 0;

    for (uint32_t i = 0; i < s->n; i++)
        packs += s->count[i] * price_of(s, i, k);
    if (packs <= lp->bound * (1 + CLOSE))
        return;
    lp->bound = packs;
    for (uint32_t i = 0; i < s->n; i++)
        lp->best[i] = price_of(s, i, k);
}

static double by_tokens(const ps_lp_instance *s, uint32_t i, uint32_t k)
{
    (void)k;
    return (double)s->length[i] / s->capacity;
}

static double by_sequences(const ps_lp_instance *s, uint32_t i, uint32_t k)
{
    (void)i;
    (void)k;
    return 1.0 / s->depth;
}

/*
 * A sequence longer than j of k + 1 equal parts of the capacity, and shorter
 * than j + 1 of them, is worth j / k: a pack that has such a one has room for
 * k whole parts at most.  Exactly j parts are worth j / (k + 1).  That is the
 * dual feasible function u(k) of Fekete and Schepers (2001).
 */
static double by_parts(const ps_lp_instance *s, uint32_t i, uint32_t k)
{
    uint64_t parts = (uint64_t)s->length[i] * (k + 1);

    if (parts % s->capacity == 0)
        return by_tokens(s, i, k);
    return (double)(parts / s->capacity) / k;
}

/* The best of some prices that are known to be feasible. */
static void set_first_prices(ps_lp *lp)
{
    try_prices(lp, by_tokens, 0);
    try_prices(lp, by_sequences, 0);
    for (uint32_t k = 1; k <= MAX_PARTS; k++)
        try_prices(lp, by_parts, k);
    lp->target = lp->bound;
}

/*
 * The demand, changed a little and differently for each length: steps that
 * gain nothing are then rare.
 */
static void set_demand(ps_lp *lp)
{
    const ps_lp_instance *s = &lp->instance;
    double mean = 0;

    for (uint32_t i = 0; i < s->n; i++)
        mean += s->count[i] / s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        double part = (double)(i * UINT32_C(2654435761)) / UINT32_MAX;

        lp->basis.demand[i] =
            s->count[i] + PERTURB * part * (s->count[i] + mean);
    }
}

static bool open_basis(ps_lp *lp)
{
    ps_lp_instance s = lp->instance;

    set_demand(lp);
    s.count = lp->basis.demand;
    return ps_start(&s, SLOT, &lp->basis.list, lp->basis.column) &&
           ps_basis_factor(&lp->basis) == PS_LU_OK;
}

/* What a slack column gains: length i in place of the one before. */
static double slack_gain(const ps_lp *lp, uint32_t i)
{
    const double *price = lp->basis.price;

    return (i == 0 ? 0 : price[i - 1]) - price[i];
}

/*
 * Finds what columns are worth at smoothed prices.  Takes note if that gives
 * the best bound so far: a length is worth as much as the dearest up to it.
 */
static void seek(ps_lp *lp)
{
    const ps_lp_instance *s = &lp->instance;
    double dearest = 0;
    double worth = 0;
    double max;

    for (uint32_t i = 0; i < s->n; i++)
        lp->smoothed[i] = lp->smooth * lp->best[i] +
                          (1 - lp->smooth) * lp->basis.price[i];
    max = ps_pricer_run(lp->pricer, lp->smoothed, lp->value);
    for (uint32_t i = 0; i < s->n; i++) {
        dearest = lp->smoothed[i] > dearest ? lp->smoothed[i] : dearest;
        worth += s->count[i] * dearest;
    }
    max = max < 1 ? 1 : max;
    if (worth / max <= lp->target)
        return;
    lp->target = worth / max;
    if (ps_pricer_is_exact(lp->pricer))
        lp->bound = lp->target;
    dearest = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        dearest = lp->smoothed[i] > dearest ? lp->smoothed[i] : dearest;
        lp->best[i] = dearest / max;
    }
}

/* Tries the columns that were worth most; the most that one gains. */
static bool try_columns(ps_lp *lp, double *max)
{
    ps_entries *list = &lp->basis.list;
    double min = 0;

    for (uint32_t i = 0; i < lp->instance.n; i++)
        min = lp->value[i] > min ? lp->value[i] : min;
    min -= NEAR_BEST * (1 - lp->smooth);
    for (uint32_t i = 0; i < lp->instance.n; i++) {
        ps_column *c = &lp->tried[lp->n_tried];
        double gain;

        if (lp->value[i] < min)
            continue;
        if (!ps_pricer_column(lp->pricer, i, list, c))
            return false;
        gain = ps_basis_gain(&lp->basis, c);
        if (gain > MIN_GAIN)
            lp->n_tried++;
        else
            list->n = c->first;
        *max = gain > *max ? gain : *max;
    }
    return true;
}

static bool try_slack(ps_lp *lp, uint32_t i)
{
    ps_entries *list = &lp->basis.list;
    ps_column c = {.first = list->n, .n = i == 0 ? 1 : 2, .slack = true};

    if (!ps_entries_reserve(list, 2))
        return false;
    if (i > 0) {
        list->index[list->n] = i - 1;
        list->value[list->n++] = 1;
    }
    list->index[list->n] = i;
    list->value[list->n++] = -1;
    lp->tried[lp->n_tried++] = c;
    return true;
}

static bool try_slacks(ps_lp *lp, double *max)
{
    for (uint32_t i = 0; i < lp->instance.n; i++)
        if (slack_gain(lp, i) > *max)
            *max = slack_gain(lp, i);
    for (uint32_t i = 0; i < lp->instance.n; i++)
        if (slack_gain(lp, i) > *max * ENTER_ABOVE &&
            slack_gain(lp, i) > MIN_GAIN && !try_slack(lp, i))
            return false;
    return true;
}

/* Of the tried columns, the one that gains most for its size. */
static uint32_t find_entering(const ps_lp *lp, double above, double *gain)
{
    uint32_t entering = lp->n_tried;
    double best = 0;

    for (uint32_t k = 0; k < lp->n_tried; k++) {
        double g = ps_basis_gain(&lp->basis, &lp->tried[k]);

        /* g / sqrt(1 + entries), squared: sums of few terms compare well */
        if (g > above && g * g > best * (1 + lp->tried[k].n)) {
            best = g * g / (1 + lp->tried[k].n);
            entering = k;
            *gain = g;
        }
    }
    return entering;
}

/* Lets the tried columns enter as long as they gain enough. */
static ps_lu_result enter(ps_lp *lp, double max)
{
    double gain = 0;
    ps_lu_result r = PS_LU_OK;

    while (r == PS_LU_OK) {
        uint32_t k = find_entering(lp, max * ENTER_ABOVE, &gain);

        if (k == lp->n_tried)
            break;
        r = ps_basis_enter(&lp->basis, &lp->tried[k], gain);
    }
    return r;
}

double ps_lp_fair_work(size_t lengths)
{
    double work = FAIR_WORK + LENGTH_WORK * (double)lengths;

    return work < MAX_WORK ? work : MAX_WORK;
}

double ps_lp_work(const ps_lp *lp)
{
    double steps = (double)lp->basis.steps;

    return ps_pricer_work(lp->pricer) + lp->pool_work + lp->basis.factor_work +
           MIN_WORK * (lp->rounds + steps) +
           STEP_WORK * steps * lp->instance.n;
}

/* True if the work since the last look saved too little. */
static bool yields_little(ps_lp *lp, double packs, double min)
{
    double work = ps_lp_work(lp);
    bool little;

    if (lp->looked_packs > 0 && work - lp->looked_work < STRETCH)
        return false;
    little = lp->looked_packs > 0 && lp->looked_packs - packs < min;
    lp->looked_packs = packs;
    lp->looked_work = work;
    return little;
}

/* True if the relaxation is solved, or as far as it may be. */
static bool is_done(ps_lp *lp, const ps_lp_limits *limits)
{
    double packs = ps_basis_packs(&lp->basis);

    return packs - lp->bound <= CLOSE * packs + limits->gap ||
           yields_little(lp, packs, limits->min_yield) ||
           ps_lp_work(lp) > limits->work;
}

/*
 * A round: seek, try, enter.  *more is false when no column gains anything.
 */
static ps_lu_result go_round(ps_lp *lp, bool *more)
{
    double max = 0;

    lp->n_tried = 0;
    if (!ps_basis_tidy(&lp->basis) || !try_columns(lp, &max) ||
        !try_slacks(lp, &max))
        return PS_LU_MEMORY;
    if (max > MIN_GAIN) {
        lp->smooth = SMOOTH;
        return enter(lp, max);
    }
    *more = lp->smooth > 0;
    lp->smooth = lp->smooth > LESS_SMOOTH ? lp->smooth - LESS_SMOOTH : 0;
    return PS_LU_OK;
}

/* The gain of a column of the pool at the prices of the basis. */
static double pool_gain(const ps_lp *lp, const ps_lp_pool *pool, size_t j)
{
    const ps_column *c = &pool->column[j];
    double gain = -1;

    for (size_t k = c->first; k < c->first + c->n; k++)
        gain += pool->list.value[k] *
                lp->basis.price[pool->list.index[k]];
    return gain;
}

/* Copies a column of the pool to those that are tried. */
static bool try_pooled(ps_lp *lp, const ps_lp_pool *pool, size_t j)
{
    const ps_column *c = &pool->column[j];
    ps_entries *list = &lp->basis.list;

    lp->tried[lp->n_tried++] = (ps_column){.first = list->n, .n = c->n};
    if (!ps_entries_reserve(list, c->n))
        return false;
    memcpy(list->index + list->n, pool->list.index + c->first,
           c->n * sizeof *list->index);
    memcpy(list->value + list->n, pool->list.value + c->first,
           c->n * sizeof *list->value);
    list->n += c->n;
    return true;
}

/* A round with what the pool has; *most is what its best column gains. */
static ps_lu_result go_pool_round(ps_lp *lp, const ps_lp_pool *pool,
                                  double *max)
{
    *max = MIN_GAIN;
    lp->n_tried = 0;
    if (!ps_basis_tidy(&lp->basis))
        return PS_LU_MEMORY;
    for (size_t j = 0; j < pool->n; j++)
        *max = fmax(*max, pool_gain(lp, pool, j));
    lp->pool_work += 2.0 * (double)pool->list.n;
    if (*max <= MIN_GAIN)
        return PS_LU_OK;
    for (size_t j = 0; j < pool->n && lp->n_tried < lp->instance.n; j++)
        if (pool_gain(lp, pool, j) > *max * ENTER_ABOVE &&
            !try_pooled(lp, pool, j))
            return PS_LU_MEMORY;
    return try_slacks(lp, max) ? enter(lp, *max) : PS_LU_MEMORY;
}

/* Lets columns of the pool enter, as long as one gains. */
static ps_lu_result use_pool(ps_lp *lp, const ps_lp_pool *pool,
                             const ps_lp_limits *limits)
{
    double max = 1;
    ps_lu_result r = PS_LU_OK;

    while (r == PS_LU_OK && max > MIN_GAIN && !is_done(lp, limits))
        r = go_pool_round(lp, pool, &max);
    return r;
}

/*
 * A basis that has become singular, by errors of rounding, ends the search
 * as a limit does: what was reached stays.
 */
static ps_lu_result solve(ps_lp *lp, const ps_lp_limits *limits,
                          const ps_lp_pool *pool)
{
    ps_lu_result r = PS_LU_OK;
    bool more = true;

    lp->smooth = SMOOTH;
    while (r == PS_LU_OK && more) {
        if (pool != NULL)
            r = use_pool(lp, pool, limits);
        seek(lp);
        lp->rounds++;
        if (r != PS_LU_OK || is_done(lp, limits))
            break;
        r = go_round(lp, &more);
    }
    return r;
}

ps_result ps_lp_open(ps_lp **out, const ps_lp_instance *instance,
                     const ps_lp_limits *limits, ps_error *err)
{
    ps_lp *lp = allocate(instance, limits);

    *out = NULL;
    if (lp == NULL)
        return ps_fail_memory(err);
    set_first_prices(lp);
    if (!open_basis(lp) || solve(lp, limits, NULL) == PS_LU_MEMORY) {
        ps_lp_free(lp);
        return ps_fail_memory(err);
    }
    *out = lp;
    return PS_OK;
}

ps_result ps_lp_improve(ps_lp *lp, const ps_lp_limits *limits,
                        const ps_lp_pool *pool, ps_error *err)
{
    ps_lp_limits more = *limits;

    more.work += ps_lp_work(lp);
    lp->looked_packs = 0;
    return solve(lp, &more, pool) == PS_LU_MEMORY ? ps_fail_memory(err)
                                                  : PS_OK;
}

double ps_lp_bound(const ps_lp *lp)
{
    return lp->bound;
}

double ps_lp_packs(const ps_lp *lp)
{
    return ps_basis_packs(&lp->basis);
}

ps_basis *ps_lp_basis(ps_lp *lp)
{
    return &lp->basis;
}

const double *ps_lp_prices(const ps_lp *lp)
{
    return lp->best;
}
