/*
 * engine-t.c - when packs leave the engine; that each sequence leaves once and
 * in time; and that running out of memory loses and leaks nothing.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include "engine-drive.h"
#include "lib-alloc.h"

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

/* Opens an engine with all checks on, for fewer than 2000 records. */
static void open_run(driver *d, const ps_engine_options *o)
{
    if (!drive_open(d, o, 2000))
        fail_msg("%s", d->figures.fault);
}

static void take_record(driver *d, uint32_t length)
{
    if (!drive_record(d, length))
        fail_msg("%s", d->figures.fault);
}

static void tick(driver *d)
{
    if (!drive_tick(d))
        fail_msg("%s", d->figures.fault);
}

static void flush(driver *d)
{
    if (!drive_packs(d, PS_EMIT_DRAIN))
        fail_msg("%s", d->figures.fault);
    assert_int_equal(d->left, d->admitted);
    assert_int_equal(ps_engine_oldest(d->engine), PS_NO_SLOT);
}

/* ---- When ---- */

/* Without a flush, no pack leaves before the window is full. */
static void test_waits_for_a_full_window(void **state)
{
    ps_engine_options o = {.capacity = 10,
                           .depth = 10,
                           .window = 3,
                           .max_delay = UINT64_MAX};
    driver d;

    for (size_t p = 0; p < 4; p++) { /* policies that use the window */
        o.policy = policies[p];
        open_run(&d, &o);
        take_record(&d, 7);
        take_record(&d, 2);
        assert_int_equal(d.left, 0);
        assert_int_equal(d.engine->window.tokens, 9);
        take_record(&d, 3);
        assert_int_equal(d.left, 2);
        assert_int_equal(d.engine->window.tokens, 2);
        assert_true(d.oldest == 2);
        flush(&d);
        assert_int_equal(d.left, 3);
        drive_close(&d);
    }
    ps_engine_free(NULL);
}

/* A sequence leaves with the last record that its delay allows. */
static void test_waits_as_long_as_it_may(void **state)
{
    static const uint64_t delays[] = {1, 2, 3, 63, 64, 65, 1000};
    driver d;

    for (size_t i = 0; i < COUNT(policies) * COUNT(delays); i++) {
        ps_engine_options o = {.capacity = 10,
                               .depth = 3,
                               .window = 50,
                               .policy = policies[i / COUNT(delays)],
                               .max_delay = delays[i % COUNT(delays)]};

        if (o.policy == PS_POLICY_NONE)
            continue;
        open_run(&d, &o);
        take_record(&d, 4);
        for (uint64_t k = 1; k < o.max_delay; k++) {
            tick(&d);
            assert_int_equal(d.left, 0);
        }
        tick(&d);
        assert_int_equal(d.left, 1);
        assert_true(d.engine->delay == o.max_delay);
        drive_close(&d);
    }
}

/* Shuffling leaves half of the delay for waiting in the window. */
static void test_waits_to_be_shuffled(void **state)
{
    ps_engine_options o = {.capacity = 10,
                           .depth = 3,
                           .window = 50,
                           .order = PS_PACKS_SHUFFLED,
                           .seed = 1,
                           .max_delay = 9};
    driver d;

    open_run(&d, &o);
    take_record(&d, 4);
    for (uint64_t i = 1; i < 9; i++) {
        tick(&d);
        assert_int_equal(d.engine->window.tokens, i < 5 ? 4 : 0);
        assert_int_equal(d.left, 0);
        assert_true(d.oldest == 1);
    }
    tick(&d);
    assert_int_equal(d.left, 1);
    drive_close(&d);
}

/* A pack that waiting cannot improve leaves at once. */
static void test_leaves_at_once(void **state)
{
    static const ps_policy at_once[] = {PS_POLICY_AUTO, PS_POLICY_NEXTFIT,
                                        PS_POLICY_CONCAT, PS_POLICY_NONE};
    ps_engine_options o = {.capacity = 10,
                           .depth = 3,
                           .window = 50,
                           .max_delay = 1000};
    driver d;

    for (size_t p = 0; p < COUNT(at_once); p++) {
        o.policy = at_once[p];
        open_run(&d, &o);
        take_record(&d, 10);
        assert_int_equal(d.left, 1);
        assert_true(d.engine->delay == 0);
        drive_close(&d);
    }
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

/* Runs a stream to its end, or until a call fails. */
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
        ps_engine_admit(e, 1 + i * 7 % (o->capacity / 2), NULL);
        while (r == PS_OK && n > 0)
            r = ps_engine_decide(e, i + 1 == 3 * o->window, &slots, &n,
                                 &err);
    }
    ps_engine_free(e);
    if (r != PS_OK)
        assert_int_equal(err.code, r);
    return r;
}

/* Wherever memory runs out, the error is reported and nothing leaks. */
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
        cmocka_unit_test(test_waits_for_a_full_window),
        cmocka_unit_test(test_waits_as_long_as_it_may),
        cmocka_unit_test(test_waits_to_be_shuffled),
        cmocka_unit_test(test_leaves_at_once),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("engine", tests, NULL);
}
