/*
 * column_gen.c - the LP relaxation, by column generation.
 *
 * SPDX-License-Identifier: MIT
 *
 * Of the huge number of columns, the simplex method needs only those worth more
 * than a pack at the current prices.  A knapsack problem finds them (Gilmore
 * and Gomory 1961, 1963).  Two things make it fast:
 *
 *  - Slack columns let a slot hold the next shorter length.  In the dual
 *    problem they require that no length is worth more than a longer one (dual
 *    cuts: Valerio de Carvalho 2005).
 *  - Columns are sought at prices between the basis prices and the best prices
 *    so far (Wentges 1997), because basis prices oscillate.
 *
 * Any prices become dual feasible when divided by the value of the best column.
 * The value of the instance at these prices is then a lower bound (Farley
 * 1990), so the search can stop at any time.
 */

#include "lp/column_gen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lp/greedy_basis.h"
#include "lp/pricing.h"

#define MAX_PARTS 16    /* rules for initial prices */
#define SLOT 0.02       /* value of a sequence in the first basis, packs */
#define SMOOTH 0.8      /* weight of the best prices */
#define LESS_SMOOTH 0.3 /* decrease if that finds no column */
#define NEAR_BEST 0.05  /* try columns within this of the best */
#define ENTER_ABOVE 0.7 /* enter columns with this part of max gain */
#define MIN_GAIN 1e-9
#define CLOSE 1e-12     /* relative gap that counts as solved */
#define PERTURB 1e-9    /* relative change of demand, to break ties */
#define STEP_WORK 60.0  /* additions per row in a step */
#define MIN_WORK 1e3    /* minimum of a step or round, additions */
#define STRETCH 1e8     /* additions between checks of the yield */
#define FAIR_WORK 2e8   /* additions, for any instance */
#define LENGTH_WORK 2e6 /* and per length */
#define MAX_WORK 4e9    /* upper limit of the sum */

struct ps_lp {
    ps_lp_instance instance;
    ps_basis basis;
    ps_pricer pricer;
    ps_column *tried;   /* [2 n], candidates to enter the basis */
    uint32_t n_tried;   /* number of candidates */
    double *value;      /* [n], values of the columns the pricer offers */
    double *best;       /* [n], prices of the best bound */
    double *smoothed;   /* [n], prices used to seek columns */
    double smooth;      /* weight of `best` in them */
    double bound;       /* lower bound, packs */
    double target;      /* estimate of `bound`, if prices are inexact */
    double rounds;      /* number so far */
    double pool_work;   /* additions */
    double looked_work; /* work done and packs at the last check */
    double looked_packs;
};

static void allocate(ps_lp *lp, uint32_t n, uint32_t capacity, uint32_t depth,
                     ps_mem *mem)
{
    uint32_t max = depth < n ? depth : n;
    uint32_t k = 0; /* maximum number of distinct lengths in a pack */

    for (uint64_t sum = 0; k < max && sum <= capacity; sum += k)
        k++;
    ps_basis_init(&lp->basis, n, k > 2 ? k : 2, mem);
    lp->tried = ps_mem_alloc(mem, 2 * (uint64_t)n, sizeof *lp->tried);
    lp->value = ps_mem_alloc(mem, n, sizeof *lp->value);
    lp->best = ps_mem_alloc(mem, n, sizeof *lp->best);
    lp->smoothed = ps_mem_alloc(mem, n, sizeof *lp->smoothed);
}

uint64_t ps_lp_bytes(uint32_t n, uint32_t capacity, uint32_t depth,
                     uint32_t max_units)
{
    ps_mem mem = {.bytes = sizeof(ps_lp), .counts = true};
    ps_lp lp;

    allocate(&lp, n, capacity, depth, &mem);
    mem.bytes = ps_mem_sum(mem.bytes, ps_greedy_bytes(n, capacity));
    return ps_mem_sum(mem.bytes,
                      ps_pricer_bytes(n, capacity, depth, max_units));
}

void ps_lp_free(ps_lp *lp)
{
    if (lp == NULL)
        return;
    ps_basis_destroy(&lp->basis);
    ps_pricer_destroy(&lp->pricer);
    free(lp->tried);
    free(lp->value);
    free(lp->best);
    free(lp->smoothed);
    free(lp);
}

/*
 * Takes the best of several dual feasible price rules: by tokens (rule 0), by
 * sequences (rule 1), and by parts (rule k + 1).  By parts, the capacity is
 * divided into k + 1 equal parts.  A length strictly between j and j + 1 parts
 * is worth j / k, because a pack that contains one has space for at most k
 * whole parts.  A length of exactly j parts is worth j / (k + 1).  This is the
 * dual feasible function u(k) of Fekete and Schepers (2001).
 */
static void set_first_prices(ps_lp *lp)
{
    const ps_lp_instance *s = &lp->instance;
    double *price = lp->smoothed;

    for (uint32_t rule = 0; rule <= MAX_PARTS + 1; rule++) {
        double packs = 0;

        for (uint32_t i = 0; i < s->n; i++) {
            uint64_t parts = (uint64_t)s->length[i] * rule;

            if (rule == 1)
                price[i] = 1.0 / s->depth;
            else if (parts % s->capacity == 0)
                price[i] = (double)s->length[i] / s->capacity;
            else
                price[i] = (double)(parts / s->capacity) / (rule - 1);
            packs += s->count[i] * price[i];
        }
        if (packs <= lp->bound * (1 + CLOSE))
            continue;
        lp->bound = packs;
        memcpy(lp->best, price, s->n * sizeof *price);
    }
    lp->target = lp->bound;
}

/*
 * Prices columns at the smoothed prices, and keeps these prices if they give
 * the best bound so far.  In the bound, each length has the highest price of
 * any length up to it.
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
    max = ps_pricer_run(&lp->pricer, lp->smoothed, lp->value);
    for (uint32_t i = 0; i < s->n; i++) {
        dearest = lp->smoothed[i] > dearest ? lp->smoothed[i] : dearest;
        worth += s->count[i] * dearest;
    }
    max = max < 1 ? 1 : max;
    if (worth / max <= lp->target)
        return;
    lp->target = worth / max;
    if (lp->pricer.unit == 1)
        lp->bound = lp->target;
    dearest = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        dearest = lp->smoothed[i] > dearest ? lp->smoothed[i] : dearest;
        lp->best[i] = dearest / max;
    }
}

/* Tries the most valuable columns.  *max is the greatest gain so far. */
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
        if (!ps_pricer_column(&lp->pricer, i, list, c))
            return false;
        gain = ps_basis_gain(&lp->basis, list, c);
        if (gain > MIN_GAIN)
            lp->n_tried++;
        else
            list->n = c->first;
        *max = gain > *max ? gain : *max;
    }
    return true;
}

/*
 * Tries the slack columns with a large gain.  Slack column i lets a slot of
 * length i hold the length below it.
 */
static bool try_slacks(ps_lp *lp, double *max)
{
    const double *price = lp->basis.price;
    ps_entries *list = &lp->basis.list;

    for (uint32_t i = 0; i < lp->instance.n; i++) {
        double gain = (i == 0 ? 0 : price[i - 1]) - price[i];

        *max = gain > *max ? gain : *max;
    }
    for (uint32_t i = 0; i < lp->instance.n; i++) {
        double gain = (i == 0 ? 0 : price[i - 1]) - price[i];

        if (gain > *max * ENTER_ABOVE && gain > MIN_GAIN) {
            lp->tried[lp->n_tried++] = (ps_column){
                .first = list->n, .n = i == 0 ? 1 : 2, .slack = true};
            if (!ps_entries_reserve(list, 2) ||
                (i > 0 && !ps_entries_add(list, i - 1, 1)) ||
                !ps_entries_add(list, i, -1))
                return false;
        }
    }
    return true;
}

/*
 * Lets tried columns enter while their gain is large enough, starting with the
 * largest gain relative to size.
 */
static ps_lu_result enter(ps_lp *lp, double max)
{
    ps_lu_result r = PS_LU_OK;

    while (r == PS_LU_OK) {
        uint32_t entering = lp->n_tried;
        double gain = 0;
        double best = 0;

        for (uint32_t k = 0; k < lp->n_tried; k++) {
            const ps_column *c = &lp->tried[k];
            double g = ps_basis_gain(&lp->basis, &lp->basis.list, c);

            /* g / sqrt(1 + entries), squared */
            if (g > max * ENTER_ABOVE && g * g > best * (1 + c->n)) {
                best = g * g / (1 + c->n);
                entering = k;
                gain = g;
            }
        }
        if (entering == lp->n_tried)
            break;
        r = ps_basis_enter(&lp->basis, &lp->tried[entering], gain);
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

    return lp->pricer.work + lp->pool_work + lp->basis.factor_work +
           MIN_WORK * (lp->rounds + steps) +
           STEP_WORK * steps * lp->instance.n;
}

/*
 * True if the relaxation is solved, a limit is reached, or the work since the
 * last check saved too little.
 */
static bool is_done(ps_lp *lp, const ps_lp_limits *limits)
{
    double packs = ps_basis_packs(&lp->basis);
    double work = ps_lp_work(lp);
    bool first = !(lp->looked_packs > 0);
    double saved = lp->looked_packs - packs;

    if (packs - lp->bound <= CLOSE * packs + limits->gap)
        return true;
    if (first || work - lp->looked_work >= STRETCH) {
        lp->looked_packs = packs;
        lp->looked_work = work;
        if (!first && saved < limits->min_yield)
            return true;
    }
    return work > limits->work;
}

/* Lets columns of the pool enter while any of them gains. */
static ps_lu_result use_pool(ps_lp *lp, const ps_lp_pool *pool,
                             const ps_lp_limits *limits)
{
    ps_entries *list = &lp->basis.list;
    ps_lu_result r = PS_LU_OK;

    while (r == PS_LU_OK && !is_done(lp, limits)) {
        double max = MIN_GAIN;

        lp->n_tried = 0;
        if (!ps_basis_tidy(&lp->basis))
            return PS_LU_MEMORY;
        for (size_t j = 0; j < pool->n; j++)
            max = fmax(max, ps_basis_gain(&lp->basis, &pool->list,
                                          &pool->column[j]));
        lp->pool_work += 2.0 * (double)pool->list.n;
        if (max <= MIN_GAIN)
            break;
        for (size_t j = 0; j < pool->n && lp->n_tried < lp->instance.n; j++) {
            const ps_column *c = &pool->column[j];
            double gain = ps_basis_gain(&lp->basis, &pool->list, c);

            if (gain > max * ENTER_ABOVE) {
                lp->tried[lp->n_tried++] =
                    (ps_column){.first = list->n, .n = c->n};
                if (!ps_entries_append(list, &pool->list, c->first, c->n))
                    return PS_LU_MEMORY;
            }
        }
        if (!try_slacks(lp, &max))
            return PS_LU_MEMORY;
        r = enter(lp, max);
    }
    return r;
}

/*
 * Repeats seek, try, enter until no column gains at the unsmoothed prices of
 * the basis.  If rounding errors make the basis singular, the search ends as at
 * a limit, and the results so far remain valid.
 */
static ps_lu_result solve(ps_lp *lp, const ps_lp_limits *limits,
                          const ps_lp_pool *pool)
{
    ps_lu_result r = PS_LU_OK;
    bool more = true;

    lp->smooth = SMOOTH;
    while (r == PS_LU_OK && more) {
        double max = 0;

        if (pool != NULL)
            r = use_pool(lp, pool, limits);
        seek(lp);
        lp->rounds++;
        if (r != PS_LU_OK || is_done(lp, limits))
            break;

        lp->n_tried = 0;
        if (!ps_basis_tidy(&lp->basis) || !try_columns(lp, &max) ||
            !try_slacks(lp, &max))
            return PS_LU_MEMORY;
        if (max > MIN_GAIN) {
            lp->smooth = SMOOTH;
            r = enter(lp, max);
            continue;
        }
        more = lp->smooth > 0;
        lp->smooth = lp->smooth > LESS_SMOOTH ? lp->smooth - LESS_SMOOTH : 0;
    }
    return r;
}

ps_result ps_lp_open(ps_lp **out, const ps_lp_instance *instance,
                     const ps_lp_limits *limits, ps_error *err)
{
    ps_lp *lp = calloc(1, sizeof *lp);
    ps_lp_instance changed = *instance;
    ps_mem mem = {0};
    double mean = 0;

    *out = NULL;
    if (lp == NULL)
        return ps_fail_memory(err);
    lp->instance = *instance;
    allocate(lp, instance->n, instance->capacity, instance->depth, &mem);
    ps_pricer_init(&lp->pricer, &lp->instance, limits->max_units, &mem);
    if (mem.failed) {
        ps_lp_free(lp);
        return ps_fail_memory(err);
    }
    set_first_prices(lp);

    /*
     * Start with a greedy basis.  Perturb the demand differently for each
     * length, which makes steps without progress rare.
     */
    for (uint32_t i = 0; i < instance->n; i++)
        mean += instance->count[i] / instance->n;
    for (uint32_t i = 0; i < instance->n; i++) {
        double part = (double)(i * UINT32_C(2654435761)) / UINT32_MAX;

        lp->basis.demand[i] = instance->count[i] +
                              PERTURB * part * (instance->count[i] + mean);
    }
    changed.count = lp->basis.demand;
    if (!ps_greedy_basis(&changed, SLOT, &lp->basis.list, lp->basis.column) ||
        ps_basis_factor(&lp->basis) != PS_LU_OK ||
        solve(lp, limits, NULL) == PS_LU_MEMORY) {
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

ps_basis *ps_lp_basis(ps_lp *lp)
{
    return &lp->basis;
}

const double *ps_lp_prices(const ps_lp *lp)
{
    return lp->best;
}
