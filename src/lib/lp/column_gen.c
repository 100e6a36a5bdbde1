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
 * them feasible for the dual problem, and then what the instance is worth is
 * a bound (Farley 1990); so the work may stop at any time.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/column_gen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lp/greedy_basis.h"
#include "lp/pricing.h"

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
#define MIN_WORK 1e3    /* of a step, or of a round */
#define STRETCH 1e8     /* the work after which the yield is looked at */
#define FAIR_WORK 2e8   /* for any instance, */
#define LENGTH_WORK 2e6 /* and for each length of it, */
#define MAX_WORK 4e9    /* but no more than that */

struct ps_lp {
    ps_lp_instance instance;
    ps_basis basis;
    ps_pricer pricer;
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

static void allocate(ps_lp *lp, uint32_t n, uint32_t capacity, uint32_t depth,
                     ps_mem *mem)
{
    uint32_t max = depth < n ? depth : n;
    uint32_t k = 0; /* how many lengths, all different, one pack can have */

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
 * Takes the best of some prices that are known to be feasible: by tokens
 * (rule 0), by sequences (1), and by parts (k + 1).  By parts a sequence longer
 * than j of k + 1 equal parts of the capacity, and shorter than j + 1 of them,
 * is worth j / k: a pack that has such a one has space for k whole parts at
 * most.  Exactly j parts are worth j / (k + 1).  That is the dual feasible
 * function u(k) of Fekete and Schepers (2001).
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
 * Finds what columns are worth at smoothed prices, and keeps these if they
 * give the best bound so far.  For the bound a length is worth as much as the
 * dearest one up to it.
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

/* Tries the columns that are worth most; *max is the greatest gain so far. */
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
 * The same with slack columns, length i in place of the one before, of which
 * only those that gain much.
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
 * Lets the tried columns enter as long as they gain enough: first the one
 * that gains most for its size.
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

            /* g / sqrt(1 + entries), squared: sums of few terms compare well */
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
 * True if the relaxation is solved, or as far as it may be; or if the work
 * since the last look saved too little.
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

/* Lets columns of the pool enter, as long as one gains. */
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
 * Rounds: seek, try, enter; until no column gains anything at the prices of
 * the basis itself.  A basis that has become singular, by errors of rounding,
 * ends the search as a limit does: what was reached stays.
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
     * The first basis, by greed.  The demand is changed a little and
     * differently for each length: steps that gain nothing are then rare.
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
