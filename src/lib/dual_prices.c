/*
 * dual_prices.c - what sequences of each length will be worth to packs.
 *
 * The relaxation is solved (plan_lp.h) for the counts of lengths so far.
 * Its optimum is often degenerate: many prices are as good.  Jumping from
 * one to another would have a window collected for one and used by another,
 * so prices in use are an average over time.  Any average of dual feasible
 * prices is dual feasible.
 *
 * Few counts make a sharp optimum of what chance brought, and a small window
 * cannot follow the fine print of any.  In both cases the relaxation is
 * solved for counts drawn again from the counts (the bootstrap of Efron,
 * 1979), and the average blurs.
 *
 * All is counted in records and additions, not in time: prices follow from
 * the input alone.
 *
 * SPDX-License-Identifier: MIT
 */

#include "dual_prices.h"

#include <stdlib.h>
#include <string.h>

#include "amount.h"
#include "error.h"
#include "plan_lp.h"
#include "random.h"

#define MOST_UNITS 256 /* lengths are counted in at most as many units */
#define MOST_ROWS 64   /* of a knapsack; more places count as any number */

/*
 * The relaxation is solved after a window, then when four times as many came,
 * and so on up to so many windows or records, whichever is more.
 */
#define GROWTH 4
#define MOST_WINDOWS 64
#define MOST_RECORDS 65536

/*
 * Additions that learning may take: so many to begin with, and more for each
 * record that came; but each time at most so many, which is up to some
 * hundredths of a second.
 */
#define FIRST_WORK 6e7
#define WORK_PER_RECORD 30.0
#define MOST_WORK 2.4e7

/*
 * How far above the optimum the relaxation may stop, as a part of it: a
 * small window cannot make use of what a sharper one would tell.
 */
#define GAP_WINDOW 1.0 /* divided by the window, within these */
#define LEAST_GAP 1e-4
#define MOST_GAP 1e-3

/*
 * Counts fade when there are so many windows of them.  Where two optima are
 * near, fewer would let chance move prices from one to the other.
 */
#define MEMORY_WINDOWS 512

/* More are never counted. */
#define MOST_COUNT 9007199254740992.0 /* 2^53 */

/*
 * Prices are first learned from the counts and some drawn ones; windows
 * below this go on with drawn ones, of so many windows.
 */
#define SHARP_WINDOW 1024
#define DRAWN_WINDOWS 8
#define FIRST_SOLUTIONS 4

/* The weight of the newest prices in the average. */
#define NEWEST 0.5

/*
 * Prices are no use if they make the bound on the counts worse by this part:
 * an average that is so is outdated, and so is not blended with others;
 * prices for drawn counts are far from solved.
 */
#define USELESS 0.004

/* Linear prices are taken if they make the bound worse by this at most. */
#define AS_GOOD 1e-4

/* So near to linear on average makes prices linear for the balance. */
#define NEARLY_LINEAR 1e-3

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

static uint32_t unit_of(uint32_t capacity)
{
    return (capacity - 1) / MOST_UNITS + 1;
}

uint64_t ps_dual_prices_bytes(uint32_t capacity)
{
    uint64_t n = (uint64_t)(capacity / unit_of(capacity)) + 1;
    uint64_t bytes = ps_amount_times(6, ps_amount_array(n, sizeof(double)));

    bytes = ps_amount_sum(bytes, ps_amount_array(n, sizeof(uint32_t)));
    bytes = ps_amount_sum(bytes, ps_amount_array(2 * n, sizeof(double)));
    return ps_amount_sum(bytes, sizeof(ps_dual_prices));
}

uint64_t ps_dual_prices_learn_bytes(uint32_t capacity, uint32_t depth)
{
    uint32_t units = capacity / unit_of(capacity);

    return ps_lp_bytes(units, units, depth < units ? depth : units,
                       MOST_UNITS);
}

static double linear(const ps_dual_prices *p, uint32_t u)
{
    return (double)u / p->units;
}

static double *open_numbers(const ps_dual_prices *p)
{
    return calloc((size_t)p->units + 1, sizeof(double));
}

ps_result ps_dual_prices_open(ps_dual_prices **prices, uint32_t capacity,
                              uint32_t depth, uint32_t window_size,
                              ps_error *err)
{
    ps_dual_prices *p = calloc(1, sizeof *p);

    *prices = p;
    if (p == NULL)
        return ps_fail_memory(err);
    p->capacity = capacity;
    p->window_size = window_size;
    p->unit = unit_of(capacity);
    p->units = capacity / p->unit;
    p->depth = depth < p->units ? depth : p->units;
    p->next = window_size;
    p->linear = true;
    p->count = open_numbers(p);
    p->last = open_numbers(p);
    p->average = open_numbers(p);
    p->fresh = open_numbers(p);
    p->sampled = open_numbers(p);
    p->lp_count = open_numbers(p);
    p->row = calloc(2 * ((size_t)p->units + 1), sizeof *p->row);
    p->lp_length = calloc((size_t)p->units + 1, sizeof *p->lp_length);
    if (p->count == NULL || p->last == NULL || p->average == NULL ||
        p->fresh == NULL || p->sampled == NULL || p->lp_count == NULL ||
        p->lp_length == NULL || p->row == NULL) {
        ps_dual_prices_free(p);
        *prices = NULL;
        return ps_fail_memory(err);
    }
    for (uint32_t u = 0; u <= p->units; u++)
        p->last[u] = p->average[u] = linear(p, u);
    return PS_OK;
}

void ps_dual_prices_free(ps_dual_prices *p)
{
    if (p == NULL)
        return;
    free(p->count);
    free(p->last);
    free(p->average);
    free(p->fresh);
    free(p->sampled);
    free(p->lp_count);
    free(p->lp_length);
    free(p->row);
    free(p);
}

/* ---- Prices for some counts ---- */

/* The bound that prices give for the counts so far, in packs. */
static double bound_of(const ps_dual_prices *p, const double *price)
{
    double sum = 0;

    for (uint32_t u = 1; u <= p->units; u++)
        sum += p->count[u] * price[u];
    return sum;
}

/* The packs that the tokens fill. */
static double count_full(const ps_dual_prices *p)
{
    double sum = 0;

    for (uint32_t u = 1; u <= p->units; u++)
        sum += p->count[u] * linear(p, u);
    return sum;
}

/*
 * The fewest packs that hold two sequences at most: each of the longest, in
 * turn, takes the shortest if that fits.
 */
static double count_pairs(ps_dual_prices *p)
{
    double *left = p->sampled;
    uint32_t i = 1;
    uint32_t j = p->units;
    double packs = 0;

    memcpy(left, p->count, ((size_t)p->units + 1) * sizeof *left);
    while (i <= j)
        if (left[j] <= 0) {
            j--;
        } else if (left[i] <= 0) {
            i++;
        } else if (i + j > p->units) {
            packs += left[j--];
        } else {
            double n = left[i] < left[j] ? left[i] : left[j];

            n = i == j ? n / 2 : n;
            packs += n;
            left[i] -= n;
            left[j] -= n;
        }
    return packs;
}

/*
 * Fills p->row with the most that `places` sequences of `n` lengths can be
 * worth in each room: a knapsack.  With many places any number of them.
 */
static const double *fill_knapsack(ps_dual_prices *p, const double *solved,
                                   uint32_t n, uint32_t places)
{
    double *row = p->row;
    double *before = p->row + p->units + 1;
    uint32_t rows = places > MOST_ROWS ? 1 : places;

    memset(p->row, 0, 2 * ((size_t)p->units + 1) * sizeof *p->row);
    for (uint32_t k = 0; k < rows; k++) {
        double *from = places > MOST_ROWS ? row : before;

        for (uint32_t c = 1; c <= p->units; c++) {
            row[c] = row[c - 1];
            for (uint32_t i = 0; i < n && p->lp_length[i] <= c; i++) {
                double sum = solved[i] + from[c - p->lp_length[i]];

                row[c] = sum > row[c] ? sum : row[c];
            }
        }
        before = row;
        row = p->row + (row == p->row ? p->units + 1 : 0);
    }
    return before;
}

/*
 * Lowers the prices of lengths that did not come to what the best company
 * leaves of a pack.
 */
static void lower_unseen(ps_dual_prices *p, const double *solved, uint32_t n)
{
    const double *company = fill_knapsack(p, solved, n, p->depth - 1);
    double least = 0;
    uint32_t i = 0;

    p->work += (double)p->units * n / 2 *
               (p->depth - 1 > MOST_ROWS ? 1 : p->depth - 1);
    for (uint32_t u = 1; u <= p->units; u++) {
        double most = 1 - company[p->units - u];

        if (i < n && p->lp_length[i] == u)
            least = solved[i++];
        else if (p->fresh[u] > most)
            p->fresh[u] = most > least ? most : least;
    }
}

/* Spreads the prices of `n` lengths; between them they rise evenly. */
static void spread(const ps_dual_prices *p, const double *solved, uint32_t n)
{
    double before = 0;
    uint32_t from = 0;
    uint32_t u = 0;

    for (uint32_t i = 0; i <= n; i++) {
        uint32_t to = i < n ? p->lp_length[i] : p->units;
        double price = i < n ? solved[i] : 1;

        for (; u <= to; u++) {
            double part = to > from ? (double)(u - from) / (to - from) : 1;

            p->fresh[u] = before + part * (price - before);
        }
        before = price;
        from = to;
    }
}

static double gap_of(const ps_dual_prices *p)
{
    double gap = GAP_WINDOW / p->window_size;

    gap = gap > LEAST_GAP ? gap : LEAST_GAP;
    return gap < MOST_GAP ? gap : MOST_GAP;
}

/*
 * Fills p->fresh with prices for some counts, of which some are not 0.  Takes
 * the additions from *work.
 */
static ps_result solve(ps_dual_prices *p, const double *count, double *work,
                       ps_error *err)
{
    ps_stock stock = {.length = p->lp_length,
                      .count = p->lp_count,
                      .capacity = p->units,
                      .depth = p->depth};
    ps_lp_limits limits = {.work = *work, .most_units = MOST_UNITS};
    double sequences = 0;
    double full = 0;
    ps_lp *lp;
    ps_result r;

    for (uint32_t u = 1; u <= p->units; u++)
        if (count[u] > 0) {
            p->lp_length[stock.n] = u;
            p->lp_count[stock.n++] = count[u];
            sequences += count[u];
            full += count[u] * linear(p, u);
        }
    sequences /= p->depth;
    limits.gap = gap_of(p) * (full > sequences ? full : sequences);
    r = ps_lp_open(&lp, &stock, &limits, err);
    if (r != PS_OK)
        return r;
    spread(p, ps_lp_prices(lp), stock.n);
    lower_unseen(p, ps_lp_prices(lp), stock.n);
    p->last_work = ps_lp_work(lp);
    p->work += p->last_work;
    *work -= p->last_work;
    ps_lp_free(lp);
    return PS_OK;
}

/* Draws counts from the counts so far: as many, or those of some windows. */
static void draw(ps_dual_prices *p)
{
    uint64_t n = p->window_size < SHARP_WINDOW
                     ? (uint64_t)DRAWN_WINDOWS * p->window_size
                     : (uint64_t)p->total;

    for (uint32_t u = 1; u <= p->units; u++)
        p->fresh[u] = p->fresh[u - 1] * (u > 1) + p->count[u];
    memset(p->sampled, 0, ((size_t)p->units + 1) * sizeof *p->sampled);
    for (uint64_t i = 0; i < n; i++) {
        double at = (double)(ps_random(&p->random) >> 11) * 0x1p-53 *
                    p->fresh[p->units];
        uint32_t low = 1;
        uint32_t high = p->units;

        while (low < high) {
            uint32_t middle = (low + high) / 2;

            if (p->fresh[middle] > at)
                high = middle;
            else
                low = middle + 1;
        }
        p->sampled[low]++;
    }
}

/* Takes the fresh prices, linear ones or the last: those that bound best. */
static void choose_best(ps_dual_prices *p)
{
    size_t size = ((size_t)p->units + 1) * sizeof *p->fresh;
    double fresh = bound_of(p, p->fresh);
    double last = bound_of(p, p->last);

    if (count_full(p) >= (1 - AS_GOOD) * (fresh > last ? fresh : last))
        for (uint32_t u = 0; u <= p->units; u++)
            p->fresh[u] = linear(p, u);
    else if (last > fresh)
        memcpy(p->fresh, p->last, size);
    memcpy(p->last, p->fresh, size);
}

/* ---- Learning ---- */

static void blend(ps_dual_prices *p, double newest)
{
    for (uint32_t u = 0; u <= p->units; u++)
        p->average[u] += newest * (p->fresh[u] - p->average[u]);
}

static bool is_useless(const ps_dual_prices *p, const double *price,
                       const double *other)
{
    return bound_of(p, price) < (1 - USELESS) * bound_of(p, other);
}

static ps_result learn_sharp(ps_dual_prices *p, double *work, ps_error *err)
{
    ps_result r = solve(p, p->count, work, err);

    if (r != PS_OK)
        return r;
    choose_best(p);
    if (!p->known ||
        is_useless(p, p->average, p->fresh))
        blend(p, 1);
    else
        blend(p, NEWEST);
    return PS_OK;
}

static ps_result learn_blurred(ps_dual_prices *p, double *work, ps_error *err)
{
    ps_result r = PS_OK;

    if (!p->known)
        r = learn_sharp(p, work, err);
    for (int k = p->known ? FIRST_SOLUTIONS - 1 : 1;
         r == PS_OK && k < FIRST_SOLUTIONS
                    && *work >= p->last_work; k++) {
        draw(p);
        r = solve(p, p->sampled, work, err);
        if (r == PS_OK && !is_useless(p, p->fresh, p->last))
            blend(p, p->known ? NEWEST : 1.0 / (k + 1));
    }
    return r;
}

static void fade(ps_dual_prices *p)
{
    double most = (double)MEMORY_WINDOWS * p->window_size;

    if (p->total <= most)
        return;
    for (uint32_t u = 1; u <= p->units; u++)
        p->count[u] /= 2;
    p->total /= 2;
}

static void find_pairs(ps_dual_prices *p)
{
    double packs = count_pairs(p);
    double full = count_full(p);
    double last = bound_of(p, p->last);
    double average = bound_of(p, p->average);
    double bound = last > average ? last : average;
    double chance = bound > full ? CHANCE : CHANCE_LINEAR;
    double off = packs - full;

    p->pairs = p->depth == 2 || packs <= (1 + PAIRS_AS_GOOD) * bound ||
               (p->total >= CHANCE_COUNT &&
                off * off <= chance * chance * p->total);
}

static void find_mean(ps_dual_prices *p)
{
    double sum = 0;

    for (uint32_t u = 1; u <= p->units; u++)
        sum += p->count[u] * u;
    p->mean = p->total > 0 ? (uint64_t)(256 * p->unit * sum / p->total) : 0;
}

static void plan_next(ps_dual_prices *p)
{
    uint64_t most = (uint64_t)MOST_WINDOWS * p->window_size;
    uint64_t more = p->came * (GROWTH - 1);

    most = most > MOST_RECORDS ? most : MOST_RECORDS;
    p->next = p->came + (more < most ? more : most);
}

ps_result ps_dual_prices_learn(ps_dual_prices *p, ps_error *err)
{
    double work = FIRST_WORK + WORK_PER_RECORD * (double)p->came - p->work;
    double off = 0;
    ps_result r = PS_OK;

    work = work < MOST_WORK ? work : MOST_WORK;
    if (p->total > 0 && work >= p->last_work) {
        r = p->known && p->window_size >= SHARP_WINDOW
                ? learn_sharp(p, &work, err)
                : learn_blurred(p, &work, err);
        p->known = true;
    }
    for (uint32_t u = 1; u <= p->units; u++) {
        double more = p->average[u] - linear(p, u);

        off += p->count[u] * (more > 0 ? more : -more);
    }
    p->linear = off <= NEARLY_LINEAR * p->total;
    find_pairs(p);
    fade(p);
    find_mean(p);
    plan_next(p);
    return r;
}

void ps_dual_prices_write(const ps_dual_prices *p, int32_t *price)
{
    for (uint32_t l = 0; l <= p->capacity; l++) {
        uint32_t u = l / p->unit;
        double part = (double)(l % p->unit) / p->unit;
        double full = (double)l / p->capacity;
        double dual = u >= p->units ? p->average[p->units]
                                    : p->average[u] + part *
                                          (p->average[u + 1] - p->average[u]);

        price[l] = (int32_t)(PS_SCORE_ONE *
                             ((1 - LINEAR) * dual + LINEAR * full +
                              TILT * full * full));
    }
}

/* ---- Saved and loaded ---- */

static void save_numbers(const ps_dual_prices *p, const double *numbers,
                         ps_saver *saver)
{
    for (uint32_t u = 0; u <= p->units; u++)
        ps_save_double(saver, numbers[u]);
}

void ps_dual_prices_save(const ps_dual_prices *p, ps_saver *saver)
{
    ps_save_u64(saver, p->mean);
    ps_save_u64(saver, p->came);
    ps_save_u64(saver, p->next);
    ps_save_u64(saver, p->random);
    ps_save_u32(saver, p->known);
    ps_save_u32(saver, p->linear);
    ps_save_u32(saver, p->pairs);
    ps_save_double(saver, p->total);
    ps_save_double(saver, p->work);
    ps_save_double(saver, p->last_work);
    save_numbers(p, p->count, saver);
    save_numbers(p, p->last, saver);
    save_numbers(p, p->average, saver);
}

/* Not all numbers are numbers. */
static double load_number(ps_restorer *restorer, double most)
{
    double number = ps_load_double(restorer);

    if (number >= 0 && number <= most)
        return number;
    restorer->failed = true;
    return 0;
}

static void load_numbers(const ps_dual_prices *p, double *numbers,
                         double most, ps_restorer *restorer)
{
    for (uint32_t u = 0; u <= p->units; u++)
        numbers[u] = load_number(restorer, most);
}

void ps_dual_prices_load(ps_dual_prices *p, ps_restorer *restorer)
{
    double counted = 0;

    p->mean = ps_load_u64(restorer);
    p->came = ps_load_u64(restorer);
    p->next = ps_load_u64(restorer);
    p->random = ps_load_u64(restorer);
    p->known = ps_load_within(restorer, 0, 1) == 1;
    p->linear = ps_load_within(restorer, 0, 1) == 1;
    p->pairs = ps_load_within(restorer, 0, 1) == 1;
    p->total = load_number(restorer, MOST_COUNT);
    p->work = load_number(restorer, MOST_COUNT);
    p->last_work = load_number(restorer, MOST_COUNT);
    load_numbers(p, p->count, MOST_COUNT, restorer);
    load_numbers(p, p->last, 1 + 1e-6, restorer);
    load_numbers(p, p->average, 1 + 1e-6, restorer);
    for (uint32_t u = 1; u <= p->units; u++)
        counted += p->count[u];
    if (p->next > (uint64_t)MOST_COUNT || p->came > (uint64_t)MOST_COUNT ||
        p->mean > (uint64_t)p->capacity * 256 ||
        (counted > 0) != (p->total > 0))
        restorer->failed = true;
}
