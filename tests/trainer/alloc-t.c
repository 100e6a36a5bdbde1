/*
 * alloc-t.c - a model that runs out of memory, and one that reuses its memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include "cpu/device.h"
#include "lib-alloc.h"

static tr_config config(void)
{
    return toy_config(53, 32);
}

/* A call that fails leaks nothing. */
static void test_open_without_memory(void **state)
{
    const tr_config c = config();
    const size_t before = alloc_so_far().blocks;
    tr_model *model = NULL;
    uint64_t nth = 0;

    while (!model) {
        alloc_fail(++nth, false);
        model = tr_model_open(toy_device(), &c, 1);
        if (!model)
            assert_int_equal(alloc_so_far().blocks, before);
        alloc_fail(0, false);
    }
    assert_true(nth > 4);
    tr_model_free(model);
    assert_int_equal(alloc_so_far().blocks, before);
}

/* A batch that was refused can be tried again. */
static void test_forward_without_memory(void **state)
{
    const tr_config c = config();
    const tr_step step = {.attention = TR_VARLEN, .rows = TR_UNPADDED};
    const toy_plan plan = toy_packed_plan();
    tr_model *const model = toy_model(&c, 1);
    toy_batch toy = toy_open(&plan);
    uint64_t nth = 0;
    bool done = false;

    while (!done) {
        alloc_fail(++nth, false);
        done = tr_model_forward(model, &toy.batch, &step);
        alloc_fail(0, false);
    }
    assert_true(nth > 2);
    tr_model_set_graph_mode(model, TR_ROUNDED);
    alloc_fail(1, false);
    assert_false(tr_model_forward(model, &toy.batch, &step));
    alloc_fail(0, false);
    assert_true(tr_model_forward(model, &toy.batch, &step));
    assert_true(toy_finish().loss[TR_LOSS_MLM] > 0);
    toy_free(&toy);
    tr_model_free(model);
}

/* After its largest batch, a model allocates no more. */
static void test_steps_allocate_nothing(void **state)
{
    const tr_config c = config();
    const tr_step steps[2] = {{TR_DENSE, true, 1, TR_PADDED, 0, false},
                                {TR_VARLEN, true, 1, TR_UNPADDED, 0, false}};
    const toy_plan plan = toy_alone_plan();
    const toy_plan less = toy_packed_plan();
    tr_model *const model = toy_model(&c, 1);
    toy_batch large = toy_open(&plan);
    toy_batch small = toy_open(&less);

    for (int i = 0; i < 2; i++)
        toy_run(model, &large, steps + i);
    alloc_watch();
    for (int i = 0; i < 4; i++)
        toy_run(model, i & 2 ? &large : &small, steps + (i & 1));
    assert_int_equal(alloc_so_far().calls, 0);
    toy_free(&large);
    toy_free(&small);
    tr_model_free(model);
}

/* Forward of this many equal packs; the `nth` allocation fails. */
static alloc_counts run_packs(tr_model *model, uint32_t n, uint64_t nth)
{
    static const toy_sequence packs[32][TOY_DEPTH] = {
#define FOUR {{1, 20}}, {{1, 20}}, {{1, 20}}, {{1, 20}}
        FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR};
    const tr_step step = {.attention = TR_VARLEN};
    const toy_plan plan = {.capacity = 32, .vocab_size = 53, .n_packs = n,
                           .packs = packs};
    toy_batch toy = toy_open(&plan);
    alloc_counts counts;

    alloc_watch();
    alloc_fail(nth, false);
    assert_true(tr_model_forward(model, &toy.batch, &step));
    alloc_fail(0, false);
    counts = alloc_so_far();
    toy_free(&toy);
    return counts;
}

/* Slightly larger batches do not each allocate memory. */
static void test_growing_batches(void **state)
{
    const tr_config c = config();
    tr_model *const model = toy_model(&c, 1);
    uint64_t calls = 0;

    for (uint32_t n = 1; n <= 32; n++)
        calls += run_packs(model, n, 0).calls;
    /* Capacities are about 2, 3, 4, 6, 9, 13, 19, 28 and 42 packs. */
    assert_in_range(calls, 8, 11);
    tr_model_free(model);
}

/* If half as much again cannot be allocated, the exact size is tried. */
static void test_growth_without_memory(void **state)
{
    const tr_config c = config();

    tr_model *const model = toy_model(&c, 1);
    alloc_counts counts;

    assert_int_equal(run_packs(model, 10, 0).calls, 1);
    counts = run_packs(model, 11, 1);
    assert_int_equal(counts.failed, 1);
    assert_int_equal(counts.calls, 2);
    tr_model_free(model);
}

/* A device without memory, and a step without memory. */
static void test_step_without_memory(void **state)
{
    const size_t before = alloc_so_far().blocks;
    const tr_lamb_args step = {
        .trust = true, .correct1 = 1, .correct2 = 1, .rate = 1};
    const tr_part part = {.count = 1};
    real weight = 3, gradient = 1, mean = 0, square = 0;
    tr_results results;
    const char *why = NULL;
    tr_device *device;

    alloc_fail(1, false);
    assert_null(tr_cpu_open());
    alloc_fail(0, false);
    device = tr_cpu_open();
    assert_non_null(device);
    alloc_fail(1, false);
    device->ops->lamb(device, &step, 1, &part, 1, &weight, &gradient, &mean,
                      &square);
    alloc_fail(0, false);
    /* Later calls do nothing. */
    device->ops->lamb(device, &step, 1, &part, 1, &weight, &gradient, &mean,
                      &square);
    assert_false(device->ops->finish(device, &results, &why));
    assert_string_equal(why, "no memory for the optimiser's sums");
    assert_true(results.steps == 0 && weight == 3);
    tr_device_close(device);
    tr_device_close(NULL);
    assert_int_equal(alloc_so_far().blocks, before);
}

/* Rotary positions whose table does not fit in memory leave x unchanged. */
static void test_rotate_without_memory(void **state)
{
    static const real frequency = 1;
    static const int32_t position = 3;
    const tr_rotary r = {.heads = 1, .width = 2, .stride = 2,
                         .frequency = &frequency};
    const size_t before = alloc_so_far().blocks;

    for (uint64_t nth = 1; nth <= 2; nth++) {
        tr_device *const device = tr_cpu_open();
        real x[2] = {1, 0};
        tr_results results;
        const char *why = NULL;

        assert_non_null(device);
        alloc_fail(nth, false);
        device->ops->rotate(device, &r, 1, &position, false, x);
        alloc_fail(0, false);
        assert_true(x[0] == 1 && x[1] == 0);
        assert_false(device->ops->finish(device, &results, &why));
        assert_string_equal(why,
                            "no memory for the angles of rotary positions");
        tr_device_close(device);
        assert_int_equal(alloc_so_far().blocks, before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_without_memory),
        cmocka_unit_test(test_forward_without_memory),
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_growing_batches),
        cmocka_unit_test(test_growth_without_memory),
        cmocka_unit_test(test_step_without_memory),
        cmocka_unit_test(test_rotate_without_memory),
    };

    return run_as_tap("alloc", tests, toy_setup);
}
