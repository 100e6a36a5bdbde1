/*
 * fd-t.c - system calls that are cut short, interrupted, or fail, for now or
 * for good.
 *
 * This program compiles src/lib/io/fd.c again with read, pread, write and poll
 * renamed to the fakes below.  The rest of the library calls it as usual, so
 * whole streams go through the fakes as well.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-file-fixture.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io/fd.h"

/* Results of a call to read or write. */
typedef enum act {
    WHOLE,     /* what the system would do */
    SHORT,     /* at most `max` bytes of it */
    INTERRUPT, /* EINTR */
    LATER,     /* EAGAIN */
    NOTHING,   /* 0 */
    BROKEN     /* EIO */
} act;

/* The script of the fakes: the acts, repeated in order. */
static struct {
    const act *acts;
    size_t n_acts;
    size_t max;
    size_t break_at; /* this call, from 1, is BROKEN; 0: none is */
    size_t calls;
    size_t polls;
    short events; /* of the last poll */
    int poll_errors[3]; /* what the first polls fail with, if not 0 */
} script;

#define SCRIPT(n_max, ...)                                             \
    do {                                                                \
        static const act acts_[] = {__VA_ARGS__};                       \
                                                                        \
        memset(&script, 0, sizeof script);                              \
        script.acts = acts_;                                            \
        script.n_acts = COUNT(acts_);                 \
        script.max = n_max;                                           \
    } while (0)

/* True if the real call is due; otherwise *result and errno are set. */
static bool next_act(size_t *n, ssize_t *result)
{
    act a = script.acts[script.calls++ % script.n_acts];

    a = script.calls == script.break_at ? BROKEN : a;
    *result = a == NOTHING ? 0 : -1;
    if (a == INTERRUPT)
        errno = EINTR;
    else if (a == LATER)
        errno = EAGAIN;
    else if (a == BROKEN)
        errno = EIO;
    else if (a == SHORT && *n > script.max)
        *n = script.max;
    return a == WHOLE || a == SHORT;
}

/* <unistd.h> and <poll.h> declare these instead of the real ones. */
ssize_t fake_read(int fd, void *buf, size_t n)
{
    ssize_t result;
    bool real = next_act(&n, &result);
    struct iovec v = {buf, n};

    return real ? readv(fd, &v, 1) : result;
}

ssize_t fake_pread(int fd, void *buf, size_t n, off_t at)
{
    ssize_t result;
    bool real = next_act(&n, &result);
    struct iovec v = {buf, n};

    if (real && lseek(fd, at, SEEK_SET) == at)
        result = readv(fd, &v, 1);
    return result;
}

ssize_t fake_write(int fd, const void *buf, size_t n)
{
    ssize_t result;
    bool real = next_act(&n, &result);
    struct iovec v = {.iov_len = n};

    memcpy(&v.iov_base, &buf, sizeof buf); /* writev changes nothing */
    return real ? writev(fd, &v, 1) : result;
}

int fake_poll(struct pollfd *p, nfds_t n, int timeout)
{
    size_t call = script.polls++;

    (void)timeout;
    assert_int_equal(n, 1);
    script.events = p->events;
    p->revents = p->events;
    if (call < 3 && script.poll_errors[call] != 0) {
        errno = script.poll_errors[call];
        return -1;
    }
    return 1;
}

static void test_read(void **state)
{
    int fd = open_data("abcdef", 6);
    char got[8];

    SCRIPT(2, INTERRUPT, INTERRUPT, SHORT);
    assert_int_equal(ps_read(fd, got, 8), 2);
    assert_memory_equal(got, "ab", 2);
    assert_int_equal(script.calls, 3);
    assert_int_equal(script.polls, 0);
    SCRIPT(2, LATER, INTERRUPT, LATER, SHORT);
    assert_int_equal(ps_read(fd, got, 8), 2);
    assert_memory_equal(got, "cd", 2);
    assert_int_equal(script.polls, 2);
    assert_int_equal(script.events, POLLIN);
    SCRIPT(0, WHOLE);
    assert_int_equal(ps_read(fd, got, 8), 2);
    assert_int_equal(ps_read(fd, got, 8), 0); /* the end is not an error */
}

static void test_read_errors(void **state)
{
    char got[8];

    SCRIPT(0, INTERRUPT, BROKEN);
    assert_int_equal(ps_read(0, got, 8), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(script.calls, 2);
    SCRIPT(0, LATER); /* and waiting fails, too, after two more tries */
    script.poll_errors[0] = EINTR;
    script.poll_errors[1] = EAGAIN;
    script.poll_errors[2] = ENOMEM;
    assert_int_equal(ps_read(0, got, 8), -1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(script.polls, 3);
    assert_int_equal(script.calls, 1);
}

/* All bytes arrive, however they are cut up. */
static void test_read_at(void **state)
{
    char buf[8];
    FILE *file = tmpfile();
    int fd;

    assert_non_null(file);
    fd = fileno(file);
    assert_int_equal(pwrite(fd, "0123456789", 10, 0), 10);

    SCRIPT(3, INTERRUPT, SHORT, SHORT, INTERRUPT, SHORT);
    assert_int_equal(ps_read_at(fd, buf, 8, 1), 8);
    assert_memory_equal(buf, "12345678", 8);
    assert_int_equal(script.calls, 5);

    /* Fewer only at the end; nothing after it. */
    SCRIPT(3, SHORT);
    assert_int_equal(ps_read_at(fd, buf, 8, 5), 5);
    assert_memory_equal(buf, "56789", 5);
    assert_int_equal(ps_read_at(fd, buf, 8, 10), 0);
    assert_int_equal(ps_read_at(fd, buf, 0, 0), 0);

    SCRIPT(3, SHORT, BROKEN);
    assert_int_equal(ps_read_at(fd, buf, 8, 0), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(fclose(file), 0);
}

/* Everything is written once, in order, however it is cut up. */
static void test_write_all(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    corpus c = make_corpus(&schema, 1, 3000, 5);
    const sample *s = &c.samples[0];
    int fd = open_empty();
    bytes b;
    ps_error err;

    SCRIPT(7, SHORT, INTERRUPT, LATER, SHORT, SHORT);
    script.poll_errors[0] = EINTR;
    assert_ok(ps_write_all(fd, s->payload, s->payload_bytes, &err), &err);
    assert_true(script.calls > s->payload_bytes / 7);
    assert_int_equal(script.events, POLLOUT);
    SCRIPT(1, SHORT, INTERRUPT);
    assert_ok(ps_write_all(fd, s->payload, s->payload_bytes, &err), &err);
    assert_ok(ps_write_all(fd, NULL, 0, &err), &err);
    b = read_back(fd);
    assert_int_equal(b.size, 2 * s->payload_bytes);
    assert_memory_equal(b.data, s->payload, s->payload_bytes);
    assert_memory_equal(b.data + s->payload_bytes, s->payload,
                        s->payload_bytes);
}

static void test_write_errors(void **state)
{
    int fd = open_empty();
    ps_error err;

    SCRIPT(2, SHORT, BROKEN);
    assert_result(ps_write_all(fd, "abcdef", 6, &err), PS_ERR_IO, &err);
    assert_int_equal(err.sys_errno, EIO);
    assert_int_equal(script.calls, 2);
    SCRIPT(2, SHORT, NOTHING); /* some devices are full this way */
    assert_result(ps_write_all(fd, "abcdef", 6, &err), PS_ERR_IO, &err);
    assert_int_equal(err.sys_errno, ENOSPC);
    SCRIPT(2, LATER);
    script.poll_errors[0] = EINVAL;
    assert_result(ps_write_all(fd, "abcdef", 6, &err), PS_ERR_IO, &err);
    assert_int_equal(err.sys_errno, EINVAL);
    SCRIPT(2, BROKEN);
    assert_int_equal(ps_write_all(fd, "abcdef", 6, NULL), PS_ERR_IO);
}

/* Packs a corpus, reads the packs and unpacks them. */
static ps_result pack_and_unpack(const corpus *c, int fd, ps_error *err)
{
    const ps_packer_options o = {50, 8, 30, 0, .overlong = PS_OVERLONG_SPLIT};
    ps_packer *packer;
    ps_pack_reader *reader = NULL;
    ps_unpacker *unpacker = NULL;
    ps_sequence s;
    ps_result r = ps_packer_open(&packer, fd, &c->schema, &o, err);

    for (uint32_t i = 0; i < c->count && r == PS_OK; i++) {
        s = corpus_sequence(c, i);
        r = ps_packer_put(packer, &s, err);
    }
    if (r == PS_OK)
        r = ps_packer_flush(packer, PS_FLUSH_FINISH, err);
    ps_packer_free(packer);
    rewind_fd(fd);
    if (r == PS_OK)
        r = ps_pack_reader_open(&reader, fd, err);
    if (r == PS_OK)
        r = ps_unpacker_open(&unpacker, reader, PS_ORDER_INPUT, err);
    while (r == PS_OK)
        r = ps_unpacker_next(unpacker, &s, err);
    ps_unpacker_free(unpacker);
    ps_pack_reader_free(reader);
    return r;
}

/* Writes a corpus as records, twice, and reads it. */
static ps_result write_and_read(const corpus *c, int fd, ps_error *err)
{
    ps_token_reader *reader = NULL;
    ps_sequence s;
    ps_result r = PS_OK;

    for (int i = 0; i < 2 && r == PS_OK; i++) {
        ps_token_writer *w;

        r = ps_token_writer_open(&w, fd, &c->schema, err);
        for (uint32_t k = 0; k < c->count && r == PS_OK; k++)
            r = ps_token_writer_put(w, c->samples[k].n_tok,
                                    c->samples[k].payload, err);
        if (r == PS_OK)
            r = ps_token_writer_finish(w, err);
        ps_token_writer_free(w);
    }
    rewind_fd(fd);
    if (r == PS_OK)
        r = ps_token_reader_open(&reader, fd, PS_U16, NULL, err);
    while (r == PS_OK) {
        r = ps_token_reader_next(reader, 40, &s, err);
        if (r == PS_ERR_OVERLONG)
            r = s.id % 2 == 0 ? ps_token_reader_skip(reader, err)
                              : ps_token_reader_hold(reader, &s, err);
    }
    ps_token_reader_free(reader);
    return r;
}

/*
 * Calls move up to `max` bytes.  Each call fails in turn until none is left,
 * after at least `min` of them.
 */
static void break_each(const corpus *c,
                       ps_result (*work)(const corpus *, int, ps_error *),
                       size_t max, size_t min)
{
    ps_result r = PS_ERR_IO;

    for (size_t at = 1; r != PS_END; at++) {
        int fd = open_empty();
        ps_error err = {PS_OK, 0, ""};

        SCRIPT(max, SHORT);
        script.break_at = at;
        r = work(c, fd, &err);
        assert_result(r, script.calls < at ? PS_END : PS_ERR_IO, &err);
        assert_int_equal(err.sys_errno, r == PS_END ? 0 : EIO);
        assert_true(r != PS_END || at > min);
        (void)close(fd);
    }
}

static void test_every_call_fails(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 12, 70, 5);
    corpus small = make_corpus(&schema, 2, 3, 5);
    corpus large = make_corpus(&schema, 8, 40000, 5);

    break_each(&c, pack_and_unpack, 29, 500);
    break_each(&c, write_and_read, 29, 400);
    break_each(&small, write_and_read, 3, 500);
    /* More than the buffers hold, so they are flushed in between. */
    break_each(&large, pack_and_unpack, 200000, 20);
    break_each(&large, write_and_read, 200000, 20);
}

static void expect_records(const bytes *records, const corpus *c)
{
    int fd = open_bytes(records);
    ps_token_reader *reader;
    ps_sequence s;
    ps_error err;

    assert_ok(ps_token_reader_open(&reader, fd, PS_U16, NULL, &err), &err);
    for (uint32_t i = 0; i < c->count; i++) {
        assert_ok(ps_token_reader_next(reader, UINT32_MAX, &s, &err), &err);
        assert_sample(c, i, &s);
    }
    assert_result(ps_token_reader_next(reader, 9, &s, &err), PS_END, &err);
    ps_token_reader_free(reader);
    (void)close(fd);
}

/* The bytes of a stream do not depend on how system calls divide them. */
static void test_streams_in_scraps(void **state)
{
    static const size_t max[] = {1, 3, 64, 4095};
    const ps_packer_options o = {50, 8, 30, 0, .overlong = PS_OVERLONG_SPLIT};
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 120, 70, 5);
    bytes packs;
    bytes records;

    SCRIPT(0, WHOLE);
    packs = corpus_packs(&c, &o, NULL);
    records = corpus_records(&c);
    for (size_t i = 0; i < COUNT(max); i++) {
        bytes again;
        bytes packed;

        SCRIPT(max[i], SHORT, INTERRUPT, SHORT, LATER, LATER, SHORT);
        again = corpus_packs(&c, &o, NULL);
        assert_same_bytes(&again, &packs);
        assert_unpacked(&again, &c);
        expect_records(&records, &c);
        packed = compress(&again);
        assert_unpacked(&packed, &c);
        packed = compress(&records);
        expect_records(&packed, &c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_errors),
        cmocka_unit_test(test_read_at),
        cmocka_unit_test(test_write_all),
        cmocka_unit_test(test_write_errors),
        cmocka_unit_test(test_every_call_fails),
        cmocka_unit_test(test_streams_in_scraps),
    };

    return run_as_tap("io", tests, NULL);
}
