/*
 * loader-refused-t.c - loaders that fail or wait: invalid options, damage, an
 * input that waits, a user who stops early, threads and memory that cannot be
 * allocated.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-mark-fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib-alloc.h"

static given make_stream(void)
{
    return make_given(make_pack_stream(40, 5, 3));
}

/* The nth thread from now on cannot be created; 0: all can. */
static int fail_thread;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *context)
{
    if (fail_thread > 0 && --fail_thread == 0)
        return EAGAIN;
    return __real_pthread_create(thread, attributes, start, context);
}

/* ---------------------------------------------------------------------
 * Invalid options
 */

static void refuse(const given *g, ps_loader_options o, ps_result wanted)
{
    int fd;
    ps_pack_reader *r = open_packs(&g->b, PLAIN_FILE, &fd);
    ps_loader *l = (void *)&fd;
    ps_error err;

    assert_result(ps_loader_open(&l, r, &o, &err), wanted, &err);
    assert_null(l);
    close_packs(r, fd);
}

static void test_refused(void **state)
{
    given g = make_stream();
    char room[2048];
    void *memory[2] = {NULL, room + 8 - (uintptr_t)room % 16};
    ps_loader_layout layout;
    ps_error err;

#define REFUSE(result, ...)                                             \
    refuse(&g, (ps_loader_options){__VA_ARGS__}, result)
    REFUSE(PS_ERR_ARGUMENT, .packs = 0);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .rank = 1);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .rank = 4, .ranks = 4);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .view = (ps_view)3);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .last = (ps_last)3);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .last = PS_LAST_PAD);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .buffers = 1);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .keep = 3, .buffers = 3);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .keep = PS_LOADER_BUFFERS);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .buffers = PS_LOADER_BUFFERS + 1);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .memory = memory);
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .memory = memory, .buffers = 2);
    memory[0] = memory[1];
    REFUSE(PS_ERR_ARGUMENT, .packs = 1, .memory = memory, .buffers = 2);
    REFUSE(PS_ERR_LIMIT, .packs = UINT32_MAX);
    REFUSE(PS_ERR_ARGUMENT, .packs = 2, .ranks = PS_MAX_DEAL,
           .cost.tokens = 1);
#undef REFUSE
    assert_result(ps_loader_plan(&g.e.info,
                                 &(ps_loader_options){.packs = 1 << 30},
                                 &layout, &err),
                  PS_ERR_LIMIT, &err);
    ps_loader_free(NULL);
}

/* A shared reader would take a share of its share. */
static void test_shared_reader(void **state)
{
    given g = make_stream();
    const ps_loader_options o = {.packs = 1};
    int fd;
    ps_pack_reader *r = open_packs(&g.b, PLAIN_FILE, &fd);
    ps_loader *l;
    ps_error err;

    assert_ok(ps_pack_reader_share(r, 0, 2, &err), &err);
    assert_result(ps_loader_open(&l, r, &o, &err), PS_ERR_ARGUMENT, &err);
    close_packs(r, fd);
}

/* Costs that overflow, in one pack or over a round. */
static void test_costs(void **state)
{
    given g = make_stream();
    const uint64_t costs[] = {UINT64_MAX, UINT64_MAX / g.e.info.capacity};

    for (size_t i = 0; i < COUNT(costs); i++) {
        const ps_loader_options o = {
            .packs = 3, .ranks = 2, .cost.tokens = costs[i]};
        int fd;
        ps_pack_reader *r = open_packs(&g.b, PLAIN_FILE, &fd);
        ps_loader *l;
        ps_batch batch;
        ps_error err;

        assert_ok(ps_loader_open(&l, r, &o, &err), &err);
        for (int again = 0; again < 2; again++)
            assert_result(ps_loader_next(l, &batch, &err), PS_ERR_LIMIT,
                          &err);
        ps_loader_free(l);
        close_packs(r, fd);
    }
}

/* ---------------------------------------------------------------------
 * Damage
 */

/* The loader reports the same error, after the complete batches before it. */
static void check_failure(const bytes *b, ps_loader_options o,
                          input_kind kind)
{
    uint64_t packs;
    ps_error wanted;
    const ps_result result = read_packs(b, &packs, &wanted);
    const uint64_t ranks = o.ranks == 0 ? 1 : o.ranks;
    int fd;
    ps_pack_reader *r = open_packs(b, kind, &fd);
    ps_loader *l;
    ps_batch batch;
    ps_error err;

    assert_ok(ps_loader_open(&l, r, &o, &err), &err);
    for (uint64_t k = 0; k < packs / (o.packs * ranks); k++)
        assert_ok(ps_loader_next(l, &batch, &err), &err);
    assert_result(ps_loader_next(l, &batch, &err), result, &err);
    assert_string_equal(err.text, wanted.text);
    assert_result(ps_loader_next(l, &batch, NULL), result, NULL);
    assert_result(ps_loader_next(l, &batch, &err), result, &err);
    assert_string_equal(err.text, wanted.text);
    ps_loader_free(l);
    close_packs(r, fd);
}

static void check_failures(const bytes *b)
{
    for (uint32_t packs = 1; packs <= 9; packs += 4)
        for (unsigned n = 0; n < 8; n++)
            check_failure(b,
                          (ps_loader_options){.packs = packs,
                                              .view = PS_VIEW_GHOST,
                                              .last = (ps_last)(n % 3),
                                              .ranks = 1 + n / 4,
                                              .no_thread = n % 2 == 1},
                          n < 4 ? PLAIN_FILE : PLAIN_PIPE);
}

/* Changes one byte. */
static void check_damage(const given *g, unsigned char *byte)
{
    *byte ^= 1;
    check_failures(&g->b);
    *byte ^= 1;
}

static bool is_end(const bytes *b, size_t k)
{
    return get_u32(block_at(b, k, 4)) == 1;
}

static void test_damage(void **state)
{
    static const size_t in_head[] = {0, 9, 12, 17, 21, 25, 33};
    static const size_t in_block[] = {1, 4, 8, 12, 17, 25, 33, 41, 49, 57};
    given g = make_stream();
    size_t k = 0;

    for (uint64_t i = 0; i < g.e.n; i += i < 4 ? 1 : 5) {
        check_damage(&g, row_at(&g.b, (size_t)i, 3));
        check_damage(&g, seq_at(&g.b, (size_t)i, 0, 8));
        for (size_t n = 0; n < COUNT(in_head); n++)
            check_damage(&g, head_at(&g.b, (size_t)i, in_head[n]));
    }
    do
        for (size_t n = 0; n < COUNT(in_block); n++)
            check_damage(&g, block_at(&g.b, k, in_block[n]));
    while (!is_end(&g.b, k++));
    check_damage(&g, block_at(&g.b, k - 1, 70));
    check_damage(&g, g.b.data + g.b.size - 1);
}

/* The stream is cut after block `k`, or continues with block k + 2. */
static void test_missing(void **state)
{
    given g = make_stream();

    for (size_t k = 0; !is_end(&g.b, k); k++) {
        const size_t at = (size_t)(block_at(&g.b, k, 0) - g.b.data);
        const size_t next = (size_t)(block_at(&g.b, k + 1, 0) - g.b.data);
        bytes cut = {0};
        bytes gap = {0};

        put_bytes(&cut, g.b.data, next - 17);
        check_failures(&cut);
        cut.size = at + 17;
        check_failures(&cut);
        cut.size = at;
        check_failures(&cut);
        put_bytes(&gap, g.b.data, at);
        put_bytes(&gap, g.b.data + next, g.b.size - next);
        check_failures(&gap);
    }
}

/* ---------------------------------------------------------------------
 * Waiting
 */

/*
 * The start of a stream is in a pipe whose other end is still open.  Complete
 * packs are returned without waiting for more.
 */
static void check_waiting(const given *g, ps_loader_options o,
                          uint32_t blocks, size_t more)
{
    const size_t n =
        (size_t)(block_at(&g->b, blocks, 0) - g->b.data) + more;
    const uint32_t packs = 4 * blocks;
    int ends[2];
    ps_pack_reader *r;
    ps_loader *l;
    ps_batch batch;
    ps_error err;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], g->b.data, n), n);
    assert_ok(ps_pack_reader_open(&r, ends[0], &err), &err);
    assert_ok(ps_loader_open(&l, r, &o, &err), &err);
    for (uint32_t k = 0; k < packs / o.packs; k++)
        assert_ok(ps_loader_next(l, &batch, &err), &err);
    /* The thread is waiting for input, and must end nevertheless. */
    ps_loader_free(l);
    close_packs(r, ends[0]);
    (void)close(ends[1]);
}

static void test_waiting(void **state)
{
    given g = make_stream();

    (void)alarm(600); /* instead of a hang */
    for (uint32_t blocks = 0; blocks <= 5; blocks++)
        for (unsigned n = 0; n < 4; n++)
            check_waiting(&g,
                          (ps_loader_options){.packs = 3,
                                              .no_thread = n % 2 == 0},
                          blocks, n / 2 * 100);
    (void)alarm(0);
}

/* ---------------------------------------------------------------------
 * Threads, descriptors and memory that cannot be allocated
 */

static void test_no_threads(void **state)
{
    given g = make_stream();

    for (unsigned n = 0; n < 6; n++)
        for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++) {
            const ps_loader_options o = {.packs = 2, .ranks = 1 + n % 2};
            uint64_t packs = 0;
            int fd;
            ps_pack_reader *r;
            ps_loader *l;
            ps_batch batch;
            ps_result result;
            ps_error err;

            fail_thread = 1 + (int)n / 2;
            r = open_packs(&g.b, kind, &fd);
            assert_ok(ps_loader_open(&l, r, &o, &err), &err);
            while ((result = ps_loader_next(l, &batch, &err)) == PS_OK)
                packs += batch.n_packs;
            assert_result(result, PS_END, &err);
            assert_int_equal(packs, (g.e.n + o.ranks - 1) / o.ranks);
            ps_loader_free(l);
            close_packs(r, fd);
            fail_thread = 0;
        }
}

static void test_no_descriptors(void **state)
{
    given g = make_stream();
    const ps_loader_options o = {.packs = 2};
    struct rlimit before;
    struct rlimit none;
    int fd;
    ps_pack_reader *r = open_packs(&g.b, PLAIN_FILE, &fd);
    ps_loader *l;
    ps_error err;
    ps_result result;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)fd;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    result = ps_loader_open(&l, r, &o, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_result(result, PS_ERR_IO, &err);
    assert_null(l);
    close_packs(r, fd);
}

/* Each allocation fails in turn, and none leaks. */
static void check_memory(const given *g, uint32_t ranks, bool for_ever)
{
    const alloc_counts before = alloc_so_far();
    const ps_loader_options o = {
        .packs = 3, .ranks = ranks, .cost.squares = 1};
    uint64_t nth = 0;
    ps_result result;

    do {
        int fd;
        ps_pack_reader *r = open_packs(&g->b, ZSTD_FILE, &fd);
        ps_loader *l;
        ps_batch batch;
        ps_error err;

        alloc_watch();
        alloc_fail(++nth, for_ever);
        result = ps_loader_open(&l, r, &o, &err);
        while (result == PS_OK)
            result = ps_loader_next(l, &batch, &err);
        alloc_fail(0, false);
        assert_result(result,
                      alloc_so_far().failed > 0 ? PS_ERR_MEMORY : PS_END,
                      &err);
        ps_loader_free(l);
        close_packs(r, fd);
        assert_int_equal(alloc_so_far().blocks, before.blocks);
    } while (result != PS_END);
    assert_true(nth > 3);
}

static void test_memory(void **state)
{
    given g = make_stream();

    for (uint32_t ranks = 1; ranks < 3; ranks++) {
        check_memory(&g, ranks, false);
        check_memory(&g, ranks, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_shared_reader),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_no_threads),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("loader-refused", tests, NULL);
}
