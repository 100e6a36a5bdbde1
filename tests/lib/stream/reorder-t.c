/*
 * reorder-t.c - the heap of waiting sequences against a plain search.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>

#include "stream/reorder.h"

#define MAX 3000

typedef struct pair {
    ps_reorder heap;
    ps_waiting *list;
    size_t n;
    uint64_t tokens;
} pair;

static void push(pair *p, uint64_t id, uint32_t seq_off, uint32_t n_tok)
{
    ps_waiting item = {.id = id, .seq_off = seq_off, .n_tok = n_tok};
    ps_error err;

    item.payload = must_alloc(1);
    assert_ok(ps_reorder_push(&p->heap, &item, &err), &err);
    p->list[p->n++] = item;
    p->tokens += n_tok;
}

static size_t min(const pair *p)
{
    size_t at = 0;

    for (size_t i = 1; i < p->n; i++)
        if (p->list[i].id < p->list[at].id ||
            (p->list[i].id == p->list[at].id &&
             p->list[i].seq_off < p->list[at].seq_off))
            at = i;
    return at;
}

/* Equal items may come in any order. */
static void pop(pair *p)
{
    size_t at = min(p);
    const ps_waiting *top = ps_reorder_top(&p->heap);
    ps_waiting item;

    assert_non_null(top);
    assert_true(top->id == p->list[at].id);
    assert_int_equal(top->seq_off, p->list[at].seq_off);
    item = ps_reorder_pop(&p->heap);
    while (p->list[at].payload != item.payload)
        assert_true(++at < p->n);
    assert_true(item.id == p->list[at].id);
    assert_int_equal(item.n_tok, p->list[at].n_tok);
    p->tokens -= item.n_tok;
    p->list[at] = p->list[--p->n];
    free(item.payload);
}

static void check(const pair *p)
{
    assert_int_equal(p->heap.count, p->n);
    assert_true(p->heap.tokens == p->tokens);
    assert_int_equal(ps_reorder_top(&p->heap) == NULL, p->n == 0);
}

static void run(uint32_t ids, uint32_t places, uint64_t random)
{
    pair p = {.list = must_alloc(MAX * sizeof *p.list)};

    check(&p);
    for (int step = 0; step < 4000; step++) {
        bool fills = random_below(&random, 10) < (step < 2500 ? 7 : 4);

        if (p.n == 0 || (fills && p.n < MAX))
            push(&p, random_below(&random, ids),
                 random_below(&random, places), random_below(&random, 50));
        else
            pop(&p);
        check(&p);
    }
    while (p.n > 3) {
        pop(&p);
        check(&p);
    }
    ps_reorder_clear(&p.heap); /* frees what is left */
    p.n = 0;
    p.tokens = 0;
    check(&p);
    free(p.list);
}

static void test_random(void **state)
{
    run(1000000, 1, 1);
    run(5, 100000, 2);
    run(3, 3, 3);
    run(1, 1, 4);
}

/* In order, and in reverse, through several doublings. */
static void test_sorted(void **state)
{
    pair p = {.list = must_alloc(MAX * sizeof *p.list)};

    for (uint32_t i = 0; i < 1100; i++)
        push(&p, UINT64_MAX - 1 - i, 0, 1);
    while (p.n > 0)
        pop(&p);
    for (uint32_t i = 0; i < 1100; i++)
        push(&p, 7, UINT32_MAX - 1100 + i, 1);
    while (p.n > 0)
        pop(&p);
    check(&p);
    ps_reorder_clear(&p.heap);
    free(p.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_sorted),
    };

    return run_as_tap("reorder", tests, NULL);
}
