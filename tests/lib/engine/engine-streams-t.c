/*
 * engine-streams-t.c - the engine's guarantees, on streams of every shape with
 * random options.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bfd-blocks.h"
#include "engine-drive.h"
#include "lengths.h"

/* The parameters of a run, for the message if it fails. */
typedef struct run {
    ps_engine_options o;
    lengths_shape shape;
    uint32_t source;
    uint64_t seed;
    size_t n;
    size_t flush_every;
    uint32_t *lengths;
} run;

static const char *describe(const run *r, const char *fault)
{
    static char text[400];

    snprintf(text, sizeof text,
             "%s: %s, source %u, %zu records of seed %llu, L %u, D %u, W %u,"
             " order %d, max_delay %llu, even_cost %d, flush every %zu",
             ps_policy_name(r->o.policy), lengths_shape_name(r->shape),
             (unsigned)r->source, r->n, (unsigned long long)r->seed,
             (unsigned)r->o.capacity, (unsigned)r->o.depth,
             (unsigned)r->o.window, (int)r->o.order,
             (unsigned long long)r->o.max_delay, r->o.even_cost,
             r->flush_every);
    print_error("%s\n%s\n", text, fault);
    return text;
}

/* Sources: 0 lognormal, 1 heavy; else constant: over a half, all or 1. */
static void draw_stream(run *r)
{
    uint32_t capacity = r->o.capacity;
    const uint32_t constant[] = {capacity / 2 + 1, capacity, 1};
    lengths *l = r->source == 0
                     ? lengths_lognormal(log(capacity / 4.0), 1, capacity)
                 : r->source == 1 ? lengths_heavy(capacity)
                                  : lengths_constant(constant[r->source - 2]);

    r->lengths = must_alloc(r->n * sizeof *r->lengths);
    assert_non_null(l);
    assert_true(lengths_draw(l, r->shape, r->seed, r->lengths, r->n));
    lengths_free(l);
}

static uint64_t tokens_of(const run *r)
{
    uint64_t tokens = 0;

    for (size_t i = 0; i < r->n; i++)
        tokens += r->lengths[i];
    return tokens;
}

static drive_figures drive_run(const run *r)
{
    drive_figures f;

    if (!drive(&r->o, r->lengths, r->n, r->flush_every, &f))
        fail_msg("%s: %s", describe(r, f.fault), f.fault);
    return f;
}

/* ------------------------------------------------------------ properties */

/* One of `n` numbers. */
static uint32_t pick(uint64_t *random, const uint32_t *from, size_t n)
{
    return from[random_below(random, (uint32_t)n)];
}

static run draw_run(ps_policy policy, uint64_t *random)
{
    static const uint32_t capacities[] = {1, 2, 7, 64, 512, 3000};
    static const uint32_t depths[] = {1, 2, 3, 4, 16, 3000};
    static const uint32_t windows[] = {1, 2, 3, 17, 64, 256};
    static const uint32_t delays[] = {1, 2, 5, 40, 500, UINT32_MAX};
    static const uint32_t flushes[] = {0, 0, 0, 1, 13, 300};
    run r = {.n = 600};
    ps_engine_options *o = &r.o;

    o->policy = policy;
    o->order = (ps_pack_order)random_below(random, 3);
    o->capacity = pick(random, capacities, COUNT(capacities));
    o->depth = pick(random, depths, COUNT(depths));
    o->depth = o->depth < o->capacity ? o->depth : o->capacity;
    o->window = pick(random, windows, COUNT(windows));
    o->max_delay = pick(random, delays, COUNT(delays));
    if (random_below(random, 2) == 0)
        o->max_delay = (uint64_t)o->window * 2;
    o->even_cost = random_below(random, 4) == 0;
    o->seed = random_next(random);
    r.shape = (lengths_shape)random_below(random, LENGTHS_SHAPES);
    r.source = random_below(random, 5);
    r.seed = random_next(random);
    r.flush_every = pick(random, flushes, COUNT(flushes));
    draw_stream(&r);
    return r;
}

/*
 * Every sequence leaves once, within capacity, depth, delay and order, and a
 * second engine makes the same decisions.
 */
static void test_policies(void **state)
{
    static const struct {
        ps_policy policy;
        unsigned runs;
    } cases[] = {
        {PS_POLICY_AUTO, 400},    {PS_POLICY_SPFHP, 250},
        {PS_POLICY_NNLSHP, 120},  {PS_POLICY_BESTFIT, 250},
        {PS_POLICY_NEXTFIT, 250}, {PS_POLICY_NONE, 100},
        {PS_POLICY_CONCAT, 250},
    };

    for (size_t p = 0; p < COUNT(cases); p++) {
        uint64_t random = 1 + (uint64_t)cases[p].policy;
        const unsigned runs = cases[p].runs / (is_short() ? 8 : 1);

        for (unsigned i = 0; i < runs; i++) {
            run r = draw_run(cases[p].policy, &random);
            drive_figures first = drive_run(&r);
            drive_figures second = drive_run(&r);

            if (first.digest != second.digest)
                fail_msg("%s: decides otherwise the second time",
                         describe(&r, "two runs differ"));
            assert_true(first.packs * r.o.capacity >= tokens_of(&r));
            free(r.lengths);
        }
    }
}

/* ----------------------------------------------------------------- order */

/* The order of packs depends on the seed; their contents do not. */
static void test_seeds_shuffle(void **state)
{
    run r = {.n = 20000,
             .seed = 5,
             .o = {.capacity = 512,
                   .depth = 3,
                   .window = 256,
                   .order = PS_PACKS_SHUFFLED,
                   .seed = 1,
                   .max_delay = 100000}};
    drive_figures a;
    drive_figures b;

    draw_stream(&r);
    a = drive_run(&r);
    r.o.seed = 2;
    b = drive_run(&r);
    assert_true(a.digest != b.digest);
    assert_int_equal(a.packs, b.packs);
    free(r.lengths);
}

/* A record triggers about one pack at most; packs do not pile up. */
static void test_no_bursts(void **state)
{
    static const ps_policy policies[] = {
        PS_POLICY_AUTO, PS_POLICY_SPFHP, PS_POLICY_NNLSHP,
        PS_POLICY_BESTFIT};

    for (size_t p = 0; p < COUNT(policies); p++) {
        run r = {.n = 20000, .seed = 3};
        drive_figures f;

        r.o = (ps_engine_options){.capacity = 512,
                                  .depth = 8,
                                  .window = 256,
                                  .policy = policies[p],
                                  .max_delay = 512};
        draw_stream(&r);
        f = drive_run(&r);
        if (f.burst > 2)
            fail_msg("%s: %llu packs after one record",
                     describe(&r, "a burst"), (unsigned long long)f.burst);
        free(r.lengths);
    }
}

/* ------------------------------------------------------------ efficiency */

/*
 * With equal lengths there is nothing to decide: every pack is as full as
 * possible.  SPFHP is the exception: as published, it never combines equal
 * lengths.
 */
static void test_optimum_of_equal_lengths(void **state)
{
    static const ps_policy policies[] = {
        PS_POLICY_AUTO, PS_POLICY_NNLSHP, PS_POLICY_BESTFIT,
        PS_POLICY_NEXTFIT, PS_POLICY_CONCAT};

    for (size_t p = 0; p < COUNT(policies); p++)
        for (uint32_t source = 2; source < 5; source++)
            for (uint32_t depth = 1; depth <= 256; depth *= 4) {
                run r = {.n = 5000, .source = source};
                uint64_t each;

                r.o = (ps_engine_options){.capacity = 512,
                                          .depth = depth,
                                          .window = 256,
                                          .policy = policies[p],
                                          .max_delay = 512};
                draw_stream(&r);
                each = source == 4 ? depth : 1;
                if (r.o.policy == PS_POLICY_CONCAT && source == 2)
                    assert_true(drive_run(&r).packs <= 5000);
                else if (drive_run(&r).packs != (5000 + each - 1) / each)
                    fail_msg("%s", describe(&r, "not the optimum"));
                free(r.lengths);
            }
}

/* Percentage of token positions in use. */
static double efficiency(const run *r, uint64_t packs)
{
    return 100 * (double)tokens_of(r) /
           ((double)packs * (double)r->o.capacity);
}

/* Packs can keep the input order and still be fuller than with next-fit. */
static void test_input_order_is_not_nextfit(void **state)
{
    static const uint32_t depths[] = {3, 4, 16};

    for (size_t i = 0; i < COUNT(depths); i++) {
        run r = {.n = 40000, .seed = 11};
        double kept;

        r.o = (ps_engine_options){.capacity = 512,
                                  .depth = depths[i],
                                  .window = 256,
                                  .order = PS_PACKS_BY_INPUT,
                                  .max_delay = 512};
        draw_stream(&r);
        kept = efficiency(&r, drive_run(&r).packs);
        r.o.policy = PS_POLICY_NEXTFIT;
        if (kept < efficiency(&r, drive_run(&r).packs) + 5)
            fail_msg("%s", describe(&r, "next-fit is about as good"));
        free(r.lengths);
    }
}

/* For no order of the stream is the window worse than blocks of its size. */
static void test_not_below_blocks(void **state)
{
    static const uint32_t sizes[][3] = {/* capacity, depth, window */
        {512, 3, 256}, {512, 4, 1024}, {512, 16, 256}, {2048, 64, 256}};

    for (size_t i = 0; i < 2 * LENGTHS_SHAPES * COUNT(sizes);
         i += is_short() ? 7 : 1) {
        const uint32_t *size = sizes[i / (2 * LENGTHS_SHAPES)];
        run r = {.n = 40000,
                 .seed = 7,
                 .shape = (lengths_shape)(i / 2 % LENGTHS_SHAPES),
                 .source = i % 2,
                 .o = {.capacity = size[0],
                       .depth = size[1],
                       .window = size[2],
                       .max_delay = 2 * size[2]}};
        char fault[120];
        uint64_t packs;
        double reached;
        double blocks;
        ps_error err;

        draw_stream(&r);
        assert_ok(bfd_blocks(r.lengths, r.n, size[2], size[0], size[1],
                             &packs, &err),
                  &err);
        blocks = efficiency(&r, packs);
        reached = efficiency(&r, drive_run(&r).packs);
        snprintf(fault, sizeof fault, "%.3f, but blocks reach %.3f", reached,
                 blocks);
        if (reached < blocks - 0.1)
            fail_msg("%s: %s", describe(&r, fault), fault);
        free(r.lengths);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_seeds_shuffle),
        cmocka_unit_test(test_no_bursts),
        cmocka_unit_test(test_optimum_of_equal_lengths),
        cmocka_unit_test(test_input_order_is_not_nextfit),
        cmocka_unit_test(test_not_below_blocks),
    };

    return run_as_tap("engine-streams", tests, NULL);
}
