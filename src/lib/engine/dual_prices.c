/*
 * dual_prices.c - value of each length to future packs.
 *
 * Intervals and effort are measured in records and additions, not in time, so
 * prices depend on the input alone.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/dual_prices.h"
#include "engine/tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lp/column_gen.h"

/* Smaller counts become 0: these lengths no longer arrive. */
#define MIN_COUNT 0x1p-10

/* Counts are limited to integers that a double represents exactly. */
#define MAX_COUNT 9007199254740992.0 /* 2^53 */

/* Bound on the relative rounding error. */
#define ROUNDING 1e-6

static void scale(ps_dual_prices *p)
{
    uint32_t last = p->units.count;

    for (uint32_t u = 0; u <= last + 1; u++) {
        double price = p->price[u <= last ? u : last];

        p->scaled[u] = (int32_t)(PS_SCORE_ONE * ((1 - TUNE_LINEAR) * price +
                                                 p->size_part[u]));
    }
}

/* Starts over with at most `max` units and without cuts. */
static void set_units(ps_dual_prices *p, uint32_t max)
{
    const ps_units units = ps_units_of(p->capacity, max);

    p->units = units;
    p->few = max == TUNE_FINE_UNITS;
    p->depth = p->max_depth < units.count ? p->max_depth : units.count;
    p->known = false;
    ps_price_cuts_reset(&p->cuts, units.count, p->depth);
    memcpy(p->price, ps_price_cut(&p->cuts, 0),
           ((size_t)units.count + 1) * sizeof *p->price);
    /* The last unit may be followed by a fraction of a unit. */
    for (uint32_t u = 0; u <= units.count + 1; u++) {
        p->size_part[u] =
            TUNE_LINEAR * fmin((double)u * units.size / p->capacity, 1);
    }
    scale(p);
}

void ps_dual_prices_init(ps_dual_prices *p, uint32_t capacity,
                         uint32_t depth, uint32_t window_size, ps_mem *mem)
{
    const uint32_t max = ps_units_of(capacity, TUNE_FINE_UNITS).count;
    uint64_t n = (uint64_t)max + 1;

    *p = (ps_dual_prices){
        .capacity = capacity,
        .max_depth = depth,
        .window_size = window_size,
        .near = TUNE_TOLERANCE / sqrt(window_size),
        .next = window_size,
        .interval = window_size,
        .variation = 1,
    };
    p->count = ps_mem_alloc(mem, n, sizeof *p->count);
    p->recent = ps_mem_alloc(mem, n, sizeof *p->recent);
    p->in_window = ps_mem_alloc(mem, n, sizeof *p->in_window);
    p->demand = ps_mem_alloc(mem, n, sizeof *p->demand);
    p->price = ps_mem_alloc(mem, n, sizeof *p->price);
    p->size_part = ps_mem_alloc(mem, n + 1, sizeof *p->size_part);
    p->scaled = ps_mem_alloc(mem, n + 1, sizeof *p->scaled);
    ps_price_cuts_init(&p->cuts, max, mem);
    if (!mem->counts && !mem->failed)
        set_units(p, TUNE_FINE_UNITS);
}

void ps_dual_prices_destroy(ps_dual_prices *p)
{
    free(p->count);
    free(p->recent);
    free(p->in_window);
    free(p->demand);
    free(p->price);
    free(p->size_part);
    free(p->scaled);
    ps_price_cuts_destroy(&p->cuts);
}

uint64_t ps_dual_prices_learn_bytes(uint32_t capacity, uint32_t depth)
{
    const uint32_t coarse = ps_units_of(capacity, TUNE_COARSE_UNITS).count;
    const uint32_t fine = ps_units_of(capacity, TUNE_FINE_UNITS).count;

    return ps_mem_max(
        ps_lp_bytes(coarse, coarse, depth < coarse ? depth : coarse, coarse),
        ps_lp_bytes(fine < TUNE_FEW ? fine : TUNE_FEW, fine,
                    depth < fine ? depth : fine, fine));
}

/* ---- Units ---- */

/* Converts counts from fine units to the units in use. */
static void move_counts(const ps_dual_prices *p, const ps_units *fine,
                        double *count)
{
    for (uint32_t u = 1; u <= fine->count; u++) {
        const double n = count[u];

        count[u] = 0;
        count[ps_units_round(&p->units, u * fine->size)] += n;
    }
}

bool ps_dual_prices_coarsen(ps_dual_prices *p)
{
    const ps_units fine = p->units;
    uint32_t lengths = 0;

    if (!p->few)
        return false;
    for (uint32_t u = 1; u <= fine.count; u++)
        lengths += p->count[u] > 0 || p->in_window[u] > 0;
    if (lengths <= TUNE_FEW)
        return false;
    set_units(p, TUNE_COARSE_UNITS);
    move_counts(p, &fine, p->count);
    move_counts(p, &fine, p->recent);
    memset(p->in_window, 0, (fine.count + 1) * sizeof *p->in_window);
    return true;
}

/* ---- Learning ---- */

/* Multiplies all counts by `factor`.  Sets counts below MIN_COUNT to 0. */
static void scale_counts(ps_dual_prices *p, double factor)
{
    p->total = 0;
    for (uint32_t u = 1; u <= p->units.count; u++) {
        p->count[u] *= factor;
        if (p->count[u] < MIN_COUNT)
            p->count[u] = 0;
        p->total += p->count[u];
    }
}

void ps_dual_prices_expect(ps_dual_prices *p, const ps_histogram *h)
{
    double max = TUNE_EXPECTED_WINDOWS * (double)p->window_size;

    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        uint32_t length = ps_histogram_length(h, i);

        if (length < p->capacity)
            p->count[ps_units_round(&p->units, length)] +=
                (double)ps_histogram_count(h, i);
    }
    scale_counts(p, fmin(max / (double)ps_histogram_sequences(h), 1));
}

/*
 * How much a window differs from the stream, as a multiple of random variation:
 * the Cramer-von Mises statistic divided by its expectation.
 */
static double window_variation(const ps_dual_prices *p)
{
    double below = 0;
    double recent_below = 0;
    double off = 0;
    double expected = 0;

    for (uint32_t u = 1; u <= p->units.count; u++) {
        double share = p->count[u] / p->total;
        double d;

        below += share;
        recent_below += p->recent[u] / p->recent_total;
        d = recent_below - below;
        off += share * d * d;
        expected += share * below * (1 - below);
    }
    return expected > ROUNDING ? off * p->recent_total / expected : 1;
}

/* Sets the demand: the window plus the expected sequences. */
static void set_demand(ps_dual_prices *p)
{
    double expected = TUNE_HORIZON * sqrt(p->window_size) * p->variation /
                      p->total;

    memcpy(p->demand, p->in_window,
           (p->units.count + 1) * sizeof *p->demand);
    p->cuts.kernels->add_times(expected, p->count + 1, p->demand + 1,
                               p->units.count);
}

/* Solves for the demand, which is not all 0. */
static ps_result learn_cut(ps_dual_prices *p, double work, ps_error *err)
{
    double before = ps_price_cuts_value(&p->cuts, p->demand);
    double gap = TUNE_GAP / p->window_size;
    double packs;
    ps_result r;

    gap = gap > TUNE_MIN_GAP ? gap : TUNE_MIN_GAP;
    gap = gap < TUNE_MAX_GAP ? gap : TUNE_MAX_GAP;
    r = ps_price_cuts_solve(&p->cuts, p->demand, gap * before, &work, err);
    if (r != PS_OK)
        return r;
    p->work += work;
    packs = ps_price_value(&p->cuts, p->demand, p->cuts.new_row);
    if (packs - before > TUNE_NEWS * p->near * packs)
        p->interval /= 2;
    else
        p->interval *= 2;
    ps_price_cuts_keep(&p->cuts, p->count, p->total, p->arrivals);
    p->known = true;
    return PS_OK;
}

static void find_mean(ps_dual_prices *p)
{
    double sum = 0;

    for (uint32_t u = 1; u <= p->units.count; u++)
        sum += p->count[u] * u;
    p->mean = p->total > 0
                  ? (uint64_t)(256 * p->units.size * sum / p->total)
                  : 0;
}

ps_result ps_dual_prices_learn(ps_dual_prices *p, ps_error *err)
{
    uint64_t max = (uint64_t)TUNE_MAX_INTERVAL * p->window_size;
    double allowed =
        TUNE_FIRST_WORK + TUNE_WORK_PER_RECORD * (double)p->arrivals;
    double lacking;
    uint64_t more;
    ps_result r = PS_OK;

    /* Forget the histogram if the first window differs too much from it. */
    if (!p->known && p->total > p->recent_total && p->recent_total > 0 &&
        window_variation(p) > TUNE_MISFIT) {
        memcpy(p->count, p->recent,
               ((size_t)p->units.count + 1) * sizeof *p->count);
        p->total = p->recent_total;
    }
    if (p->total > 0) {
        set_demand(p);
        r = learn_cut(p, fmin(allowed - p->work, TUNE_MAX_WORK), err);
    }

    /* Give older arrivals less weight. */
    if (p->total > (double)TUNE_MEMORY_WINDOWS * p->window_size)
        scale_counts(p, 0.5);
    find_mean(p);

    /* Decide when to solve again. */
    if (p->interval < p->window_size)
        p->interval = p->window_size;
    p->interval = p->interval < max ? p->interval : max;
    more = p->interval;
    lacking = TUNE_MIN_WORK - (allowed - p->work);
    if (lacking > TUNE_WORK_PER_RECORD * (double)more)
        more = (uint64_t)(lacking / TUNE_WORK_PER_RECORD) + 1;
    p->next = p->arrivals + more;
    return r;
}

/* ---- Prices in use ---- */

bool ps_dual_prices_follow(ps_dual_prices *p)
{
    double off = 0;

    if (!p->known)
        return false;
    set_demand(p);
    ps_price_cuts_mean(&p->cuts, p->demand, p->near, p->arrivals, p->price);
    scale(p);
    if (p->recent_total < p->window_size)
        return false;

    /* Once per window, classify the stream. */
    p->variation += (fmax(window_variation(p), 1) - p->variation) /
                    TUNE_VARIATION_WINDOWS;
    memset(p->recent, 0, ((size_t)p->units.count + 1) * sizeof *p->recent);
    p->recent_total = 0;
    find_mean(p);
    for (uint32_t u = 1; u <= p->units.count; u++)
        off += p->count[u] *
               fabs(p->price[u] - (double)u / p->units.count);
    p->linear = off <= TUNE_NEARLY_LINEAR * p->total;
    return true;
}

/* ---- Saving and loading ---- */

void ps_dual_prices_save(const ps_dual_prices *p, ps_saver *saver)
{
    ps_save_u32(saver, p->few);
    ps_save_u64(saver, p->mean);
    ps_save_u64(saver, p->arrivals);
    ps_save_u64(saver, p->next);
    ps_save_u64(saver, p->interval);
    ps_save_u32(saver, p->known);
    ps_save_u32(saver, p->linear);
    ps_save_double(saver, p->work);
    ps_save_double(saver, p->variation);
    ps_save_double(saver, p->total);
    ps_price_row_save(&p->cuts, p->count, saver);
    ps_price_row_save(&p->cuts, p->recent, saver);
    ps_price_row_save(&p->cuts, p->price, saver);
    ps_price_cuts_save(&p->cuts, saver);
}

/* Loads counts and returns their sum. */
static double load_counts(const ps_dual_prices *p, double *count,
                          ps_restorer *restorer)
{
    double sum = 0;

    for (uint32_t u = 1; u <= p->units.count; u++) {
        count[u] = ps_price_number_load(restorer, MAX_COUNT);
        if (count[u] > 0 && count[u] < MIN_COUNT)
            restorer->failed = true;
        sum += count[u];
    }
    return sum;
}

/* Without counts nothing can have been solved. */
void ps_dual_prices_load(ps_dual_prices *p, ps_restorer *restorer)
{
    double counted;

    if (ps_load_within(restorer, 0, 1) == 0)
        set_units(p, TUNE_COARSE_UNITS);
    p->mean = ps_load_u64(restorer);
    p->arrivals = ps_load_u64(restorer);
    p->next = ps_load_u64(restorer);
    p->interval = ps_load_u64(restorer);
    p->known = ps_load_within(restorer, 0, 1) == 1;
    p->linear = ps_load_within(restorer, 0, 1) == 1;
    p->work = ps_price_number_load(restorer, MAX_COUNT);
    p->variation = ps_price_number_load(restorer, MAX_COUNT);
    p->total = ps_price_number_load(restorer, MAX_COUNT);
    counted = load_counts(p, p->count, restorer);
    p->recent_total = load_counts(p, p->recent, restorer);
    ps_price_row_load(&p->cuts, p->price, restorer);
    ps_price_cuts_load(&p->cuts, restorer);
    if (p->next > (uint64_t)MAX_COUNT ||
        p->interval > (uint64_t)TUNE_MAX_INTERVAL * p->window_size ||
        p->arrivals > (uint64_t)MAX_COUNT ||
        p->mean > (uint64_t)p->capacity * 256 ||
        !(p->variation >= 1) ||
        fabs(p->total - counted) > ROUNDING * counted ||
        (counted <= 0 && (p->known || p->recent_total > 0)))
        restorer->failed = true;
    scale(p);
}
