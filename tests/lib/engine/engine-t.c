/*
 * engine-t.c - when packs leave the engine, that every sequence does once
 * and in time, and that nothing is lost or left behind without memory.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "lib-alloc.h"

/* By slot: which sequence is there, and with what record it came. */
typedef struct held {
    uint32_t number; /* 0: the slot is free */
    uint32_t length;
    uint64_t tick;
} held;

typedef struct run {
    ps_engine *engine;
    ps_engine_options is;
    held *slots;
    uint32_t n_slots;
    uint64_t now;
    uint64_t delay; /* the most of those that left */
    uint32_t admitted;
    uint32_t left;
    uint32_t last; /* the oldest of the last pack */
} run;

static const ps_policy policies[] = {
    PS_POLICY_AUTO,    PS_POLICY_SPFHP,   PS_POLICY_NNLSHP,
    PS_POLICY_BESTFIT, PS_POLICY_NEXTFIT, PS_POLICY_NONE,
    PS_POLICY_CONCAT,
};

static const ps_pack_order orders[] = {
    PS_PACKS_BY_WINDOW,
    PS_PACKS_BY_INPUT,
    PS_PACKS_SHUFFLED,
};

static void open_run(run *r, const ps_engine_options *o)
{
    ps_error err;

    *r = (run){.is = *o};
    assert_ok(ps_engine_open(&r->engine, o, &err), &err);
    r->n_slots = ps_engine_slots(r->engine);
    assert_true(r->n_slots >= o->window);
    r->slots = calloc(r->n_slots, sizeof *r->slots);
    assert_non_null(r->slots);
}

static void close_run(run *r)
{
    ps_engine_free(r->engine);
    free(r->slots);
}

static uint64_t oldest_tick(const run *r)
{
    uint64_t oldest = UINT64_MAX;

    for (uint32_t s = 0; s < r->n_slots; s++)
        if (r->slots[s].number != 0 && r->slots[s].tick < oldest)
            oldest = r->slots[s].tick;
    return oldest;
}

/* The same as the engine sees it. */
static uint64_t engine_oldest(const run *r)
{
    uint32_t slot = ps_engine_oldest(r->engine);

    if (slot == PS_NO_SLOT)
        return UINT64_MAX;
    assert_true(slot < r->n_slots);
    assert_int_not_equal(r->slots[slot].number, 0);
    return r->slots[slot].tick;
}

/* A pack that leaves: within capacity and depth, and of what is held. */
static void check_pack(run *r, const uint32_t *slots, uint32_t n)
{
    uint64_t sum = 0;
    uint32_t oldest = UINT32_MAX;

    assert_in_range(n, 1, r->is.depth);
    for (uint32_t i = 0; i < n; i++) {
        held *h = &r->slots[slots[i]];

        assert_true(slots[i] < r->n_slots);
        assert_int_not_equal(h->number, 0);
        assert_int_equal(ps_engine_length(r->engine, slots[i]), h->length);
        if (r->now - h->tick > r->delay)
            r->delay = r->now - h->tick;
        if (h->number < oldest)
            oldest = h->number;
        sum += h->length;
        *h = (held){0};
    }
    assert_true(sum <= r->is.capacity);
    if (r->is.order == PS_PACKS_BY_INPUT)
        assert_true(oldest > r->last);
    r->last = oldest;
    r->left += n;
    assert_true(r->delay <= r->is.max_delay);
    assert_true(ps_engine_delay(r->engine) == r->delay);
}

static void decide_all(run *r, bool flush)
{
    const uint32_t *slots;
    uint32_t n;
    ps_error err;

    for (;;) {
        assert_ok(ps_engine_decide(r->engine, flush, &slots, &n, &err),
                  &err);
        if (n == 0)
            break;
        check_pack(r, slots, n);
        assert_true(engine_oldest(r) == oldest_tick(r));
    }
    if (flush)
        assert_int_equal(r->left, r->admitted);
}

static void admit(run *r, uint32_t length)
{
    uint32_t slot = ps_engine_admit(r->engine, length);

    assert_true(slot < r->n_slots);
    assert_int_equal(r->slots[slot].number, 0);
    r->slots[slot] = (held){++r->admitted, length, r->now};
    assert_int_equal(ps_engine_length(r->engine, slot), length);
    decide_all(r, false);
}

static void tick(run *r)
{
    r->now++;
    ps_engine_tick(r->engine);
    decide_all(r, false);
}

/* A record, for concat in pieces that fit the pack that fills. */
static void take_record(run *r, uint32_t length)
{
    tick(r);
    while (r->is.policy == PS_POLICY_CONCAT) {
        uint64_t room = r->is.capacity - ps_engine_tokens(r->engine);

        assert_in_range(room, 1, r->is.capacity);
        if (length <= room)
            break;
        admit(r, (uint32_t)room);
        length -= (uint32_t)room;
    }
    admit(r, length);
}

/* ---- Each once, and in time ---- */

/* Some records are not admitted, and now and then all is flushed. */
static void stream(const ps_engine_options *o, uint64_t random)
{
    uint32_t few = random_below(&random, 2) == 0 ? 1 : 4;
    run r;

    open_run(&r, o);
    assert_int_equal(ps_engine_oldest(r.engine), PS_NO_SLOT);
    decide_all(&r, true);
    for (int i = 0; i < 150; i++) {
        uint32_t dice = random_below(&random, 100);

        if (dice < 5)
            tick(&r);
        else
            take_record(&r, 1 + random_below(&random, o->capacity) / few);
        if (dice == 99)
            decide_all(&r, true);
    }
    decide_all(&r, true);
    assert_int_equal(ps_engine_tokens(r.engine), 0);
    assert_int_equal(ps_engine_oldest(r.engine), PS_NO_SLOT);
    close_run(&r);
}

static void streams_of(ps_policy policy, ps_pack_order order)
{
    static const uint32_t windows[] = {1, 2, 3, 10, 50};
    static const uint64_t delays[] = {1, 2, 3, 7, 30, 200, UINT64_MAX};

    for (uint32_t capacity = 1; capacity <= 40; capacity += 6)
        for (size_t w = 0; w < COUNT(windows); w++)
            for (size_t d = 0; d < COUNT(delays); d++) {
                uint64_t random = 1 + capacity * 100 + w * 10 + d;
                ps_engine_options o = {
                    .capacity = capacity,
                    .depth = 1 + random_below(&random, capacity),
                    .window = windows[w],
                    .policy = policy,
                    .order = order,
                    .seed = random,
                    .max_delay = delays[d],
                    .even_cost = random_below(&random, 4) == 0,
                };

                stream(&o, random);
            }
}

static void test_each_sequence_leaves_once(void **state)
{
    for (size_t p = 0; p < COUNT(policies); p++)
        for (size_t k = 0; k < COUNT(orders); k++)
            streams_of(policies[p], orders[k]);
}

/* ---- When ---- */

/* Nothing leaves before the window is full, unless it is flushed. */
static void test_waits_for_a_full_window(void **state)
{
    ps_engine_options o = {.capacity = 10,
                           .depth = 10,
                           .window = 3,
                           .max_delay = UINT64_MAX};
    run r;

    for (size_t p = 0; p < 4; p++) { /* those that look at the window */
        o.policy = policies[p];
        open_run(&r, &o);
        take_record(&r, 7);
        take_record(&r, 2);
        assert_int_equal(r.left, 0);
        assert_int_equal(ps_engine_tokens(r.engine), 9);
        take_record(&r, 3);
        assert_int_equal(r.left, 2);
        assert_int_equal(ps_engine_tokens(r.engine), 2);
        assert_true(engine_oldest(&r) == 2);
        decide_all(&r, true);
        assert_int_equal(r.left, 3);
        close_run(&r);
    }
    ps_engine_free(NULL);
}

/* A sequence leaves with the record that is its last chance, not before. */
static void waits_as_long_as_it_may(ps_policy policy, uint64_t max_delay)
{
    ps_engine_options o = {.capacity = 10,
                           .depth = 3,
                           .window = 50,
                           .policy = policy,
                           .max_delay = max_delay};
    run r;

    open_run(&r, &o);
    take_record(&r, 4);
    for (uint64_t i = 1; i < max_delay; i++) {
        tick(&r);
        assert_int_equal(r.left, 0);
    }
    tick(&r);
    assert_int_equal(r.left, 1);
    assert_true(ps_engine_delay(r.engine) == max_delay);
    close_run(&r);
}

static void test_waits_as_long_as_it_may(void **state)
{
    static const uint64_t delays[] = {1, 2, 3, 63, 64, 65, 1000};

    for (size_t p = 0; p < COUNT(policies); p++)
        for (size_t d = 0; d < COUNT(delays); d++)
            if (policies[p] != PS_POLICY_NONE)
                waits_as_long_as_it_may(policies[p], delays[d]);
}

/* What is shuffled waits in the window for half of the time. */
static void test_waits_to_be_shuffled(void **state)
{
    ps_engine_options o = {.capacity = 10,
                           .depth = 3,
                           .window = 50,
                           .order = PS_PACKS_SHUFFLED,
                           .seed = 1,
                           .max_delay = 9};
    run r;

    open_run(&r, &o);
    take_record(&r, 4);
    for (uint64_t i = 1; i < 9; i++) {
        tick(&r);
        assert_int_equal(ps_engine_tokens(r.engine), i < 5 ? 4 : 0);
        assert_int_equal(r.left, 0);
        assert_true(engine_oldest(&r) == 1);
    }
    tick(&r);
    assert_int_equal(r.left, 1);
    close_run(&r);
}

/* What no waiting can better does not wait. */
static void test_leaves_at_once(void **state)
{
    static const ps_policy at_once[] = {PS_POLICY_AUTO, PS_POLICY_NEXTFIT,
                                        PS_POLICY_CONCAT, PS_POLICY_NONE};
    ps_engine_options o = {.capacity = 10,
                           .depth = 3,
                           .window = 50,
                           .max_delay = 1000};
    run r;

    for (size_t p = 0; p < COUNT(at_once); p++) {
        o.policy = at_once[p];
        open_run(&r, &o);
        take_record(&r, 10);
        assert_int_equal(r.left, 1);
        assert_true(ps_engine_delay(r.engine) == 0);
        close_run(&r);
    }
}

/* Pieces come with one record, and fill every pack but the last. */
static void test_concat_pieces(void **state)
{
    ps_engine_options o = {.capacity = 10,
                           .depth = 3,
                           .window = 3,
                           .policy = PS_POLICY_CONCAT,
                           .max_delay = 100};
    run r;

    open_run(&r, &o);
    take_record(&r, 37);
    assert_int_equal(r.admitted, 4);
    assert_int_equal(r.left, 3);
    assert_int_equal(ps_engine_tokens(r.engine), 7);
    take_record(&r, 3);
    assert_int_equal(r.left, 5);
    assert_true(ps_engine_delay(r.engine) == 1);
    close_run(&r);
}

static void test_names(void **state)
{
    static const char *const names[] = {"auto",    "spfhp",   "nnlshp",
                                        "bestfit", "nextfit", "none",
                                        "concat"};

    for (size_t p = 0; p < COUNT(policies); p++)
        assert_string_equal(ps_policy_name(policies[p]), names[p]);
    assert_null(ps_policy_name((ps_policy)COUNT(policies)));
}

/* ---- Without memory ---- */

/* Runs through a stream until something fails, or to its end. */
static ps_result try_stream(const ps_engine_options *o)
{
    ps_engine *e;
    ps_error err;
    ps_result r = ps_engine_open(&e, o, &err);

    if (r != PS_OK)
        assert_null(e);
    for (uint32_t i = 0; r == PS_OK && i < 3 * o->window; i++) {
        const uint32_t *slots;
        uint32_t n = 1;

        ps_engine_tick(e);
        ps_engine_admit(e, 1 + i * 7 % (o->capacity / 2));
        while (r == PS_OK && n > 0)
            r = ps_engine_decide(e, i + 1 == 3 * o->window, &slots, &n,
                                 &err);
    }
    ps_engine_free(e);
    if (r != PS_OK)
        assert_int_equal(err.code, r);
    return r;
}

/* Wherever it runs out, that is said, and all is given back. */
static void test_memory(void **state)
{
    ps_engine_options o = {
        .capacity = 30, .depth = 3, .window = 8, .max_delay = 1000};
    size_t blocks = alloc_so_far().blocks;

    for (size_t c = 0; c < COUNT(policies) * COUNT(orders); c++) {
        ps_result r = PS_ERR_MEMORY;
        uint64_t nth = 1;

        o.policy = policies[c / COUNT(orders)];
        o.order = orders[c % COUNT(orders)];
        for (; r != PS_OK; nth++) {
            alloc_watch();
            alloc_fail(nth, nth % 2 == 0);
            r = try_stream(&o);
            alloc_fail(0, false);
            assert_int_equal(r == PS_OK, alloc_so_far().failed == 0);
            assert_true(r == PS_OK || r == PS_ERR_MEMORY);
            assert_int_equal(alloc_so_far().blocks, blocks);
        }
        assert_true(nth > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_sequence_leaves_once),
        cmocka_unit_test(test_waits_for_a_full_window),
        cmocka_unit_test(test_waits_as_long_as_it_may),
        cmocka_unit_test(test_waits_to_be_shuffled),
        cmocka_unit_test(test_leaves_at_once),
        cmocka_unit_test(test_concat_pieces),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("engine", tests, NULL);
}
