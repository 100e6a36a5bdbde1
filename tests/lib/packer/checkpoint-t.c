/*
 * checkpoint-t.c - a packer that is saved anywhere and resumed writes what
 * one that nobody disturbed does, and no damaged state is accepted.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char note[] = "a note";

/* A packer that has got the first `n` sequences, on a file. */
static ps_packer *packer_with(const corpus *c, const ps_packer_options *o,
                              uint32_t n, int *fd)
{
    ps_packer *p;
    ps_error err;

    *fd = open_empty();
    assert_ok(ps_packer_open(&p, *fd, &c->schema, o, &err), &err);
    put_corpus(p, c, 0, n);
    return p;
}

static void put_rest(const corpus *c, ps_packer *p, uint64_t from)
{
    ps_error err;

    put_corpus(p, c, (uint32_t)from, c->count);
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
}

/* Saved behind `n` sequences, if there was a pack by then, and resumed. */
static bool resume_at(const corpus *c, const ps_packer_options *o,
                      uint32_t n, const ps_packer *whole,
                      const bytes *wanted)
{
    int fd;
    ps_packer *p = packer_with(c, o, n, &fd);
    bool any = ps_packer_totals(p)->packs > 0;
    unsigned char *state;
    size_t size;
    ps_state says;
    bytes got;
    ps_error err;

    if (!any) {
        assert_result(ps_packer_save(p, note, 6, &state, &size, &err),
                      PS_ERR_ARGUMENT, &err);
        ps_packer_free(p);
        (void)close(fd);
        return false;
    }
    assert_ok(ps_packer_save(p, note, sizeof note, &state, &size, &err),
              &err);
    ps_packer_free(p);
    assert_ok(ps_state_read(state, size, &says, &err), &err);
    assert_int_equal(says.note_bytes, sizeof note);
    assert_memory_equal(says.note, note, sizeof note);
    assert_int_equal(says.input_sequences, n);
    assert_false(says.finished);
    /* What a process that was killed has written since is cut off. */
    assert_true(says.output_bytes <= wanted->size);
    assert_int_equal(ftruncate(fd, (off_t)says.output_bytes), 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), says.output_bytes);
    assert_ok(ps_packer_resume(&p, fd, &c->schema, o, state, size, &err),
              &err);
    put_rest(c, p, says.resume_from_id);
    got = read_back(fd);
    assert_same_bytes(&got, wanted);
    assert_totals(ps_packer_totals(p), ps_packer_totals(whole));
    assert_true(ps_packer_delay(p) == ps_packer_delay(whole));
    free_bytes(&got);
    ps_packer_free(p);
    free(state);
    (void)close(fd);
    return true;
}

/* Wherever it is saved. */
static void resume_everywhere(const corpus *c, const ps_packer_options *o)
{
    int fd;
    ps_packer *whole = packer_with(c, o, 0, &fd);
    const uint32_t step = is_quick() ? 7 : 1;
    uint32_t saved = 0;
    bytes wanted;

    put_rest(c, whole, 0);
    wanted = read_back(fd);
    for (uint32_t n = 0; n <= c->count; n += step)
        saved += resume_at(c, o, n, whole, &wanted);
    assert_true(saved * step > c->count / 2);
    ps_packer_free(whole);
    free_bytes(&wanted);
    (void)close(fd);
}

static void test_policies(void **state)
{
    const ps_schema schema = rich_schema(PS_U32);
    corpus c = make_corpus(&schema, 120, 40, 3);

    for (int policy = 0; ps_policy_name((ps_policy)policy) != NULL;
         policy++) {
        ps_packer_options o = {40, 4, 9, 1, .policy = (ps_policy)policy};

        resume_everywhere(&c, &o);
    }
    free_corpus(&c);
}

static void test_options(void **state)
{
    static const ps_packer_options options[] = {
        {40, PS_DEPTH_AUTO, 9, 1, .threads = 1},
        {40, 5, 9, 1, .order = PS_PACKS_SHUFFLED, .seed = 8},
        {40, 5, 9, 1, .order = PS_PACKS_BY_INPUT},
        {40, 5, 30, 1, .max_delay = 12},
        {40, 5, 30, 1, .max_bytes = 4000},
        {40, 5, 9, 1, .even_cost = true},
        {40, 5, 9, 1, .compressed = true, .level = 1},
        {40, 5, 9, 1, .compressed = true, .level = 1, .threads = 3},
        {25, 5, 9, 1, .overlong = PS_OVERLONG_SPLIT},
        {25, 5, 9, 1, .overlong = PS_OVERLONG_TRUNCATE},
        {25, 5, 9, 1, .overlong = PS_OVERLONG_DROP},
        {40, 5, 9, 1, .align = 8},
        {48, PS_DEPTH_AUTO, 9, 1, .align = 3},
        {25, 5, 9, 1, .overlong = PS_OVERLONG_SPLIT, .align = 5},
        {24, 5, 9, 1, .policy = PS_POLICY_CONCAT, .align = 4},
    };
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 120, 40, 4);

    for (size_t i = 0; i < COUNT(options); i++)
        if (!is_quick() || i % 4 == 0)
            resume_everywhere(&c, &options[i]);
    free_corpus(&c);
}

/* The header, and then the packs from one on, wherever that is. */
static void test_first_record(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    corpus c = make_corpus(&schema, 60, 40, 5);
    bytes all = corpus_packs(&c, &o, NULL);
    size_t stride = get_u32(all.data + 20);
    uint64_t packs = (all.size - PS_PACK_HEADER_BYTES) / stride - 1;
    ps_packer *p;
    ps_error err;
    int fd;

    for (o.first_record = 0; o.first_record <= packs; o.first_record++) {
        size_t skipped = (size_t)o.first_record * stride;
        bytes got = corpus_packs(&c, &o, NULL);

        assert_int_equal(got.size, all.size - skipped);
        assert_memory_equal(got.data, all.data, PS_PACK_HEADER_BYTES);
        assert_memory_equal(got.data + PS_PACK_HEADER_BYTES,
                            all.data + PS_PACK_HEADER_BYTES + skipped,
                            got.size - PS_PACK_HEADER_BYTES);
        free_bytes(&got);
    }
    p = packer_with(&c, &o, c.count, &fd);
    assert_result(ps_packer_flush(p, PS_FLUSH_FINISH, &err),
                  PS_ERR_ARGUMENT, &err);
    ps_packer_free(p);
    (void)close(fd);
    o.first_record = UINT64_MAX;
    assert_result(ps_packer_check(&schema, &o, &err), PS_ERR_ARGUMENT, &err);
    o.first_record = 1;
    o.compressed = true;
    assert_result(ps_packer_check(&schema, &o, &err), PS_ERR_ARGUMENT, &err);
    free_corpus(&c);
    free_bytes(&all);
}

/* A state behind `n` sequences, or of the ended stream; to be freed. */
static unsigned char *state_at(const corpus *c, const ps_packer_options *o,
                               uint32_t n, size_t *size)
{
    int fd;
    ps_packer *p = packer_with(c, o, n, &fd);
    unsigned char *state;
    ps_error err;

    if (n == c->count)
        assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    assert_ok(ps_packer_save(p, note, sizeof note, &state, size, &err),
              &err);
    ps_packer_free(p);
    (void)close(fd);
    return state;
}

static void test_damaged_state(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    const ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    corpus c = make_corpus(&schema, 60, 40, 6);
    size_t size;
    unsigned char *good = state_at(&c, &o, c.count / 2, &size);
    ps_state says;
    ps_error err;

    for (size_t at = 0; at < size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            good[at] ^= (unsigned char)(1u << bit);
            if (ps_state_read(good, size, &says, &err) == PS_OK)
                fail_msg("flipped bit %u of byte %zu", bit, at);
            good[at] ^= (unsigned char)(1u << bit);
        }
    for (size_t n = 0; n < size; n++) {
        unsigned char *cut = must_alloc(n);

        memcpy(cut, good, n);
        if (ps_state_read(cut, n, &says, &err) == PS_OK)
            fail_msg("cut to %zu bytes", n);
        free(cut);
    }
    assert_ok(ps_state_read(good, size, &says, &err), &err);
    free(good);
    free_corpus(&c);
}

/* Sequences that come again must be those that came. */
static void test_other_input(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    corpus c = make_corpus(&schema, 60, 40, 7);
    size_t size;
    unsigned char *saved = state_at(&c, &o, c.count / 2, &size);
    ps_state says;
    ps_sequence s;
    ps_packer *p;
    ps_error err;
    int fd = open_empty();
    ps_result r = PS_OK;

    assert_ok(ps_state_read(saved, size, &says, &err), &err);
    assert_true(says.resume_from_id < says.input_sequences);
    assert_ok(ps_packer_resume(&p, fd, &schema, &o, saved, size, &err), &err);
    assert_result(ps_packer_flush(p, PS_FLUSH_DRAIN, &err),
                  PS_ERR_CORRUPT, &err);
    assert_result(ps_packer_flush(p, PS_FLUSH_FINISH, &err),
                  PS_ERR_CORRUPT, &err);
    s = corpus_sequence(&c, (uint32_t)says.resume_from_id + 1);
    assert_result(ps_packer_put(p, &s, &err), PS_ERR_ARGUMENT, &err);
    c.samples[says.resume_from_id].payload[0] ^= 1;
    for (uint64_t i = says.resume_from_id;
         r == PS_OK && i < says.input_sequences; i++) {
        s = corpus_sequence(&c, (uint32_t)i);
        r = ps_packer_put(p, &s, &err);
    }
    assert_int_equal(r, PS_ERR_CORRUPT);
    ps_packer_free(p);
    free(saved);
    free_corpus(&c);
    (void)close(fd);
}

/* Until all that came before has come again there is nothing to save. */
static void test_while_it_comes_again(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    corpus c = make_corpus(&schema, 60, 40, 7);
    size_t size;
    size_t n;
    unsigned char *saved = state_at(&c, &o, c.count / 2, &size);
    unsigned char *again;
    ps_sequence s;
    ps_state says;
    ps_packer *p;
    ps_error err;
    int fd = open_empty();

    assert_ok(ps_state_read(saved, size, &says, &err), &err);
    assert_ok(ps_packer_resume(&p, fd, &schema, &o, saved, size, &err), &err);
    for (uint64_t i = says.resume_from_id; i < says.input_sequences; i++) {
        assert_result(ps_packer_save(p, NULL, 0, &again, &n, &err),
                      PS_ERR_ARGUMENT, &err);
        assert_null(again);
        s = corpus_sequence(&c, (uint32_t)i);
        assert_ok(ps_packer_put(p, &s, &err), &err);
        s.id = i + 2;
        assert_true(i + 1 == says.input_sequences ||
                    ps_packer_put(p, &s, &err) == PS_ERR_ARGUMENT);
    }
    assert_ok(ps_packer_save(p, NULL, 0, &again, &n, &err), &err);
    free(again);
    ps_packer_free(p);
    free(saved);
    free_corpus(&c);
    (void)close(fd);
}

/* The first record that a reader wants may lie behind what was packed. */
static void test_first_record_of_a_state(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    corpus c = make_corpus(&schema, 60, 40, 7);
    size_t size;
    unsigned char *saved = state_at(&c, &o, c.count / 2, &size);
    ps_packer *p;
    ps_error err;
    int fd = open_empty();

    o.first_record = 1;
    assert_result(ps_packer_resume(&p, fd, &schema, &o, saved, size, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_null(p);
    free(saved);
    free_corpus(&c);
    (void)close(fd);
}

/* Every state says whether it is of some options, that of END as well. */
static void test_fits(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_schema other = ps_schema_raw(PS_U32);
    const ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    ps_packer_options changed = o;
    corpus c = make_corpus(&schema, 60, 40, 7);
    size_t size;
    unsigned char *saved = state_at(&c, &o, c.count / 2, &size);
    ps_error err;

    assert_ok(ps_state_fits(saved, size, &schema, &o, &err), &err);
    assert_result(ps_state_fits(saved, size, &other, &o, &err),
                  PS_ERR_ARGUMENT, &err);
    changed.window++;
    assert_result(ps_state_fits(saved, size, &schema, &changed, &err),
                  PS_ERR_ARGUMENT, &err);
    changed.window = 0;
    assert_result(ps_state_fits(saved, size, &schema, &changed, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_result(ps_state_fits(saved, size - 1, &schema, &o, &err),
                  PS_ERR_CORRUPT, &err);
    free(saved);
    free_corpus(&c);
}

/* The first option that differs is told, with both values. */
static void test_what_differs(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    const struct {
        ps_packer_options now;
        const char *text;
    } others[] = {
        {{41, 4, 9, 1, .level = 0}, "of packs of 40 tokens, not 41"},
        {{40, 5, 9, 1, .level = 0}, "of packs of up to 4 sequences, not 5"},
        {{40, 4, 9, 1, .align = 4}, "aligned to 1, not 4"},
        {{40, 4, 10, 1, .level = 0}, "saved with window 9, not 10"},
        {{40, 4, 9, 2, .level = 0}, "saved with pad_id 1, not 2"},
        {{40, 4, 9, 1, .overlong = PS_OVERLONG_TRUNCATE},
         "saved with overlong error, not truncate"},
        {{40, 4, 9, 1, .policy = PS_POLICY_BESTFIT},
         "saved with policy auto, not bestfit"},
        {{40, 4, 9, 1, .order = PS_PACKS_BY_INPUT},
         "saved with order by window, not by input"},
        {{40, 4, 9, 1, .max_delay = 17}, "saved with max_delay 18, not 17"},
        {{40, 4, 9, 1, .max_bytes = 9999},
         "saved with max_bytes unlimited, not 9999"},
        {{40, 4, 9, 1, .even_cost = true}, "saved with even_cost off, not on"},
        {{40, 4, 9, 1, .compressed = true, .level = 3},
         "of packs that are not compressed, these are"},
    };
    ps_packer_options shuffled = {40, 4, 9, 1, .order = PS_PACKS_SHUFFLED,
                                  .seed = 7};
    corpus c = make_corpus(&schema, 60, 40, 7);
    size_t size;
    unsigned char *saved = state_at(&c, &o, c.count / 2, &size);
    ps_error err;

    for (size_t i = 0; i < COUNT(others); i++) {
        assert_result(
            ps_state_fits(saved, size, &schema, &others[i].now, &err),
            PS_ERR_ARGUMENT, &err);
        assert_non_null(strstr(err.text, others[i].text));
    }
    free(saved);
    saved = state_at(&c, &shuffled, c.count / 2, &size);
    shuffled.seed = 8;
    assert_result(ps_state_fits(saved, size, &schema, &shuffled, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "saved with seed 7, not 8"));
    free(saved);
    free_corpus(&c);
}

/* Packs the corpus anew, and tells how that ends. */
static ps_result prove(const corpus *c, const ps_packer_options *o,
                       const unsigned char *state, size_t size)
{
    ps_packer *p;
    ps_error err;
    int fd = open_empty();
    ps_result r;

    assert_ok(ps_packer_open(&p, fd, &c->schema, o, &err), &err);
    assert_ok(ps_packer_verify_replay(p, state, size, &err), &err);
    assert_result(ps_packer_replay_verified(p, &err), PS_ERR_CORRUPT, &err);
    put_corpus(p, c, 0, c->count);
    assert_result(ps_packer_verify_replay(p, state, size, &err),
                  PS_ERR_ARGUMENT,
                  &err);
    r = ps_packer_flush(p, PS_FLUSH_FINISH, &err);
    assert_int_equal(ps_packer_replay_verified(p, &err), r);
    ps_packer_free(p);
    (void)close(fd);
    return r;
}

static void test_prove(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    corpus c = make_corpus(&schema, 60, 40, 7);

    /* Steps of three, too, have each option both on and off. */
    for (unsigned kind = 0; kind < 8; kind += is_quick() ? 3 : 1) {
        ps_packer_options o = {40, kind & 1 ? PS_DEPTH_AUTO : 4, 9, 1,
                               .policy = PS_POLICY_AUTO,
                               .compressed = kind & 2,
                               .level = 1,
                               .threads = kind & 4 ? 2 : 0};
        size_t size;
        size_t end_size;
        unsigned char *saved = state_at(&c, &o, c.count / 2, &size);
        unsigned char *end = state_at(&c, &o, c.count, &end_size);

        assert_int_equal(prove(&c, &o, saved, size), PS_OK);
        assert_int_equal(prove(&c, &o, end, end_size), PS_OK);
        c.samples[0].payload[0] ^= 1;
        assert_int_equal(prove(&c, &o, saved, size), PS_ERR_CORRUPT);
        assert_int_equal(prove(&c, &o, end, end_size), PS_ERR_CORRUPT);
        c.samples[0].payload[0] ^= 1;
        c.count--;
        assert_int_equal(prove(&c, &o, end, end_size), PS_ERR_CORRUPT);
        c.count++;
        free(saved);
        free(end);
    }
    free_corpus(&c);
}

/* What is told of a stream that has ended is what was told then. */
static void test_ended(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {40, PS_DEPTH_AUTO, 9, 1,
                                 .policy = PS_POLICY_AUTO};
    ps_packer_options changed = o;
    corpus c = make_corpus(&schema, 60, 40, 7);
    size_t size, end_size;
    unsigned char *saved = state_at(&c, &o, c.count / 2, &size);
    unsigned char *end = state_at(&c, &o, c.count, &end_size);
    ps_sequence s = corpus_sequence(&c, 0);
    ps_packer *p;
    ps_error err;

    assert_result(ps_packer_open_ended(&p, &schema, &o, saved, size, &err),
                  PS_ERR_ARGUMENT, &err);
    changed.capacity++;
    assert_result(ps_packer_open_ended(&p, &schema, &changed, end, end_size,
                                       &err),
                  PS_ERR_ARGUMENT, &err);
    assert_null(p);
    assert_ok(ps_packer_open_ended(&p, &schema, &o, end, end_size, &err), &err);
    assert_int_equal(ps_packer_totals(p)->sequences, c.count);
    assert_int_not_equal(ps_packer_delay(p), 0);
    assert_int_not_equal(ps_packer_info(p)->depth, PS_DEPTH_AUTO);
    s.id = c.count;
    assert_result(ps_packer_put(p, &s, &err), PS_ERR_ARGUMENT, &err);
    assert_result(ps_packer_flush(p, PS_FLUSH_FINISH, &err),
                  PS_ERR_ARGUMENT, &err);
    ps_packer_free(p);
    free(saved);
    free(end);
    free_corpus(&c);
}

/* To one who has all packs of a stream that ended, its END can be given. */
static void test_end_again(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    ps_packer_options o = {40, PS_DEPTH_AUTO, 9, 1, .policy = PS_POLICY_AUTO};
    corpus c = make_corpus(&schema, 60, 40, 7);
    ps_sequence s = corpus_sequence(&c, 0);
    size_t size;
    unsigned char *end = state_at(&c, &o, c.count, &size);
    int fd = open_empty();
    ps_state says;
    ps_packer *p;
    ps_error err;

    assert_ok(ps_state_read(end, size, &says, &err), &err);
    for (o.first_record = 0; o.first_record < says.packs + 2;
         o.first_record++)
        if (o.first_record != says.packs)
            assert_result(ps_packer_resume(&p, fd, &schema, &o, end, size,
                                           &err),
                          PS_ERR_ARGUMENT, &err);
    o.first_record = says.packs;
    assert_ok(ps_packer_resume(&p, fd, &schema, &o, end, size, &err), &err);
    s.id = 0;
    assert_result(ps_packer_put(p, &s, &err), PS_ERR_ARGUMENT, &err);
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    assert_int_equal(lseek(fd, 0, SEEK_END),
                     PS_PACK_HEADER_BYTES + ps_packer_info(p)->record_bytes);
    ps_packer_free(p);
    (void)close(fd);
    free(end);
    free_corpus(&c);
}

/* Without any pack there is a state when it has ended, and END in it. */
static void test_no_pack(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    corpus c = make_corpus(&schema, 0, 40, 7);
    size_t size;
    unsigned char *end = state_at(&c, &o, c.count, &size);
    ps_packer *p;
    ps_error err;

    assert_ok(ps_packer_open_ended(&p, &schema, &o, end, size, &err), &err);
    assert_int_equal(ps_packer_totals(p)->packs, 0);
    ps_packer_free(p);
    assert_result(ps_packer_resume(&p, -1, &schema, &o, end, size, &err),
                  PS_ERR_ARGUMENT, &err);
    free(end);
    free_corpus(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_first_record),
        cmocka_unit_test(test_damaged_state),
        cmocka_unit_test(test_other_input),
        cmocka_unit_test(test_while_it_comes_again),
        cmocka_unit_test(test_first_record_of_a_state),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_what_differs),
        cmocka_unit_test(test_prove),
        cmocka_unit_test(test_ended),
        cmocka_unit_test(test_end_again),
        cmocka_unit_test(test_no_pack),
    };

    return run_as_tap("checkpoint", tests, NULL);
}
