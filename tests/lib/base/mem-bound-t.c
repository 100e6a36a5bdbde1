/*
 * mem-bound-t.c - growing arrays, and upper bounds of their memory.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>

#include "base/mem_bound.h"

static void test_array_doubles(void **state)
{
    size_t capacity = 0;
    uint32_t *a = ps_array_grow(NULL, &capacity, 0, 3, sizeof *a);

    assert_non_null(a);
    assert_int_equal(capacity, 3);
    for (uint32_t n = 0; n < 100; n++) {
        a = ps_array_grow(a, &capacity, n + 1, 3, sizeof *a);
        assert_non_null(a);
        a[n] = n;
    }
    assert_int_equal(capacity, 192);
    for (uint32_t n = 0; n < 100; n++)
        assert_int_equal(a[n], n);
    assert_ptr_equal(ps_array_grow(a, &capacity, 192, 3, sizeof *a), a);
    a = ps_array_grow(a, &capacity, 1000, 3, sizeof *a);
    assert_non_null(a);
    assert_int_equal(capacity, 1536);
    assert_int_equal(a[99], 99);
    free(a);
}

/* Neither the element count nor the byte count may overflow. */
static void test_array_too_large(void **state)
{
    size_t capacity = 0;
    uint64_t *a = ps_array_grow(NULL, &capacity, 1, 1, sizeof *a);

    assert_non_null(a);
    assert_null(ps_array_grow(a, &capacity, SIZE_MAX, 1, sizeof *a));
    assert_null(ps_array_grow(a, &capacity, SIZE_MAX / 2, 1, sizeof *a));
    assert_null(ps_array_grow(a, &capacity, SIZE_MAX / 16 + 2, 1, sizeof *a));
    assert_int_equal(capacity, 1);
    free(a);
}

/* The bound holds right after an array has grown. */
static void test_array_bounds(void **state)
{
    for (size_t n = 1; n < 200; n++) {
        size_t capacity = 0;
        size_t before = 0;
        uint32_t *a = NULL;
        uint64_t takes;

        for (size_t i = 1; i <= n; i++) {
            before = i > capacity ? capacity : before;
            a = ps_array_grow(a, &capacity, i, 4, sizeof *a);
            assert_non_null(a);
        }
        takes = (capacity + before) * sizeof *a;
        assert_true(ps_mem_doubling(n, 4, sizeof *a) >= takes);
        assert_true(ps_mem_growing(n, 4, sizeof *a) >= takes);
        free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_array_doubles),
        cmocka_unit_test(test_array_too_large),
        cmocka_unit_test(test_array_bounds),
    };

    return run_as_tap("mem_bound", tests, NULL);
}
