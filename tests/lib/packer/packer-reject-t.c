/*
 * packer-reject-t.c - sequences that a packer rejects: each is counted under
 * its reason, and can be repeated to a resumed packer.
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAPACITY 20

static const ps_packer_options usual = {
    CAPACITY, 4, 30, 0, .overlong = PS_OVERLONG_DROP, .max_delay = 40};

/*
 * The fate of sequence `id` of an input in which each reason occurs; PS_REJECTS
 * if it is packed.  Some that are rejected for their tokens are also longer
 * than a pack.
 */
static ps_reject fate(uint64_t id)
{
    return id % 7 == 3   ? PS_REJECT_EMPTY
           : id % 5 == 1 ? PS_REJECT_OUT_OF_VOCAB
           : id % 11 == 6 ? PS_REJECT_OVERLONG
                          : PS_REJECTS;
}

static uint32_t length(uint64_t id)
{
    switch (fate(id)) {
    case PS_REJECT_EMPTY:
        return 0;
    case PS_REJECT_OVERLONG:
        return (uint32_t)(CAPACITY + 1 + id % 3);
    case PS_REJECT_OUT_OF_VOCAB:
        return (uint32_t)(1 + id % 30);
    default:
        return (uint32_t)(1 + id * 7 % 13);
    }
}

/* Puts a sequence, with its payload if `whole` or if it is needed. */
static ps_result put(ps_packer *p, uint64_t id, bool whole, ps_error *err)
{
    unsigned char payload[2 * 64] = {0};
    ps_reject reason = fate(id);
    ps_sequence s = {.id = id, .n_tok = length(id)};

    if (whole || reason == PS_REJECTS) {
        for (uint32_t i = 0; i < s.n_tok; i++)
            payload[2 * i] = (unsigned char)(id + i);
        s.payload = payload;
        s.payload_bytes = 2 * (size_t)s.n_tok;
    }
    /* A packer recognizes overlong sequences without help. */
    if (reason == PS_REJECTS ||
        (reason == PS_REJECT_OVERLONG && id % 2 == 0))
        return ps_packer_put(p, &s, err);
    return ps_packer_reject(p, &s, reason, err);
}

static void put_all(ps_packer *p, uint64_t from, uint64_t to, bool whole)
{
    ps_error err;

    for (uint64_t id = from; id < to; id++)
        assert_ok(put(p, id, whole, &err), &err);
}

/* The counts after the first `n` sequences. */
static void assert_counts(const ps_packer *p, uint64_t n)
{
    ps_rejected wanted[PS_REJECTS + 1] = {{0, 0}};
    const ps_totals *t = ps_packer_totals(p);
    uint64_t tokens = 0;

    for (uint64_t id = 0; id < n; id++) {
        wanted[fate(id)].sequences++;
        wanted[fate(id)].tokens += length(id);
        tokens += length(id);
    }
    assert_int_equal(t->input_sequences, n);
    assert_int_equal(t->input_tokens, tokens);
    assert_int_equal(t->rejected_sequences,
                     n - wanted[PS_REJECTS].sequences);
    assert_int_equal(t->rejected_tokens, tokens - wanted[PS_REJECTS].tokens);
    for (unsigned i = 0; i < PS_REJECTS; i++) {
        ps_rejected got = ps_packer_rejected(p, (ps_reject)i);

        assert_true(wanted[i].sequences > 0);
        assert_int_equal(got.sequences, wanted[i].sequences);
        assert_int_equal(got.tokens, wanted[i].tokens);
    }
}

static bytes finish(ps_packer *p, int fd)
{
    ps_error err;

    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    ps_packer_free(p);
    return read_back(fd);
}

/* Every count, also in END; rejected sequences use up ids. */
static void test_counts(void **state)
{
    int fd = open_empty();
    ps_packer *p = open_packer(fd, &usual);
    ps_totals totals;
    uint64_t n_packs;
    ps_error err;
    bytes b;

    put_all(p, 0, 500, false);
    assert_counts(p, 500);
    assert_int_equal(ps_packer_rejected(p, PS_REJECTS).sequences, 0);
    totals = *ps_packer_totals(p);
    b = finish(p, fd);
    assert_result(read_packs(&b, &n_packs, &err), PS_END, &err);
    assert_true(n_packs > totals.packs);
}

static void test_refused(void **state)
{
    const ps_sequence first = {.id = 0, .n_tok = 5};
    const ps_sequence second = {.id = 1, .n_tok = 5};
    int fd = open_empty();
    ps_packer *p = open_packer(fd, &usual);
    ps_error err;

    assert_result(ps_packer_reject(p, &first, PS_REJECTS, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_result(ps_packer_reject(p, &second, PS_REJECT_EMPTY, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "sequence 1 arrived, expected 0"));
    assert_ok(ps_packer_reject(p, &first, PS_REJECT_OUT_OF_VOCAB, &err),
              &err);
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    assert_result(ps_packer_reject(p, &second, PS_REJECT_EMPTY, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "ended"));
    ps_packer_free(p);
}

/* The state after `n` sequences, and the output so far. */
static unsigned char *save_at(uint64_t n, int fd, size_t *size)
{
    ps_packer *p = open_packer(fd, &usual);
    unsigned char *saved;
    ps_error err;

    put_all(p, 0, n, false);
    assert_ok(ps_packer_save(p, "", 0, &saved, size, &err), &err);
    ps_packer_free(p);
    return saved;
}

static ps_packer *resume(int fd, const unsigned char *saved, size_t size)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    ps_packer *p;
    ps_error err;

    assert_ok(ps_packer_resume(&p, fd, &schema, &usual, saved, size, &err),
              &err);
    return p;
}

/* Saved anywhere and resumed, the counts and packs are the same. */
static void test_again(void **state)
{
    const uint64_t n = 200;
    int whole = open_empty();
    ps_packer *p = open_packer(whole, &usual);
    bytes wanted;

    put_all(p, 0, n, true);
    wanted = finish(p, whole);
    (void)close(whole);
    for (uint64_t at = 60; at < n; at++) {
        int fd = open_empty();
        size_t size;
        unsigned char *saved = save_at(at, fd, &size);
        ps_state says;
        ps_error err;
        bytes got;

        assert_ok(ps_state_read(saved, size, &says, &err), &err);
        p = resume(fd, saved, size);
        assert_counts(p, at);
        put_all(p, says.resume_from_id, n, at % 2 == 0);
        assert_counts(p, n);
        got = finish(p, fd);
        assert_same_bytes(&got, &wanted);
        free(saved);
        (void)close(fd);
    }
}

/* A sequence in the state cannot be rejected now: the input differs. */
static void test_held_is_not_rejected(void **state)
{
    const unsigned char payload[2 * 64] = {0};
    int fd = open_empty();
    size_t size;
    unsigned char *saved = save_at(60, fd, &size);
    ps_packer *p = resume(fd, saved, size);
    ps_state says;
    ps_sequence s;
    ps_error err;

    assert_ok(ps_state_read(saved, size, &says, &err), &err);
    assert_int_equal(fate(says.resume_from_id), PS_REJECTS);
    s = (ps_sequence){.id = says.resume_from_id,
                      .n_tok = length(says.resume_from_id),
                      .payload = payload,
                      .payload_bytes = 2 * (size_t)length(says.resume_from_id)};
    assert_result(ps_packer_reject(p, &s, PS_REJECT_OUT_OF_VOCAB, &err),
                  PS_ERR_CORRUPT, &err);
    assert_non_null(strstr(err.text, "input has changed"));
    ps_packer_free(p);
    free(saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_held_is_not_rejected),
    };

    return run_as_tap("packer-reject", tests, NULL);
}
