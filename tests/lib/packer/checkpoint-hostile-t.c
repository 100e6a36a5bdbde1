/*
 * checkpoint-hostile-t.c - states with wrong numbers under a valid checksum:
 * each is refused, or resuming from it works within its memory bound.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "bytes.h"
#include "format/totals.h"
#include "lib-alloc.h"

/* Memory for a resumed packer, far below a wrong number taken as a size. */
#define MAX_BYTES ((size_t)8 << 20)

static const char note[] = "a note";

/* Offsets of the numbers in the head, and of the parts after it. */
enum {
    AT_VERSION = 8,
    AT_KIND = 12,
    AT_PACKS = 16,
    AT_OUTPUT_BYTES = 24,
    AT_OUTPUT_PACKS = 32,
    AT_SEQUENCES = 48,
    AT_RESUME_FROM = 56,
    AT_NOTE_BYTES = 64,
    AT_COMPRESSED = 72 + sizeof note,
    AT_LEVEL = AT_COMPRESSED + 4,
    AT_OPTIONS = AT_COMPRESSED + 8,
    AT_DIGEST_OF_OPTIONS = 168 /* of the header */
};

/* Offsets of the output's numbers from the end of the totals, uncompressed. */
enum {
    AT_TABLE_BYTES = 0,
    AT_PLACE = 8, /* of the open block */
    AT_PARTS = 24,
    AT_BLOCKS = 28,
    AT_ENTRIES = 32 /* after them */
};
enum { AT_OPEN_PACKS = 8, AT_OPEN_SEQS = 12, AT_ROWS = 16 };

typedef struct subject {
    corpus c;
    ps_packer_options options;
    unsigned char *good;
    size_t size;
    size_t header; /* where it is */
    uint64_t tries, resumed;
} subject;

static subject begin(const ps_packer_options *o, uint32_t n, uint64_t seed)
{
    const ps_schema schema = rich_schema(PS_U16);
    subject s = {.c = make_corpus(&schema, 120, 40, seed), .options = *o};
    int fd = open_empty();
    ps_packer *p;
    ps_error err;

    set_groups(&s.c);
    assert_ok(ps_packer_open(&p, fd, &s.c.schema, o, &err), &err);
    put_corpus(p, &s.c, 0, n);
    if (n == s.c.count)
        assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    assert_ok(ps_packer_save(p, note, sizeof note, &s.good, &s.size, &err),
              &err);
    ps_packer_free(p);
    (void)close(fd);
    for (s.header = AT_OPTIONS; memcmp(s.good + s.header, "\x89PKS", 4) != 0;)
        s.header++;
    return s;
}

static void end(subject *s)
{
    free_corpus(&s->c);
    free(s->good);
}

static bool is_known(ps_result r)
{
    return r == PS_OK || r == PS_ERR_ARGUMENT || r == PS_ERR_CORRUPT ||
           r == PS_ERR_MAGIC || r == PS_ERR_TRUNCATED ||
           r == PS_ERR_UNSUPPORTED || r == PS_ERR_LIMIT;
}

/* Continues as far as possible. */
static void use(subject *s, ps_packer *p, uint64_t from)
{
    ps_result r = PS_OK;
    ps_error err;

    for (uint64_t i = from; i < s->c.count && r == PS_OK; i++) {
        ps_sequence next = corpus_sequence(&s->c, (uint32_t)i);

        r = ps_packer_put(p, &next, &err);
    }
    if (r == PS_OK)
        r = ps_packer_flush(p, PS_FLUSH_FINISH, &err);
    assert_true(is_known(r));
}

/* Updates the checksum after `n` bytes, and passes them to every reader. */
static ps_result try_state(subject *s, unsigned char *state, size_t n,
                           ps_error *err)
{
    size_t blocks = alloc_so_far().blocks;
    size_t before = alloc_so_far().bytes;
    int fd = open_empty();
    ps_packer *p;
    ps_state says;
    ps_result r;
    ps_error other;

    s->tries++;
    store_u64(state + n, ps_hash(state, n));
    n += 8;
    alloc_watch();
    assert_true(is_known(ps_state_fits(state, n, &s->c.schema, &s->options,
                                       &other)));
    assert_true(is_known(ps_packer_open_ended(&p, &s->c.schema, &s->options,
                                              state, n, &other)));
    ps_packer_free(p);
    assert_ok(ps_packer_open(&p, fd, &s->c.schema, &s->options, &other),
              &other);
    assert_true(is_known(ps_packer_verify_replay(p, state, n, &other)));
    ps_packer_free(p);
    r = ps_packer_resume(&p, fd, &s->c.schema, &s->options, state, n, err);
    assert_int_equal(p != NULL, r == PS_OK);
    if (r == PS_OK) {
        s->resumed++;
        assert_ok(ps_state_read(state, n, &says, &other), &other);
        use(s, p, says.resume_from_id);
        ps_packer_free(p);
    }
    if (!is_known(r))
        fail_msg("%d: %s", (int)r, err->text);
    assert_true(alloc_so_far().peak - before <= MAX_BYTES);
    assert_int_equal(alloc_so_far().blocks, blocks);
    (void)close(fd);
    return r;
}

static void refuse(subject *s, unsigned char *state, ps_result wanted,
                   const char *words)
{
    ps_error err;

    assert_result(try_state(s, state, s->size - 8, &err), wanted, &err);
    if (strstr(err.text, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, err.text);
}

static void refuse_u32(subject *s, size_t at, uint32_t value,
                       ps_result wanted, const char *words)
{
    unsigned char *state = must_alloc(s->size);

    memcpy(state, s->good, s->size);
    store_u32(state + at, value);
    refuse(s, state, wanted, words);
    free(state);
}

static void refuse_u64(subject *s, size_t at, uint64_t value)
{
    unsigned char *state = must_alloc(s->size);

    memcpy(state, s->good, s->size);
    store_u64(state + at, value);
    refuse(s, state, PS_ERR_CORRUPT, "the state is damaged");
    free(state);
}

/* The numbers of the head, and those that tie the state to its stream. */
static void test_head(void **unused)
{
    static const ps_packer_options o = {40, 4, 9, 1, .compressed = true,
                                        .level = 1, .block_packs = 4};
    subject s = begin(&o, 110, 6);
    unsigned char *state = must_alloc(s.size + 8);
    uint64_t packs = load_u64(s.good + AT_PACKS);
    uint64_t length = load_u64(s.good + AT_OUTPUT_BYTES);
    ps_error err;

    refuse_u32(&s, AT_VERSION, 7, PS_ERR_UNSUPPORTED, "has version 7");
    refuse_u32(&s, AT_KIND, 3, PS_ERR_CORRUPT, "damaged");
    refuse_u32(&s, AT_KIND, 2, PS_ERR_CORRUPT, "damaged");
    refuse_u32(&s, AT_KIND, 1, PS_ERR_CORRUPT, "damaged");
    refuse_u64(&s, AT_PACKS, 0);
    refuse_u64(&s, AT_PACKS, packs + 1);
    refuse_u64(&s, AT_OUTPUT_PACKS, packs + 1);
    refuse_u64(&s, AT_RESUME_FROM, load_u64(s.good + AT_SEQUENCES) + 1);
    refuse_u64(&s, AT_NOTE_BYTES, s.size);
    refuse_u64(&s, AT_NOTE_BYTES, UINT64_MAX);
    refuse_u32(&s, AT_COMPRESSED, 0, PS_ERR_ARGUMENT,
               "packs that are not compressed, but these packs are");
    refuse_u32(&s, AT_COMPRESSED, 2, PS_ERR_CORRUPT, "damaged");
    refuse_u32(&s, AT_LEVEL, 2, PS_ERR_ARGUMENT, "with compression level 2");
    refuse_u32(&s, s.header, 0, PS_ERR_CORRUPT, "damaged");

    /* A valid header of another stream, with all else correct. */
    memcpy(state, s.good, s.size);
    state[s.header + PS_PACK_HEADER_BYTES - 9] ^= 1;
    seal_header(state + s.header, PS_PACK_HEADER_BYTES);
    refuse(&s, state, PS_ERR_CORRUPT, "damaged");
    memcpy(state, s.good, s.size);
    state[s.header + AT_DIGEST_OF_OPTIONS] ^= 1;
    seal_header(state + s.header, PS_PACK_HEADER_BYTES);
    refuse(&s, state, PS_ERR_ARGUMENT, "a different header");

    /* Another output length, and extra bytes at its end. */
    memcpy(state, s.good, s.size);
    store_u64(state + AT_OUTPUT_BYTES, length + 1);
    refuse(&s, state, PS_ERR_CORRUPT, "table");
    memcpy(state, s.good, s.size);
    memset(state + s.size - 8, 0, 8);
    assert_result(try_state(&s, state, s.size, &err), PS_ERR_CORRUPT, &err);
    free(state);
    end(&s);
}

/* A wrong number is refused as damage, though the next number up is right. */
static void refuse_damage(subject *s, size_t at, uint32_t value)
{
    assert_true(load_u32(s->good + at) != value);
    refuse_u32(s, at, value, PS_ERR_CORRUPT, "damaged");
}

/* The index and the open block must agree with the packs so far. */
static void test_open_block(void **unused)
{
    static const ps_packer_options o = {40, 4, 9, 1,
                                        .policy = PS_POLICY_AUTO,
                                        .block_packs = 4};
    subject s = begin(&o, 70, 6);
    const size_t place = s.header + PS_PACK_HEADER_BYTES + PS_TOTALS_BYTES +
                         16 * PS_REJECTS + 16;
    const uint32_t n_blocks = load_u32(s.good + place + AT_BLOCKS);
    const size_t open = place + AT_ENTRIES + 24 * n_blocks;
    const uint32_t n_packs = load_u32(s.good + open + AT_OPEN_PACKS);
    const uint32_t n_seqs = load_u32(s.good + open + AT_OPEN_SEQS);
    const size_t head = open + AT_ROWS +
                        n_packs * load_u32(s.good + s.header + 20);
    const size_t last = head + (n_packs - 1) * PS_PACK_HEAD_BYTES;
    const uint64_t at = load_u64(s.good + place + AT_PLACE);
    const uint64_t out = load_u64(s.good + AT_OUTPUT_PACKS);

    /* All of it exists, with some blocks and packs. */
    assert_int_equal(load_u64(s.good + place + AT_TABLE_BYTES), 0);
    assert_int_equal(load_u64(s.good + AT_PACKS), out + n_packs);
    assert_int_equal(load_u64(s.good + AT_OUTPUT_BYTES), at);
    assert_true(n_blocks > 2 && n_packs > 1);

    refuse_u64(&s, place + AT_PLACE, 0);
    refuse_u64(&s, place + AT_PLACE, at + 1);
    refuse_u64(&s, place + AT_PLACE,
               load_u64(s.good + open - 24)); /* of the last block */
    refuse_damage(&s, place + AT_PARTS, 1);
    refuse_damage(&s, place + AT_PARTS, UINT32_MAX);
    refuse_damage(&s, place + AT_BLOCKS, n_blocks - 1);
    refuse_damage(&s, place + AT_BLOCKS, n_blocks + 1);
    refuse_damage(&s, place + AT_BLOCKS, 4096);
    refuse_damage(&s, place + AT_BLOCKS, UINT32_MAX);
    refuse_u64(&s, place + AT_ENTRIES + 24, PS_PACK_HEADER_BYTES);
    refuse_u64(&s, open - 24, at);
    refuse_u64(&s, open - 16, out);
    refuse_damage(&s, open + AT_OPEN_PACKS, 0);
    refuse_damage(&s, open + AT_OPEN_PACKS, n_packs - 1);
    refuse_damage(&s, open + AT_OPEN_PACKS, n_packs + 1);
    refuse_damage(&s, open + AT_OPEN_PACKS, 4);
    refuse_damage(&s, open + AT_OPEN_PACKS, UINT32_MAX);
    refuse_damage(&s, open + AT_OPEN_SEQS, 0);
    refuse_damage(&s, open + AT_OPEN_SEQS, n_seqs - 1);
    refuse_damage(&s, open + AT_OPEN_SEQS, n_seqs + 1);
    refuse_damage(&s, open + AT_OPEN_SEQS, UINT32_MAX);
    refuse_damage(&s, head + 8, 1);     /* first_seq */
    refuse_damage(&s, last + 8, 0);
    refuse_damage(&s, last + 12, 0);    /* n_seq */
    refuse_damage(&s, last + 12, 5);
    refuse_damage(&s, last + 12, UINT32_MAX);
    refuse_damage(&s, last + 16, 41);   /* n_tok */
    refuse_u64(&s, AT_OUTPUT_PACKS, out - 1);
    refuse_u64(&s, AT_OUTPUT_PACKS, out + 1);
    end(&s);
}

/* A state records that packs are not compressed, and whether it has ended. */
static void test_not_compressed(void **unused)
{
    static const ps_packer_options o = {40, 4, 9, 1,
                                        .policy = PS_POLICY_AUTO,
                                        .block_packs = 1};
    subject s = begin(&o, 70, 6);

    refuse_u32(&s, AT_KIND, 1, PS_ERR_ARGUMENT, "has ended");
    refuse_u32(&s, AT_KIND, 2, PS_ERR_CORRUPT, "damaged");
    refuse_u32(&s, AT_COMPRESSED, 1, PS_ERR_ARGUMENT,
               "packs that are compressed, but these packs are not");
    store_u64(s.good + AT_PACKS, 0);
    refuse_u64(&s, AT_OUTPUT_PACKS, 0);
    end(&s);
}

/* Nothing follows the note of a state from before the stream. */
static void test_blank(void **unused)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    unsigned char longer[256] = {0};
    unsigned char *state;
    size_t n;
    ps_error err;

    assert_ok(ps_state_blank(note, sizeof note, &state, &n, &err), &err);
    assert_ok(ps_state_fits(state, n, &schema, &o, &err), &err);
    memcpy(longer, state, n - 8);
    store_u64(longer + n, ps_hash(longer, n));
    assert_result(ps_state_fits(longer, n + 8, &schema, &o, &err),
                  PS_ERR_CORRUPT, &err);
    free(state);
}

/* Cuts anywhere, and wrong numbers anywhere after the header. */
static void try_all(const ps_packer_options *o, uint32_t n, uint64_t seed)
{
    static const uint64_t values[] = {0, 1, UINT32_MAX, UINT64_MAX};
    subject s = begin(o, n, seed);
    unsigned char *state = must_alloc(s.size);
    size_t step = is_short() ? 61 : 11; /* numbers have 4 or 8 */
    uint64_t random = seed;
    ps_error err;

    assert_ok(try_state(&s, s.good, s.size - 8, &err), &err);
    for (size_t at = 0; at < s.size - 12; at += step) {
        if (at == s.header)
            at += PS_PACK_HEADER_BYTES;
        memcpy(state, s.good, s.size);
        if (try_state(&s, state, at, &err) == PS_OK)
            fail_msg("cut to %zu bytes", at);
        for (size_t v = 0; v < COUNT(values) + 2; v++) {
            memcpy(state, s.good, s.size);
            if (v == COUNT(values))
                store_u32(state + at, load_u32(state + at) - 1);
            else if (v > COUNT(values))
                state[at] = (unsigned char)random_next(&random);
            else if (values[v] <= UINT32_MAX || at > s.size - 16)
                store_u32(state + at, (uint32_t)values[v]);
            else
                store_u64(state + at, values[v]);
            (void)try_state(&s, state, s.size - 8, &err);
        }
    }
    assert_true(s.resumed < s.tries);
    free(state);
    end(&s);
}

static void test_policies(void **unused)
{
    static const ps_policy policies[] = {PS_POLICY_AUTO, PS_POLICY_NNLSHP,
                                         PS_POLICY_BESTFIT, PS_POLICY_CONCAT};

    for (size_t i = 0; i < COUNT(policies); i++) {
        ps_packer_options o = {40, 4, 9, 1, .policy = policies[i],
                               .block_packs = 4};

        try_all(&o, 70, 3);
    }
}

static void test_options(void **unused)
{
    static const ps_packer_options options[] = {
        {40, 0, 9, 1, .threads = 1, .block_packs = 16},
        {40, 5, 9, 1, .order = PS_PACKS_SHUFFLED, .seed = 8,
         .block_packs = 4},
        {40, 5, 30, 1, .max_delay = 12, .block_packs = 2},
        {40, 5, 9, 1, .compressed = true, .level = 1, .block_packs = 4},
        {25, 5, 9, 1, .overlong = PS_OVERLONG_SPLIT, .block_packs = 8},
        {40, 0, 9, 1, .overlong = PS_OVERLONG_SPLIT, .block_packs = 16,
         .group = "group"},
    };

    for (size_t i = 0; i < COUNT(options); i++)
        try_all(&options[i], 70, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_open_block),
        cmocka_unit_test(test_not_compressed),
        cmocka_unit_test(test_blank),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_options),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("states that lie", tests, NULL, NULL);
}
