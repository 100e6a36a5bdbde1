/*
 * bert-alloc-t.c - a model whose memory runs out, and one that keeps to it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bert-toy.h"

#include "lib-alloc.h"

static bert_config config(void)
{
    return toy_config(53, 32);
}

/* Each call that fails leaves nothing behind. */
static void test_open_without_memory(void **state)
{
    const bert_config c = config();
    const size_t before = alloc_so_far().blocks;
    bert_model *model = NULL;
    uint64_t nth = 0;

    (void)state;
    while (!model) {
        alloc_fail(++nth, false);
        model = bert_model_open(&c, 1);
        if (!model)
            assert_int_equal(alloc_so_far().blocks, before);
        alloc_fail(0, false);
    }
    assert_true(nth > 4);
    bert_model_free(model);
    assert_int_equal(alloc_so_far().blocks, before);
}

/* A batch that was refused can be tried again. */
static void test_forward_without_memory(void **state)
{
    const bert_config c = config();
    const bert_step step = {.attention = BERT_VARLEN};
    const toy_plan plan = toy_packed_plan();
    bert_model *const model = toy_model(&c, 1);
    toy_batch toy = toy_open(&plan);
    bert_losses losses = {0};
    uint64_t nth = 0;
    bool done = false;

    (void)state;
    while (!done) {
        alloc_fail(++nth, false);
        done = bert_model_forward(model, &toy.batch, &step, &losses);
        alloc_fail(0, false);
    }
    assert_true(nth > 2);
    assert_true(losses.total > 0);
    toy_free(&toy);
    bert_model_free(model);
}

/* Once it has seen the largest batch, a model asks for no more. */
static void test_steps_allocate_nothing(void **state)
{
    const bert_config c = config();
    const bert_step steps[2] = {{BERT_DENSE, true, 1},
                                {BERT_VARLEN, true, 1}};
    const toy_plan plan = toy_alone_plan();
    const toy_plan less = toy_packed_plan();
    bert_model *const model = toy_model(&c, 1);
    toy_batch large = toy_open(&plan);
    toy_batch small = toy_open(&less);

    (void)state;
    toy_run(model, &large, steps);
    alloc_watch();
    for (int i = 0; i < 4; i++)
        toy_run(model, i & 2 ? &large : &small, steps + (i & 1));
    assert_int_equal(alloc_so_far().calls, 0);
    toy_free(&large);
    toy_free(&small);
    bert_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_without_memory),
        cmocka_unit_test(test_forward_without_memory),
        cmocka_unit_test(test_steps_allocate_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, toy_setup, NULL);
}
