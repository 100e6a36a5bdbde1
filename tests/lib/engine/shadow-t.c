/*
 * shadow-t.c - best fit beside the policy: when it runs, which packs it makes,
 * and whether it is good enough to be used.
 *
 * SPDX-License-Identifier: MIT
 */

#include "dual-prices-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/shadow.h"

#define CAPACITY 1000
#define WINDOW 256

/* Layout of a saved state: offsets of each part. */
#define AT_RUNS 0
#define AT_FITS 4
#define AT_CARRY 16
#define AT_TOTAL 24
#define AT_WINDOWS 32
#define AT_FROM 36

typedef struct stand {
    ps_dual_prices *prices;
    ps_shadow shadow;
} stand;

static void open_shadow(stand *s, uint32_t depth)
{
    ps_mem mem = {0};

    ps_shadow_init(&s->shadow, s->prices, depth, &mem);
    assert_false(mem.failed);
}

static stand *open_stand(uint32_t capacity, uint32_t depth, uint32_t window)
{
    stand *s = must_alloc(sizeof *s);

    *s = (stand){.prices = open_prices(capacity, depth, window)};
    open_shadow(s, depth);
    return s;
}

static void close_stand(stand *s)
{
    ps_shadow_destroy(&s->shadow);
    close_prices(s->prices);
    free(s);
}

/* ---- Streams ---- */

typedef uint32_t stream_of(uint64_t *random);

/* Two sequences fill a pack, and best fit is optimal. */
static uint32_t pairs(uint64_t *random)
{
    return 350 + random_below(random, 301);
}

/*
 * The best partner of 560 is 440, and those of 520 are two of 240, but best fit
 * pairs 520 with 440 if it can.  Best fit decreasing does not notice: it starts
 * with 560.
 */
static uint32_t stolen(uint64_t *random)
{
    uint32_t kind = random_below(random, 13);
    uint32_t by = random_below(random, 20);

    if (kind < 5)
        return 560 - by;
    if (kind < 10)
        return 440 + by;
    return kind == 10 ? 520 : 240;
}

/*
 * Long sequences, each alone, and 510, whose best partners are 260 and 230.
 * Best fit decreasing pairs it with 270, but best fit starts with the oldest.
 */
static uint32_t doubtful(uint64_t *random)
{
    static const uint32_t others[] = {510, 510, 260, 260, 270, 270,
                                      230, 230, 230, 230};
    uint32_t kind = random_below(random, 15);

    return kind < 10 ? others[kind] : 900 + random_below(random, 90);
}

/* Packs hold many. */
static uint32_t shorts(uint64_t *random)
{
    return 1 + random_below(random, CAPACITY / 4);
}

/* Acts like the policy, with a refresh after each window and nothing in it. */
static void send(stand *s, stream_of *next, uint64_t windows,
                 uint64_t *random)
{
    ps_dual_prices *p = s->prices;

    while (windows-- > 0) {
        bool ended;

        for (uint32_t i = 0; i < p->window_size; i++) {
            uint32_t length = next(random);

            come(p, length, 1);
            if (s->shadow.runs)
                ps_shadow_admit(&s->shadow, length);
        }
        if (ps_dual_prices_coarsen(p)) {
            ps_shadow_stop(&s->shadow);
            ended = learn(p);
        } else if (p->arrivals >= p->next || !p->known)
            ended = learn(p);
        else
            ended = ps_dual_prices_follow(p);
        if (ended)
            ps_shadow_judge(&s->shadow);
    }
}

/* Sends at most `windows` windows, until best fit fits or no longer fits. */
static uint32_t send_until(stand *s, stream_of *next, bool fits,
                           uint32_t most, uint64_t *random)
{
    uint32_t n = 0;

    while (s->shadow.fits != fits && n < most) {
        send(s, next, 1, random);
        n++;
    }
    return n;
}

/* ---- Decisions ---- */

/* It starts at once, fits, and still fits after hundreds of windows. */
static void test_fits(void **state)
{
    stand *s = open_stand(CAPACITY, 3, WINDOW);
    uint64_t random = 5;

    assert_false(s->shadow.runs || s->shadow.fits);
    for (int i = 0; i < 400; i++) {
        send(s, pairs, 1, &random);
        assert_true(s->shadow.runs);
        assert_true(s->shadow.fits);
        assert_true(s->shadow.window.count < WINDOW);
    }
    close_stand(s);
}

/* Once good, best fit stays in use where best fit decreasing is worse. */
static void test_doubtful(void **state)
{
    stand *s = open_stand(CAPACITY, 3, WINDOW);
    uint64_t random = 6;

    send(s, doubtful, 1, &random);
    assert_true(s->shadow.runs && !s->shadow.fits);
    assert_in_range(send_until(s, doubtful, true, 100, &random), 2, 11);
    for (int i = 0; i < 60; i++) {
        send(s, doubtful, 1, &random);
        assert_true(s->shadow.runs && s->shadow.fits);
    }
    close_stand(s);
}

/* A stream on which best fit only seems good uses it for a few windows. */
static void test_given_up(void **state)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        stand *s = open_stand(CAPACITY, 3, WINDOW);
        uint64_t random = seed;

        send(s, stolen, 1, &random);
        assert_true(s->shadow.runs && s->shadow.fits);
        assert_in_range(send_until(s, stolen, false, 100, &random), 2, 12);
        send(s, stolen, 20, &random);
        for (int i = 0; i < 200; i++) {
            send(s, stolen, 1, &random);
            assert_true(s->shadow.runs);
            assert_false(s->shadow.fits);
        }
        close_stand(s);
    }
}

/* It stops when packs hold more, forgets everything, and starts again. */
static void test_stops(void **state)
{
    stand *s = open_stand(CAPACITY, 8, WINDOW);
    uint64_t random = 9;

    send(s, pairs, 20, &random);
    assert_true(s->shadow.runs && s->shadow.fits);
    for (int i = 0; s->shadow.runs && i < 200; i++)
        send(s, shorts, 1, &random);
    assert_false(s->shadow.runs || s->shadow.fits);
    assert_int_equal(s->shadow.window.count, 0);
    assert_true(s->shadow.window.tokens == 0);
    for (int i = 0; !s->shadow.runs && i < 2000; i++)
        send(s, pairs, 1, &random);
    assert_true(s->shadow.runs);
    assert_int_equal(s->shadow.packs, 0);
    assert_int_equal(s->shadow.windows, 0);
    close_stand(s);
}

/* ---- What best fit packs ---- */

/* Packs the oldest of the list, then repeatedly the longest that fits. */
static void pack_naive(uint32_t *list, uint32_t *n, uint32_t capacity,
                       uint32_t depth)
{
    uint32_t room = capacity;

    for (uint32_t k = 0, at = 0; k < depth; k++) {
        uint32_t length = 0;

        for (uint32_t i = 0; k > 0 && i < *n; i++)
            if (list[i] <= room && list[i] > length) {
                length = list[i];
                at = i;
            }
        if (k > 0 && length == 0)
            return;
        room -= list[at];
        (*n)--;
        memmove(list + at, list + at + 1, (*n - at) * sizeof *list);
    }
}

static void test_best_fit(void **state)
{
    static const uint32_t depths[] = {1, 2, 3, 8};
    static const uint32_t sizes[] = {1, 2, 17, 64};

    for (size_t i = 0; i < COUNT(depths) * COUNT(sizes); i++) {
        uint32_t depth = depths[i % COUNT(depths)];
        uint32_t size = sizes[i / COUNT(depths)];
        stand *s = open_stand(CAPACITY, depth, size);
        uint32_t list[64];
        uint32_t n = 0;
        uint64_t packs = 0;
        uint64_t random = i + 1;

        s->shadow.runs = true;
        for (int k = 0; k < 2000; k++) {
            uint32_t length = k % 3 == 0
                                  ? 1 + random_below(&random, CAPACITY)
                                  : shorts(&random);
            uint32_t at;

            come(s->prices, length, 1);
            ps_shadow_admit(&s->shadow, length);
            if (length < CAPACITY) {
                list[n++] = length;
                if (n == size) {
                    pack_naive(list, &n, CAPACITY, depth);
                    packs++;
                }
            }
            assert_true(s->shadow.packs == packs);
            assert_int_equal(s->shadow.window.count, n);
            at = s->shadow.window.oldest;
            for (uint32_t j = 0; j < n; j++) {
                assert_int_equal(s->shadow.window.slots[at].length, list[j]);
                at = s->shadow.window.slots[at].younger;
            }
        }
        close_stand(s);
    }
}

/* ---- Saved and loaded ---- */

/* Loads a saved state without its last `cut` bytes. */
static stand *load_again(const stand *s, const ps_saver *saver, size_t cut,
                         bool *good)
{
    ps_saver prices = {0};
    ps_restorer restorer;
    stand *other = open_stand(s->prices->capacity, s->prices->max_depth,
                              s->prices->window_size);

    ps_dual_prices_save(s->prices, &prices);
    restorer = (ps_restorer){.at = prices.bytes, .left = prices.n};
    ps_dual_prices_load(other->prices, &restorer);
    assert_false(restorer.failed);
    free(prices.bytes);
    restorer = (ps_restorer){.at = saver->bytes, .left = saver->n - cut};
    ps_shadow_load(&other->shadow, &restorer);
    *good = !restorer.failed && restorer.left == 0;
    return other;
}

/* ---- Hostile states ---- */

/* True if a state with this number is accepted; then it is used. */
static bool try_number(const stand *s, size_t at, uint64_t number,
                       size_t width)
{
    ps_saver saver = {0};
    stand *other;
    uint64_t random = 4;
    bool good;

    ps_shadow_save(&s->shadow, &saver);
    for (size_t i = 0; i < width; i++)
        saver.bytes[at + i] = (unsigned char)(number >> 8 * i);
    other = load_again(s, &saver, 0, &good);
    if (good)
        send(other, pairs, 3, &random);
    free(saver.bytes);
    close_stand(other);
    return good;
}

/* True if a state with that many sequences in its window is accepted. */
static bool try_count(const stand *s, uint32_t n)
{
    ps_saver saver = {0};
    bool good;

    ps_shadow_save(&s->shadow, &saver);
    saver.n = AT_FROM + 8 * (size_t)s->prices->units.count;
    ps_save_u32(&saver, n);
    for (uint32_t i = 1; i <= n; i++)
        ps_save_u32(&saver, i);
    close_stand(load_again(s, &saver, 0, &good));
    free(saver.bytes);
    return good;
}

static void test_refused(void **state)
{
    static const uint64_t not_numbers[] = {
        UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000001),
        UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000)};
    stand *s = open_stand(CAPACITY, 3, 40);
    uint64_t random = 4;
    ps_saver saver = {0};
    size_t at_count;
    bool good;

    send(s, pairs, 20, &random);
    assert_true(s->shadow.runs);
    assert_true(s->shadow.window.count > 1);
    at_count = AT_FROM + 8 * (size_t)s->prices->units.count;
    ps_shadow_save(&s->shadow, &saver);
    assert_int_equal(saver.n,
                     at_count + 4 + 4 * (size_t)s->shadow.window.count);
    for (size_t cut = 1; cut <= saver.n; cut++) {
        close_stand(load_again(s, &saver, cut, &good));
        assert_false(good);
    }
    free(saver.bytes);

    assert_false(try_number(s, AT_RUNS, 2, 4));
    assert_false(try_number(s, AT_FITS, 2, 4));
    assert_true(try_number(s, AT_WINDOWS, 63, 4));
    assert_false(try_number(s, AT_WINDOWS, 64, 4));
    assert_false(try_number(s, AT_WINDOWS, UINT32_MAX, 4));
    for (size_t i = 0; i < COUNT(not_numbers); i++) {
        assert_false(try_number(s, AT_CARRY, not_numbers[i], 8));
        assert_false(try_number(s, AT_TOTAL, not_numbers[i], 8));
        for (size_t at = AT_FROM; at < at_count; at += 80)
            assert_false(try_number(s, at, not_numbers[i], 8));
    }
    /* A full window would have been packed already. */
    assert_true(try_count(s, 0));
    assert_true(try_count(s, 39));
    assert_false(try_count(s, 40));
    assert_false(try_number(s, at_count, UINT32_MAX, 4));
    for (size_t at = at_count + 4; at < at_count + 12; at += 4) {
        assert_true(try_number(s, at, CAPACITY - 1, 4));
        assert_false(try_number(s, at, 0, 4));
        assert_false(try_number(s, at, CAPACITY, 4));
        assert_false(try_number(s, at, UINT32_MAX, 4));
    }
    close_stand(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_doubtful),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_best_fit),
        cmocka_unit_test(test_refused),
    };

    return run_as_tap("shadow", tests, NULL);
}
