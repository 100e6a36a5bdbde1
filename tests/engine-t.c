/*
 * engine-t.c - when packs leave the engine, and that every sequence does
 * once, in time.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine.h"

/* By slot: which sequence is there, and how many packs it has seen leave. */
typedef struct held {
    uint32_t number; /* 0: the slot is free */
    uint32_t length;
    uint32_t packs;
} held;

typedef struct run {
    ps_engine *engine;
    uint32_t capacity;
    uint32_t depth;
    uint32_t window;
    held *slots;
    uint32_t admitted;
    uint32_t left;
} run;

static void open_run(run *r, uint32_t capacity, uint32_t depth,
                     uint32_t window)
{
    ps_error err;

    *r = (run){.capacity = capacity, .depth = depth, .window = window};
    r->slots = calloc(window, sizeof *r->slots);
    assert_non_null(r->slots);
    assert_ok(ps_engine_open(&r->engine, &ps_policy_exact, capacity, depth,
                             window, &err),
              &err);
}

static void close_run(run *r)
{
    ps_engine_free(r->engine);
    free(r->slots);
}

static uint32_t oldest_slot(const run *r)
{
    uint32_t oldest = PS_NO_SLOT;

    for (uint32_t s = 0; s < r->window; s++)
        if (r->slots[s].number != 0 &&
            (oldest == PS_NO_SLOT ||
             r->slots[s].number < r->slots[oldest].number))
            oldest = s;
    return oldest;
}

static void admit(run *r, uint32_t length)
{
    uint32_t slot = ps_engine_admit(r->engine, length);

    assert_true(slot < r->window);
    assert_int_equal(r->slots[slot].number, 0);
    r->slots[slot] = (held){++r->admitted, length, 0};
    assert_int_equal(ps_engine_length(r->engine, slot), length);
}

/* A pack that leaves: within capacity and depth, the oldest in front. */
static void check_pack(run *r, const uint32_t *slots, uint32_t n)
{
    uint32_t sum = 0;

    assert_in_range(n, 1, r->depth);
    assert_int_equal(slots[0], oldest_slot(r));
    for (uint32_t i = 0; i < n; i++) {
        held *h = &r->slots[slots[i]];

        assert_int_not_equal(h->number, 0);
        assert_int_equal(ps_engine_length(r->engine, slots[i]), h->length);
        assert_true(h->packs < r->window);
        sum += h->length;
        *h = (held){0};
    }
    assert_true(sum <= r->capacity);
    for (uint32_t s = 0; s < r->window; s++)
        r->slots[s].packs++;
    r->left += n;
    assert_int_equal(ps_engine_oldest(r->engine), oldest_slot(r));
}

static void decide_all(run *r, bool flush)
{
    const uint32_t *slots;
    uint32_t n;

    while ((n = ps_engine_decide(r->engine, flush, &slots)) > 0)
        check_pack(r, slots, n);
}

static void test_every_sequence_leaves_once(void **state)
{
    static const uint32_t windows[] = {1, 2, 3, 10, 50};

    (void)state;
    for (uint32_t capacity = 1; capacity <= 40; capacity += 3)
        for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
            uint64_t random = capacity;
            uint32_t depth = 1 + random_below(&random, capacity);
            run r;

            open_run(&r, capacity, depth, windows[w]);
            for (int i = 0; i < 300; i++) {
                admit(&r, 1 + random_below(&random, capacity));
                decide_all(&r, false);
                assert_true(r.admitted - r.left < r.window);
            }
            decide_all(&r, true);
            assert_int_equal(r.left, r.admitted);
            assert_int_equal(ps_engine_oldest(r.engine), PS_NO_SLOT);
            close_run(&r);
        }
}

/* Nothing leaves before the window is full, unless it is flushed. */
static void test_waits_for_a_full_window(void **state)
{
    const uint32_t *slots;
    run r;

    (void)state;
    open_run(&r, 10, 10, 3);
    assert_int_equal(ps_engine_decide(r.engine, true, &slots), 0);
    admit(&r, 5);
    admit(&r, 4);
    assert_int_equal(ps_engine_decide(r.engine, false, &slots), 0);
    admit(&r, 5);
    assert_int_equal(ps_engine_decide(r.engine, false, &slots), 2);
    check_pack(&r, slots, 2);
    assert_int_equal(ps_engine_decide(r.engine, false, &slots), 0);
    assert_int_equal(ps_engine_decide(r.engine, true, &slots), 1);
    check_pack(&r, slots, 1);
    close_run(&r);
    ps_engine_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sequence_leaves_once),
        cmocka_unit_test(test_waits_for_a_full_window),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
