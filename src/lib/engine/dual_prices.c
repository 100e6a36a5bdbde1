/*
 * dual_prices.c - what sequences of each length are worth to packs that are
 * still to come.
 *
 * All is counted in records and additions, not in time: prices follow from
 * the input alone.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/dual_prices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"

#define MAX_UNITS 256 /* lengths are counted in at most as many units */

/*
 * While what is held leaves, HORIZON * sqrt(window) * variation records are
 * expected: enough to outweigh the chance that a small window shows.  The
 * variation is a mean over about so many windows.
 */
#define HORIZON 128.0
#define VARIATION_WINDOWS 8

/*
 * A cut counts if it is below the highest one by no more than this part,
 * divided by the square root of the window.
 */
#define TOLERANCE 0.1

/*
 * A cut is learned after a window, and then after an interval: half of the
 * last one if the cut was higher than the others by this part of what counts
 * as near, else twice as long; at least one window, and at most so many.  But
 * not before there is some work left for it: additions to begin with, and for
 * each record that came.  One cut takes at most so many, which is up to some
 * hundredths of a second.
 */
#define NEWS 0.25
#define MAX_WINDOWS 32
#define FIRST_WORK 3e7
#define WORK_PER_RECORD 50.0
#define MIN_WORK 2e6
#define MAX_WORK 2.4e7

/*
 * How far above the optimum the relaxation may stop, as a part of it: a
 * small window cannot make use of what a sharper one would tell.
 */
#define GAP_WINDOW 1.0 /* divided by the window, within these */
#define MIN_GAP 1e-4
#define MAX_GAP 1e-3

/*
 * Counts fade when there are so many windows of them.  What is left of a
 * length that came no more is nothing when it is less than this.
 */
#define MEMORY_WINDOWS 512
#define MIN_COUNT 0x1p-10

/* More are never counted. */
#define MAX_COUNT 9007199254740992.0 /* 2^53 */

/* Prices are linear that differ by so much in the mean. */
#define NEARLY_LINEAR 1e-3

/* What errors of rounding may be, as a part. */
#define ROUNDING 1e-6

/*
 * When packs of two are as good as any.  Either there are at most
 * PAIRS_AS_GOOD more of them, as a part, than the bound.  Or chance explains
 * how many more there are than packs that the tokens would fill: at least
 * CHANCE_COUNT lengths have come, and the difference is at most CHANCE times
 * the square root of their number; CHANCE_LINEAR times if the prices give no
 * better bound than the tokens do.
 */
#define PAIRS_AS_GOOD 5e-4
#define CHANCE 0.6
#define CHANCE_LINEAR 1.2
#define CHANCE_COUNT 4096

/*
 * Parts of a price that do not come from the relaxation: of packs worth the
 * same to it the fullest is best, and then the one of the longest.
 */
#define LINEAR 0.03
#define TILT 0.004

uint64_t ps_dual_prices_bytes(uint32_t capacity)
{
    uint32_t units = ps_units_of(capacity, MAX_UNITS).count;
    uint64_t n = (uint64_t)units + 2;
    uint64_t bytes = ps_mem_array(6 * n, sizeof(double));

    bytes = ps_mem_sum(bytes, ps_mem_array(n, sizeof(int32_t)));
    bytes = ps_mem_sum(bytes, ps_relaxation_bytes(units));
    bytes = ps_mem_sum(bytes, ps_price_cuts_bytes(units));
    return ps_mem_sum(bytes, sizeof(ps_dual_prices));
}

uint64_t ps_dual_prices_learn_bytes(uint32_t capacity, uint32_t depth)
{
    uint32_t units = ps_units_of(capacity, MAX_UNITS).count;

    return ps_relaxation_solve_bytes(units, depth < units ? depth : units);
}

static double linear(const ps_dual_prices *p, uint32_t u)
{
    return (double)u / p->units.count;
}

/*
 * The rest of the scaled prices, which does not change.  Behind the last unit
 * there may be some tokens more.
 */
static void set_size_part(ps_dual_prices *p)
{
    for (uint32_t u = 0; u <= p->units.count + 1; u++) {
        double full = fmin((double)u * p->units.size / p->capacity, 1);

        p->size_part[u] = LINEAR * full + TILT * full * full;
    }
}

static int32_t scale_one(double price, double size_part)
{
    return (int32_t)(PS_SCORE_ONE * ((1 - LINEAR) * price + size_part));
}

static void scale(ps_dual_prices *p)
{
    uint32_t last = p->units.count;

    for (uint32_t u = 0; u <= last; u++)
        p->scaled[u] = scale_one(p->price[u], p->size_part[u]);
    p->scaled[last + 1] = scale_one(p->price[last], p->size_part[last + 1]);
}

ps_result ps_dual_prices_open(ps_dual_prices **prices, uint32_t capacity,
                              uint32_t depth, uint32_t window_size,
                              ps_error *err)
{
    ps_dual_prices *p = calloc(1, sizeof *p);
    size_t n;

    *prices = p;
    if (p == NULL)
        return ps_fail_memory(err);
    p->capacity = capacity;
    p->window_size = window_size;
    p->units = ps_units_of(capacity, MAX_UNITS);
    p->depth = depth < p->units.count ? depth : p->units.count;
    p->next = p->interval = window_size;
    p->variation = 1;
    n = (size_t)p->units.count + 1;
    p->count = calloc(n, sizeof *p->count);
    p->recent = calloc(n, sizeof *p->recent);
    p->held = calloc(n, sizeof *p->held);
    p->demand = calloc(n, sizeof *p->demand);
    p->price = calloc(n, sizeof *p->price);
    p->size_part = calloc(n + 1, sizeof *p->size_part);
    p->scaled = calloc(n + 1, sizeof *p->scaled);
    if (!ps_price_cuts_open(&p->cuts, p->units.count, p->depth) ||
        !ps_relaxation_open(&p->relaxation, p->units.count, p->depth) ||
        p->count == NULL || p->recent == NULL || p->held == NULL ||
        p->demand == NULL || p->price == NULL || p->size_part == NULL ||
        p->scaled == NULL) {
        ps_dual_prices_free(p);
        *prices = NULL;
        return ps_fail_memory(err);
    }
    memcpy(p->price, ps_price_cut(&p->cuts, 0), n * sizeof *p->price);
    set_size_part(p);
    scale(p);
    return PS_OK;
}

void ps_dual_prices_free(ps_dual_prices *p)
{
    if (p == NULL)
        return;
    free(p->count);
    free(p->recent);
    free(p->held);
    free(p->demand);
    free(p->price);
    free(p->size_part);
    free(p->scaled);
    ps_price_cuts_close(&p->cuts);
    ps_relaxation_close(&p->relaxation);
    free(p);
}

/* ---- A cut ---- */

static double gap_of(const ps_dual_prices *p)
{
    double gap = GAP_WINDOW / p->window_size;

    gap = gap > MIN_GAP ? gap : MIN_GAP;
    return gap < MAX_GAP ? gap : MAX_GAP;
}

/* A cut is near the highest one that is lower by this part of it. */
static double near_part(const ps_dual_prices *p)
{
    return TOLERANCE / sqrt(p->window_size);
}

/* Learns a cut for the demand, of which some is not 0. */
static ps_result learn_cut(ps_dual_prices *p, double work, ps_error *err)
{
    double *new = ps_price_cuts_new(&p->cuts);
    double before = ps_price_cuts_value(&p->cuts, p->demand);
    double packs;
    ps_result r = ps_relaxation_solve(&p->relaxation, p->demand,
                                      gap_of(p) * before, &work, new, err);

    if (r != PS_OK)
        return r;
    p->work += work;
    packs = ps_price_value(&p->cuts, p->demand, new);
    if (packs - before > NEWS * near_part(p) * packs)
        p->interval /= 2;
    else
        p->interval *= 2;
    ps_price_cuts_keep(&p->cuts, p->count, p->total, p->came);
    p->known = true;
    return PS_OK;
}

/* ---- Pairs ---- */

/*
 * The fewest packs that hold two sequences at most: each of the longest, in
 * turn, takes the shortest if that fits.  Overwrites the demand.
 */
static double count_pairs(ps_dual_prices *p)
{
    double *left = p->demand;
    uint32_t i = 1;
    uint32_t j = p->units.count;
    double packs = 0;

    memcpy(left, p->count, ((size_t)p->units.count + 1) * sizeof *left);
    while (i <= j)
        if (left[j] <= 0) {
            j--;
        } else if (left[i] <= 0) {
            i++;
        } else if (i + j > p->units.count) {
            packs += left[j--];
        } else if (i == j) {
            packs += left[i] / 2;
            left[i] = 0;
        } else {
            double n = left[i] < left[j] ? left[i] : left[j];

            packs += n;
            left[i] -= n;
            left[j] -= n;
        }
    return packs;
}

static void find_pairs(ps_dual_prices *p)
{
    double packs = count_pairs(p);
    double full = ps_price_value(&p->cuts, p->count,
                                 ps_price_cut(&p->cuts, 0));
    double bound = ps_price_cuts_value(&p->cuts, p->count);
    double off = packs - full;
    double chance = bound > full ? CHANCE : CHANCE_LINEAR;

    p->pairs = p->depth == 2 || packs <= (1 + PAIRS_AS_GOOD) * bound ||
               (p->total >= CHANCE_COUNT &&
                off * off <= chance * chance * p->total);
}

/* ---- Learning ---- */

static void fade(ps_dual_prices *p)
{
    double max = (double)MEMORY_WINDOWS * p->window_size;

    if (p->total <= max)
        return;
    p->total = 0;
    for (uint32_t u = 1; u <= p->units.count; u++) {
        p->count[u] /= 2;
        if (p->count[u] < MIN_COUNT)
            p->count[u] = 0;
        p->total += p->count[u];
    }
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

static double work_left(const ps_dual_prices *p)
{
    return FIRST_WORK + WORK_PER_RECORD * (double)p->came - p->work;
}

static void plan_next(ps_dual_prices *p)
{
    uint64_t max = (uint64_t)MAX_WINDOWS * p->window_size;
    double lacking = MIN_WORK - work_left(p);
    uint64_t more;

    if (p->interval < p->window_size)
        p->interval = p->window_size;
    p->interval = p->interval < max ? p->interval : max;
    more = p->interval;
    if (lacking > WORK_PER_RECORD * (double)more)
        more = (uint64_t)(lacking / WORK_PER_RECORD) + 1;
    p->next = p->came + more;
}

/*
 * How much a window differs from the stream, as a multiple of what chance
 * explains: the statistic of Cramer and von Mises over its expectation.
 */
static double vary(const ps_dual_prices *p)
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

static void find_linear(ps_dual_prices *p)
{
    double off = 0;

    for (uint32_t u = 1; u <= p->units.count; u++)
        off += p->count[u] * fabs(p->price[u] - linear(p, u));
    p->linear = off <= NEARLY_LINEAR * p->total;
}

/* Takes stock once in a window. */
static void look_back(ps_dual_prices *p)
{
    if (p->recent_total < p->window_size)
        return;
    p->variation += (fmax(vary(p), 1) - p->variation) / VARIATION_WINDOWS;
    memset(p->recent, 0, ((size_t)p->units.count + 1) * sizeof *p->recent);
    p->recent_total = 0;
    find_pairs(p);
    find_mean(p);
    find_linear(p);
}

static void set_demand(ps_dual_prices *p)
{
    double expected = HORIZON * sqrt(p->window_size) * p->variation /
                      p->total;

    memcpy(p->demand, p->held, (p->units.count + 1) * sizeof *p->demand);
    p->cuts.kernels->add_times(expected, p->count + 1, p->demand + 1,
                               p->units.count);
}

ps_result ps_dual_prices_learn(ps_dual_prices *p, ps_error *err)
{
    double work = work_left(p);
    ps_result r = PS_OK;

    if (p->total > 0) {
        set_demand(p);
        r = learn_cut(p, work < MAX_WORK ? work : MAX_WORK, err);
    }
    find_pairs(p);
    fade(p);
    find_mean(p);
    plan_next(p);
    return r;
}

void ps_dual_prices_follow(ps_dual_prices *p)
{
    if (!p->known)
        return;
    set_demand(p);
    ps_price_cuts_mean(&p->cuts, p->demand, near_part(p), p->came, p->price);
    scale(p);
    look_back(p);
}

/* ---- Saved and loaded ---- */

void ps_dual_prices_save(const ps_dual_prices *p, ps_saver *saver)
{
    ps_save_u64(saver, p->mean);
    ps_save_u64(saver, p->came);
    ps_save_u64(saver, p->next);
    ps_save_u64(saver, p->interval);
    ps_save_u32(saver, p->known);
    ps_save_u32(saver, p->pairs);
    ps_save_u32(saver, p->linear);
    ps_save_double(saver, p->work);
    ps_save_double(saver, p->variation);
    ps_save_double(saver, p->total);
    ps_price_row_save(p->count, p->units.count, saver);
    ps_price_row_save(p->recent, p->units.count, saver);
    ps_price_row_save(p->price, p->units.count, saver);
    ps_price_cuts_save(&p->cuts, saver);
}

/* Returns their sum. */
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

/* Without counts nothing can have been learned.  Nothing is held yet. */
void ps_dual_prices_load(ps_dual_prices *p, ps_restorer *restorer)
{
    double counted;

    p->mean = ps_load_u64(restorer);
    p->came = ps_load_u64(restorer);
    p->next = ps_load_u64(restorer);
    p->interval = ps_load_u64(restorer);
    p->known = ps_load_within(restorer, 0, 1) == 1;
    p->pairs = ps_load_within(restorer, 0, 1) == 1;
    p->linear = ps_load_within(restorer, 0, 1) == 1;
    p->work = ps_price_number_load(restorer, MAX_COUNT);
    p->variation = ps_price_number_load(restorer, MAX_COUNT);
    p->total = ps_price_number_load(restorer, MAX_COUNT);
    counted = load_counts(p, p->count, restorer);
    p->recent_total = load_counts(p, p->recent, restorer);
    ps_price_row_load(p->price, &p->relaxation, restorer);
    ps_price_cuts_load(&p->cuts, &p->relaxation, restorer);
    if (p->next > (uint64_t)MAX_COUNT ||
        p->interval > (uint64_t)MAX_WINDOWS * p->window_size ||
        p->came > (uint64_t)MAX_COUNT ||
        p->mean > (uint64_t)p->capacity * 256 ||
        !(p->variation >= 1) ||
        fabs(p->total - counted) > ROUNDING * counted ||
        (counted <= 0 && (p->known || p->recent_total > 0)))
        restorer->failed = true;
    scale(p);
}
