/*
 * input-t.c - inputs that arrive in pieces of any size, plain and compressed,
 * give the same bytes and the same errors with a thread and without.
 *
 * This program compiles src/lib/io/read_ahead.c again with write renamed to a
 * slow fake below.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-file-fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io/input.h"

/* Writes everything; false if the reader has closed the pipe. */
static bool write_out(int fd, const unsigned char *data, size_t n)
{
    while (n > 0) {
        struct iovec v = {.iov_base = (void *)(uintptr_t)data, .iov_len = n};
        ssize_t put = writev(fd, &v, 1);

        if (put <= 0)
            return false;
        data += put;
        n -= (size_t)put;
    }
    return true;
}

/* read_ahead.c calls it only for its wakeup pipe. */
ssize_t fake_write(int fd, const void *data, size_t n)
{
    (void)poll(NULL, 0, 20);
    return write_out(fd, data, n) ? (ssize_t)n : -1;
}

/* ----------------------------------------------------------------- inputs */

/* Bytes that a thread writes into a pipe, a few at a time. */
typedef struct input {
    bytes b;
    size_t chunk;
    int fd; /* to read from */
    int to;
    pthread_t thread;
} input;

static void *feed(void *context)
{
    const input *in = context;
    size_t n = in->chunk;
    bool reads = true;

    for (size_t at = 0; reads && at < in->b.size; at += n) {
        n = n < in->b.size - at ? n : in->b.size - at;
        reads = write_out(in->to, in->b.data + at, n);
    }
    (void)close(in->to);
    return NULL;
}

static void start_input(input *in, const bytes *b, size_t chunk)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    *in = (input){.b = *b, .chunk = chunk, .fd = ends[0], .to = ends[1]};
    assert_int_equal(pthread_create(&in->thread, NULL, feed, in), 0);
}

/* Also works if some input was not read. */
static void end_input(input *in)
{
    (void)close(in->fd);
    assert_int_equal(pthread_join(in->thread, NULL), 0);
}

static bytes make_data(size_t n, uint64_t random)
{
    bytes b = {0};

    for (size_t i = 0; i < n; i++)
        put_u8(&b, random_below(&random, i / 5000 % 2 == 0 ? 1 : 256));
    return b;
}

static ps_input *open_source(int fd, bool threaded)
{
    ps_input *s;
    ps_error err;

    assert_ok(ps_input_open(&s, fd, &err), &err);
    if (threaded)
        assert_ok(ps_input_read_ahead(s, &err), &err);
    return s;
}

/* ---------------------------------------------------------------- reading */

#define HELD 24

/* A position in a block, whose bytes must not change. */
typedef struct place {
    ps_block *block;
    const unsigned char *data;
    void *copy;
    size_t n;
} place;

/* A reader that takes random sizes, and holds some blocks. */
typedef struct reading {
    ps_input *input;
    place held[HELD];
    size_t n_held; /* ever */
    uint64_t random;
} reading;

static void let_go(place *p)
{
    if (p->block == NULL)
        return;
    assert_memory_equal(p->data, p->copy, p->n);
    ps_block_release(p->block);
    free(p->copy);
    p->block = NULL;
}

static void hold(reading *r, const unsigned char *data, size_t n)
{
    place *p = &r->held[r->n_held++ % HELD];

    let_go(p);
    *p = (place){.block = ps_input_block(r->input), .data = data, .n = n};
    p->copy = must_alloc(n);
    memcpy(p->copy, data, n);
    ps_block_hold(p->block);
}

static void let_all_go(reading *r)
{
    for (size_t i = 0; i < HELD; i++)
        let_go(&r->held[i]);
}

/* Mostly record sizes; some exceed a block's headroom, or a block. */
static size_t random_size(uint64_t *random)
{
    const uint32_t what = random_below(random, 40);

    if (what < 5)
        return random_below(random, what == 0 ? 700000 : 70000);
    if (what < 7)
        return (what == 5 ? PS_BLOCK_HEADROOM : PS_BLOCK_BYTES) - 2 +
               random_below(random, 5);
    return random_below(random, 3000);
}

/* Peeks at `want` bytes with `left` still to come. */
static const unsigned char *peek(ps_input *s, size_t want,
                                 const unsigned char *wanted, size_t left)
{
    const unsigned char *data;
    size_t got;
    ps_error err;

    assert_ok(ps_input_peek(s, want, &data, &got, &err), &err);
    assert_int_equal(got, want < left ? want : left);
    if (got > 0)
        assert_memory_equal(data, wanted, got);
    return data;
}

/* Reads bytes `from`..`to` of the input. */
static void read_bytes(reading *r, const bytes *all, size_t from, size_t to)
{
    ps_input *s = r->input;

    for (size_t at = from; at < to;) {
        size_t left = all->size - at;
        size_t n = random_size(&r->random);
        const unsigned char *data = peek(s, n, all->data + at, left);
        const ps_block *b = ps_input_block(s);

        n = n < to - at ? n : to - at;
        if (b != NULL)
            assert_true(ps_block_has(b, data, n));
        if (b != NULL && n > 0 && random_below(&r->random, 3) == 0)
            hold(r, data, n);
        if (random_below(&r->random, 4) == 0)
            n = random_below(&r->random, (uint32_t)n + 1);
        ps_input_take(s, n);
        at += n;
        assert_int_equal(s->taken, at);
    }
}

static void read_to_end(reading *r, const bytes *all, size_t from)
{
    read_bytes(r, all, from, all->size);
    (void)peek(r->input, 300000, NULL, 0);
}

/* A thread may read from byte `middle` on. */
static void read_chunks(const bytes *all, const bytes *as, size_t chunk,
                        size_t middle, bool threaded)
{
    reading r = {.random = chunk};
    input in;
    ps_error err;

    start_input(&in, as, chunk);
    r.input = open_source(in.fd, false);
    read_bytes(&r, all, 0, middle);
    for (int i = 0; threaded && i < 2; i++)
        assert_ok(ps_input_read_ahead(r.input, &err), &err);
    read_to_end(&r, all, middle);
    /* Only plain bytes stay in blocks; few may be read in a step. */
    assert_true(as != all ? r.n_held == 0 : r.n_held > 0 || chunk < 10);
    ps_input_free(r.input);
    let_all_go(&r);
    end_input(&in);
}

/* In small pieces and in large, with a thread from the start or the middle. */
static void test_reading(void **state)
{
    static const struct {
        size_t n, chunk, middle;
    } cases[] = {
        {5, 1, 0},
        {30000, 1, 0},
        {100000, 7, 0},
        {2500000, 4096, 0},
        {2500000, 65537, 0},
        {2500000, 2500000, 0},
        {1500000, 300000, 7},
        {1500000, 10000, 600001},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t chunk = cases[i].chunk;
        bytes all = make_data(cases[i].n, chunk);
        bytes packed = compress(&all);

        for (int threaded = 0; threaded < 2; threaded++) {
            read_chunks(&all, &all, chunk, cases[i].middle, threaded);
            read_chunks(&all, &packed, chunk, cases[i].middle, threaded);
        }
    }
}

/* Reopens other inputs, whether the previous one was read to its end or not. */
static void test_reopen(void **state)
{
    bytes all = make_data(700000, 7);
    bytes packed = compress(&all);
    bytes none = {0};

    for (int threaded = 0; threaded < 2; threaded++) {
        int fd = open_bytes(&none);
        reading r = {.input = open_source(fd, threaded), .random = 8};
        ps_error err;

        read_to_end(&r, &none, 0);
        for (int i = 0; i < 8; i++) {
            input in;

            start_input(&in, i % 2 == 0 ? &all : &packed, 30000);
            assert_ok(ps_input_reopen(r.input, in.fd, &err), &err);
            assert_true((ps_input_descriptor(r.input) != in.fd) ==
                        (threaded != 0));
            if (i / 2 % 2 == 0)
                read_to_end(&r, &all, 0);
            else
                read_bytes(&r, &all, 0, all.size / 2);
            rewind_fd(fd);
            assert_ok(ps_input_reopen(r.input, fd, &err), &err);
            read_to_end(&r, &none, 0);
            end_input(&in);
        }
        ps_input_free(r.input);
        let_all_go(&r);
        (void)close(fd);
    }
}

/* ---------------------------------------------------------------- waiting */

static bool is_readable(int fd, int milliseconds)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, milliseconds) == 1;
}

static const unsigned char abc[] = "abcabc";

/* A pipe into which the hook writes. */
typedef struct wait_stand {
    ps_input *input;
    int ends[2];
    unsigned calls;
    bool leave; /* at once, without a look at the descriptor */
    bool fail;
} wait_stand;

static ps_result on_wait(void *context, ps_error *err)
{
    wait_stand *w = context;
    int fd = ps_input_descriptor(w->input);

    w->calls++;
    if (w->fail) {
        *err = (ps_error){.code = PS_ERR_LIMIT, .text = "enough"};
        return PS_ERR_LIMIT;
    }
    assert_false(is_readable(fd, 0));
    assert_true(write_out(w->ends[1], abc, 3));
    if (w->leave)
        (void)poll(NULL, 0, 5);
    else
        assert_true(is_readable(fd, -1));
    return PS_OK;
}

static void open_wait(wait_stand *w, bool threaded)
{
    *w = (wait_stand){0};
    assert_int_equal(pipe(w->ends), 0);
    w->input = open_source(w->ends[0], threaded);
    ps_input_on_wait(w->input, on_wait, w);
}

static void close_wait(wait_stand *w)
{
    ps_input_free(w->input);
    (void)close(w->ends[0]);
    (void)close(w->ends[1]);
}

static void read_abc(wait_stand *w)
{
    (void)peek(w->input, 3, abc, 3);
    ps_input_take(w->input, 3);
}

/* Each wait calls the hook once, and none is needed for buffered input. */
static void test_wait_hook(void **state)
{
    for (int threaded = 0; threaded < 2; threaded++) {
        wait_stand w;

        open_wait(&w, threaded);
        (void)peek(w.input, 4, abc, 4);
        ps_input_take(w.input, 3);
        read_abc(&w);
        assert_int_equal(w.calls, 2);
        read_abc(&w);
        assert_int_equal(w.calls, 3);
        close_wait(&w);
    }
}

/* A late wakeup must not end the next wait. */
static void test_late_wakeup(void **state)
{
    wait_stand w;

    open_wait(&w, true);
    for (int i = 0; i < 4; i++) {
        w.leave = i % 2 == 0;
        read_abc(&w);
        (void)poll(NULL, 0, 40);
    }
    assert_int_equal(w.calls, 4);
    close_wait(&w);
}

static void test_failing_hook(void **state)
{
    for (int threaded = 0; threaded < 2; threaded++) {
        wait_stand w;
        const unsigned char *data;
        size_t got;
        ps_error err;

        open_wait(&w, threaded);
        w.fail = true;
        for (unsigned i = 1; i <= 2; i++) {
            assert_result(ps_input_peek(w.input, 1, &data, &got, &err),
                          PS_ERR_LIMIT, &err);
            assert_int_equal(w.calls, i);
        }
        assert_result(ps_input_peek(w.input, PS_BLOCK_BYTES + 1, &data, &got,
                                    &err),
                      PS_ERR_LIMIT, &err);
        w.fail = false;
        read_abc(&w);
        close_wait(&w);
    }
}

/* ----------------------------------------------------------------- errors */

static void test_read_errors(void **state)
{
    /* A directory, and a closed descriptor whose number is not reused. */
    const int fds[] = {open(".", O_RDONLY), fcntl(1, F_DUPFD, 200)};

    assert_true(fds[0] >= 0 && fds[1] >= 200);
    (void)close(fds[1]);
    for (int i = 0; i < 4; i++) {
        ps_input *s = open_source(fds[i % 2], i / 2 != 0);
        const unsigned char *data;
        size_t got;
        ps_error err;

        for (int again = 0; again < 3; again++) {
            assert_result(ps_input_peek(s, 1, &data, &got, &err),
                          PS_ERR_IO, &err);
            assert_non_null(strstr(err.text, "cannot read"));
        }
        ps_input_free(s);
    }
    (void)close(fds[0]);
}

/* The thread is waiting for input, for a free block, or for nothing. */
static void test_free_while_waiting(void **state)
{
    bytes much = make_data(4000000, 3);

    for (int i = 0; i < 8; i++) {
        bytes some = {.data = much.data, .size = i % 2 == 0 ? 10 : much.size};
        wait_stand w;
        input in;
        ps_input *s;

        open_wait(&w, true);
        if (i % 2 == 0)
            read_abc(&w);
        (void)poll(NULL, 0, i / 2);
        close_wait(&w);
        start_input(&in, &some, 100000);
        s = open_source(in.fd, true);
        (void)peek(s, 10, some.data, 10);
        (void)poll(NULL, 0, i / 2);
        ps_input_free(s);
        end_input(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_reopen),
        cmocka_unit_test(test_wait_hook),
        cmocka_unit_test(test_late_wakeup),
        cmocka_unit_test(test_failing_hook),
        cmocka_unit_test(test_read_errors),
        cmocka_unit_test(test_free_while_waiting),
    };

    (void)alarm(600); /* in case a wait never ends */
    (void)signal(SIGPIPE, SIG_IGN);
    return run_as_tap("source", tests, NULL);
}
