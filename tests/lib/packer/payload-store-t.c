/*
 * payload-store-t.c - the store of payloads against plain buffers, and that it
 * reuses its memory.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>

#include "lib-alloc.h"
#include "packer/payload_store.h"

#define SLOTS 12

typedef struct pair {
    ps_store *store;
    bytes held[SLOTS];
    uint64_t random;
} pair;

static void open_pair(pair *p, uint64_t random)
{
    ps_error err;

    *p = (pair){.random = random};
    assert_ok(ps_store_open(&p->store, SLOTS, &err), &err);
}

static void close_pair(pair *p)
{
    ps_store_free(p->store);
    for (uint32_t s = 0; s < SLOTS; s++)
        free_bytes(&p->held[s]);
}

static void append(pair *p, uint32_t slot, size_t n)
{
    bytes *held = &p->held[slot];
    size_t before = held->size;
    ps_error err;

    for (size_t i = 0; i < n; i++)
        put_u8(held, random_below(&p->random, 256));
    assert_ok(ps_store_append(p->store, slot,
                              n > 0 ? held->data + before : NULL, n, &err),
              &err);
}

static void clear(pair *p, uint32_t slot)
{
    ps_store_clear(p->store, slot);
    p->held[slot].size = 0;
}

/* Reads a slot from its start in parts of up to `max` bytes. */
static void compare(pair *p, uint32_t slot, uint32_t max)
{
    const bytes *held = &p->held[slot];
    ps_store_cursor cursor = ps_store_start(p->store, slot);
    unsigned char *part = must_alloc(max);
    size_t at = 0;

    while (at < held->size) {
        size_t n = 1 + random_below(&p->random, max);

        n = n < held->size - at ? n : held->size - at;
        ps_store_read(p->store, &cursor, part, n);
        assert_memory_equal(part, held->data + at, n);
        at += n;
    }
    free(part);
}

static void test_random(void **state)
{
    static const uint32_t sizes[] = {1, 2, 255, 256, 257, 512, 1000, 5000};
    pair p;

    open_pair(&p, 3);
    for (int step = 0; step < 4000; step++) {
        uint32_t slot = random_below(&p.random, SLOTS);
        uint32_t size = sizes[random_below(&p.random, 8)];

        if (random_below(&p.random, 4) == 0)
            clear(&p, slot);
        else
            append(&p, slot, random_below(&p.random, size + 1));
        compare(&p, slot, 1 + random_below(&p.random, 700));
        if (step % 100 == 0)
            for (uint32_t s = 0; s < SLOTS; s++)
                compare(&p, s, 300);
    }
    close_pair(&p);
}

/* Memory must not grow over ten thousand times the payload held. */
static void test_memory_is_reused(void **state)
{
    static unsigned char data[3000];
    ps_store *store;
    ps_error err;
    uint64_t random = 11;
    size_t first = 0;

    assert_ok(ps_store_open(&store, SLOTS, &err), &err);
    for (int cycle = 0; cycle < 10000; cycle++) {
        for (uint32_t s = 0; s < SLOTS; s++)
            assert_ok(ps_store_append(store, s, data, sizeof data, &err),
                      &err);
        for (uint32_t s = random_below(&random, SLOTS), i = 0; i < SLOTS;
             i++)
            ps_store_clear(store, (s + 5 * i) % SLOTS);
        if (cycle == 0)
            first = alloc_so_far().bytes;
    }
    assert_int_equal(alloc_so_far().bytes, first);
    ps_store_free(store);
}

/* Slots of any size share memory that others released. */
static void test_memory_is_shared(void **state)
{
    static unsigned char data[60000];
    ps_store *store;
    ps_error err;
    size_t first;

    assert_ok(ps_store_open(&store, SLOTS, &err), &err);
    assert_ok(ps_store_append(store, 0, data, sizeof data, &err), &err);
    first = alloc_so_far().bytes;
    for (uint32_t s = 1; s < SLOTS; s++) {
        ps_store_clear(store, s - 1);
        assert_ok(ps_store_append(store, s, data, sizeof data, &err), &err);
    }
    ps_store_clear(store, SLOTS - 1);
    for (uint32_t s = 0; s < SLOTS; s++)
        assert_ok(ps_store_append(store, s, data, sizeof data / SLOTS / 2,
                                  &err),
                  &err);
    assert_int_equal(alloc_so_far().bytes, first);
    ps_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_memory_is_reused),
        cmocka_unit_test(test_memory_is_shared),
    };

    return run_as_tap("store", tests, NULL);
}
