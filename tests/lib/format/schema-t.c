/*
 * schema-t.c - schemas: which are valid, which are equal, how large payloads
 * are; tokens against a vocabulary.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdio.h>
#include <string.h>

#include "format/schema.h"

static const struct {
    ps_type type;
    size_t bytes;
    const char *name;
    const char *numpy;
} types[] = {
    {PS_U8, 1, "u8", "|u1"},  {PS_U16, 2, "u16", "<u2"},
    {PS_U32, 4, "u32", "<u4"}, {PS_U64, 8, "u64", "<u8"},
    {PS_I32, 4, "i32", "<i4"}, {PS_I64, 8, "i64", "<i8"},
    {PS_F32, 4, "f32", "<f4"}, {PS_F64, 8, "f64", "<f8"},
};

#define N_TYPES COUNT(types)

/* An invalid enumerator, hidden from the compiler. */
static ps_type odd_type(unsigned value)
{
    ps_type type;

    memcpy(&type, &value, sizeof type);
    return type;
}

static void test_types(void **state)
{
    ps_type type = PS_F64;

    for (size_t i = 0; i < N_TYPES; i++) {
        assert_int_equal(types[i].type, i + 1);
        assert_int_equal(ps_type_bytes(types[i].type), types[i].bytes);
        assert_string_equal(ps_type_name(types[i].type), types[i].name);
        assert_string_equal(ps_type_numpy(types[i].type), types[i].numpy);
        assert_true(ps_type_from_name(types[i].name, &type));
        assert_int_equal(type, types[i].type);
    }
    assert_int_equal(ps_type_bytes(odd_type(0)), 0);
    assert_int_equal(ps_type_bytes(odd_type(9)), 0);
    assert_int_equal(ps_type_bytes(odd_type(UINT32_MAX)), 0);
    assert_non_null(ps_type_name(odd_type(0)));
    assert_non_null(ps_type_numpy(odd_type(77)));
    assert_false(ps_type_from_name("", &type));
    assert_false(ps_type_from_name("u", &type));
    assert_false(ps_type_from_name("u160", &type));
    assert_false(ps_type_from_name("U16", &type));
}

static ps_schema one_channel(const char *name, ps_type type, ps_kind kind,
                             uint64_t fill)
{
    ps_schema s = ps_schema_raw(PS_U16);

    s.framed = true;
    s.n_channels = 1;
    s.channels[0] = (ps_channel){.type = type, .kind = kind, .fill = fill};
    memcpy(s.channels[0].name, name, strnlen(name, PS_NAME_BYTES));
    return s;
}

static void expect(const ps_schema *s, ps_result wanted)
{
    ps_error err;

    assert_result(ps_schema_check(s, &err), wanted, &err);
    assert_int_equal(ps_schema_check(s, NULL), wanted);
}

static void test_names(void **state)
{
    static const char *const good[] = {
        "a", "Z", "labels", "x_1", "A0_b", "abcdefghijklmnopqrstuvw",
        "cu2", "Tokens", "token", "seq", "magic", "flags", "zero", "seq_off",
        "seq_len", "id", "start"};
    static const char *const bad[] = {
        "", "_", "_a", "1a", "a-b", "a b", "a.b", "a'", "a\n", "\xc3\xa9",
        "abcdefghijklmnopqrstuvwx",
        /* what the formats use themselves */
        "checksum", "index", "watermark", "sum_len_sq", "first_seq", "n_seq",
        "n_tok", "max_seqlen", "seq_id", "seq_start", "seq_tok", "piece_off",
        "full_len", "cu", "tokens", "input_ids"};

    for (size_t i = 0; i < COUNT(good); i++) {
        ps_schema s = one_channel(good[i], PS_U8, PS_PER_TOKEN, 0);

        expect(&s, PS_OK);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        ps_schema s = one_channel(bad[i], PS_U8, PS_PER_TOKEN, 0);

        expect(&s, PS_ERR_ARGUMENT);
    }
}

static void test_fills(void **state)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        uint64_t max = UINT64_MAX >> (64 - 8 * types[i].bytes);
        ps_schema s = one_channel("c", types[i].type, PS_PER_TOKEN, max);

        expect(&s, PS_OK);
        s.channels[0].fill = max + 1;
        expect(&s, max == UINT64_MAX ? PS_OK : PS_ERR_ARGUMENT);
    }
}

/* Special ids are tokens that can occur, except that of pad. */
static void test_special_ids(void **state)
{
    for (int i = 0; i < PS_SPECIALS; i++) {
        ps_schema s = ps_schema_raw(PS_U16);

        s.special[i] = 65535;
        expect(&s, PS_OK);
        s.special[i] = 65536;
        expect(&s, PS_ERR_ARGUMENT);
        s.token_type = PS_U32;
        expect(&s, PS_OK);
        s.vocab_size = 65537;
        expect(&s, PS_OK);
        s.vocab_size = 65536;
        expect(&s, i == PS_PAD ? PS_OK : PS_ERR_ARGUMENT);
        s.special[i] = PS_NO_ID;
        expect(&s, PS_OK);
    }
}

static void test_kinds_and_types(void **state)
{
    ps_schema s = one_channel("c", PS_U8, PS_PER_SEQUENCE, 0);

    expect(&s, PS_OK);
    s.channels[0].kind = PS_LIST;
    expect(&s, PS_OK);
    for (unsigned kind = 0; kind <= 4; kind += 4) {
        memcpy(&s.channels[0].kind, &kind, sizeof kind);
        expect(&s, PS_ERR_ARGUMENT);
    }
    s = one_channel("c", odd_type(0), PS_PER_TOKEN, 0);
    expect(&s, PS_ERR_ARGUMENT);
    s = one_channel("c", odd_type(9), PS_PER_TOKEN, 0);
    expect(&s, PS_ERR_ARGUMENT);
}

static void test_vectors_and_lists(void **state)
{
    static const struct {
        uint32_t count;
        ps_result wanted;
    } counts[] = {{0, PS_OK},
                  {1, PS_ERR_ARGUMENT},
                  {2, PS_OK},
                  {PS_MAX_VECTOR, PS_OK},
                  {PS_MAX_VECTOR + 1, PS_ERR_ARGUMENT},
                  {UINT32_MAX, PS_ERR_ARGUMENT}};
    ps_schema s = one_channel("a", PS_U16, PS_LIST, 0);
    unsigned char payload[] = {1, 0, 2, 0, 0, 0, 3, 0, 0, 0,
                               9, 9, 9, 9, 8, 8, 8};
    char text[PS_TYPE_TEXT];
    uint32_t n;

    for (size_t i = 0; i < COUNT(counts); i++) {
        s.channels[0].count = counts[i].count;
        expect(&s, counts[i].wanted);
    }
    s.channels[0].count = PS_MAX_VECTOR;
    ps_channel_type(&s.channels[0], text);
    assert_string_equal(text, "u16[16384][]");
    s.channels[0].count = 0;
    for (s.n_channels = 1; s.n_channels <= PS_MAX_LISTS; s.n_channels++) {
        expect(&s, PS_OK);
        s.channels[s.n_channels] = s.channels[0];
        s.channels[s.n_channels].name[0] = (char)('a' + s.n_channels);
    }
    expect(&s, PS_ERR_ARGUMENT); /* five lists */

    /* A token, and lists of two u16 and of three u8. */
    s.n_channels = 2;
    s.channels[1].type = PS_U8;
    assert_int_equal(ps_payload_bytes(&s, 1), 10);
    assert_int_equal(ps_payload_offset(&s, 1, 1), 6);
    assert_int_equal(ps_payload_lists(&s, 1, payload), 7);
    assert_int_equal(ps_payload_list(&s, 0, 1, payload, &n), 10);
    assert_int_equal(n, 2);
    assert_int_equal(ps_payload_list(&s, 1, 1, payload, &n), 14);
    assert_int_equal(n, 3);
}

static void test_whole_schemas(void **state)
{
    ps_schema s = ps_schema_raw(PS_U32);

    assert_false(s.framed);
    assert_int_equal(s.vocab_size, 0);
    for (size_t i = 0; i < PS_SPECIALS; i++)
        assert_int_equal(s.special[i], PS_NO_ID);
    expect(&s, PS_OK);
    s.token_type = PS_I32;
    expect(&s, PS_ERR_ARGUMENT);
    s = ps_schema_raw(PS_U16);
    memset(&s.labels, 3, 1);
    expect(&s, PS_ERR_ARGUMENT);
    s = rich_schema(PS_U16);
    expect(&s, PS_OK);
    s.channels[4] = s.channels[1];
    expect(&s, PS_ERR_ARGUMENT); /* a name twice */
    s = rich_schema(PS_U16);
    s.framed = false; /* raw records have no channels */
    expect(&s, PS_ERR_ARGUMENT);
}

/* The maximum number of channels, each of maximum width. */
static ps_schema widest_schema(void)
{
    ps_schema s = ps_schema_raw(PS_U32);

    s.framed = true;
    s.n_channels = PS_MAX_CHANNELS;
    for (unsigned i = 0; i < PS_MAX_CHANNELS; i++) {
        s.channels[i] = (ps_channel){.type = PS_F64, .kind = PS_PER_TOKEN};
        (void)snprintf(s.channels[i].name, PS_NAME_BYTES, "c%u", i);
    }
    return s;
}

static void test_number_of_channels(void **state)
{
    ps_schema s = widest_schema();

    expect(&s, PS_OK);
    s.n_channels++;
    expect(&s, PS_ERR_ARGUMENT);
    s.n_channels = UINT32_MAX;
    expect(&s, PS_ERR_ARGUMENT);
}

/* Compares the description of how `a` differs from `b`. */
static void expect_text(const ps_schema *a, const ps_schema *b,
                        const char *text)
{
    ps_error err;

    assert_result(ps_schema_compare(a, b, &err), PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, text);
    assert_false(ps_schema_equal(a, b));
}

/* Every member counts; memory after the channels does not. */
static void test_equality(void **state)
{
    static const char *const texts[] = {
        "records are framed, not raw",
        "tokens are u16, not u32",
        "vocab_size is none, not 5",
        "unexpected channel 'weight'",
        "channel 'xeight' is missing",
        "channel 0 is 'labels', not 'score'",
        "channel 'labels' is i32, not u32",
        "channel 'score' is per sequence, not per token",
        "channel 'labels' is filled with -100, not 5",
        "channel 'type_id' is filled with 7, not 0",
        "channel 'weight' is filled with 0x3f800000, not 0x0",
        "the mask id is none, not 5",
        "the eos id is 2, not 3",
        "the label convention is aligned, not shifted",
        "the label convention is aligned, not unstated",
        "the tokenizer digest is aa00000000000000..., not none",
        "the tokenizer digest is aa00000000000000..., not "
        "aa00000000000001...",
        "the tokenizer digest is "
        "aa00000000000000000000000000000000000000000000000000000000000055"
        ", not "
        "aa00000000000000000000000000000000000000000000000000000000000054",
    };
    enum { N = COUNT(texts) };
    const ps_schema a = rich_schema(PS_U16);
    ps_schema b[N + 1];
    ps_error err;

    for (size_t i = 0; i <= N; i++)
        b[i] = a;
    b[0].framed = false;
    b[1].token_type = PS_U32;
    b[2].vocab_size = 5;
    b[3].n_channels--;
    b[4].channels[4].name[0] = 'x';
    b[5].channels[0] = a.channels[1];
    b[5].channels[1] = a.channels[0];
    b[6].channels[0].type = PS_U32;
    b[7].channels[1].kind = PS_PER_TOKEN;
    b[8].channels[0].fill = 5;
    b[9].channels[2].fill = 0;
    b[10].channels[4].fill = 0;
    b[11].special[PS_MASK] = 5;
    b[12].special[PS_EOS] = 3;
    b[13].labels = PS_LABELS_SHIFTED;
    b[14].labels = PS_LABELS_UNSTATED;
    memset(b[15].tokenizer, 0, sizeof b[15].tokenizer);
    b[16].tokenizer[7] = 1;
    b[17].tokenizer[31] ^= 1;
    for (size_t i = 0; i < N; i++)
        expect_text(&a, &b[i], texts[i]);
    expect_text(&b[7], &a, "channel 'score' is per token, not per sequence");
    memset(&b[N].channels[b[N].n_channels], 0x77, sizeof b[N].channels[0]);
    assert_ok(ps_schema_compare(&a, &b[N], &err), &err);
    assert_true(ps_schema_equal(&a, &b[N]));
}

/* Wide fills, which rich_schema lacks. */
static void test_fills_differ(void **state)
{
    ps_schema a = ps_schema_raw(PS_U16);
    ps_schema b;

    a.framed = true;
    a.n_channels = 1;
    a.channels[0] = (ps_channel){.name = "c",
                                 .type = PS_I64,
                                 .kind = PS_PER_TOKEN,
                                 .fill = (uint64_t)-1};
    b = a;
    b.channels[0].fill = 1;
    expect_text(&a, &b, "channel 'c' is filled with -1, not 1");
    a.channels[0].type = b.channels[0].type = PS_U64;
    expect_text(&b, &a,
                "channel 'c' is filled with 1, not 18446744073709551615");
    a.channels[0].type = b.channels[0].type = PS_F64;
    expect_text(&b, &a,
                "channel 'c' is filled with 0x1, not 0xffffffffffffffff");
}

static void test_payloads(void **state)
{
    static const uint32_t lengths[] = {1, 2, 511, UINT32_MAX};
    const ps_schema u16 = rich_schema(PS_U16);
    const ps_schema u32 = rich_schema(PS_U32);
    const ps_schema raw = ps_schema_raw(PS_U32);

    for (size_t i = 0; i < COUNT(lengths); i++) {
        uint64_t n = lengths[i];

        assert_int_equal(ps_payload_bytes(&raw, lengths[i]), 4 * n);
        assert_int_equal(ps_payload_bytes(&u16, lengths[i]), 19 * n + 10);
        assert_int_equal(ps_payload_bytes(&u32, lengths[i]), 21 * n + 10);
        assert_int_equal(ps_payload_offset(&u16, PS_TOKENS, lengths[i]), 0);
        assert_int_equal(ps_payload_offset(&u16, 0, lengths[i]), 2 * n);
        assert_int_equal(ps_payload_offset(&u16, 1, lengths[i]), 19 * n);
        assert_int_equal(ps_payload_offset(&u16, 2, lengths[i]), 6 * n);
        assert_int_equal(ps_payload_offset(&u16, 3, lengths[i]), 19 * n + 8);
        assert_int_equal(ps_payload_offset(&u16, 4, lengths[i]), 7 * n);
    }
}

static void check_tokens(uint64_t *random, ps_type type, uint32_t n,
                         uint32_t vocab, uint32_t bad)
{
    bytes b = {0};
    uint32_t max = type == PS_U16 && vocab > 65536 ? 65536 : vocab;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t token = random_below(random, max);

        token = i == bad ? vocab : token;
        if (type == PS_U16)
            put_u16(&b, token);
        else
            put_u32(&b, token);
        assert_int_equal(ps_token_at(b.data, i, type), token);
    }
    assert_int_equal(ps_tokens_check(b.data, n, type, vocab), bad);
}

static void test_vocabulary(void **state)
{
    static const uint32_t vocabs[] = {1, 2, 255, 65535};
    uint64_t random = 4;

    for (size_t v = 0; v < COUNT(vocabs); v++)
        for (uint32_t n = 1; n < 70; n++) {
            uint32_t bad = random_below(&random, n);

            check_tokens(&random, PS_U16, n, vocabs[v], n);
            check_tokens(&random, PS_U32, n, vocabs[v], n);
            check_tokens(&random, PS_U16, n, vocabs[v], bad);
            check_tokens(&random, PS_U32, n, vocabs[v], bad);
        }
    check_tokens(&random, PS_U16, 3000, 65536, 3000);
    check_tokens(&random, PS_U16, 3000, 70000, 3000);
    check_tokens(&random, PS_U32, 3000, 70000, 2999);
    check_tokens(&random, PS_U32, 3000, UINT32_MAX, 3000);
    check_tokens(&random, PS_U32, 3000, UINT32_MAX, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_special_ids),
        cmocka_unit_test(test_kinds_and_types),
        cmocka_unit_test(test_vectors_and_lists),
        cmocka_unit_test(test_whole_schemas),
        cmocka_unit_test(test_number_of_channels),
        cmocka_unit_test(test_equality),
        cmocka_unit_test(test_fills_differ),
        cmocka_unit_test(test_payloads),
        cmocka_unit_test(test_vocabulary),
    };

    return run_as_tap("schema", tests, NULL);
}
