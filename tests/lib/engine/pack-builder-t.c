/*
 * pack-builder-t.c - packs of best fit, against its rules in naive form.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/pack_builder.h"

#define MAX_WINDOW 2000
#define MAX_TAKEN 64

/* Candidates for a pack's first sequence: that many of the oldest. */
#define FIRSTS 128
#define FIRST_PART 8
#define AGE 10 /* parts of 2^20 of the capacity per position */

/* Rest of a pack that a pair may fill, in mean lengths. */
#define PAIR_MEANS 3

typedef struct stand {
    ps_window window;
    ps_dual_prices prices;
    ps_score score;
    ps_value value;
    ps_pack_builder builder;
    uint64_t now;
} stand;

static void open_stand(stand *s, uint32_t capacity, uint32_t depth,
                       uint32_t window)
{
    ps_mem mem = {0};

    *s = (stand){.now = 0};
    ps_window_init(&s->window, window, 0, capacity, &mem);
    ps_dual_prices_init(&s->prices, capacity, depth, window, &mem);
    ps_score_init(&s->score, &s->window, &s->prices, &mem);
    ps_value_init(&s->value, s->prices.cuts.max_units, depth, &mem);
    assert_false(mem.failed);
    s->builder = (ps_pack_builder){.window = &s->window,
                                   .score = &s->score,
                                   .value = &s->value,
                                   .search = ps_kernels_best()->search,
                                   .capacity = capacity,
                                   .depth = depth};
}

static void close_stand(stand *s)
{
    ps_value_destroy(&s->value);
    ps_score_destroy(&s->score);
    ps_dual_prices_destroy(&s->prices);
    ps_window_destroy(&s->window);
}

static void admit(stand *s, uint32_t length)
{
    (void)ps_window_admit(&s->window, length, ++s->now);
    ps_dual_prices_admit(&s->prices, length);
    ps_score_admit(&s->score, length);
}

static void take(stand *s, uint32_t length)
{
    ps_window_release(&s->window, ps_window_take(&s->window, length));
    ps_dual_prices_take(&s->prices, length);
    ps_score_take(&s->score, length);
}

/* ---- The naive form ---- */

/* Waiting lengths, oldest first, and those of a pack. */
typedef struct naive {
    uint32_t list[MAX_WINDOW];
    uint32_t n;
    uint32_t pack[MAX_TAKEN];
    uint32_t n_pack;
    uint32_t room;
} naive;

static void take_naive(naive *w, uint32_t at)
{
    w->pack[w->n_pack++] = w->list[at];
    w->room -= w->list[at];
    w->n--;
    memmove(w->list + at, w->list + at + 1, (w->n - at) * sizeof w->list[0]);
}

/* Starts with the sequence at `at`, then adds the longest that fits. */
static void pack_naive(naive *w, uint32_t at, uint32_t depth)
{
    take_naive(w, at);
    while (w->n_pack < depth) {
        uint32_t longest = 0;

        for (uint32_t i = 0; i < w->n; i++)
            if (w->list[i] <= w->room && w->list[i] > longest) {
                longest = w->list[i];
                at = i;
            }
        if (longest == 0)
            return;
        take_naive(w, at);
    }
}

static void list_window(const stand *s, naive *w)
{
    *w = (naive){.room = s->builder.capacity};
    for (uint32_t i = s->window.oldest; i != PS_NO_SLOT;
         i = s->window.slots[i].younger)
        w->list[w->n++] = s->window.slots[i].length;
}

/* True if a sequence in the window fits beside this length. */
static bool some_fit(const stand *s, uint32_t length)
{
    uint32_t room = s->builder.capacity - length;

    return ps_window_longest(&s->window, room) > 0;
}

/* Index of the first sequence: the one that leaves less, or the older one. */
static uint32_t find_first(const stand *s)
{
    static naive w;
    uint64_t least = UINT64_MAX;
    uint32_t first = 0;
    uint32_t tries = s->window.size / FIRST_PART;

    tries = tries < FIRSTS ? tries : FIRSTS;
    for (uint32_t i = 0; i < tries && i < s->window.count; i++) {
        uint64_t off = (uint64_t)s->builder.capacity * AGE * i;

        list_window(s, &w);
        pack_naive(&w, i, s->builder.depth);
        if (some_fit(s, w.pack[0]))
            off += (uint64_t)w.room << 20;
        if (off < least) {
            least = off;
            first = i;
        }
    }
    return first;
}

/* The best score of two that fill a pack, or NONE. */
static int64_t best_pair(const stand *s, const naive *w)
{
    int64_t best = PS_SCORE_NONE;

    if (s->builder.depth < 2 ||
        (uint64_t)s->builder.capacity * w->n > PAIR_MEANS * s->window.tokens)
        return best;
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t k = i + 1; k < w->n; k++) {
            int64_t sum = (int64_t)s->score.score[w->list[i]] +
                          s->score.score[w->list[k]];

            if (w->list[i] + w->list[k] == s->builder.capacity && sum > best)
                best = sum;
        }
    return best;
}

/* Checks a pack of best fit, which leaves the window; true if it is a pair. */
static bool check_fit(stand *s, bool urgent)
{
    static naive w;
    uint32_t lengths[MAX_TAKEN];
    ps_candidate p = {.room = s->builder.capacity,
                      .places = s->builder.depth,
                      .lengths = lengths};
    int64_t pair = PS_SCORE_NONE;

    list_window(s, &w);
    if (!urgent)
        pair = best_pair(s, &w);
    ps_pack_fit(&s->builder, urgent, &p);
    assert_int_equal(p.n + p.places, s->builder.depth);
    if (pair > PS_SCORE_NONE) {
        assert_int_equal(p.n, 2);
        assert_int_equal(p.room, 0);
        assert_true(p.score == pair);
    } else {
        pack_naive(&w, urgent ? 0 : find_first(s), s->builder.depth);
        assert_int_equal(p.n, w.n_pack);
        assert_memory_equal(lengths, w.pack, p.n * sizeof lengths[0]);
        assert_int_equal(p.room, w.room);
    }
    for (uint32_t i = 0; i < p.n; i++) {
        s->score.placed[lengths[i]] = 0;
        take(s, lengths[i]);
    }
    return pair > PS_SCORE_NONE;
}

/* ---- Best fit ---- */

static uint32_t draw_length(uint32_t capacity, uint32_t kind,
                            uint64_t *random)
{
    uint32_t length = 1 + random_below(random, capacity - 1);

    if (kind == 1)
        return 1 + (length - 1) / 2;
    if (kind == 2)
        return 1 + (length - 1) / 7 * 7;
    return length;
}

static void test_fit(void **state)
{
    static const uint32_t capacities[] = {2, 10, 100, 4000};
    static const uint32_t depths[] = {1, 2, 3, 8};
    static const uint32_t windows[] = {1, 2, 16, 40, 200};
    static stand s;
    uint64_t random = 5;
    unsigned pairs = 0;
    unsigned others = 0;

    for (size_t i = 0;
         i < COUNT(capacities) * COUNT(depths) * COUNT(windows); i++) {
        uint32_t capacity = capacities[i % COUNT(capacities)];
        uint32_t depth = depths[i / COUNT(capacities) % COUNT(depths)];
        uint32_t window = windows[i / COUNT(capacities) / COUNT(depths)];

        open_stand(&s, capacity, depth, window);
        for (uint32_t k = 0; k < 120; k++) {
            while (s.window.count < window)
                admit(&s, draw_length(capacity, k / 40, &random));
            if (k % 10 == 0)
                ps_score_refresh(&s.score, s.now, window);
            if (check_fit(&s, k % 4 == 3))
                pairs++;
            else
                others++;
        }
        while (s.window.count > 0)
            (void)check_fit(&s, random_below(&random, 2) == 0);
        close_stand(&s);
    }
    assert_true(pairs > 1000 && others > 1000);
}

/* In a large window 128 are tried, not all. */
static void test_fit_of_many(void **state)
{
    static stand s;
    uint64_t random = 6;
    unsigned others = 0;

    open_stand(&s, 1 << 20, 3, MAX_WINDOW);
    for (int k = 0; k < 40; k++) {
        while (s.window.count < MAX_WINDOW)
            admit(&s, draw_length(1 << 20, 0, &random));
        others += !check_fit(&s, false);
    }
    assert_true(others > 20);
    close_stand(&s);
}

/*
 * A younger sequence must leave less than the oldest does: at the largest
 * capacity 160 tokens less for each position.  Candidates are the oldest 128
 * sequences, or an eighth of the window if that is fewer.
 */
static void test_age(void **state)
{
    enum { capacity = PS_MAX_CAPACITY, half = capacity / 2 };
    static const struct {
        uint32_t window;
        uint32_t left;
        uint32_t place;
        bool is_first;
    } cases[] = {{80, 900, 4, true},       {80, 900, 5, true},
                 {80, 900, 6, false},      {80, 200, 1, true},
                 {80, 200, 2, false},      {80, 9000, 9, true},
                 {80, 9000, 10, false},    {1024, 40000, 127, true},
                 {1024, 40000, 128, false}, {2000, 40000, 127, true},
                 {2000, 40000, 128, false}};
    static stand s;

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t n = cases[i].window;
        uint32_t old_one = half - cases[i].left / 2;
        uint32_t young = half + cases[i].left;
        uint32_t lengths[3];
        ps_candidate p = {.room = capacity, .places = 3, .lengths = lengths};

        open_stand(&s, capacity, 3, n);
        for (uint32_t k = 0; k + 1 < n; k++)
            admit(&s, k == cases[i].place ? young : old_one);
        admit(&s, capacity - young - 3);
        ps_score_refresh(&s.score, s.now, n);
        ps_pack_fit(&s.builder, false, &p);
        assert_int_equal(p.n, 2);
        assert_int_equal(p.room, cases[i].is_first ? 3 : cases[i].left);
        assert_int_equal(lengths[0], cases[i].is_first ? young : old_one);
        close_stand(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_fit_of_many),
        cmocka_unit_test(test_age),
    };

    return run_as_tap("pack-builder", tests, NULL);
}
