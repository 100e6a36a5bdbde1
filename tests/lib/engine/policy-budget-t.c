/*
 * policy-budget-t.c - packs with budgets: no limit is exceeded, every sequence
 * is packed in time, a saved engine continues alike, and packs are as few as
 * two-dimensional best fit decreasing makes of blocks.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/serial.h"
#include "engine/engine.h"

#define SEQUENCES 8192
#define FEW 2500 /* of them, to save */
#define WINDOW 1024
#define CAPACITY 512
#define MAX_PACK 512

/* Sequences: a length, and what each uses of two budgets. */
typedef struct stream {
    const char *name;
    uint64_t budgets[2];
    uint32_t n_budgets;
    uint32_t lengths[SEQUENCES];
    uint64_t uses[SEQUENCES][2];
} stream;

/* ---- Streams ---- */

static uint32_t between(uint64_t *random, uint32_t low, uint32_t high)
{
    return low + random_below(random, high - low + 1);
}

/* Mostly short: the product of three draws. */
static uint32_t skewed(uint64_t *random)
{
    const double x = (1 + random_below(random, 1000)) / 1000.0 *
                     (1 + random_below(random, 1000)) / 1000.0;

    return 1 + (uint32_t)(x * (CAPACITY - 1));
}

static void correlated(uint64_t *random, uint32_t *length, uint64_t *uses)
{
    *length = skewed(random);
    uses[0] = (uint64_t)*length * between(random, 60, 140) / 100;
}

static void anti_correlated(uint64_t *random, uint32_t *length, uint64_t *uses)
{
    *length = skewed(random);
    uses[0] = (CAPACITY - *length) / 12 + random_below(random, 8);
}

/* A third of the documents have images. */
static void images(uint64_t *random, uint32_t *length, uint64_t *uses)
{
    *length = skewed(random);
    uses[0] = random_below(random, 3) == 0 ? between(random, 1, 12) : 0;
}

/* The answer has a twentieth to a half of the question's length. */
static void encoder_decoder(uint64_t *random, uint32_t *length, uint64_t *uses)
{
    *length = 10 + skewed(random) / 2;
    uses[0] = 1 + (uint64_t)*length * between(random, 5, 50) / 100;
}

static void attention(uint64_t *random, uint32_t *length, uint64_t *uses)
{
    *length = 1 + skewed(random) / 2;
    uses[0] = (uint64_t)*length * *length;
}

/* Both budgets and the capacity bind, two or three to a pack. */
static void large(uint64_t *random, uint32_t *length, uint64_t *uses)
{
    *length = between(random, 60, 300);
    uses[0] = between(random, 1, 9);
    uses[1] = between(random, 0, 40);
}

static const struct {
    const char *name;
    uint64_t budgets[2];
    void (*draw)(uint64_t *random, uint32_t *length, uint64_t *uses);
} kinds[] = {
    {"correlated", {CAPACITY}, correlated},
    {"anti-correlated", {200}, anti_correlated},
    {"images", {16}, images},
    {"encoder-decoder", {128}, encoder_decoder},
    {"attention", {70000}, attention},
    {"large", {16, 70}, large},
};

static stream *draw(size_t kind)
{
    stream *s = must_alloc(sizeof *s);
    uint64_t random = 11 + kind;

    memset(s, 0, sizeof *s);
    s->name = kinds[kind].name;
    memcpy(s->budgets, kinds[kind].budgets, sizeof s->budgets);
    s->n_budgets = 1 + (s->budgets[1] != 0);
    for (size_t i = 0; i < SEQUENCES; i++) {
        uint64_t uses[2] = {0};

        kinds[kind].draw(&random, &s->lengths[i], uses);
        for (uint32_t b = 0; b < s->n_budgets; b++)
            s->uses[i][b] = uses[b] < s->budgets[b] ? uses[b] : s->budgets[b];
    }
    return s;
}

/* ---- Two-dimensional best fit decreasing ---- */

typedef struct bin {
    double left[3]; /* as fractions */
} bin;

/* Fractions of a sequence, and the largest of them. */
static double fractions(const stream *s, size_t i, double to[3])
{
    double most = to[0] = (double)s->lengths[i] / CAPACITY;

    for (uint32_t b = 0; b < s->n_budgets; b++) {
        to[1 + b] = (double)s->uses[i][b] / (double)s->budgets[b];
        most = to[1 + b] > most ? to[1 + b] : most;
    }
    return most;
}

typedef struct sized {
    double size;
    size_t number;
} sized;

static int compare_sized(const void *a, const void *b)
{
    const sized *x = a;
    const sized *y = b;

    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Packs of a block: each sequence goes to the bin with the least left over. */
static size_t pack_block(const stream *s, size_t first, size_t n, bin *bins)
{
    sized order[WINDOW];
    double f[3];
    size_t n_bins = 0;

    for (size_t i = 0; i < n; i++)
        order[i] = (sized){fractions(s, first + i, f), first + i};
    qsort(order, n, sizeof *order, compare_sized);
    for (size_t i = 0; i < n; i++) {
        size_t best = n_bins;
        double least = 4;

        (void)fractions(s, order[i].number, f);
        for (size_t k = 0; k < n_bins; k++) {
            double sum = 0;
            bool fits = true;

            for (uint32_t d = 0; d <= s->n_budgets; d++) {
                sum += bins[k].left[d];
                fits &= f[d] <= bins[k].left[d] + 1e-12;
            }
            if (fits && sum < least) {
                least = sum;
                best = k;
            }
        }
        if (best == n_bins)
            bins[n_bins++] = (bin){{1, 1, 1}};
        for (uint32_t d = 0; d <= s->n_budgets; d++)
            bins[best].left[d] -= f[d];
    }
    return n_bins;
}

static size_t best_fit_decreasing(const stream *s)
{
    bin *bins = must_alloc(WINDOW * sizeof *bins);
    size_t packs = 0;

    for (size_t i = 0; i < SEQUENCES; i += WINDOW)
        packs += pack_block(s, i, SEQUENCES - i < WINDOW ? SEQUENCES - i
                                                         : WINDOW, bins);
    free(bins);
    return packs;
}

/* ---- The engine ---- */

static ps_engine_options options_for(const stream *s, ps_pack_order order)
{
    return (ps_engine_options){.capacity = CAPACITY,
                               .depth = MAX_PACK,
                               .window = WINDOW,
                               .policy = PS_POLICY_AUTO,
                               .order = order,
                               .seed = 5,
                               .max_delay = 2 * WINDOW,
                               .n_budgets = s->n_budgets,
                               .budgets = {s->budgets[0], s->budgets[1]}};
}

/* An engine, and which sequence is in each slot. */
typedef struct runner {
    const stream *stream;
    ps_engine *engine;
    size_t *numbers;
    bool *packed; /* by sequence */
    size_t packs;
    uint64_t digest; /* of all packs */
} runner;

static runner open_runner(const stream *s, const ps_engine_options *o)
{
    runner r = {.stream = s};
    ps_error err;

    assert_ok(ps_engine_open(&r.engine, o, &err), &err);
    r.numbers = must_alloc(r.engine->n_slots * sizeof *r.numbers);
    r.packed = must_alloc(SEQUENCES * sizeof *r.packed);
    memset(r.packed, 0, SEQUENCES * sizeof *r.packed);
    return r;
}

static void close_runner(runner *r)
{
    ps_engine_free(r->engine);
    free(r->numbers);
    free(r->packed);
}

/* Checks the packs that are due, and counts them. */
static void take_packs(runner *r, ps_emit_mode mode)
{
    const stream *s = r->stream;
    const uint32_t *slots;
    uint32_t n = 1;
    ps_error err;

    while (n > 0) {
        uint64_t sums[3] = {0};

        assert_ok(ps_engine_decide(r->engine, mode, &slots, &n, &err), &err);
        for (uint32_t i = 0; i < n; i++) {
            const size_t number = r->numbers[slots[i]];

            assert_false(r->packed[number]);
            r->packed[number] = true;
            r->digest = r->digest * 31 + number;
            sums[0] += s->lengths[number];
            for (uint32_t b = 0; b < s->n_budgets; b++)
                sums[1 + b] += s->uses[number][b];
        }
        r->packs += n > 0;
        r->digest = r->digest * 31 + n;
        assert_true(sums[0] <= CAPACITY);
        for (uint32_t b = 0; b < s->n_budgets; b++)
            assert_true(sums[1 + b] <= s->budgets[b]);
    }
}

static void put(runner *r, size_t number)
{
    uint32_t slot;

    ps_engine_tick(r->engine);
    take_packs(r, PS_EMIT_DUE);
    slot = ps_engine_admit(r->engine, r->stream->lengths[number],
                           r->stream->uses[number]);
    r->numbers[slot] = number;
    take_packs(r, PS_EMIT_DUE);
}

static void finish(runner *r, size_t n)
{
    take_packs(r, PS_EMIT_FINISH);
    for (size_t i = 0; i < n; i++)
        assert_true(r->packed[i]);
    assert_true(r->engine->delay <= 2 * WINDOW);
}

/* ---- Tests ---- */

static void test_packs(void **state)
{
    for (size_t k = 0; k < COUNT(kinds); k++) {
        stream *s = draw(k);
        const ps_engine_options o = options_for(s, PS_PACKS_BY_WINDOW);
        const size_t others = best_fit_decreasing(s);
        runner r = open_runner(s, &o);

        for (size_t i = 0; i < SEQUENCES; i++)
            put(&r, i);
        finish(&r, SEQUENCES);
        print_message("# %s: %zu packs, best fit decreasing %zu\n", s->name,
                      r.packs, others);
        assert_true(r.packs <= others);
        close_runner(&r);
        free(s);
    }
}

/* Saves an engine to a new one; the sequences stay in the same runner. */
static void reopen(runner *r, const ps_engine_options *o)
{
    uint32_t *slots = must_alloc(r->engine->n_slots * sizeof *slots);
    size_t *numbers = must_alloc(r->engine->n_slots * sizeof *numbers);
    ps_saver saver = {0};
    ps_restorer restorer;
    ps_engine *engine;
    uint32_t n = ps_engine_save(r->engine, &saver, slots);
    ps_error err;

    assert_false(saver.failed);
    for (uint32_t i = 0; i < n; i++)
        numbers[i] = r->numbers[slots[i]];
    /* Truncated, it is refused. */
    for (size_t cut = 0; cut < saver.n; cut += 1 + saver.n / 9) {
        uint32_t m = 0;

        restorer = (ps_restorer){.at = saver.bytes, .left = cut};
        assert_ok(ps_engine_open(&engine, o, &err), &err);
        assert_result(ps_engine_load(engine, &restorer, o, slots, &m, &err),
                      PS_ERR_CORRUPT, &err);
        ps_engine_free(engine);
    }
    restorer = (ps_restorer){.at = saver.bytes, .left = saver.n};
    assert_ok(ps_engine_open(&engine, o, &err), &err);
    assert_ok(ps_engine_load(engine, &restorer, o, slots, &n, &err), &err);
    assert_int_equal(restorer.left, 0);
    for (uint32_t i = 0; i < n; i++)
        r->numbers[slots[i]] = numbers[i];
    ps_engine_free(r->engine);
    r->engine = engine;
    free(saver.bytes);
    free(slots);
    free(numbers);
}

static void test_saves(void **state)
{
    static const ps_pack_order orders[] = {
        PS_PACKS_BY_WINDOW, PS_PACKS_BY_INPUT, PS_PACKS_SHUFFLED};

    for (size_t k = 0; k < COUNT(kinds); k++) {
        stream *s = draw(k);
        const ps_engine_options o = options_for(s, orders[k % 3]);
        runner whole = open_runner(s, &o);
        runner parts = open_runner(s, &o);

        for (size_t i = 0; i < FEW; i++) {
            put(&whole, i);
            put(&parts, i);
            if (i % 700 == 699)
                reopen(&parts, &o);
        }
        finish(&whole, FEW);
        finish(&parts, FEW);
        assert_true(whole.digest == parts.digest);
        close_runner(&whole);
        close_runner(&parts);
        free(s);
    }
}

/* A state whose sequences or counts are too large is refused. */
static void test_refuses(void **state)
{
    stream *s = draw(2);
    const ps_engine_options o = options_for(s, PS_PACKS_BY_WINDOW);
    ps_engine_options less = o;
    runner r = open_runner(s, &o);
    uint32_t *slots = must_alloc(r.engine->n_slots * sizeof *slots);
    ps_saver saver = {0};
    ps_restorer restorer;
    ps_engine *engine;
    uint32_t n;
    ps_error err;

    for (size_t i = 0; i < 500; i++)
        put(&r, i);
    (void)ps_engine_save(r.engine, &saver, slots);
    less.budgets[0] = 5;
    restorer = (ps_restorer){.at = saver.bytes, .left = saver.n};
    assert_ok(ps_engine_open(&engine, &less, &err), &err);
    assert_result(ps_engine_load(engine, &restorer, &less, slots, &n, &err),
                  PS_ERR_CORRUPT, &err);
    ps_engine_free(engine);
    /* 64 kinds of 4 bytes come last.  All can be 0, after they were halved. */
    memset(saver.bytes + saver.n - 256, 0, 256);
    restorer = (ps_restorer){.at = saver.bytes, .left = saver.n};
    assert_ok(ps_engine_open(&engine, &o, &err), &err);
    assert_ok(ps_engine_load(engine, &restorer, &o, slots, &n, &err), &err);
    ps_engine_free(engine);
    memset(saver.bytes + saver.n - 256, 0xff, 256);
    restorer = (ps_restorer){.at = saver.bytes, .left = saver.n};
    assert_ok(ps_engine_open(&engine, &o, &err), &err);
    assert_result(ps_engine_load(engine, &restorer, &o, slots, &n, &err),
                  PS_ERR_CORRUPT, &err);
    ps_engine_free(engine);
    free(saver.bytes);
    free(slots);
    close_runner(&r);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packs),
        cmocka_unit_test(test_saves),
        cmocka_unit_test(test_refuses),
    };

    return run_as_tap("policy-budget", tests, NULL);
}
