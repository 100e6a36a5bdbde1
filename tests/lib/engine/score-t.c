/*
 * score-t.c - the score tables, against a look at every length.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/score.h"

#define SLOTS 200
#define MAX_PLACED 12

/* Score of waiting for one window; it is capped after a few. */
#define AGED (PS_SCORE_ONE / 250)
#define MAX_AGE 8

#define AT_SPAN 16 /* bytes saved before the span */

typedef struct stand {
    ps_window *window;
    ps_dual_prices *prices;
    ps_score *score;
    uint32_t capacity;
    uint32_t span; /* of a full window */
    uint64_t now;
    uint64_t epoch; /* when scores were last recomputed */
    uint32_t placed[MAX_PLACED];
    uint32_t n;
} stand;

static ps_score *open_score(const stand *s)
{
    ps_score *score = must_alloc(sizeof *score);
    ps_mem mem = {0};

    ps_score_init(score, s->window, s->prices, &mem);
    assert_false(mem.failed);
    return score;
}

static void close_score(ps_score *score)
{
    ps_score_destroy(score);
    free(score);
}

static stand open_stand(uint32_t capacity, uint32_t window_size, uint64_t now)
{
    stand s = {.capacity = capacity, .span = window_size, .now = now};
    ps_mem mem = {0};

    s.window = must_alloc(sizeof *s.window);
    s.prices = must_alloc(sizeof *s.prices);
    ps_window_init(s.window, window_size > SLOTS ? window_size : SLOTS, 0,
                   capacity, &mem);
    ps_dual_prices_init(s.prices, capacity, 8, window_size, &mem);
    assert_false(mem.failed);
    s.score = open_score(&s);
    return s;
}

static void close_stand(stand *s)
{
    close_score(s->score);
    ps_dual_prices_destroy(s->prices);
    ps_window_destroy(s->window);
    free(s->prices);
    free(s->window);
}

static void admit(stand *s, uint32_t length)
{
    ps_window_admit(s->window, length, ++s->now);
    ps_dual_prices_admit(s->prices, length);
    ps_score_admit(s->score, length);
}

static void take(stand *s, uint32_t length)
{
    ps_window_release(s->window, ps_window_take(s->window, length));
    ps_dual_prices_take(s->prices, length);
    ps_score_take(s->score, length);
}

static void refresh(stand *s)
{
    s->epoch = s->now;
    ps_dual_prices_follow(s->prices);
    ps_score_refresh(s->score, s->now, s->span);
}

/* Prices switch to coarse units if many lengths have arrived. */
static void coarsen(stand *s)
{
    uint32_t l = ps_window_longest(s->window, s->capacity);

    if (!ps_dual_prices_coarsen(s->prices))
        return;
    for (; l > 0; l = ps_window_longest(s->window, l - 1))
        ps_dual_prices_recount(s->prices, l, s->window->queues[l].count);
    ps_score_forget(s->score);
}

static void learn(stand *s)
{
    ps_error err;

    coarsen(s);
    assert_ok(ps_dual_prices_learn(s->prices, &err), &err);
    ps_score_learn(s->score);
    refresh(s);
}

/* ---- The naive form ---- */

/* Number of sequences of a length that are left. */
static uint32_t left_of(const stand *s, uint32_t length)
{
    uint32_t left = s->window->queues[length].count;

    for (uint32_t i = 0; i < s->n; i++)
        left -= s->placed[i] == length;
    return left;
}

static int32_t naive_score(const stand *s, uint32_t length)
{
    uint64_t time = UINT64_MAX;
    uint64_t max = (uint64_t)MAX_AGE * s->span;
    uint64_t age;

    for (uint32_t i = s->window->oldest; time == UINT64_MAX;
         i = s->window->slots[i].younger)
        if (s->window->slots[i].length == length)
            time = s->window->slots[i].time;
    age = s->epoch > time ? s->epoch - time : 0;
    age = age < max ? age : max;
    return ps_dual_price_of(s->prices, length) +
           ps_balance_of(&s->score->balance,
                         ps_units_round(&s->prices->units, length)) +
           (int32_t)(age * AGED / s->span);
}

/* Checks every length, and the best one of every unit. */
static void check(const stand *s)
{
    const ps_score *is = s->score;
    int32_t *best = must_alloc((is->units.count + 1) * sizeof *best);

    for (uint32_t u = 0; u <= is->units.count; u++)
        best[u] = PS_SCORE_NONE;
    for (uint32_t l = 1; l <= s->capacity; l++) {
        uint32_t u = ps_units_round(&is->units, l);
        int32_t score = is->score[l];

        assert_int_equal(is->reversed[s->capacity - l], score);
        if (s->window->queues[l].count == 0) {
            assert_int_equal(score, PS_SCORE_NONE);
            continue;
        }
        assert_int_equal(ps_score_left(is, l), left_of(s, l));
        if (left_of(s, l) == 0)
            assert_int_equal(score, PS_SCORE_NONE);
        else
            assert_in_range(score + 1 - naive_score(s, l), 0, 1);
        best[u] = score > best[u] ? score : best[u];
    }
    for (uint32_t u = 1; u <= is->units.count; u++) {
        uint32_t l = ps_score_best_in(is, u);

        assert_int_equal(is->best[u], best[u]);
        assert_true((l > 0) == (best[u] > PS_SCORE_NONE));
        if (l == 0)
            continue;
        assert_int_equal(is->score[l], best[u]);
        assert_int_equal(ps_units_round(&is->units, l), u);
    }
    free(best);
}

/* ---- Random windows ---- */

static uint32_t draw_length(uint32_t capacity, uint64_t *random)
{
    uint32_t length = 1 + random_below(random, capacity);

    if (random_below(random, 3) == 0)
        length = 1 + (length - 1) / 17;
    if (random_below(random, 3) == 0)
        length = 1 + (length - 1) / 100 * 100;
    return length;
}

/* The longest below a length, or the longest of all; 0 if none. */
static uint32_t draw_held(const stand *s, uint64_t *random)
{
    uint32_t limit = 1 + random_below(random, s->capacity);

    return ps_window_longest(s->window, random_below(random, 2) == 0
                                            ? s->capacity
                                            : limit);
}

/* Tries a pack, undoes it, and builds it again to leave. */
static void try_pack(stand *s, uint64_t *random)
{
    for (int round = 0; round < 2; round++) {
        while (s->n < MAX_PLACED) {
            uint32_t length = draw_held(s, random);

            if (length == 0 || left_of(s, length) == 0)
                break;
            ps_score_place(s->score, length);
            s->placed[s->n++] = length;
        }
        check(s);
        if (round == 1)
            break;
        while (s->n > random_below(random, 3))
            ps_score_unplace(s->score, s->placed[--s->n]);
        check(s);
    }
    for (uint32_t i = 0; i < s->n; i++)
        s->score->placed[s->placed[i]] = 0;
    while (s->n > 0)
        take(s, s->placed[--s->n]);
}

static void run(stand *s, int rounds, uint64_t *random)
{
    for (int i = 0; i < rounds; i++) {
        while (s->window->count < SLOTS / 2 ||
               (s->window->count < SLOTS &&
                random_below(random, 8) > 0))
            admit(s, draw_length(s->capacity, random));
        check(s);
        try_pack(s, random);
        check(s);
        if (i % 4 == 1)
            refresh(s);
        if (i % 7 == 3)
            learn(s);
        check(s);
    }
}

/* Units of a few lengths, and of many. */
static const struct {
    uint32_t capacity;
    uint32_t few;
    uint32_t unit;
} sizes[] = {{1, 1, 1},   {2, 1, 1},   {255, 1, 1},  {256, 1, 1},
             {257, 1, 2}, {512, 1, 2}, {700, 1, 3},  {1000, 1, 4},
             {2049, 2, 9}, {131072, 64, 512}};

static void test_tables(void **state)
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        stand s = open_stand(sizes[i].capacity, 300, i);
        uint64_t random = 5 + i;

        assert_int_equal(s.score->units.size, sizes[i].few);
        /* Parts of the capacity. */
        for (uint32_t l = 1; l <= s.capacity; l++) {
            double price = PS_SCORE_ONE * (double)l / s.capacity;
            double off = sizes[i].few == 1 ? 1 : 0.001 * price + 1;

            assert_in_range(ps_dual_price_of(s.prices, l), price - off,
                            price + off);
        }
        run(&s, sizes[i].capacity > 1000 ? 12 : 60, &random);
        assert_int_equal(s.prices->few, sizes[i].capacity <= 32);
        assert_int_equal(s.score->units.size,
                         s.prices->few ? sizes[i].few : sizes[i].unit);
        close_stand(&s);
    }
}

/* ---- Age ---- */

/* Each window of waiting adds the same amount, up to eight windows. */
static void test_age(void **state)
{
    static const uint32_t windows[] = {1, 2, 3, 100, 1024, PS_MAX_WINDOW};
    static const uint64_t times[] = {1, UINT64_C(1) << 40,
                                     (UINT64_C(1) << 63) - 100};

    for (size_t i = 0; i < COUNT(windows) * COUNT(times); i++) {
        uint32_t window = windows[i % COUNT(windows)];
        stand s = open_stand(4, window, times[i / COUNT(windows)]);
        int32_t young;

        admit(&s, 3);
        learn(&s);
        young = s.score->score[3];
        for (int n = 1; n <= 20; n++) {
            s.now += window;
            refresh(&s);
            assert_in_range(s.score->score[3] - young + 1,
                            AGED * (n < 8 ? n : 8),
                            AGED * (n < 8 ? n : 8) + 1);
        }
        s.now = UINT64_MAX;
        refresh(&s);
        assert_in_range(s.score->score[3] - young + 1, 8 * AGED,
                        8 * AGED + 1);
        close_stand(&s);
    }
}

/* A span of zero, or longer than the window can have. */
static void test_span_refused(void **state)
{
    static const uint32_t spans[] = {0, SLOTS + 1, UINT32_MAX};
    stand s = open_stand(4, 50, 0);
    ps_saver saver = {0};

    admit(&s, 3);
    learn(&s);
    ps_score_save(s.score, &saver);
    for (size_t i = 0; i < COUNT(spans); i++) {
        ps_score *score = open_score(&s);
        ps_restorer restorer = {.at = saver.bytes, .left = saver.n};

        memcpy(saver.bytes + AT_SPAN, &spans[i], 4);
        ps_score_load(score, &restorer);
        assert_true(restorer.failed);
        close_score(score);
    }
    free(saver.bytes);
    close_stand(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_span_refused),
    };

    return run_as_tap("score", tests, NULL);
}
