/*
 * prices.c - what sequences of each length will be worth to packs.
 *
 * The prices are those of the linear relaxation of packing (plan_lp.h) for
 * the counts of lengths so far: at the optimum no pack is worth more than
 * one, and packs worth just one are those that the best plan is made of.
 * Where the depth does not bind they are the lengths' parts of the capacity,
 * and nothing needs to be solved.  Older counts fade, so that prices follow
 * a stream that drifts.
 *
 * All is counted in records and additions, not in time: the prices follow
 * from the input alone.
 *
 * SPDX-License-Identifier: MIT
 */

#include "prices.h"

#include <stdlib.h>

#include "amount.h"
#include "error.h"
#include "plan_lp.h"
#include "worth.h"

#define MOST_UNITS 512 /* lengths are counted in at most as many units */

/* The relaxation is solved after a window, and then ever more seldom, */
#define GROWTH 4
#define MOST_WINDOWS 64
/* but not so often that it takes more than this much work for each record. */
#define WORK_PER_RECORD 16.0
#define MOST_WORK 5e7 /* some hundredths of a second, each time */
#define GAP 1e-4      /* of the packs; less makes no difference */

/* Counts fade when there are so many windows of them. */
#define MEMORY_WINDOWS 32

/* More are never counted. */
#define MOST_COUNT 9007199254740992.0 /* 2^53 */

/*
 * How much of a price is the part of the capacity, whatever the relaxation
 * says: of choices that are worth the same to it the fullest is best.
 */
#define LINEAR 0.1

static uint32_t unit_of(uint32_t capacity)
{
    return (capacity - 1) / MOST_UNITS + 1;
}

uint64_t ps_prices_bytes(uint32_t capacity)
{
    uint32_t units = capacity / unit_of(capacity);

    return ps_amount_sum(
        sizeof(ps_prices),
        ps_amount_array((uint64_t)units + 1,
                        3 * sizeof(double) + sizeof(uint32_t)));
}

uint64_t ps_prices_learn_bytes(uint32_t capacity, uint32_t depth)
{
    uint32_t units = capacity / unit_of(capacity);

    return ps_lp_bytes(units, units, depth < units ? depth : units,
                       MOST_UNITS);
}

ps_result ps_prices_open(ps_prices **prices, uint32_t capacity,
                         uint32_t depth, uint32_t window_size, ps_error *err)
{
    ps_prices *p = calloc(1, sizeof *p);
    size_t n;

    *prices = p;
    if (p == NULL)
        return ps_fail_memory(err);
    p->capacity = capacity;
    p->depth = depth;
    p->window_size = window_size;
    p->unit = unit_of(capacity);
    p->units = capacity / p->unit;
    p->next = window_size;
    n = (size_t)p->units + 1;
    p->count = calloc(n, sizeof *p->count);
    p->worth = calloc(n, sizeof *p->worth);
    p->stock = calloc(n, sizeof *p->stock);
    p->stock_count = calloc(n, sizeof *p->stock_count);
    if (p->count != NULL && p->worth != NULL && p->stock != NULL &&
        p->stock_count != NULL)
        return PS_OK;
    ps_prices_free(p);
    *prices = NULL;
    return ps_fail_memory(err);
}

void ps_prices_free(ps_prices *p)
{
    if (p == NULL)
        return;
    free(p->count);
    free(p->worth);
    free(p->stock);
    free(p->stock_count);
    free(p);
}

void ps_prices_save(const ps_prices *p, ps_saver *saver)
{
    ps_save_u64(saver, p->came);
    ps_save_u64(saver, p->next);
    ps_save_double(saver, p->total);
    for (uint32_t u = 1; u <= p->units; u++)
        ps_save_double(saver, p->count[u]);
}

/* Not all numbers are numbers. */
static double load_count(ps_restorer *restorer)
{
    double count = ps_load_double(restorer);

    if (count >= 0 && count <= MOST_COUNT)
        return count;
    restorer->failed = true;
    return 0;
}

void ps_prices_load(ps_prices *p, ps_restorer *restorer)
{
    p->came = ps_load_u64(restorer);
    p->next = ps_load_u64(restorer);
    p->total = load_count(restorer);
    for (uint32_t u = 1; u <= p->units; u++)
        p->count[u] = load_count(restorer);
    if (p->next > (uint64_t)MOST_COUNT || p->came > (uint64_t)MOST_COUNT)
        restorer->failed = true;
}

static uint32_t fill_stock(ps_prices *p, double *mean)
{
    uint32_t n = 0;
    double sum = 0;

    for (uint32_t u = 1; u <= p->units; u++)
        if (p->count[u] > 0) {
            p->stock[n] = u;
            p->stock_count[n++] = p->count[u];
            sum += u * p->count[u];
        }
    *mean = n > 0 ? sum / p->total : 0;
    return n;
}

static void fade(ps_prices *p)
{
    double most = (double)MEMORY_WINDOWS * p->window_size;

    if (p->total <= most)
        return;
    for (uint32_t u = 1; u <= p->units; u++)
        p->count[u] /= 2;
    p->total /= 2;
}

static void plan_next(ps_prices *p, double work)
{
    uint64_t most = (uint64_t)MOST_WINDOWS * p->window_size;
    uint64_t more = p->came * (GROWTH - 1);

    if (more > most)
        more = most;
    if ((double)more < work / WORK_PER_RECORD)
        more = (uint64_t)(work / WORK_PER_RECORD);
    p->next = p->came + more;
}

static ps_result relax(ps_prices *p, uint32_t n, double *work, ps_error *err)
{
    const ps_stock stock = {.n = n,
                            .length = p->stock,
                            .count = p->stock_count,
                            .capacity = p->units,
                            .depth = p->depth < p->units ? p->depth
                                                         : p->units};
    ps_lp_limits limits = {.work = MOST_WORK,
                           .gap = GAP * p->total / p->depth,
                           .most_units = MOST_UNITS};
    ps_lp *lp;
    ps_result r = ps_lp_open(&lp, &stock, &limits, err);

    if (r != PS_OK)
        return r;
    for (uint32_t i = 0; i < n; i++)
        p->worth[i] = ps_lp_prices(lp)[i];
    *work = ps_lp_work(lp);
    ps_lp_free(lp);
    return PS_OK;
}

/* Between the lengths that came prices rise evenly. */
static void spread(const ps_prices *p, uint32_t n, int32_t *price)
{
    double before = 0;
    uint32_t from = 0;
    uint32_t l = 0;

    for (uint32_t i = 0; i <= n; i++) {
        uint32_t to = i < n ? p->stock[i] * p->unit : p->capacity;
        double worth = i < n ? p->worth[i] : 1;

        for (; l <= to && l <= p->capacity; l++) {
            double part = to > from ? (double)(l - from) / (to - from) : 1;
            double y = before + part * (worth - before);
            double linear = (double)l / p->capacity;

            price[l] = (int32_t)(PS_WORTH_ONE *
                                 ((1 - LINEAR) * y + LINEAR * linear));
        }
        before = worth;
        from = to;
    }
}

ps_result ps_prices_learn(ps_prices *p, int32_t *price, bool *binding,
                          ps_error *err)
{
    double work = 0;
    double mean;
    uint32_t n = fill_stock(p, &mean);
    ps_result r = PS_OK;

    /* With twice the places that are needed the depth does not bind. */
    *binding = n > 0 && mean * p->depth < 2.0 * p->units;
    if (*binding)
        r = relax(p, n, &work, err);
    if (*binding && r == PS_OK)
        spread(p, n, price);
    fade(p);
    plan_next(p, work);
    return r;
}
