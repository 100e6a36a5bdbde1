/*
 * policy-t.c - what the policy chooses against the rule that policy.h
 * states, told by looking at every sequence and every pair of them.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "policy.h"

#define MOST_SLOTS 64

typedef struct entry {
    uint32_t slot;
    uint32_t length;
} entry;

/* What the window holds, oldest first. */
typedef struct model {
    ps_window *window;
    uint32_t size;
    uint32_t capacity;
    uint32_t depth;
    entry list[MOST_SLOTS];
    uint32_t n;
} model;

static void open_model(model *m, uint32_t size, uint32_t capacity,
                       uint32_t depth)
{
    ps_error err;

    assert_true(size <= MOST_SLOTS);
    *m = (model){.size = size, .capacity = capacity, .depth = depth};
    assert_ok(ps_window_open(&m->window, size, capacity, &err), &err);
}

static void admit(model *m, uint32_t length)
{
    uint32_t slot = ps_window_admit(m->window, length);

    m->list[m->n++] = (entry){slot, length};
}

/* Takes the oldest of a length, which is to be in `slot`, off the list. */
static void take(model *m, uint32_t length, uint32_t slot)
{
    uint32_t at = 0;

    while (at < m->n && m->list[at].length != length)
        at++;
    assert_true(at < m->n);
    assert_int_equal(m->list[at].slot, slot);
    m->n--;
    memmove(m->list + at, m->list + at + 1,
            (m->n - at) * sizeof m->list[0]);
}

static bool has(const model *m, uint32_t length)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->list[i].length == length)
            return true;
    return false;
}

/*
 * The shorter half of the most even pair that fills `room`; 0 if there is
 * none.
 */
static uint32_t exact_pair(const model *m, uint32_t room)
{
    uint32_t shorter = 0;

    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t j = 0; j < m->n; j++) {
            uint32_t a = m->list[i].length;
            uint32_t b = m->list[j].length;

            if (i != j && a + b == room && a <= b && a > shorter)
                shorter = a;
        }
    return shorter;
}

static uint32_t longest_fit(const model *m, uint32_t room)
{
    uint32_t longest = 0;

    for (uint32_t i = 0; i < m->n; i++)
        if (m->list[i].length <= room && m->list[i].length > longest)
            longest = m->list[i].length;
    return longest;
}

/* The rule, for a pack with `room` tokens and `places` left; 0 ends it. */
static uint32_t rule(const model *m, uint32_t room, uint32_t places)
{
    uint32_t shorter;

    if (places == 0 || room == 0)
        return 0;
    if (has(m, room))
        return room;
    shorter = places >= 2 ? exact_pair(m, room) : 0;
    return shorter > 0 ? shorter : longest_fit(m, room);
}

/* One pack: the oldest leads, each further sequence is the rule's. */
static void choose(model *m)
{
    uint32_t slots[MOST_SLOTS];
    uint32_t n = ps_policy_exact.choose(m->window, m->capacity, m->depth,
                                        slots);
    uint32_t room = m->capacity;
    uint32_t length = m->list[0].length;

    assert_in_range(n, 1, m->depth);
    assert_int_equal(slots[0], m->list[0].slot);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(ps_window_length(m->window, slots[i]), length);
        assert_true(length > 0 && length <= room);
        take(m, length, slots[i]);
        room -= length;
        length = rule(m, room, m->depth - (i + 1));
    }
    assert_int_equal(length, 0);
    assert_int_equal(ps_window_count(m->window), m->n);
}

/* Lengths up to the capacity, or mostly short ones, or of a few values. */
static uint32_t draw(const model *m, uint64_t *random, int flavour)
{
    uint32_t length = 1 + random_below(random, m->capacity);

    if (flavour == 1)
        length = 1 + length / 4;
    else if (flavour == 2)
        length = 1 + length / 7 * 7;
    return length <= m->capacity ? length : m->capacity;
}

static void run(uint32_t size, uint32_t capacity, uint32_t depth,
                int flavour)
{
    uint64_t random = 1 + capacity * 1000 + depth * 10 + size;
    model m;

    open_model(&m, size, capacity, depth);
    for (int pack = 0; pack < 12; pack++) {
        while (m.n < size)
            admit(&m, draw(&m, &random, flavour));
        choose(&m);
    }
    while (m.n > 0)
        choose(&m);
    ps_window_free(m.window);
}

/* The depth is at most the capacity, as ps_packer_open sees to it. */
static void test_every_small_capacity(void **state)
{
    static const uint32_t depths[] = {1, 2, 3, 4, 8, 64};
    static const uint32_t sizes[] = {1, 2, 5, 17, 40};

    (void)state;
    for (uint32_t capacity = 1; capacity <= 70; capacity++)
        for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++)
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                for (int flavour = 0; flavour < 3; flavour++)
                    if (depths[d] <= capacity)
                        run(sizes[s], capacity, depths[d], flavour);
}

static void expect_pack(uint32_t capacity, uint32_t depth,
                        const uint32_t *lengths, uint32_t n_lengths,
                        const uint32_t *pack, uint32_t n_pack)
{
    uint32_t slots[MOST_SLOTS];
    model m;

    open_model(&m, n_lengths, capacity, depth);
    for (uint32_t i = 0; i < n_lengths; i++)
        admit(&m, lengths[i]);
    assert_int_equal(
        ps_policy_exact.choose(m.window, capacity, depth, slots), n_pack);
    for (uint32_t i = 0; i < n_pack; i++)
        assert_int_equal(ps_window_length(m.window, slots[i]), pack[i]);
    ps_window_free(m.window);
}

#define COUNT(a) (uint32_t)(sizeof(a) / sizeof(a)[0])
#define EXPECT(capacity, depth, lengths, pack)                          \
    expect_pack(capacity, depth, lengths, COUNT(lengths), pack,         \
                COUNT(pack))

/* Worked examples, one for each branch of the rule. */
static void test_examples(void **state)
{
    static const uint32_t single[] = {60, 39, 40, 20};
    static const uint32_t single_pack[] = {60, 40};
    static const uint32_t pair[] = {60, 39, 30, 10, 25, 15};
    static const uint32_t pair_pack[] = {60, 15, 25};
    static const uint32_t twins[] = {60, 20, 39, 20};
    static const uint32_t twins_pack[] = {60, 20, 20};
    static const uint32_t lone_half[] = {60, 20, 39};
    static const uint32_t lone_half_pack[] = {60, 39};
    static const uint32_t full[] = {100, 1};
    static const uint32_t full_pack[] = {100};
    static const uint32_t none[] = {60, 50, 41};
    static const uint32_t none_pack[] = {60};

    (void)state;
    EXPECT(100, 8, single, single_pack);
    EXPECT(100, 8, pair, pair_pack);
    EXPECT(100, 8, twins, twins_pack);
    EXPECT(100, 8, lone_half, lone_half_pack);
    EXPECT(100, 8, full, full_pack);
    EXPECT(100, 8, none, none_pack);
}

/* With one place left a pair is no use, and with none nothing is added. */
static void test_depth_cuts_the_choice(void **state)
{
    static const uint32_t lengths[] = {60, 30, 25, 15};
    static const uint32_t one[] = {60};
    static const uint32_t two[] = {60, 30};
    static const uint32_t three[] = {60, 15, 25};

    (void)state;
    EXPECT(100, 1, lengths, one);
    EXPECT(100, 2, lengths, two);
    EXPECT(100, 3, lengths, three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_small_capacity),
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_depth_cuts_the_choice),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
