/*
 * depth_cost.c - what the cap on the depth costs a stream.
 *
 * With the cap, no plan has fewer packs than the linear relaxation says.
 * Without one, best fit decreasing makes a plan.  The cap costs at least the
 * difference: neither number owes anything to the window or the policy.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/depth_cost.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "plan/lp_input.h"
#include "plan/plan.h"

#define MAX_UNITS 1024  /* of lengths, as they are counted */
#define LP_UNITS 128    /* of lengths in the relaxation */
#define MAX_ROOMS 16384 /* of room in a pack */
#define LP_WORK 3e7     /* additions: some hundredths of a second */

/* A cost is worth reporting of so much efficiency, and so many packs. */
#define MIN_COST 0.005
#define MIN_PACKS 8

/*
 * A depth is enough that loses no more than this.  It is sought in MAX_STEPS
 * steps at most, each of the depth over STEP_PARTS; one more is added, as a
 * window cannot reach the bound.
 */
#define ENOUGH 0.001
#define MAX_STEPS 8
#define STEP_PARTS 4

ps_result ps_length_counts_open(ps_length_counts *c, uint32_t capacity,
                                ps_error *err)
{
    *c = (ps_length_counts){.capacity = capacity};
    while (capacity >> c->shift >= MAX_UNITS)
        c->shift++;
    c->units = (capacity >> c->shift) + 1;
    c->count = calloc(c->units, sizeof *c->count);
    c->tokens = calloc(c->units, sizeof *c->tokens);
    return c->count == NULL || c->tokens == NULL ? ps_fail_memory(err)
                                                 : PS_OK;
}

void ps_length_counts_free(ps_length_counts *c)
{
    free(c->count);
    free(c->tokens);
}

uint64_t ps_length_counts_bytes(uint32_t capacity)
{
    uint64_t n = capacity < MAX_UNITS ? capacity + 1 : MAX_UNITS;

    return ps_mem_times(2, ps_mem_array(n, sizeof(uint64_t)));
}

void ps_length_counts_save(const ps_length_counts *c, ps_saver *saver)
{
    for (uint32_t u = 0; u < c->units; u++) {
        ps_save_u64(saver, c->count[u]);
        ps_save_u64(saver, c->tokens[u]);
    }
}

/* The tokens must be as many as so many sequences of the unit can have. */
void ps_length_counts_load(ps_length_counts *c, ps_restorer *restorer)
{
    for (uint32_t u = 0; u < c->units; u++) {
        uint64_t min = (uint64_t)u << c->shift;
        uint64_t max = min + (UINT64_C(1) << c->shift) - 1;
        uint64_t count = c->count[u] = ps_load_u64(restorer);
        uint64_t tokens = c->tokens[u] = ps_load_u64(restorer);

        min = min > 0 ? min : 1;
        max = max < c->capacity ? max : c->capacity;
        if (tokens < ps_mem_times(min, count) ||
            tokens > ps_mem_times(max, count))
            restorer->failed = true;
    }
}

/* ---- Packs without a cap ---- */

static uint32_t mean_length(const ps_length_counts *c, uint32_t u)
{
    uint64_t rest = c->tokens[u] % c->count[u];

    return (uint32_t)(c->tokens[u] / c->count[u]) +
           (rest >= c->count[u] - rest);
}

/*
 * How many packs best fit decreasing makes without a cap: sequences go into
 * the fullest packs that have room, as many into each as fit, then into new
 * ones.  `open` counts packs by the room that they have.
 */
static ps_result best_fit(const ps_length_counts *c, uint64_t *packs,
                          ps_error *err)
{
    uint32_t unit = (c->capacity - 1) / MAX_ROOMS + 1;
    uint32_t rooms = c->capacity / unit;
    uint64_t *open = calloc((size_t)rooms + 1, sizeof *open);

    *packs = 0;
    if (open == NULL)
        return ps_fail_memory(err);
    for (uint32_t u = c->units; u-- > 0;) {
        uint64_t n = c->count[u];
        uint32_t length;
        uint32_t each;

        if (n == 0)
            continue;
        length = (mean_length(c, u) - 1) / unit + 1;
        length = length < rooms ? length : rooms;
        for (uint32_t room = length; room < rooms && n > 0; room++) {
            uint64_t full;

            if (open[room] == 0)
                continue;
            each = room / length;
            full = n / each < open[room] ? n / each : open[room];
            open[room] -= full;
            open[room - each * length] += full;
            n -= full * each;
            if (n > 0 && open[room] > 0) {
                open[room]--;
                open[room - (uint32_t)n * length]++;
                n = 0;
            }
        }

        each = rooms / length;
        open[rooms - each * length] += n / each;
        if (n % each > 0)
            open[rooms - (uint32_t)(n % each) * length]++;
        *packs += n / each + (n % each > 0);
    }
    free(open);
    return PS_OK;
}

/* ---- Packs with a cap ---- */

/* No plan has fewer packs. */
static ps_result bound(const ps_histogram *h, uint32_t capacity,
                       uint32_t depth, double *packs, ps_error *err)
{
    const ps_lp_limits limits = {.work = LP_WORK, .max_units = LP_UNITS};

    return ps_lp_input_bound(h, capacity, depth,
                             ps_lp_input_unit(h, capacity, LP_UNITS, LP_UNITS),
                             &limits, packs, err);
}

/* A depth that loses little to so many packs. */
static ps_result find_depth(const ps_histogram *h, uint32_t capacity,
                            uint64_t packs, uint32_t *depth, ps_error *err)
{
    uint32_t max = capacity < PS_MAX_DEPTH ? capacity : PS_MAX_DEPTH;
    double enough = (double)packs * (1 + ENOUGH);
    double min = ceil((double)ps_histogram_sequences(h) / enough);
    uint32_t d = min < max ? (uint32_t)min : max;
    ps_result r = PS_OK;

    for (int i = 0; i < MAX_STEPS && d < max; i++) {
        double with;

        r = bound(h, capacity, d, &with, err);
        if (r != PS_OK || with <= enough)
            break;
        d += d / STEP_PARTS + 1;
    }
    d += d / STEP_PARTS;
    *depth = d < max ? d : max;
    return r;
}

ps_result ps_depth_cost_of(const ps_length_counts *c, uint32_t depth,
                           uint64_t packs, ps_depth_cost *cost,
                           ps_error *err)
{
    uint64_t tokens = 0;
    uint64_t without;
    double with = 0;
    double full;
    double lost;
    ps_histogram *h;
    ps_result r;

    *cost = (ps_depth_cost){0};
    for (uint32_t u = 0; u < c->units; u++)
        tokens += c->tokens[u];
    /* Mostly packs are so full that there is nothing to look for. */
    if ((double)packs * (1 - MIN_COST) * c->capacity <= (double)tokens)
        return PS_OK;
    r = best_fit(c, &without, err);
    if (r != PS_OK || packs < without + MIN_PACKS)
        return r;

    r = ps_histogram_open(&h, err);
    for (uint32_t u = 0; u < c->units && r == PS_OK; u++)
        if (c->count[u] > 0)
            r = ps_histogram_add(h, mean_length(c, u), c->count[u], err);
    if (r == PS_OK)
        r = bound(h, c->capacity, depth, &with, err);
    if (r == PS_OK && with >= (double)without + MIN_PACKS) {
        full = (double)ps_histogram_tokens(h) / c->capacity;
        lost = full / (double)without - full / with;
        if (lost >= MIN_COST) {
            cost->efficiency = lost;
            r = find_depth(h, c->capacity, without, &cost->depth, err);
        }
    }
    ps_histogram_free(h);
    return r;
}

uint64_t ps_depth_cost_bytes(uint32_t capacity)
{
    uint32_t rooms = capacity < MAX_ROOMS ? capacity : MAX_ROOMS;
    uint32_t units = capacity < LP_UNITS ? capacity : LP_UNITS;
    uint64_t lp = ps_mem_sum(
        ps_lp_input_bytes(MAX_UNITS),
        ps_lp_bytes(units, units, units, LP_UNITS));

    return ps_mem_sum(
        ps_mem_array((uint64_t)rooms + 1, sizeof(uint64_t)),
        ps_mem_sum(ps_histogram_bytes(MAX_UNITS), lp));
}
