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

#include "lp/column_gen.h"

#define MAX_UNITS 256 /* lengths are counted in at most as many units */

/*
 * The demand has HORIZON * sqrt(window) * variation records besides the
 * window: enough to outweigh chance in a small one.  The variation is a mean
 * over about so many windows.
 */
#define HORIZON 128.0
#define VARIATION_WINDOWS 8

/*
 * A cut is near, and counts, if it is below the highest one by no more than
 * this part, divided by the square root of the window.
 */
#define TOLERANCE 0.1

/*
 * A cut is learned after a window, and then after an interval.  The interval
 * is halved if the new cut was higher than the others by NEWS of what counts
 * as near, else doubled, from one window to MAX_WINDOWS.  But there must be
 * MIN_WORK left for it, in additions: there are FIRST_WORK to begin with, and
 * more for each record.  One cut takes at most MAX_WORK, which is up to some
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
 * small window cannot make use of more precise prices.
 */
#define GAP_WINDOW 1.0 /* divided by the window, within these */
#define MIN_GAP 1e-4
#define MAX_GAP 1e-3

/*
 * Counts are halved when there are so many windows of them.  Those below
 * MIN_COUNT, of lengths that no longer arrive, become 0.
 */
#define MEMORY_WINDOWS 512
#define MIN_COUNT 0x1p-10

/*
 * A histogram counts for at most so many windows.  It is dropped if the first
 * window differs from it by more than MISFIT times what chance explains, since
 * that of another stream costs more than it helps.
 */
#define EXPECTED_WINDOWS 64.0
#define MISFIT 8.0

/* More are never counted. */
#define MAX_COUNT 9007199254740992.0 /* 2^53 */

/* Linear prices differ by no more than this in the mean. */
#define NEARLY_LINEAR 1e-3

/* What errors of rounding may be, as a part. */
#define ROUNDING 1e-6

/*
 * Packs of two are as good as any in two cases.  Either there are at most
 * PAIRS_AS_GOOD more of them, as a part, than the bound.  Or chance explains
 * how many more there are than packs that the tokens would fill: at least
 * CHANCE_COUNT sequences have arrived, and the difference is at most CHANCE
 * times the square root of their number; CHANCE_LINEAR times if the prices
 * give no better bound than the tokens do.
 */
#define PAIRS_AS_GOOD 5e-4
#define CHANCE 0.6
#define CHANCE_LINEAR 1.2
#define CHANCE_COUNT 4096

/*
 * Parts of a price that do not come from the relaxation: of packs that are
 * worth the same to it the fullest is best, and then the one with the longest
 * sequences.
 */
#define LINEAR 0.03
#define TILT 0.004

static void scale(ps_dual_prices *p)
{
    uint32_t last = p->units.count;

    for (uint32_t u = 0; u <= last + 1; u++) {
        double price = p->price[u <= last ? u : last];

        p->scaled[u] = (int32_t)(PS_SCORE_ONE * ((1 - LINEAR) * price +
                                                 p->size_part[u]));
    }
}

void ps_dual_prices_init(ps_dual_prices *p, uint32_t capacity,
                         uint32_t depth, uint32_t window_size, ps_mem *mem)
{
    const ps_units units = ps_units_of(capacity, MAX_UNITS);
    uint64_t n = (uint64_t)units.count + 1;

    *p = (ps_dual_prices){
        .capacity = capacity,
        .depth = depth < units.count ? depth : units.count,
        .window_size = window_size,
        .units = units,
        .near = TOLERANCE / sqrt(window_size),
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
    ps_price_cuts_init(&p->cuts, units.count, p->depth, mem);
    if (mem->counts || mem->failed)
        return;
    memcpy(p->price, ps_price_cut(&p->cuts, 0),
           (size_t)n * sizeof *p->price);
    /* Behind the last unit there may be some tokens more. */
    for (uint32_t u = 0; u <= units.count + 1; u++) {
        double full = fmin((double)u * units.size / capacity, 1);

        p->size_part[u] = LINEAR * full + TILT * full * full;
    }
    scale(p);
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
    uint32_t units = ps_units_of(capacity, MAX_UNITS).count;

    return ps_lp_bytes(units, units, depth < units ? depth : units, units);
}

/* ---- Learning ---- */

/* Counts below the least become 0. */
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
    double max = EXPECTED_WINDOWS * (double)p->window_size;

    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        uint32_t length = ps_histogram_length(h, i);

        if (length < p->capacity)
            p->count[ps_units_round(&p->units, length)] +=
                (double)ps_histogram_count(h, i);
    }
    scale_counts(p, fmin(max / (double)ps_histogram_sequences(h), 1));
}

/*
 * How much a window differs from the stream, as a multiple of what chance
 * explains: the statistic of Cramer and von Mises over its expectation.
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

/* The window, and the sequences that are expected. */
static void set_demand(ps_dual_prices *p)
{
    double expected = HORIZON * sqrt(p->window_size) * p->variation /
                      p->total;

    memcpy(p->demand, p->in_window,
           (p->units.count + 1) * sizeof *p->demand);
    p->cuts.kernels->add_times(expected, p->count + 1, p->demand + 1,
                               p->units.count);
}

/* Learns a cut for the demand, of which some is not 0. */
static ps_result learn_cut(ps_dual_prices *p, double work, ps_error *err)
{
    double before = ps_price_cuts_value(&p->cuts, p->demand);
    double gap = GAP_WINDOW / p->window_size;
    double packs;
    ps_result r;

    gap = gap > MIN_GAP ? gap : MIN_GAP;
    gap = gap < MAX_GAP ? gap : MAX_GAP;
    r = ps_price_cuts_solve(&p->cuts, p->demand, gap * before, &work, err);
    if (r != PS_OK)
        return r;
    p->work += work;
    packs = ps_price_value(&p->cuts, p->demand, p->cuts.new_row);
    if (packs - before > NEWS * p->near * packs)
        p->interval /= 2;
    else
        p->interval *= 2;
    ps_price_cuts_keep(&p->cuts, p->count, p->total, p->arrivals);
    p->known = true;
    return PS_OK;
}

/*
 * Whether packs of two are as good as any.  The fewest of them come about
 * where each of the longest sequences, in turn, takes the shortest if that
 * fits.  Overwrites the demand.
 */
static void find_pairs(ps_dual_prices *p)
{
    double full = ps_price_value(&p->cuts, p->count,
                                 ps_price_cut(&p->cuts, 0));
    double bound = ps_price_cuts_value(&p->cuts, p->count);
    double chance = bound > full ? CHANCE : CHANCE_LINEAR;
    double *left = p->demand;
    uint32_t i = 1;
    uint32_t j = p->units.count;
    double packs = 0;
    double off;

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
    off = packs - full;
    p->pairs = p->depth == 2 || packs <= (1 + PAIRS_AS_GOOD) * bound ||
               (p->total >= CHANCE_COUNT &&
                off * off <= chance * chance * p->total);
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
    uint64_t max = (uint64_t)MAX_WINDOWS * p->window_size;
    double allowed = FIRST_WORK + WORK_PER_RECORD * (double)p->arrivals;
    double lacking;
    uint64_t more;
    ps_result r = PS_OK;

    /* What was expected is dropped if the first window is quite unlike it. */
    if (!p->known && p->total > p->recent_total && p->recent_total > 0 &&
        window_variation(p) > MISFIT) {
        memcpy(p->count, p->recent,
               ((size_t)p->units.count + 1) * sizeof *p->count);
        p->total = p->recent_total;
    }
    if (p->total > 0) {
        set_demand(p);
        r = learn_cut(p, fmin(allowed - p->work, MAX_WORK), err);
    }
    find_pairs(p);

    /* Older counts fade. */
    if (p->total > (double)MEMORY_WINDOWS * p->window_size)
        scale_counts(p, 0.5);
    find_mean(p);

    /* When to learn again. */
    if (p->interval < p->window_size)
        p->interval = p->window_size;
    p->interval = p->interval < max ? p->interval : max;
    more = p->interval;
    lacking = MIN_WORK - (allowed - p->work);
    if (lacking > WORK_PER_RECORD * (double)more)
        more = (uint64_t)(lacking / WORK_PER_RECORD) + 1;
    p->next = p->arrivals + more;
    return r;
}

/* ---- Prices in use ---- */

void ps_dual_prices_follow(ps_dual_prices *p)
{
    double off = 0;

    if (!p->known)
        return;
    set_demand(p);
    ps_price_cuts_mean(&p->cuts, p->demand, p->near, p->arrivals, p->price);
    scale(p);
    if (p->recent_total < p->window_size)
        return;

    /* Once in a window: what kind of stream this is. */
    p->variation += (fmax(window_variation(p), 1) - p->variation) /
                    VARIATION_WINDOWS;
    memset(p->recent, 0, ((size_t)p->units.count + 1) * sizeof *p->recent);
    p->recent_total = 0;
    find_pairs(p);
    find_mean(p);
    for (uint32_t u = 1; u <= p->units.count; u++)
        off += p->count[u] *
               fabs(p->price[u] - (double)u / p->units.count);
    p->linear = off <= NEARLY_LINEAR * p->total;
}

/* ---- Saved and loaded ---- */

void ps_dual_prices_save(const ps_dual_prices *p, ps_saver *saver)
{
    ps_save_u64(saver, p->mean);
    ps_save_u64(saver, p->arrivals);
    ps_save_u64(saver, p->next);
    ps_save_u64(saver, p->interval);
    ps_save_u32(saver, p->known);
    ps_save_u32(saver, p->pairs);
    ps_save_u32(saver, p->linear);
    ps_save_double(saver, p->work);
    ps_save_double(saver, p->variation);
    ps_save_double(saver, p->total);
    ps_price_row_save(&p->cuts, p->count, saver);
    ps_price_row_save(&p->cuts, p->recent, saver);
    ps_price_row_save(&p->cuts, p->price, saver);
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

/* Without counts nothing can have been learned. */
void ps_dual_prices_load(ps_dual_prices *p, ps_restorer *restorer)
{
    double counted;

    p->mean = ps_load_u64(restorer);
    p->arrivals = ps_load_u64(restorer);
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
    ps_price_row_load(&p->cuts, p->price, restorer);
    ps_price_cuts_load(&p->cuts, restorer);
    if (p->next > (uint64_t)MAX_COUNT ||
        p->interval > (uint64_t)MAX_WINDOWS * p->window_size ||
        p->arrivals > (uint64_t)MAX_COUNT ||
        p->mean > (uint64_t)p->capacity * 256 ||
        !(p->variation >= 1) ||
        fabs(p->total - counted) > ROUNDING * counted ||
        (counted <= 0 && (p->known || p->recent_total > 0)))
        restorer->failed = true;
    scale(p);
}
