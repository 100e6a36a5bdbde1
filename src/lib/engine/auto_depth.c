/*
 * auto_depth.c - how many sequences a pack should be allowed to hold.
 *
 * No bound tells: what a window loses to a cap on the depth depends on how it
 * is packed.  So an engine packs sequences drawn from the histogram, always
 * the same ones: first without a cap, then with caps that rise from the least
 * that could do, until two in a row lose nothing worth mentioning.  The
 * second is chosen; the less the histogram says of the stream, the farther it
 * is from the first.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/auto_depth.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "base/random.h"

/*
 * How many sequences a run packs; fewer where fuzzing has no time for that.
 * Its second half counts: in the first, the window fills up with what a cap
 * leaves over.
 */
#ifndef RUN_SEQUENCES
#define RUN_SEQUENCES 32768
#endif
#define RUN_WINDOW 1024

/* Policies that plan take longer. */
#define PLAN_SEQUENCES 4096
#define PLAN_WINDOW 256

/*
 * Where a pack takes so many on average, that window has too few packs: the
 * depth is twice the average then, without a run.
 */
#define MANY (RUN_WINDOW / 2)

/* The loss of efficiency that does not matter. */
#define LOSS 0.0001

/*
 * By what part depths are raised: so many standard errors of the mean length,
 * within these; and how often at most.
 */
#define ERRORS 2
#define MIN_STEP 0.2
#define MAX_STEP 1
#define MAX_RUNS 12

/* Fewer sequences than these say too little for less than a usual depth. */
#define FEW 64
#define USUAL_DEPTH 16

/* What all runs have in common. */
typedef struct simulation {
    const ps_histogram *histogram;
    ps_engine_options options; /* but for the depth */
    uint32_t sequences;
    uint64_t *up_to; /* sequences of a length of the histogram or before */
    unsigned shift;  /* so many bits are not drawn, if there are too many */
} simulation;

/* The delay bears on a smaller window as on the real one. */
static simulation simulation_of(const ps_engine_options *options)
{
    bool plans = options->policy == PS_POLICY_SPFHP ||
                 options->policy == PS_POLICY_NNLSHP;
    simulation s = {.options = *options,
                    .sequences = plans ? PLAN_SEQUENCES : RUN_SEQUENCES};
    ps_engine_options *o = &s.options;
    uint32_t max = plans ? PLAN_WINDOW : RUN_WINDOW;

    if (o->order == PS_PACKS_SHUFFLED)
        o->order = PS_PACKS_BY_WINDOW;
    if (o->window > max) {
        o->max_delay = o->max_delay * max / o->window + 1;
        o->window = max;
    }
    return s;
}

uint64_t ps_depth_bytes(const ps_engine_options *o, uint32_t sequences)
{
    uint32_t lengths = sequences < o->capacity ? sequences : o->capacity;
    const ps_engine_options deep = simulation_of(o).options;
    ps_engine_options small = deep;

    if (small.depth > PS_SMALL_DEPTH)
        small.depth = PS_SMALL_DEPTH;
    return ps_mem_sum(ps_mem_max(ps_engine_bytes(&deep),
                                 ps_engine_bytes(&small)),
                      ps_mem_array(lengths, sizeof(uint64_t)));
}

/* ---- A run ---- */

/* A length at random. */
static uint32_t draw(const simulation *s, uint64_t *state)
{
    uint64_t number =
        ps_random_below(state,
                        ps_histogram_sequences(s->histogram) >> s->shift)
        << s->shift;
    size_t low = 0;
    size_t high = ps_histogram_size(s->histogram) - 1;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (number < s->up_to[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return ps_histogram_length(s->histogram, low);
}

/* Counts the packs that are due and the tokens in them. */
static ps_result count_due(ps_engine *e, uint64_t *packs, uint64_t *tokens,
                           ps_error *err)
{
    const uint32_t *slots;
    uint32_t n = 1;
    ps_result r = PS_OK;

    while (r == PS_OK && n > 0) {
        r = ps_engine_decide(e, PS_EMIT_DUE, &slots, &n, err);
        if (r != PS_OK || n == 0)
            break;
        ++*packs;
        for (uint32_t i = 0; i < n; i++)
            *tokens += ps_engine_length(e, slots[i]);
    }
    return r;
}

/* The efficiency of the packs that leave in the second half of a run. */
static ps_result run(const simulation *s, uint32_t depth, double *efficiency,
                     ps_error *err)
{
    ps_engine_options options = s->options;
    uint64_t random = 1;
    uint64_t packs = 0;
    uint64_t tokens = 0;
    ps_engine *e;
    ps_result r;

    options.depth = depth;
    r = ps_engine_open(&e, &options, err);
    for (uint32_t i = 0; i < s->sequences && r == PS_OK; i++) {
        if (i == s->sequences / 2)
            packs = tokens = 0;
        ps_engine_tick(e);
        r = count_due(e, &packs, &tokens, err);
        if (r != PS_OK)
            break;
        (void)ps_engine_admit(e, draw(s, &random));
        r = count_due(e, &packs, &tokens, err);
    }
    ps_engine_free(e);
    *efficiency = packs == 0 ? 0
                             : (double)tokens / ((double)packs *
                                                 options.capacity);
    return r;
}

/* ---- The choice ---- */

/* How many sequences a pack of some efficiency takes on average. */
static uint32_t mean_depth(const simulation *s, double efficiency)
{
    double tokens = (double)ps_histogram_tokens(s->histogram);
    double sequences = (double)ps_histogram_sequences(s->histogram);

    return (uint32_t)fmin(
        ceil(efficiency * s->options.capacity * sequences / tokens),
        s->options.depth);
}

static ps_result choose(const simulation *s, uint32_t *depth, ps_error *err)
{
    const ps_histogram *h = s->histogram;
    double n = (double)ps_histogram_sequences(h);
    double mean = (double)ps_histogram_tokens(h) / n;
    double squares = 0;
    double step;
    uint32_t max = s->options.depth;
    uint32_t good = 0;
    double best;
    double reached;
    ps_result r;

    *depth = (uint32_t)fmin(2.0 * mean_depth(s, 1), max);
    if (*depth >= 2 * MANY)
        return PS_OK;
    r = run(s, max, &best, err);
    if (r != PS_OK)
        return r;

    /* The less certain the mean length is, the more depths are raised. */
    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        double off = ps_histogram_length(h, i) - mean;

        squares += off * off * (double)ps_histogram_count(h, i);
    }
    step = ERRORS * sqrt(squares) / n / mean;
    step = fmin(fmax(step, MIN_STEP), MAX_STEP);

    *depth = mean_depth(s, best);
    for (uint32_t i = 0; i < MAX_RUNS && *depth < max; i++) {
        r = run(s, *depth, &reached, err);
        if (r != PS_OK)
            return r;
        good = reached >= best - LOSS ? good + 1 : 0;
        if (good == 2)
            return PS_OK;
        *depth = (uint32_t)fmin(ceil(*depth * (1 + step)) + 1, max);
    }
    *depth = max;
    return PS_OK;
}

ps_result ps_depth_choose(const ps_histogram *histogram,
                          const ps_engine_options *options, uint32_t *depth,
                          ps_error *err)
{
    size_t n = ps_histogram_size(histogram);
    uint64_t sequences = 0;
    simulation s = simulation_of(options);
    ps_result r;

    s.histogram = histogram;
    *depth = options->depth < USUAL_DEPTH ? options->depth : USUAL_DEPTH;
    if (n == 0)
        return PS_OK;
    if (ps_histogram_length(histogram, n - 1) > options->capacity)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "depth: a length is above the capacity");
    s.up_to = calloc(n, sizeof *s.up_to);
    if (s.up_to == NULL)
        return ps_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        sequences += ps_histogram_count(histogram, i);
        s.up_to[i] = sequences;
    }
    while (sequences >> s.shift > UINT32_MAX)
        s.shift++;
    r = choose(&s, depth, err);
    free(s.up_to);
    if (sequences < FEW && *depth < USUAL_DEPTH)
        *depth = options->depth < USUAL_DEPTH ? options->depth : USUAL_DEPTH;
    return r;
}
