/*
 * checkpoint-t.c - a packer that is saved anywhere and resumed writes the same
 * bytes as an undisturbed one, and no damaged state is accepted.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan-naive.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

static const char note[] = "a note";

/*
 * Puts sequences `from` to `to`; those up to `again` are repeated input.  With
 * `drains`, the packer is drained after every `drains` new sequences.
 */
static void put_some(ps_packer *p, const corpus *c, uint32_t from, uint32_t to,
                     uint32_t again, uint32_t drains)
{
    ps_error err;

    for (uint32_t i = from; i < to; i++) {
        put_corpus(p, c, i, i + 1);
        if (drains > 0 && i >= again && i % drains == drains - 1)
            assert_ok(ps_packer_flush(p, PS_FLUSH_DRAIN, &err), &err);
    }
}

/* A packer that has received the first `n` sequences, writing to a file. */
static ps_packer *packer_with(const corpus *c, const ps_packer_options *o,
                              uint32_t n, uint32_t drains, int *fd)
{
    ps_packer *p;
    ps_error err;

    *fd = open_empty();
    assert_ok(ps_packer_open(&p, *fd, &c->schema, o, &err), &err);
    put_some(p, c, 0, n, 0, drains);
    return p;
}

/* The output of an undisturbed packer for a corpus. */
typedef struct expected {
    const corpus *c;
    const ps_packer_options *o;
    uint32_t drains;
    bytes packs;
    ps_totals totals;
    uint64_t delay;
    uint32_t open; /* resumed with an open block */
} expected;

static expected expect(const corpus *c, const ps_packer_options *o,
                       uint32_t drains)
{
    expected e = {.c = c, .o = o, .drains = drains};
    int fd;
    ps_packer *p = packer_with(c, o, c->count, drains, &fd);
    ps_error err;

    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    e.packs = read_back(fd);
    e.totals = *ps_packer_totals(p);
    e.delay = ps_packer_delay(p);
    ps_packer_free(p);
    (void)close(fd);
    return e;
}

/* The state of `p`, to be freed; it must agree with the sequences put. */
static unsigned char *save(ps_packer *p, uint32_t n, size_t *size,
                           ps_state *says)
{
    unsigned char *state;
    ps_error err;

    assert_ok(ps_packer_save(p, note, sizeof note, &state, size, &err), &err);
    assert_ok(ps_state_read(state, *size, says, &err), &err);
    assert_int_equal(says->note_bytes, sizeof note);
    assert_memory_equal(says->note, note, sizeof note);
    assert_int_equal(says->input_sequences, n);
    assert_int_equal(says->packs, ps_packer_totals(p)->packs);
    assert_in_range(says->packs - says->output_packs, 0,
                    ps_packer_info(p)->block_packs - 1);
    assert_false(says->finished);
    return state;
}

/* Saves after `n` sequences, if there is a pack by then, and resumes. */
static bool resume_at(expected *e, uint32_t n)
{
    int fd;
    ps_packer *p = packer_with(e->c, e->o, n, e->drains, &fd);
    bool any = ps_packer_totals(p)->packs > 0;
    unsigned char *state, *again;
    size_t size, size_again;
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
    state = save(p, n, &size, &says);
    ps_packer_free(p);
    e->open += says.packs > says.output_packs;
    /* Bytes that a killed process wrote after the state are cut off. */
    assert_true(says.output_bytes <= e->packs.size);
    assert_int_equal(ftruncate(fd, (off_t)says.output_bytes), 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), says.output_bytes);
    assert_ok(ps_packer_resume(&p, fd, &e->c->schema, e->o, state, size, &err),
              &err);
    put_some(p, e->c, (uint32_t)says.resume_from_id, n, n, 0);
    again = save(p, n, &size_again, &says);
    assert_int_equal(size, size_again);
    assert_memory_equal(state, again, size);
    put_some(p, e->c, n, e->c->count, n, e->drains);
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    got = read_back(fd);
    assert_same_bytes(&got, &e->packs);
    assert_totals(ps_packer_totals(p), &e->totals);
    assert_true(ps_packer_delay(p) == e->delay);
    ps_packer_free(p);
    free(state);
    free(again);
    (void)close(fd);
    free_bytes(&got);
    return true;
}

/* Saves at every point; blocks can have no, some, or many packs by then. */
static void resume_everywhere(const corpus *c, const ps_packer_options *o,
                              uint32_t drains)
{
    const uint32_t step = is_short() ? 7 : 1;
    expected e = expect(c, o, drains);
    uint32_t saved = 0;

    for (uint32_t n = 0; n <= c->count; n += step)
        saved += resume_at(&e, n);
    assert_true(saved * step > c->count / 2);
    assert_true(o->block_packs == 1 ? e.open == 0 : e.open * 4 > saved);
    free_bytes(&e.packs);
}

static void test_policies(void **state)
{
    const ps_schema schema = rich_schema(PS_U32);
    corpus c = make_corpus(&schema, 120, 40, 3);

    for (int policy = 0; ps_policy_name((ps_policy)policy) != NULL;
         policy++) {
        ps_packer_options o = {40, 4, 9, 1, .policy = (ps_policy)policy,
                               .block_packs = 4};

        resume_everywhere(&c, &o, 0);
    }
}

static void test_options(void **state)
{
    static const ps_packer_options options[] = {
        {40, 0, 9, 1, .threads = 1},
        {40, 0, 9, 1, .threads = 1, .block_packs = 2},
        {40, 0, 9, 1, .block_packs = 1},
        {40, 0, 1, 1, .policy = PS_POLICY_CONCAT, .block_packs = 8},
        {40, 5, 9, 1, .order = PS_PACKS_SHUFFLED, .seed = 8},
        {40, 5, 9, 1, .order = PS_PACKS_BY_INPUT},
        {40, 5, 30, 1, .max_delay = 12},
        {40, 5, 30, 1, .max_bytes = 4000},
        {40, 5, 9, 1, .even_cost = true},
        {40, 5, 9, 1, .compressed = true, .level = 1},
        {40, 5, 9, 1, .compressed = true, .level = 1, .threads = 3,
         .block_packs = 4},
        {25, 5, 9, 1, .overlong = PS_OVERLONG_SPLIT},
        {25, 5, 9, 1, .overlong = PS_OVERLONG_TRUNCATE},
        {25, 5, 9, 1, .overlong = PS_OVERLONG_DROP},
        {40, 5, 9, 1, .align = 8},
        {48, 0, 9, 1, .align = 3},
        {25, 5, 9, 1, .overlong = PS_OVERLONG_SPLIT, .align = 5},
        {24, 5, 9, 1, .policy = PS_POLICY_CONCAT, .align = 4},
        {40, 0, 9, 1, .group = "group", .overlong = PS_OVERLONG_SPLIT},
        {60, 0, 9, 1, .group = "group", .overlong = PS_OVERLONG_DROP,
         .order = PS_PACKS_SHUFFLED, .seed = 8},
        {64, 0, 9, 1, .group = "group", .overlong = PS_OVERLONG_TRUNCATE,
         .align = 8, .max_bytes = 9000},
        {24, 0, 1, 1, .group = "group", .overlong = PS_OVERLONG_SPLIT,
         .policy = PS_POLICY_NEXTFIT},
    };
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 120, 40, 4);

    set_groups(&c);

    for (size_t i = 0; i < COUNT(options); i++)
        if (!is_short() || i % 4 == 0 || options[i].group != NULL)
            resume_everywhere(&c, &options[i], i % 3 == 0 ? 25 : 0);
}

/* The same at some points of a stream of equal lengths. */
static void resume_at_places(const ps_packer_options *o, uint32_t length,
                             uint32_t count, const uint32_t *places, size_t n)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    uint32_t *lengths = must_alloc(count * sizeof *lengths);
    corpus c;
    expected e;

    for (uint32_t i = 0; i < count; i++)
        lengths[i] = length;
    c = make_lengths(&schema, count, lengths, 4);
    e = expect(&c, o, 0);
    for (size_t i = 0; i < n; i++)
        assert_true(resume_at(&e, places[i]));
    free_bytes(&e.packs);
    free(lengths);
}

/* Around the ends of parts of the index, which one-pack blocks fill. */
static void test_index(void **state)
{
    static const uint32_t places[] = {1,    4095, 4096, 4097, 4100,
                                      8191, 8192, 8193};
    static const ps_packer_options o = {
        2, 0, 9, 1, .policy = PS_POLICY_NEXTFIT, .block_packs = 1};

    resume_at_places(&o, 2, 8195, places, COUNT(places));
}

/* Around the ends of two-pack blocks, which have 1 MiB of sequence rows. */
static void test_many_sequences(void **state)
{
    static const uint32_t places[] = {32768, 32769, 65535, 65536,
                                      65537, 98304, 98310};
    static const ps_packer_options o = {
        32768, 0, 1, 1, .policy = PS_POLICY_NEXTFIT};

    resume_at_places(&o, 1, 98320, places, COUNT(places));
}

/* With the default window, which is full by its tokens. */
static void test_default_window(void **state)
{
    static const uint32_t places[] = {24640, 24700};
    static const ps_packer_options sets[] = {
        {768, 0, 0, 1, .policy = PS_POLICY_AUTO},
        {768, 0, 0, 1, .policy = PS_POLICY_BESTFIT},
        {768, 0, 0, 1, .policy = PS_POLICY_SPFHP},
        {768, 0, 0, 1, .order = PS_PACKS_BY_INPUT},
        {768, 0, 0, 1, .order = PS_PACKS_SHUFFLED, .seed = 3,
         .policy = PS_POLICY_BESTFIT, .max_window = 4000},
        {768, 0, 0, 1, .max_window = 2000},
        {768, 0, 0, 1, .max_bytes = 1 << 20},
    };

    for (size_t i = 0; i < COUNT(sets); i++)
        resume_at_places(&sets[i], 2, 25600, places, COUNT(places));
}

/*
 * `got` is the stream `all` without the blocks whose packs all come before a
 * given one: END lists the other blocks, at offsets from their own header.
 */
static void assert_from(const bytes *got, const bytes *all, uint64_t first)
{
    const unsigned char *end = end_at(all, 0);
    const unsigned char *block = all->data + PS_PACK_HEADER_BYTES;
    uint32_t n = get_u32(end + 188); /* blocks, which END lists */
    const unsigned char *entry = end + 192;
    bytes wanted = {0};
    size_t at;

    for (; n > 0 && get_u64(block + 16) + get_u32(block + 8) <= first; n--) {
        block += block_bytes(block);
        entry += 24;
    }
    put_bytes(&wanted, all->data, PS_PACK_HEADER_BYTES);
    put_bytes(&wanted, block, (size_t)(end - block));
    at = wanted.size;
    put_bytes(&wanted, end, 188);
    put_u32(&wanted, n);
    for (uint32_t i = 0; i < n; i++, entry += 24) {
        put_u64(&wanted, get_u64(entry) + PS_PACK_HEADER_BYTES -
                             (size_t)(block - all->data));
        put_bytes(&wanted, entry + 8, 16);
    }
    put_zeros(&wanted, (64 - (wanted.size - at + 24) % 64) % 64);
    put_u64(&wanted, wanted.size - at + 24);
    put_u64(&wanted, wanted.size + 16);
    put_bytes(&wanted, end + block_bytes(end) - 8, 8);
    set_u64(wanted.data + at + 24, wanted.size - at);
    set_u64(wanted.data + at + 48,
            XXH3_64bits(wanted.data + at + 64, wanted.size - at - 64));
    set_u64(wanted.data + at + 56, XXH3_64bits(wanted.data + at, 56));
    assert_same_bytes(got, &wanted);
}

/* The header, then the block of a pack and everything after it. */
static void test_first_pack(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    corpus c = make_corpus(&schema, 60, 40, 5);
    ps_totals totals;
    ps_packer *p;
    ps_error err;
    int fd;

    for (o.block_packs = 1; o.block_packs <= 64; o.block_packs *= 4) {
        bytes all = corpus_packs(&c, &o, &totals);

        for (o.first_pack = 0; o.first_pack <= totals.packs; o.first_pack++) {
            bytes got = corpus_packs(&c, &o, NULL);

            assert_from(&got, &all, o.first_pack);
        }
        p = packer_with(&c, &o, c.count, 0, &fd);
        assert_result(ps_packer_flush(p, PS_FLUSH_FINISH, &err),
                      PS_ERR_ARGUMENT, &err);
        ps_packer_free(p);
        (void)close(fd);
        o.first_pack = 0;
    }
    o.block_packs = 0;
    o.first_pack = UINT64_MAX;
    assert_result(ps_packer_check(&schema, &o, &err), PS_ERR_ARGUMENT, &err);
    o.first_pack = 1;
    o.compressed = true;
    assert_result(ps_packer_check(&schema, &o, &err), PS_ERR_ARGUMENT, &err);
}

/* A state after `n` sequences, or of the ended stream; to be freed. */
static unsigned char *state_at(const corpus *c, const ps_packer_options *o,
                               uint32_t n, size_t *size)
{
    int fd;
    ps_packer *p = packer_with(c, o, n, 0, &fd);
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
}

/* Repeated input must be the same sequences. */
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
    for (int i = 0; i < 2; i++) { /* without its payload, or with more */
        assert_ok(ps_packer_resume(&p, fd, &schema, &o, saved, size, &err),
                  &err);
        s = corpus_sequence(&c, (uint32_t)says.resume_from_id);
        s.payload = i == 0 ? NULL : s.payload;
        s.payload_bytes += 2;
        assert_result(ps_packer_put(p, &s, &err), PS_ERR_CORRUPT, &err);
        ps_packer_free(p);
    }
    free(saved);
}

/* No state can be saved until all earlier input has been repeated. */
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
}

/*
 * A resumed packer can start its output with any pack that is not in a block
 * before the state: one of the block that was open, or a later one.
 */
static void test_first_pack_of_a_state(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    corpus c = make_corpus(&schema, 60, 40, 7);

    for (uint32_t kind = 0; kind < 6; kind++) {
        ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO,
                               .block_packs = 16 >> kind / 2 * 2,
                               .threads = kind % 2};
        ps_totals totals;
        bytes all = corpus_packs(&c, &o, &totals);
        size_t size;
        unsigned char *saved = state_at(&c, &o, c.count / 2, &size);
        ps_state says;
        ps_packer *p;
        ps_error err;

        assert_ok(ps_state_read(saved, size, &says, &err), &err);
        assert_true(says.packs > 5 && says.packs < totals.packs);
        for (o.first_pack = 1; o.first_pack <= totals.packs; o.first_pack++) {
            int fd = open_empty();
            bytes got;

            assert_result(
                ps_packer_resume(&p, fd, &schema, &o, saved, size, &err),
                o.first_pack < says.output_packs ? PS_ERR_ARGUMENT : PS_OK,
                &err);
            assert_int_equal(p != NULL, o.first_pack >= says.output_packs);
            if (p != NULL) {
                put_corpus(p, &c, (uint32_t)says.resume_from_id, c.count);
                assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
                got = read_back(fd);
                assert_from(&got, &all, o.first_pack);
                free_bytes(&got);
            }
            ps_packer_free(p);
            (void)close(fd);
        }
        free(saved);
    }
}

/* The first different option is named, with both values. */
static void test_what_differs(void **state)
{
    ps_histogram *lengths = histogram_of("3:7");
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    const struct {
        ps_packer_options now;
        const char *text;
    } others[] = {
        {{41, 4, 9, 1, .level = 0}, "saved with capacity 40, not 41"},
        {{40, 5, 9, 1, .level = 0}, "saved with depth 4, not 5"},
        {{40, 0, 9, 1, .level = 0}, "saved with depth 4, not unlimited"},
        {{40, 4, 9, 1, .block_packs = 8}, "with blocks of 16384 packs, not 8"},
        {{40, 4, 9, 1, .align = 4}, "saved with align 1, not 4"},
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
        {{40, 4, 9, 1, .learn_from = lengths},
         "saved with no histogram to learn from"},
        {{40, 4, 9, 1, .even_cost = true}, "saved with even_cost off, not on"},
        {{40, 4, 9, 1, .compressed = true, .level = 3},
         "not compressed, but these packs are"},
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
    ps_histogram_free(lengths);
}

/* Packs the corpus again; returns the final result. */
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

    /* Steps of three also cover each option both on and off. */
    for (unsigned kind = 0; kind < 8; kind += is_short() ? 3 : 1) {
        ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO,
                               .block_packs = kind & 1 ? 1 : 4,
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
}

/* The state of an ended stream still reports the numbers of its end. */
static void test_ended(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {40, 0, 9, 1, .policy = PS_POLICY_AUTO};
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
    assert_int_equal(ps_packer_resume_from_id(p), c.count);
    assert_ok(ps_packer_flush(p, PS_FLUSH_DECIDED, &err), &err);
    s.id = c.count;
    assert_result(ps_packer_put(p, &s, &err), PS_ERR_ARGUMENT, &err);
    assert_result(ps_packer_flush(p, PS_FLUSH_FINISH, &err),
                  PS_ERR_ARGUMENT, &err);
    ps_packer_free(p);
    free(saved);
    free(end);
}

/* The END of an ended stream can be written again after all of its packs. */
static void test_end_again(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO,
                           .block_packs = 4};
    corpus c = make_corpus(&schema, 60, 40, 7);
    bytes all = corpus_packs(&c, &o, NULL);
    bytes got;
    ps_sequence s = corpus_sequence(&c, 0);
    size_t size;
    unsigned char *end = state_at(&c, &o, c.count, &size);
    int fd = open_empty();
    ps_state says;
    ps_packer *p;
    ps_error err;

    assert_ok(ps_state_read(end, size, &says, &err), &err);
    for (o.first_pack = 0; o.first_pack < says.packs + 2; o.first_pack++)
        if (o.first_pack != says.packs)
            assert_result(ps_packer_resume(&p, fd, &schema, &o, end, size,
                                           &err),
                          PS_ERR_ARGUMENT, &err);
    o.first_pack = says.packs;
    assert_ok(ps_packer_resume(&p, fd, &schema, &o, end, size, &err), &err);
    s.id = 0;
    assert_result(ps_packer_put(p, &s, &err), PS_ERR_ARGUMENT, &err);
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    got = read_back(fd);
    assert_from(&got, &all, says.packs);
    ps_packer_free(p);
    free(end);
}

/* Without packs there is a state once the stream has ended, with END in it. */
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_many_sequences),
        cmocka_unit_test(test_default_window),
        cmocka_unit_test(test_first_pack),
        cmocka_unit_test(test_damaged_state),
        cmocka_unit_test(test_other_input),
        cmocka_unit_test(test_while_it_comes_again),
        cmocka_unit_test(test_first_pack_of_a_state),
        cmocka_unit_test(test_what_differs),
        cmocka_unit_test(test_prove),
        cmocka_unit_test(test_ended),
        cmocka_unit_test(test_end_again),
        cmocka_unit_test(test_no_pack),
    };

    return run_as_tap("checkpoint", tests, NULL);
}
