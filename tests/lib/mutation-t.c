/*
 * mutation-t.c - streams with numbers changed at random under new seals:
 * every reader comes to an end, in bounded memory, and what it counts is
 * what it gave.
 *
 * The numbers are the same in every run.  Most of the point is in running
 * this with sanitizers.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <unistd.h>

#include "lib-alloc.h"

#define ROUNDS 3000
#define MAX_MEMORY ((size_t)16 << 20)

/* Numbers that are more likely than others to be trouble. */
static uint64_t odd_number(uint64_t *random)
{
    static const uint64_t numbers[] = {
        0, 1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 0x7fff, 0xffff,
        0x10000, 0xffffff, 0x1000000, 0x7fffffff, 0x80000000, 0xfffffffe,
        0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
        0xfffffffffffffffe, 0xffffffffffffffff};
    uint32_t n = COUNT(numbers);
    uint32_t i = random_below(random, n + 8);

    return i < n ? numbers[i] : random_next(random);
}

/* Changes 1, 2, 4 or 8 bytes at a place, mostly an aligned one. */
static void change(bytes *b, size_t from, size_t to, uint64_t *random)
{
    size_t n = (size_t)1 << random_below(random, 4);
    size_t at = from + random_below(random, (uint32_t)(to - from - 8));
    uint64_t value = odd_number(random);

    if (random_below(random, 8) > 0)
        at -= at % n;
    set_number(b->data + at, value, n);
}

/* Starts to count memory; end_watch fails if it took too much or kept any. */
static size_t begin_watch(void)
{
    alloc_watch();
    return alloc_so_far().bytes;
}

static void end_watch(size_t before)
{
    assert_true(alloc_so_far().peak - before < MAX_MEMORY);
    assert_int_equal(alloc_so_far().bytes, before);
}

static ps_result read_and_check(int fd, uint64_t *sequences)
{
    ps_pack_reader *r;
    ps_pack pack;
    ps_result result;

    rewind_fd(fd);
    *sequences = 0;
    result = ps_pack_reader_open(&r, fd, NULL);
    while (result == PS_OK) {
        result = ps_pack_reader_next(r, &pack, NULL);
        if (result != PS_OK)
            break;
        *sequences += pack.n_seq;
        /* Either result will do, as long as there is one. */
        (void)!ps_pack_check(ps_pack_reader_info(r), &pack, NULL);
    }
    if (result == PS_END)
        assert_int_equal(ps_pack_reader_totals(r)->sequences, *sequences);
    ps_pack_reader_free(r);
    return result;
}

static ps_result unpack(int fd, ps_order order, uint64_t *sequences)
{
    ps_pack_reader *r;
    ps_unpacker *u = NULL;
    ps_sequence s;
    ps_result result;

    rewind_fd(fd);
    *sequences = 0;
    result = ps_pack_reader_open(&r, fd, NULL);
    if (result == PS_OK)
        result = ps_unpacker_open(&u, r, order, NULL);
    while (result == PS_OK) {
        result = ps_unpacker_next(u, &s, NULL);
        *sequences += result == PS_OK;
    }
    ps_unpacker_free(u);
    ps_pack_reader_free(r);
    return result;
}

/* All that can be done with a pack stream; true if it is good. */
static bool try_packs(int fd)
{
    size_t before = begin_watch();
    uint64_t read;
    uint64_t in_packs;
    uint64_t in_order;
    ps_result result = read_and_check(fd, &read);

    assert_int_equal(unpack(fd, PS_ORDER_PACK, &in_packs), result);
    assert_int_equal(in_packs, read);
    if (unpack(fd, PS_ORDER_INPUT, &in_order) == PS_END)
        assert_int_equal(result, PS_END);
    assert_true(in_order <= read);
    end_watch(before);
    return result == PS_END;
}

static void replace(int fd, const bytes *b)
{
    assert_int_equal(ftruncate(fd, (off_t)b->size), 0);
    assert_int_equal(pwrite(fd, b->data, b->size, 0), b->size);
}

/* Where to change: the numbers of the header, its table, or the blocks. */
static void change_packs(bytes *b, uint64_t *random)
{
    static const size_t places[][2] = {
        {8, 256}, {256, 1024}, {4096, 4608}, {4096, 4608}, {4096, 0}};
    const size_t *place = places[random_below(random, 5)];

    change(b, place[0], place[1] > 0 ? place[1] : b->size, random);
}

static void mutate_packs(ps_overlong overlong, uint32_t align)
{
    const ps_packer_options o = {24, 5, 4, 1, .overlong = overlong,
                                 .align = align, .block_packs = 2};
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 14, 30, 12);
    bytes good = corpus_packs(&c, &o, NULL);
    bytes b = {0};
    int fd = open_bytes(&good);
    uint64_t random = 5;
    uint32_t survived = 0;

    assert_true(try_packs(fd));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        b.size = 0;
        put_bytes(&b, good.data, good.size);
        for (uint32_t n = random_below(&random, 3) + 1; n > 0; n--)
            change_packs(&b, &random);
        seal_packs(&b);
        replace(fd, &b);
        survived += try_packs(fd);
    }
    /* Tokens are anybody's: such changes must not be refused. */
    assert_in_range(survived, ROUNDS / 10, ROUNDS / 10 * 9);
    (void)close(fd);
    free_bytes(&b);
    free_bytes(&good);
    free_corpus(&c);
}

static void test_packs(void **state)
{
    mutate_packs(PS_OVERLONG_DROP, 1);
    mutate_packs(PS_OVERLONG_SPLIT, 1);
    mutate_packs(PS_OVERLONG_SPLIT, 4);
}

/* Reads token records, holding or skipping what is long. */
static bool try_tokens(int fd, uint64_t *random)
{
    size_t before = begin_watch();
    ps_token_reader *r;
    ps_sequence s;
    ps_result result;

    rewind_fd(fd);
    result = ps_token_reader_open(&r, fd, PS_U16, NULL, NULL);
    while (result == PS_OK) {
        result = ps_token_reader_next(r, 12, &s, NULL);
        if (result == PS_ERR_OVERLONG)
            result = random_below(random, 2) == 0
                         ? ps_token_reader_skip(r, NULL)
                         : ps_token_reader_hold(r, &s, NULL);
    }
    ps_token_reader_free(r);
    end_watch(before);
    return result == PS_END;
}

static void mutate_tokens(const ps_schema *schema)
{
    corpus c = make_corpus(schema, 14, 30, 12);
    bytes good = corpus_records(&c);
    size_t header = schema->framed ? 136 + 64 * schema->n_channels : 0;
    bytes b = {0};
    int fd = open_bytes(&good);
    uint64_t random = 5;
    uint32_t survived = 0;

    assert_true(try_tokens(fd, &random));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        bool in_header = random_below(&random, 2) == 0;

        b.size = 0;
        put_bytes(&b, good.data, good.size);
        for (uint32_t n = random_below(&random, 3) + 1; n > 0; n--)
            if (in_header && header > 0)
                change(&b, 8, header, &random);
            else
                change(&b, header, b.size, &random);
        if (header > 0)
            seal_header(b.data, header);
        replace(fd, &b);
        survived += try_tokens(fd, &random);
    }
    assert_in_range(survived, ROUNDS / 100, ROUNDS / 10 * 9);
    (void)close(fd);
    free_bytes(&b);
    free_bytes(&good);
    free_corpus(&c);
}

static void test_tokens(void **state)
{
    const ps_schema rich = rich_schema(PS_U16);
    const ps_schema raw = ps_schema_raw(PS_U16);

    mutate_tokens(&rich);
    mutate_tokens(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packs),
        cmocka_unit_test(test_tokens),
    };

    return run_as_tap("mutation", tests, NULL);
}
