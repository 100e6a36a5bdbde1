/*
 * token-header-t.c - the header and END of framed token records: byte by
 * byte, encoded and decoded, and refused when anything in them is wrong.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>

#include "format/token_header.h"

typedef struct header {
    unsigned char data[PS_TOKEN_HEADER_MAX];
    size_t size;
} header;

static header encode(const ps_schema *schema)
{
    header h;

    memset(h.data, 0xee, sizeof h.data);
    h.size = ps_token_header_encode(schema, h.data);
    return h;
}

/* Decodes in the reader's order: first the size, then the contents. */
static ps_result decode(const header *h, ps_schema *schema, ps_error *err)
{
    size_t size;
    ps_result r;

    if (!ps_is_token_magic_prefix(h->data, 8))
        return PS_ERR_MAGIC;
    r = ps_token_header_size(h->data, &size, err);
    if (r != PS_OK)
        return r;
    assert_true(size <= PS_TOKEN_HEADER_MAX);
    return ps_token_header_decode(h->data, size, schema, err);
}

/* Channels of all types, both kinds and names of every length, up to 23. */
static ps_schema many_channels(uint32_t n)
{
    ps_schema s = ps_schema_raw(PS_U32);

    s.framed = true;
    s.n_channels = n;
    for (uint32_t i = 0; i < n; i++) {
        ps_channel *c = &s.channels[i];
        unsigned type = 1 + i % 8;

        *c = (ps_channel){.kind = i % 3 == 0 ? PS_PER_SEQUENCE
                                             : PS_PER_TOKEN};
        memset(c->name, 'a' + (int)i, 1 + i % 23);
        memcpy(&c->type, &type, sizeof type);
        c->fill = UINT64_MAX >> (64 - 8 * ps_type_bytes(c->type));
    }
    return s;
}

static void round_trip(const ps_schema *s)
{
    header h = encode(s);
    ps_schema back = {0};
    ps_error err;

    assert_int_equal(h.size, 136 + 64 * s->n_channels);
    assert_ok(decode(&h, &back, &err), &err);
    assert_true(ps_schema_equal(s, &back));
}

static void test_round_trip(void **state)
{
    const ps_schema rich = rich_schema(PS_U16);
    ps_schema s = ps_schema_raw(PS_U16);

    s.framed = true;
    round_trip(&s);
    round_trip(&rich);
    s.vocab_size = UINT32_MAX;
    s.labels = PS_LABELS_SHIFTED;
    for (uint32_t i = 0; i < PS_SPECIALS; i++)
        s.special[i] = i;
    for (uint32_t i = 0; i < 32; i++)
        s.tokenizer[i] = (uint8_t)(200 + i);
    round_trip(&s);
    for (uint32_t n = 0; n <= PS_MAX_CHANNELS; n++) {
        s = many_channels(n);
        round_trip(&s);
    }
}

/* A header written independently, from packstream(5). */
static bytes by_hand(void)
{
    static const char magic[] = "\x89TOK\r\n\x1a\n";
    bytes b = {0};

    put_bytes(&b, magic, 8);
    put_u32(&b, 0x01020304);
    put_u16(&b, 1);
    put_u16(&b, 0);
    put_u32(&b, 136 + 64); /* header_bytes */
    put_u32(&b, 1);        /* n_channels */
    put_u64(&b, 0);        /* incompat */
    put_u64(&b, 0);        /* compat */
    put_u8(&b, 2);         /* bytes of a token */
    put_u8(&b, 1);         /* labels for position t */
    put_zeros(&b, 2);
    put_u32(&b, 32000);
    for (uint32_t i = 0; i < 5; i++)
        put_u32(&b, 100 + i);
    put_u32(&b, 0xffffffff);
    for (unsigned i = 0; i < 32; i++)
        put_u8(&b, i);
    put_zeros(&b, 24);
    put_bytes(&b, "labels", 6);
    put_zeros(&b, 18);
    put_u8(&b, 5); /* i32 */
    put_u8(&b, 1); /* per token */
    put_u8(&b, 4); /* bytes of an element */
    put_zeros(&b, 13);
    put_u64(&b, 0xffffff9c);
    put_zeros(&b, 16);
    put_zeros(&b, 8);
    seal_header(b.data, b.size);
    return b;
}

static void test_layout(void **state)
{
    ps_schema s = ps_schema_raw(PS_U16);
    bytes b = by_hand();
    header h;

    s.framed = true;
    s.vocab_size = 32000;
    s.labels = PS_LABELS_ALIGNED;
    for (uint32_t i = 0; i < 5; i++)
        s.special[i] = 100 + i;
    for (uint32_t i = 0; i < 32; i++)
        s.tokenizer[i] = (uint8_t)i;
    s.n_channels = 1;
    s.channels[0] =
        (ps_channel){"labels", PS_I32, PS_PER_TOKEN, 0xffffff9c, 0};
    h = encode(&s);
    assert_int_equal(h.size, b.size);
    assert_memory_equal(h.data, b.data, b.size);
}

static void test_magic_prefix(void **state)
{
    const ps_schema s = rich_schema(PS_U16);
    header h = encode(&s);

    for (size_t n = 1; n <= 12; n++)
        assert_true(ps_is_token_magic_prefix(h.data, n));
    for (size_t n = 1; n <= 8; n++) {
        h.data[n - 1] ^= 1;
        for (size_t m = 1; m <= 8; m++)
            assert_int_equal(ps_is_token_magic_prefix(h.data, m), m < n);
        h.data[n - 1] ^= 1;
    }
}

/* Writes `n` bytes at an offset, seals and decodes. */
static void expect(size_t at, uint64_t value, size_t n, ps_result wanted)
{
    const ps_schema s = rich_schema(PS_U16);
    header h = encode(&s);
    ps_schema back = {0};
    ps_error err;

    set_number(h.data + at, value, n);
    seal_header(h.data, h.size);
    assert_result(decode(&h, &back, &err), wanted, &err);
    assert_int_equal(decode(&h, &back, NULL), wanted);
}

static void test_numbers(void **state)
{
    enum { ENTRY = 128 + 64 };

    expect(12, 2, 2, PS_ERR_UNSUPPORTED);
    expect(12, 0xffff, 2, PS_ERR_UNSUPPORTED);
    expect(12, 0, 2, PS_ERR_CORRUPT);
    expect(14, 1, 2, PS_OK);
    expect(14, 0xffff, 2, PS_OK);
    expect(8, 0x04030201, 4, PS_ERR_CORRUPT);
    expect(24, 1, 8, PS_ERR_UNSUPPORTED);
    expect(24, UINT64_C(1) << 63, 8, PS_ERR_UNSUPPORTED);
    expect(32, UINT64_MAX, 8, PS_OK);
    expect(16, 136 + 64 * 4, 4, PS_ERR_CORRUPT); /* not for 5 channels */
    expect(16, 0, 4, PS_ERR_CORRUPT);
    expect(20, 24, 4, PS_ERR_CORRUPT);
    expect(20, UINT32_MAX, 4, PS_ERR_CORRUPT);
    /* 136 + 64 * 0x04000005 is header_bytes again, modulo 2^32. */
    expect(20, 0x04000005, 4, PS_ERR_CORRUPT);
    expect(40, 0, 1, PS_ERR_CORRUPT);
    expect(40, 1, 1, PS_ERR_CORRUPT);
    expect(40, 8, 1, PS_ERR_CORRUPT);
    expect(41, 3, 1, PS_ERR_CORRUPT);
    expect(41, 255, 1, PS_ERR_CORRUPT);
    expect(42, 1, 1, PS_ERR_CORRUPT); /* unused */
    /* the second entry of the table: "score", f64, per sequence */
    expect(ENTRY, 0, 1, PS_ERR_CORRUPT);            /* no name */
    expect(ENTRY, '1', 1, PS_ERR_CORRUPT);
    expect(ENTRY + 1, '\n', 1, PS_ERR_CORRUPT);
    expect(ENTRY + 7, 'x', 1, PS_ERR_CORRUPT);      /* after the NUL */
    expect(ENTRY, 0x736e656b6f74, 6, PS_ERR_CORRUPT); /* "tokens" */
    expect(ENTRY, 0x736c6562616c, 6, PS_ERR_CORRUPT); /* "labels" twice */
    expect(ENTRY + 24, 0, 1, PS_ERR_CORRUPT);       /* type */
    expect(ENTRY + 24, 9, 1, PS_ERR_CORRUPT);
    expect(ENTRY + 24, PS_U64, 1, PS_OK);           /* 8 bytes, too */
    expect(ENTRY + 24, PS_U32, 1, PS_ERR_CORRUPT);  /* 4 bytes, not 8 */
    expect(ENTRY + 25, 0, 1, PS_ERR_CORRUPT);       /* kind */
    expect(ENTRY + 25, PS_LIST, 1, PS_OK);
    expect(ENTRY + 25, 4, 1, PS_ERR_CORRUPT);
    expect(ENTRY + 32, 1, 4, PS_ERR_CORRUPT);       /* count */
    expect(ENTRY + 32, 2, 4, PS_OK);
    expect(ENTRY + 32, PS_MAX_VECTOR, 4, PS_OK);
    expect(ENTRY + 32, PS_MAX_VECTOR + 1, 4, PS_ERR_CORRUPT);
    expect(ENTRY + 32, UINT32_MAX, 4, PS_ERR_CORRUPT);
    expect(ENTRY + 26, 4, 1, PS_ERR_CORRUPT);       /* bytes */
    expect(128 + 64 * 2 + 40, 256, 8, PS_ERR_CORRUPT); /* fill of a u8 */
}

/* A later minor version may use bytes that this one reserves. */
static void test_later_minor(void **state)
{
    const ps_schema s = rich_schema(PS_U16);
    header h = encode(&s);
    ps_schema back;
    ps_error err;

    h.data[14] = h.data[42] = 1;
    seal_header(h.data, h.size);
    assert_result(decode(&h, &back, &err), PS_OK, &err);
}

/* More channels than allowed, in a header of the right size. */
static void test_too_many_channels(void **state)
{
    static const uint32_t numbers[] = {24, 1000, 0x03fffff0};

    for (size_t i = 0; i < COUNT(numbers); i++) {
        const ps_schema s = rich_schema(PS_U16);
        header h = encode(&s);
        size_t size;
        ps_error err;

        set_u32(h.data + 16, 136 + 64 * numbers[i]);
        set_u32(h.data + 20, numbers[i]);
        assert_result(ps_token_header_size(h.data, &size, &err),
                      PS_ERR_CORRUPT, &err);
    }
}

/* A name of 24 bytes would have no NUL. */
static void test_name_without_end(void **state)
{
    ps_schema s = many_channels(PS_MAX_CHANNELS);
    header h = encode(&s);
    ps_schema back = {0};
    ps_error err;

    h.data[128 + 64 * 22 + 23] = 'w';
    seal_header(h.data, h.size);
    assert_result(decode(&h, &back, &err), PS_ERR_CORRUPT, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_magic_prefix),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_later_minor),
        cmocka_unit_test(test_too_many_channels),
        cmocka_unit_test(test_name_without_end),
    };

    return run_as_tap("token-header", tests, NULL);
}
