/*
 * policy-auto-state-t.c - the default policy in an engine that is saved and
 * loaded at any point: its decisions do not change, and no damaged state does
 * harm.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/balance.h"
#include "engine/dual_prices.h"
#include "engine/engine.h"
#include "engine/tuning.h"

/* An engine, and the arrival times of the sequences it holds. */
typedef struct runner {
    ps_engine_options o;
    ps_engine *engine;
    uint64_t *came; /* by slot */
    uint64_t now;
    uint64_t digest; /* of the choices since it was 0 */
} runner;

static runner open_runner(const ps_engine_options *o)
{
    runner r = {.o = *o};
    ps_error err;

    assert_ok(ps_engine_open(&r.engine, o, &err), &err);
    r.came = must_alloc(r.engine->n_slots * sizeof *r.came);
    return r;
}

static void close_runner(runner *r)
{
    ps_engine_free(r->engine);
    free(r->came);
}

static void take_packs(runner *r, bool flush)
{
    uint32_t n = 1;
    ps_error err;

    while (n > 0) {
        const uint32_t *slots;
        uint64_t sum = 0;

        assert_ok(ps_engine_decide(r->engine, flush, &slots, &n, &err), &err);
        assert_true(n <= r->o.depth);
        for (uint32_t i = 0; i < n; i++) {
            sum += ps_engine_length(r->engine, slots[i]);
            r->digest = (r->digest ^ r->came[slots[i]]) *
                        UINT64_C(0x100000001b3);
        }
        assert_true(sum <= r->o.capacity);
        r->digest = (r->digest ^ sum) * UINT64_C(0x100000001b3);
    }
}

static void put(runner *r, uint32_t length)
{
    ps_engine_tick(r->engine);
    r->now++;
    take_packs(r, false);
    r->came[ps_engine_admit(r->engine, length, NULL)] = r->now;
    take_packs(r, false);
}

/* ---- Streams ---- */

/* The length of record i; some streams change suddenly. */
typedef uint32_t stream(uint64_t i, uint32_t capacity, uint64_t *random);

static uint32_t even(uint64_t i, uint32_t capacity, uint64_t *random)
{
    (void)i;
    return 1 + random_below(random, capacity);
}

static uint32_t mostly_short(uint64_t i, uint32_t capacity, uint64_t *random)
{
    (void)i;
    return 1 + (uint32_t)((uint64_t)random_below(random, capacity) *
                          random_below(random, capacity) / capacity / 3);
}

/* Long sequences, each alone in its pack, and then the shortest. */
static uint32_t bursts(uint64_t i, uint32_t capacity, uint64_t *random)
{
    if (i / 3000 % 2 == 1 || capacity == 1)
        return 1;
    return capacity / 2 + random_below(random, (capacity + 1) / 2) + 1;
}

/* Short sequences of two kinds in turn, and no long one. */
static uint32_t turns(uint64_t i, uint32_t capacity, uint64_t *random)
{
    uint32_t max = capacity / 30 + 1;

    return 1 + random_below(random, max) +
           (uint32_t)(i / 1500 % 2) * max % capacity;
}

/* Hundreds of one kind wait while the other kind arrives. */
static uint32_t waves(uint64_t i, uint32_t capacity, uint64_t *random)
{
    uint32_t max = capacity / 4 + 1;
    uint32_t length = 1 + random_below(random, max);

    if (i / 700 % 3 == 0)
        length += capacity - max;
    return length <= capacity ? length : capacity;
}

/* A few lengths at first, and later all. */
static uint32_t few_at_first(uint64_t i, uint32_t capacity, uint64_t *random)
{
    uint32_t length = 1 + random_below(random, capacity);

    return i < 2500 ? (length - 1) / 5 % 29 * capacity / 30 + 1 : length;
}

static stream *const streams[] = {even, mostly_short, bursts, turns, waves,
                                 few_at_first};

static const ps_engine_options sets[] = {
    {.capacity = 1, .depth = 1, .window = 3, .max_delay = 100},
    {.capacity = 64, .depth = 1, .window = 17, .max_delay = 500},
    {.capacity = 64, .depth = 3, .window = 1, .max_delay = 500},
    {.capacity = 100, .depth = 3, .window = 256, .max_delay = 512},
    {.capacity = 256, .depth = 256, .window = 1024, .max_delay = 100000},
    {.capacity = 300, .depth = 9, .window = 64, .max_delay = 300,
     .order = PS_PACKS_BY_INPUT},
    {.capacity = 512, .depth = 8, .window = 256, .max_delay = 5000,
     .order = PS_PACKS_SHUFFLED, .seed = 3},
    {.capacity = 2000, .depth = 9, .window = 300, .max_delay = 700},
    {.capacity = 512, .depth = 8, .window = 64, .max_delay = 128},
    {.capacity = 1000, .depth = 64, .window = 700, .max_delay = 20000,
     .even_cost = true},
    {.capacity = 8192, .depth = 4096, .window = 4096, .max_delay = 100000},
    /* Full by tokens; with short sequences there are many more. */
    {.capacity = 400, .depth = 40, .window = 1500, .least = 200,
     .enough = 40 * 400, .max_delay = 100000},
    {.capacity = 400, .depth = 3, .window = 900, .least = 100,
     .enough = 100 * 400, .max_delay = 5000, .order = PS_PACKS_SHUFFLED},
};

/* ---- Saved and loaded ---- */

static ps_saver save(const runner *r, uint32_t *slots)
{
    ps_saver saver = {0};
    uint32_t *own = must_alloc(r->engine->n_slots * sizeof *own);

    (void)ps_engine_save(r->engine, &saver, slots != NULL ? slots : own);
    assert_false(saver.failed);
    free(own);
    return saver;
}

/* Loads the saved state, with different slots. */
static runner resume(const runner *r)
{
    runner other = open_runner(&r->o);
    uint32_t n_slots = r->engine->n_slots;
    uint32_t *from = must_alloc(n_slots * sizeof *from);
    uint32_t *to = must_alloc(n_slots * sizeof *to);
    ps_saver saver = save(r, from);
    ps_restorer restorer = {.at = saver.bytes, .left = saver.n};
    uint32_t n;
    ps_error err;

    assert_ok(ps_engine_load(other.engine, &restorer, &r->o, to, &n, &err),
              &err);
    assert_int_equal(restorer.left, 0);
    for (uint32_t i = 0; i < n; i++)
        other.came[to[i]] = r->came[from[i]];
    other.now = r->now;
    free(from);
    free(to);
    free(saver.bytes);
    return other;
}

/*
 * An engine resumed twenty times and one that runs through get the same
 * stream and make the same decisions, also over two more windows.
 */
static void save_often(const ps_engine_options *o, stream *next,
                       uint64_t records)
{
    runner whole = open_runner(o);
    runner r = open_runner(o);
    uint64_t random = 1 + o->window;
    uint64_t step = records / 20;

    for (uint64_t i = 1; i <= records + 2 * o->window; i++) {
        uint32_t length = next(whole.now, o->capacity, &random);

        put(&whole, length);
        put(&r, length);
        if (i <= records && i % step == step / 2) {
            runner other = resume(&r);

            assert_true(whole.digest == r.digest);
            close_runner(&r);
            r = other;
            whole.digest = 0;
        }
    }
    take_packs(&whole, true);
    take_packs(&r, true);
    assert_true(whole.digest == r.digest);
    close_runner(&whole);
    close_runner(&r);
}

static void test_resumed(void **state)
{
    for (size_t i = 0; i < COUNT(sets); i++)
        for (size_t k = 0; k < COUNT(streams); k++)
            save_often(&sets[i], streams[k], 5000 + 3 * sets[i].window);
}

/*
 * Short sequences have the greatest weight after a long absence, and the value
 * of the remaining capacity is far above that of the few which are waiting.
 */
static void test_few_short(void **state)
{
    static const ps_engine_options o = {.capacity = 256, .depth = 256,
                                        .window = 1024,
                                        .max_delay = 100000};
    runner r = open_runner(&o);
    uint64_t random = 3;

    while (r.now < 20000)
        put(&r, 129 + random_below(&random, 127));
    take_packs(&r, true);
    for (int i = 0; i < 100; i++)
        ps_engine_tick(r.engine);
    for (int i = 0; i < 5; i++)
        put(&r, 1);
    for (uint32_t n = 1, left = 5; left > 0; left -= n) {
        const uint32_t *slots;
        runner other = resume(&r);
        ps_error err;

        close_runner(&other);
        assert_ok(ps_engine_evict(r.engine, &slots, &n, &err), &err);
        assert_in_range(n, 1, left);
    }
    close_runner(&r);
}

/* ---- Hostile states ---- */

/* Loads a state; if it is accepted, continues with it. */
static bool survive(const runner *r, const ps_saver *saver, size_t left)
{
    runner other = open_runner(&r->o);
    ps_restorer restorer = {.at = saver->bytes, .left = left};
    uint32_t *slots = must_alloc(r->engine->n_slots * sizeof *slots);
    uint64_t random = 7;
    uint32_t n;
    ps_error err;
    ps_result result = ps_engine_load(other.engine, &restorer, &r->o, slots,
                                      &n, &err);

    if (result != PS_OK)
        assert_result(result, PS_ERR_CORRUPT, &err);
    for (uint32_t i = 0; result == PS_OK && i < 4 * r->o.window; i++)
        put(&other, i % 2 == 0 ? 1 : even(i, r->o.capacity, &random));
    if (result == PS_OK)
        take_packs(&other, true);
    free(slots);
    close_runner(&other);
    return result == PS_OK;
}

static void overwrite(ps_saver *saver, size_t at, uint64_t number,
                      size_t width)
{
    for (size_t i = 0; i < width; i++)
        saver->bytes[at + i] = (unsigned char)(number >> 8 * i);
}

/* Sets every number to its extremes, as 4 and as 8 bytes, aligned or not. */
static void damage(const runner *r, size_t step)
{
    static const uint64_t wide[] = {
        0, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 53,
        UINT64_C(0x3ff0000000000000),  /* 1.0 */
        UINT64_C(0x433fffffffffffff),  /* almost 2^53 */
        UINT64_C(0x7ff8000000000000)}; /* not a number */
    static const uint32_t narrow[] = {0, 1, UINT32_MAX, INT32_MAX,
                                      UINT32_C(1) << 31, 1 << 20};
    ps_saver saver = save(r, NULL);
    unsigned char *good = must_alloc(saver.n);
    unsigned refused = 0;

    memcpy(good, saver.bytes, saver.n);
    for (size_t at = 0; at + 8 <= saver.n; at += step) {
        for (size_t i = 0; i < COUNT(wide) + COUNT(narrow); i++) {
            if (i < COUNT(wide))
                overwrite(&saver, at, wide[i], 8);
            else
                overwrite(&saver, at, narrow[i - COUNT(wide)], 4);
            refused += !survive(r, &saver, saver.n);
            memcpy(saver.bytes, good, saver.n);
        }
        assert_false(survive(r, &saver, at));
    }
    assert_true(survive(r, &saver, saver.n));
    assert_true(refused > saver.n / step);
    free(good);
    free(saver.bytes);
}

static void test_damaged(void **state)
{
    static const ps_engine_options small[] = {
        {.capacity = 10, .depth = 3, .window = 8, .max_delay = 100},
        {.capacity = 30, .depth = 16, .window = 8, .max_delay = 100},
        {.capacity = 2, .depth = 2, .window = 8, .max_delay = 100,
         .order = PS_PACKS_BY_INPUT},
        /* Best fit runs beside it. */
        {.capacity = 40, .depth = 3, .window = 8, .max_delay = 100},
    };

    for (size_t i = 0; i < COUNT(small); i++) {
        runner r = open_runner(&small[i]);
        uint64_t random = 5;

        while (r.now < 200)
            put(&r, even(r.now, small[i].capacity, &random));
        damage(&r, i == 0 ? 4 : 20);
        close_runner(&r);
    }
}

/*
 * Every length has the highest possible price, and packs hold many: their
 * scores are far above any that can occur.
 */
static void test_great_prices(void **state)
{
    static const ps_engine_options o = {.capacity = 8192, .depth = 4096,
                                        .window = 4096,
                                        .max_delay = 100000};
    runner r = open_runner(&o);
    ps_saver saver;
    uint64_t random = 5;
    size_t at;

    while (r.now < 3 * o.window)
        put(&r, mostly_short(r.now, o.capacity, &random));
    saver = save(&r, NULL);
    at = saver.n - 4;               /* no best fit runs */
    at -= 4 * (2 + (TUNE_LEVELS + 1) * (256 + 1)); /* of values */
    at -= PS_BALANCE_KNOTS * 24;            /* and of the balance */
    for (size_t i = 0; i < PS_BALANCE_KNOTS; i++)
        overwrite(&saver, at + i * 24 + 20, PS_SCORE_ONE / 8, 4);
    at -= 12 + 20 + 4; /* and of scores; no cut was learned: prices */
    for (uint32_t u = 1; u <= 256; u++) {
        double max = 1.0 / (256 / u);
        uint64_t bits;

        memcpy(&bits, &max, sizeof bits);
        overwrite(&saver, at - 8 * (256 + 1 - u), bits, 8);
    }
    assert_true(survive(&r, &saver, saver.n));
    free(saver.bytes);
    close_runner(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_few_short),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_great_prices),
    };

    return run_as_tap("policy-auto-state", tests, NULL);
}
