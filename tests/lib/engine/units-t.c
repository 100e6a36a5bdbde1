/*
 * units-t.c - lengths in units, computed by multiplication, against divisions.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include "engine/units.h"
#include "packstream.h"

/* Lengths near multiples of a unit, where a rounded inverse would fail. */
static void check_about(const ps_units *u, uint32_t capacity, uint32_t length)
{
    for (uint32_t l = length - 1; l <= length + 1; l++) {
        uint32_t max = capacity / u->size;
        uint32_t near = (l + u->size / 2) / u->size;

        assert_int_equal(ps_units_in(u, l), l / u->size);
        near = near < max ? near : max;
        if (l > 0 && l <= capacity)
            assert_int_equal(ps_units_round(u, l), near > 0 ? near : 1);
    }
}

static void check_capacity(uint32_t capacity, uint32_t max)
{
    ps_units u = ps_units_of(capacity, max);

    assert_int_equal(u.size, (capacity - 1) / max + 1);
    assert_int_equal(u.count, capacity / u.size);
    assert_in_range(u.count, 1, max);
    for (uint32_t i = 1; i <= u.count; i++) {
        check_about(&u, capacity, i * u.size);
        check_about(&u, capacity, i * u.size + u.size / 2);
    }
}

static void test_units(void **state)
{
    static const uint32_t most[] = {256, 1024, 2048};
    uint64_t random = 5;

    for (size_t k = 0; k < COUNT(most); k++) {
        const uint32_t max = most[k];

        for (uint32_t capacity = 1; capacity <= 3000; capacity++)
            check_capacity(capacity, max);
        for (int i = 0; i < 300; i++) {
            check_capacity(PS_MAX_CAPACITY - random_below(&random, 1 << 20),
                           max);
            check_capacity(1 + random_below(&random, PS_MAX_CAPACITY), max);
        }
        for (uint32_t power = 4096; power < PS_MAX_CAPACITY; power *= 2)
            for (uint32_t capacity = power - 1; capacity <= power + 1;
                 capacity++)
                check_capacity(capacity, max);
        check_capacity(PS_MAX_CAPACITY, max);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
    };

    return run_as_tap("units", tests, NULL);
}
