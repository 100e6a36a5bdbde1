/*
 * packer-memory-t.c - for any input, a packer, a reader and a compressor stay
 * within the memory bound they state in advance.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "base/mem_bound.h"
#include "io/zstd_frame.h"
#include "lib-alloc.h"

#define SEQUENCES 20000
#define TOKENS (UINT64_C(1) << 26) /* maximum per stream */

/* Sequences of lengths, each a worst case in some way. */
enum kind { FULL, ONE, HALF, RISING, MIXED, KINDS };

/* The i-th length of a stream, at most `max`. */
static uint32_t length_of(int kind, uint32_t i, uint32_t max)
{
    switch (kind) {
    case FULL:
        return max;
    case ONE:
        return 1;
    case HALF:
        return max / 2 + 1;
    case RISING:
        return 1 + (uint32_t)((uint64_t)i * max / SEQUENCES);
    default:
        return 1 + i * UINT32_C(2654435761) % max;
    }
}

static const ps_packer_options sets[] = {
    {.capacity = 512, .depth = 3, .window = 1024},
    {.capacity = 512, .depth = 16, .window = 4096, .max_bytes = 1 << 20},
    {.capacity = 2048, .depth = 64, .window = 2048, .even_cost = true},
    {.capacity = 64, .depth = 64, .window = 8192},
    {.capacity = 200, .window = 1000},
    {.capacity = 512, .window = 2000, .max_bytes = 1 << 18},
    {.capacity = 100000, .window = 1000},
    {.capacity = 1 << 20, .window = 100},
    {.capacity = 384, .depth = 4, .window = 512, .policy = PS_POLICY_NNLSHP},
    {.capacity = 3000, .depth = 9, .window = 300,
     .policy = PS_POLICY_NNLSHP},
    {.capacity = 512, .depth = 8, .window = 5000, .policy = PS_POLICY_SPFHP},
    {.capacity = 512,
     .depth = 8,
     .window = 1000,
     .order = PS_PACKS_SHUFFLED,
     .seed = 5},
    {.capacity = 512, .depth = 8, .window = 1000, .compressed = true,
     .level = 3, .max_frames = 1000},
    {.capacity = 512, .window = 100, .compressed = true, .level = 1,
     .max_frames = 21000, .block_packs = 1},
    {.capacity = 2048, .window = 30, .block_packs = 2048},
    {.capacity = 2048, .window = 30, .block_packs = 2048, .threads = 1},
    {.capacity = 16, .window = 1, .max_bytes = 256, .policy = PS_POLICY_NONE,
     .block_packs = 1},
    {.capacity = 100, .depth = 8, .window = 1,
     .policy = PS_POLICY_NEXTFIT},
    {.capacity = 8192, .window = 1, .policy = PS_POLICY_NEXTFIT},
    {.capacity = 8192, .window = 1, .policy = PS_POLICY_CONCAT},
    {.capacity = 100000, .window = 1, .policy = PS_POLICY_CONCAT},
    {.capacity = 8192, .window = 1, .policy = PS_POLICY_CONCAT,
     .order = PS_PACKS_SHUFFLED, .seed = 5},
    {.capacity = 300, .depth = 300, .window = 64,
     .policy = PS_POLICY_CONCAT},
    {.capacity = 64},
    {.capacity = 512, .max_window = 3000},
    {.capacity = 512, .depth = 8, .policy = PS_POLICY_SPFHP},
    {.capacity = 256, .order = PS_PACKS_SHUFFLED, .seed = 5},
    {.capacity = 2048, .max_bytes = 1 << 20, .max_window = 8192},
    {.capacity = 1 << 17, .max_bytes = 1 << 22, .max_window = 1 << 14,
     .policy = PS_POLICY_BESTFIT},
    {.capacity = 8192, .policy = PS_POLICY_CONCAT},
};

/* Puts sequences `from` to `to` - 1. */
static void put_kind(ps_packer *p, int kind, uint32_t from, uint32_t to)
{
    static const unsigned char zeros[4 << 20];
    const ps_pack_info *info = ps_packer_info(p);
    ps_error err;

    for (uint32_t i = from; i < to; i++) {
        uint32_t n = length_of(kind, i, info->capacity);
        const ps_sequence s = {
            .id = i,
            .n_tok = n,
            .payload = zeros,
            .payload_bytes = (size_t)ps_payload_bytes(&info->schema, n)};

        assert_true(s.payload_bytes <= sizeof zeros);
        assert_ok(ps_packer_put(p, &s, &err), &err);
    }
}

/* Saves, resumes up to `n` sequences and saves again, keeping both states. */
static void stop_and_go(ps_packer **p, int fd, const ps_packer_options *o,
                        int kind, uint32_t n)
{
    const ps_schema schema = ps_packer_info(*p)->schema;
    unsigned char *states[2];
    size_t size;
    ps_state says;
    ps_error err;

    assert_ok(ps_packer_save(*p, "", 0, &states[0], &size, &err), &err);
    ps_packer_free(*p);
    assert_ok(ps_state_read(states[0], size, &says, &err), &err);
    assert_ok(ps_packer_resume(p, fd, &schema, o, states[0], size, &err),
              &err);
    put_kind(*p, kind, (uint32_t)says.resume_from_id, n);
    assert_ok(ps_packer_save(*p, "", 0, &states[1], &size, &err), &err);
    free(states[0]);
    free(states[1]);
}

/* Peak memory of a packer for one kind of lengths; `saves` in between. */
static size_t peak_of(const ps_schema *schema, const ps_packer_options *o,
                      int kind, bool saves)
{
    const uint64_t most = 1 + TOKENS / o->capacity;
    const uint32_t n = most < SEQUENCES ? (uint32_t)most : SEQUENCES;
    int fd = open("/dev/null", O_WRONLY);
    size_t before = alloc_so_far().bytes;
    ps_packer *p;
    ps_error err;

    alloc_watch();
    assert_ok(ps_packer_open(&p, fd, schema, o, &err), &err);
    put_kind(p, kind, 0, n - n / 16);
    if (saves && ps_packer_totals(p)->packs > 0)
        stop_and_go(&p, fd, o, kind, n - n / 16);
    put_kind(p, kind, n - n / 16, n);
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    ps_packer_free(p);
    assert_int_equal(alloc_so_far().bytes, before);
    (void)close(fd);
    return alloc_so_far().peak - before;
}

/* A bound far above the peak would be useless, so it is checked, too. */
static void check_set(const ps_schema *schema, const ps_packer_options *o)
{
    const uint64_t bounds[] = {ps_packer_memory(schema, o),
                               ps_packer_save_memory(schema, o, 0)};
    uint64_t bound = 0;
    size_t max = 0;

    for (size_t saves = 0; saves < 2; saves++) {
        bound += bounds[saves];
        for (int kind = FULL; kind < KINDS; kind++) {
            size_t peak = peak_of(schema, o, kind, saves == 1);

            if (peak > bound)
                fail_msg("-L %u -d %u -w %u: %zu bytes, bound %llu",
                         o->capacity, o->depth, o->window, peak,
                         (unsigned long long)bound);
            max = peak > max ? peak : max;
        }
        if (max < bound / 64)
            fail_msg("-L %u -d %u -w %u: bound %llu, but %zu bytes",
                     o->capacity, o->depth, o->window,
                     (unsigned long long)bound, max);
    }
}

static void test_packers(void **state)
{
    const ps_schema raw = ps_schema_raw(PS_U16);

    for (size_t i = 0; i < COUNT(sets); i += is_short() ? 2 : 1)
        check_set(&raw, &sets[i]);
}

static void test_channels(void **state)
{
    const ps_schema schema = rich_schema(PS_U32);
    ps_packer_options o = {.capacity = 256, .depth = 8, .window = 700};

    check_set(&schema, &o);
    o.max_bytes = 1 << 20;
    check_set(&schema, &o);
    /* One group without end, which is cut at every pack. */
    o = (ps_packer_options){.capacity = 256, .window = 50, .group = "group",
                            .overlong = PS_OVERLONG_SPLIT};
    check_set(&schema, &o);
    o.window = 0;
    o.max_bytes = ps_packer_least_bytes(&schema, &o);
    check_set(&schema, &o);
}

/* More threads and larger windows need more; invalid options, the maximum. */
static void test_orders(void **state)
{
    const ps_schema raw = ps_schema_raw(PS_U16);
    ps_packer_options o = sets[0];
    uint64_t first = ps_packer_memory(&raw, &o);

    o.threads = 2;
    assert_true(ps_packer_memory(&raw, &o) > first);
    o.threads = 0;
    o.window *= 2;
    assert_true(ps_packer_memory(&raw, &o) > first);
    assert_true(ps_packer_save_memory(&raw, &o, 100) > 100);
    o.window = PS_MAX_WINDOW;
    o.capacity = PS_MAX_CAPACITY;
    assert_true(ps_packer_memory(&raw, &o) > UINT64_C(1) << 48);
    assert_true(ps_packer_memory(&raw, &o) < UINT64_MAX);
    o.window = 0;
    o.depth = 0;
    o.max_bytes = UINT64_C(1) << 28;
    first = ps_packer_memory(&raw, &o);
    assert_true(first < UINT64_C(1) << 40);
    o.max_window = 4096;
    assert_true(ps_packer_memory(&raw, &o) < first);
    o.window = PS_MAX_WINDOW + 1;
    assert_true(ps_packer_memory(&raw, &o) == UINT64_MAX);
    assert_true(ps_packer_save_memory(&raw, &o, 0) == UINT64_MAX);
}

static void test_sums(void **state)
{
    assert_true(ps_mem_sum(UINT64_MAX - 1, 1) == UINT64_MAX);
    assert_true(ps_mem_sum(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(ps_mem_times(UINT64_C(1) << 32, UINT64_C(1) << 32) ==
                UINT64_MAX);
    assert_true(ps_mem_times(0, UINT64_MAX) == 0);
    assert_true(ps_mem_array(UINT64_MAX, 2) == UINT64_MAX);
    assert_true(ps_mem_growing(UINT64_MAX / 2, 1, 1) == UINT64_MAX);
}

/* zstd's own estimates for its levels, against the table. */
static void test_levels(void **state)
{
    static const size_t sizes[] = {1, 5000, 70000, 524288, 600000, 2097152};
    size_t max = sizes[COUNT(sizes) - 1];
    size_t room = ZSTD_compressBound(max);
    unsigned char *from = must_alloc(max);
    unsigned char *to = must_alloc(room);

    memset(from, 7, max);
    for (int level = ZSTD_maxCLevel(); level >= -7;
         level -= is_short() ? 4 : 1)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            ZSTD_CCtx *c = ZSTD_createCCtx();
            size_t bound = ZSTD_compressBound(sizes[i]);

            (void)ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
            (void)ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
            assert_false(
                ZSTD_isError(ZSTD_compress2(c, to, room, from, sizes[i])));
            if (ZSTD_sizeof_CCtx(c) + bound >
                ps_compressor_bytes(level, sizes[i]))
                fail_msg("level %d, %zu bytes: zstd takes %zu", level,
                         sizes[i], ZSTD_sizeof_CCtx(c));
            ZSTD_freeCCtx(c);
        }
    free(from);
    free(to);
}

/* ---- Readers ---- */

/* `n` records of `n_tok` tokens each, optionally as a zstd frame. */
static int open_records(uint32_t n_tok, uint32_t n, int window_log)
{
    bytes plain = {0};
    bytes packed = {0};
    int fd;

    for (uint32_t i = 0; i < n; i++) {
        put_u32(&plain, n_tok);
        put_zeros(&plain, (size_t)2 * n_tok);
    }
    if (window_log == 0) {
        fd = open_bytes(&plain);
    } else {
        ZSTD_CCtx *c = ZSTD_createCCtx();

        put_zeros(&packed, ZSTD_compressBound(plain.size));
        (void)ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log);
        (void)ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
        packed.size = ZSTD_compress2(c, packed.data, packed.size, plain.data,
                                     plain.size);
        assert_false(ZSTD_isError(packed.size));
        ZSTD_freeCCtx(c);
        fd = open_bytes(&packed);
    }
    free_bytes(&plain);
    free_bytes(&packed);
    return fd;
}

static ps_result read_all(int fd, uint64_t longest, uint64_t window,
                          ps_error *err)
{
    const ps_token_reader_options options = {.window = window};
    ps_token_reader *r = NULL;
    ps_sequence s;
    ps_result result = ps_token_reader_open(&r, fd, PS_U16, &options, err);

    if (result == PS_OK)
        ps_token_reader_set_longest(r, longest);
    while (result == PS_OK)
        result = ps_token_reader_next(r, UINT32_MAX, &s, err);
    ps_token_reader_free(r);
    return result;
}

static void check_reader(uint32_t n_tok, int window_log, uint64_t longest,
                         uint64_t window, ps_result wanted)
{
    int fd = open_records(n_tok, 6000000 / n_tok, window_log);
    uint64_t bound = ps_token_reader_memory(longest, window, false);
    size_t before = alloc_so_far().bytes;
    ps_error err;

    rewind_fd(fd);
    alloc_watch();
    assert_result(read_all(fd, longest, window, &err), wanted, &err);
    assert_true(alloc_so_far().peak - before <= bound);
    if (wanted == PS_ERR_LIMIT && window_log == 0)
        assert_non_null(strstr(err.text, "record 0 at byte 0: "));
    if (wanted == PS_ERR_LIMIT && window_log != 0)
        assert_non_null(strstr(err.text, "a window of more than"));
    (void)close(fd);
}

static void test_readers(void **state)
{
    check_reader(10, 0, 20, 0, PS_END);
    check_reader(1000, 0, 2000, 0, PS_END);
    check_reader(1000, 0, 1999, 0, PS_ERR_LIMIT);
    check_reader(500000, 0, 1000000, 0, PS_END);
    check_reader(500000, 0, 999999, 0, PS_ERR_LIMIT);
    check_reader(1000, 20, 2000, 1 << 20, PS_END);
    check_reader(300000, 20, 600000, 1 << 20, PS_END);
    check_reader(1000, 20, 2000, (1 << 20) - 1, PS_ERR_LIMIT);
    check_reader(1000, 23, 2000, 1 << 22, PS_ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),    cmocka_unit_test(test_orders),
        cmocka_unit_test(test_packers), cmocka_unit_test(test_channels),
        cmocka_unit_test(test_levels),  cmocka_unit_test(test_readers),
    };

    return run_as_tap("packer-memory", tests, NULL);
}
