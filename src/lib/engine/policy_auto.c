/*
 * policy_auto.c - packs as full as the future allows.
 *
 * A sequence has a score (score.h): the price of its length, which says what
 * it will be worth to future packs, and a little for balance and for age.
 * The pack with the greatest sum of scores is to leave: max-weight
 * scheduling (Tassiulas and Ephremides 1992) with the prices of the
 * relaxation in place of most of the queue lengths.
 *
 * Some leaders are tried: none, the oldest sequence, and long ones, since
 * these are the hardest to place.  Each is completed (trial.h), and the best
 * of these packs leaves.  Where packs of two are as good as any, scores hardly
 * matter, and a simpler rule chooses the pair.
 *
 * A sequence that has waited long enough leads the next pack.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "engine/policy.h"
#include "engine/trial.h"

#define LEADERS 6

/*
 * Scores are made anew after this part of a window, but not so often.  While
 * windows differ by little more than chance (dual_prices.h), twice as much
 * may come before, up to so many records: beyond, that saves little time.
 */
#define REFRESH_PARTS 16
#define REFRESH_PARTS_FINE 8
#define REFRESH_MIN 32
#define STEADY 2.0
#define STEADY_MAX 256

/* A pack is good that falls short of usual ones by at most this. */
#define GOOD (PS_SCORE_ONE / 500)
#define USUAL_PACKS 128

/* No pack has a score above this, nor one below its opposite. */
#define MAX_SCORE ((int64_t)2 * PS_SCORE_ONE * PS_MAX_DEPTH)

/* A sequence leads when it has waited so long, less a small part. */
#define URGENT_WINDOWS 4
#define URGENT_PART 100

/*
 * Where packs as full as they can be would leave so much of the depth unused,
 * in percent of what they use, the depth is ample, or even far.
 */
#define AMPLE_PERCENT 25
#define FAR_PERCENT 60

/*
 * From this depth on, unless it is far, packs take so many short sequences
 * that errors of rounding add up: units are fine then.
 */
#define FINE_DEPTH 8

typedef struct state {
    ps_policy_setup is;
    ps_dual_prices *prices;
    ps_score *score;
    ps_value *value;
    ps_trial trial;
    void *closing;      /* the policy for what is left in the end */
    uint64_t refreshed; /* when */
    int64_t usual;      /* the score of packs, times USUAL_PACKS */
    uint64_t packs;
    uint64_t cost;      /* of all packs: sums of squared lengths */
    uint32_t *lengths;  /* of three packs */
} state;

static void free_state(void *p)
{
    state *s = p;

    ps_dual_prices_free(s->prices);
    ps_score_free(s->score);
    ps_value_free(s->value);
    if (s->closing != NULL)
        ps_policy_plan_calls.free(s->closing);
    free(s->lengths);
    free(s);
}

/* It learns while no plan is there: that is for the end. */
static uint64_t bytes_of(const ps_policy_setup *is)
{
    uint64_t bytes = ps_mem_sum(sizeof(state),
                                ps_score_bytes(is->capacity));

    bytes = ps_mem_sum(
        bytes, ps_dual_prices_bytes(is->capacity));
    bytes = ps_mem_sum(
        bytes, ps_value_bytes(ps_score_max_units(is->capacity), is->depth));
    bytes = ps_mem_sum(bytes, ps_mem_array((uint64_t)3 * is->depth,
                                           sizeof(uint32_t)));
    return ps_mem_sum(
        bytes,
        ps_mem_max(ps_dual_prices_learn_bytes(is->capacity, is->depth),
                   ps_policy_plan_calls.bytes(is)));
}

static ps_result open_parts(state *s, ps_error *err)
{
    const ps_policy_setup *is = &s->is;
    ps_result r;

    s->usual = (int64_t)PS_SCORE_ONE * USUAL_PACKS;
    s->lengths = malloc((size_t)3 * is->depth * sizeof *s->lengths);
    if (s->lengths == NULL)
        return ps_fail_memory(err);
    r = ps_dual_prices_open(&s->prices, is->capacity, is->depth,
                            is->window_size, err);
    if (r == PS_OK)
        r = ps_score_open(&s->score, is->window, s->prices, err);
    if (r == PS_OK)
        r = ps_value_open(&s->value, ps_score_max_units(is->capacity),
                          is->depth, err);
    if (r == PS_OK)
        r = ps_policy_plan_calls.open(&s->closing, is, err);
    s->trial = (ps_trial){.window = is->window,
                          .score = s->score,
                          .value = s->value,
                          .search = ps_kernels_best()->search,
                          .capacity = is->capacity,
                          .depth = is->depth};
    return r;
}

static ps_result open_state(void **p, const ps_policy_setup *setup,
                            ps_error *err)
{
    state *s = calloc(1, sizeof *s);
    ps_result r;

    *p = s;
    if (s == NULL)
        return ps_fail_memory(err);
    s->is = *setup;
    r = open_parts(s, err);
    if (r != PS_OK) {
        free_state(s);
        *p = NULL;
    }
    return r;
}

/* A sequence that fills a pack alone need not wait. */
static bool has_full(void *p)
{
    const state *s = p;

    return !s->is.in_order &&
           ps_window_count_of(s->is.window, s->is.capacity) > 0;
}

static bool admitted(void *p, uint32_t length)
{
    state *s = p;

    ps_dual_prices_count(s->prices, length);
    ps_score_admit(s->score, length);
    return has_full(p);
}

/* ---- Scores and values ---- */

/*
 * By the mean length, in parts of 1/256 token: of what is held, and of what
 * came before, as chance or a burst may fill a window with long sequences.
 */
static bool has_spare_depth(const state *s, uint32_t percent)
{
    uint64_t held = ps_window_tokens(s->is.window) * 256 /
                    ps_window_count(s->is.window);
    uint64_t mean = held < s->prices->mean ? held : s->prices->mean;

    return mean * s->is.depth * 100 >=
           (uint64_t)s->is.capacity * 256 * (100 + percent);
}

/* Packs of even cost are chosen among some, of which pairs have none. */
static bool is_by_pairs(const state *s)
{
    return s->prices->pairs && !s->is.even_cost;
}

/* Records between two refreshes. */
static uint64_t refresh_interval(const state *s)
{
    uint32_t parts = s->score->is_fine ? REFRESH_PARTS_FINE : REFRESH_PARTS;
    uint64_t n = s->is.window_size / parts;

    if (s->prices->variation < STEADY && n < STEADY_MAX)
        n = 2 * n < STEADY_MAX ? 2 * n : STEADY_MAX;
    return n > REFRESH_MIN ? n : REFRESH_MIN;
}

static ps_result refresh(state *s, uint64_t now, ps_error *err)
{
    bool is_far;
    ps_result r = PS_OK;

    if (s->prices->known && now - s->refreshed < refresh_interval(s))
        return PS_OK;
    s->refreshed = now;
    if (ps_dual_prices_due(s->prices) || !s->prices->known) {
        r = ps_dual_prices_learn(s->prices, err);
        if (r != PS_OK)
            return r;
        ps_score_learn(s->score);
    }
    ps_dual_prices_follow(s->prices);
    is_far = has_spare_depth(s, FAR_PERCENT);
    ps_score_refresh(s->score, now, !is_far && s->is.depth >= FINE_DEPTH);
    if (is_by_pairs(s))
        ps_value_clear(s->value);
    else
        ps_value_refresh(s->value, s->score->best, s->score->units.count,
                         is_far);
    return r;
}

/* ---- Which pack leaves ---- */

/* More waiting than this makes no better packs, and does not end well. */
static uint64_t longest_wait(const state *s)
{
    uint64_t max = (uint64_t)URGENT_WINDOWS * s->is.window_size;

    max = max < s->is.max_delay ? max : s->is.max_delay;
    return max - max / URGENT_PART;
}

static bool is_urgent(const state *s, uint64_t now)
{
    uint64_t time = ps_window_time(s->is.window,
                                   ps_window_oldest(s->is.window));

    return now > time && now - time >= longest_wait(s);
}

/*
 * The length that leads trial i, 0 for none; false if there is no such
 * trial.  *before is the one of the trial before, and becomes this one.
 */
static bool lead(const state *s, const ps_trial_pack *p, uint32_t i,
                 uint32_t *before)
{
    const ps_window *w = s->is.window;

    if (i == 0)
        return true;
    if (i == 1)
        *before = ps_window_length(w, ps_window_oldest(w));
    else
        *before = ps_window_longest(w, i == 2 ? p->room : *before - 1);
    return *before > 0;
}

/* How far a pack is from the mean cost. */
static uint64_t off_cost(const state *s, const ps_trial_pack *p)
{
    uint64_t mean = s->packs == 0 ? 0 : s->cost / s->packs;

    return p->cost > mean ? p->cost - mean : mean - p->cost;
}

/* The better of two packs; of good ones, if so asked for, by their cost. */
static bool is_better(const state *s, const ps_trial_pack *p,
                      const ps_trial_pack *than, int64_t good)
{
    if (s->is.even_cost && p->score >= good && than->score >= good)
        return off_cost(s, p) < off_cost(s, than);
    return p->score > than->score;
}

/* Begins with what another pack has. */
static void copy_pack(ps_trial_pack *p, const ps_trial_pack *from,
                      uint32_t *lengths)
{
    memcpy(lengths, from->lengths, from->n * sizeof *lengths);
    *p = *from;
    p->lengths = lengths;
}

/*
 * Completes a pack behind some leaders, until one is good; the best of them
 * is in *best, and nothing of it is placed but what was before.
 */
static void try_leaders(state *s, const ps_trial_pack *start,
                        ps_trial_pack *best)
{
    int64_t good = s->usual / USUAL_PACKS - GOOD;
    uint32_t *lengths = s->lengths + 2 * (size_t)s->is.depth;
    uint32_t before = 0;
    bool bulk = false;

    copy_pack(best, start, s->lengths + s->is.depth);
    best->score = INT64_MIN;
    for (uint32_t i = 0; i < LEADERS && lead(s, start, i, &before); i++) {
        ps_trial_pack p;

        if (i > 0 && (before > start->room || start->places == 0 ||
                      (i == 1 && (bulk || start->n > 0)) ||
                      ps_score_left(s->score, before) == 0))
            continue;
        copy_pack(&p, start, lengths);
        if (i > 0)
            ps_trial_place(&s->trial, &p, before);
        bulk |= ps_trial_place_oldest(&s->trial, &p);
        ps_trial_walk(&s->trial, &p, good);
        for (uint32_t k = p.n; k > start->n; k--)
            ps_score_unplace(s->score, p.lengths[k - 1]);
        if (is_better(s, &p, best, good)) {
            lengths = best->lengths;
            *best = p;
        }
        if (best->score >= good && !s->is.even_cost && (i > 1 || !bulk))
            return;
    }
}

/* A sequence has left the window. */
static void forget(state *s, uint32_t length)
{
    ps_dual_prices_take(s->prices, length);
    ps_score_take(s->score, length);
}

static void take_pack(state *s, const ps_trial_pack *p, uint32_t *slots)
{
    for (uint32_t i = 0; i < p->n; i++)
        s->score->placed[p->lengths[i]] = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        slots[i] = ps_window_take(s->is.window, p->lengths[i]);
        forget(s, p->lengths[i]);
    }
}

static void choose_by_value(state *s, bool urgent, ps_trial_pack *best)
{
    ps_trial_pack start = *best;

    if (urgent) {
        uint32_t oldest = ps_window_oldest(s->is.window);

        ps_trial_place(&s->trial, &start,
                       ps_window_length(s->is.window, oldest));
    }
    s->trial.is_ample = has_spare_depth(s, AMPLE_PERCENT);
    try_leaders(s, &start, best);
    if (!urgent)
        s->usual += best->score - s->usual / USUAL_PACKS;
}

static void choose_pack(state *s, uint64_t now, ps_trial_pack *p)
{
    bool urgent = s->is.in_order || is_urgent(s, now);

    *p = (ps_trial_pack){.room = s->is.capacity,
                .places = s->is.depth,
                .lengths = s->lengths};
    if (is_by_pairs(s))
        ps_trial_pair(&s->trial, urgent, p);
    else
        choose_by_value(s, urgent, p);
    s->packs++;
    s->cost += p->cost;
}

/* A pack of the plan for all that is held. */
static ps_result close_pack(state *s, uint64_t now, ps_leave leave,
                            uint32_t *slots, uint32_t *n, ps_error *err)
{
    ps_result r = ps_policy_plan_calls.choose(s->closing, now, leave, slots,
                                               n, err);

    for (uint32_t i = 0; r == PS_OK && i < *n; i++)
        forget(s, ps_window_length(s->is.window, slots[i]));
    return r;
}

static ps_result choose(void *policy, uint64_t now, ps_leave leave,
                        uint32_t *slots, uint32_t *n, ps_error *err)
{
    state *s = policy;
    ps_trial_pack p = {.n = 1, .lengths = s->lengths};
    ps_result r;

    if (leave != PS_LEAVE_DUE)
        return close_pack(s, now, leave, slots, n, err);
    if (has_full(s)) {
        p.lengths[0] = s->is.capacity;
    } else {
        r = refresh(s, now, err);
        if (r != PS_OK)
            return r;
        choose_pack(s, now, &p);
    }
    take_pack(s, &p, slots);
    *n = p.n;
    return PS_OK;
}

static void save(const void *policy, ps_saver *saver)
{
    const state *s = policy;

    ps_save_u64(saver, s->refreshed);
    ps_save_u64(saver, (uint64_t)s->usual);
    ps_save_u64(saver, s->packs);
    ps_save_u64(saver, s->cost);
    ps_dual_prices_save(s->prices, saver);
    ps_score_save(s->score, saver);
    ps_value_save(s->value, saver);
}

static void hold_all(state *s)
{
    const ps_window *w = s->is.window;
    uint32_t l = ps_window_longest(w, s->is.capacity);

    for (; l > 0; l = ps_window_longest(w, l - 1))
        ps_dual_prices_hold(s->prices, l, ps_window_count_of(w, l));
}

/* The plan that closes is none while no pack is due. */
static ps_result load(void *policy, ps_restorer *restorer, ps_error *err)
{
    state *s = policy;

    s->refreshed = ps_load_u64(restorer);
    s->usual = (int64_t)ps_load_u64(restorer);
    s->packs = ps_load_u64(restorer);
    s->cost = ps_load_u64(restorer);
    ps_dual_prices_load(s->prices, restorer);
    hold_all(s);
    ps_score_load(s->score, restorer);
    ps_value_load(s->value, s->score->units.count, restorer);
    if (s->usual > MAX_SCORE * USUAL_PACKS ||
        s->usual < -MAX_SCORE * USUAL_PACKS)
        restorer->failed = true;
    return restorer->failed ? ps_fail(err, PS_ERR_CORRUPT,
                                    "the prices in it make no sense")
                          : PS_OK;
}

const ps_policy_calls ps_policy_auto_calls = {
    .bytes = bytes_of,
    .open = open_state,
    .free = free_state,
    .is_ready = has_full,
    .admitted = admitted,
    .choose = choose,
    .save = save,
    .load = load,
};
