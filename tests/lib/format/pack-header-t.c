/*
 * pack-header-t.c - the header of a pack stream: byte by byte, encoded and
 * decoded, and refused when its numbers or its table are invalid.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>

#include "format/pack_header.h"
#include "format/pack_layout.h"

/* Offsets in the header. */
enum {
    AT_MAJOR = 12,
    AT_MINOR = 14,
    AT_HEADER_BYTES = 16,
    AT_ROW_BYTES = 20,
    AT_CAPACITY = 48,
    AT_DEPTH = 52,
    AT_WINDOW = 56,
    AT_INCOMPAT = 80,
    AT_COMPAT = 88,
    AT_TOKEN_BYTES = 120,
    AT_LABELS = 121,
    AT_PAD = 176,
    AT_ALIGN = 180,
    AT_SEQ_BYTES = 184,
    AT_BLOCK_PACKS = 188,
    AT_BLOCK_BYTES = 192,
    AT_N_FIELDS = 200,
    AT_TABLE = 256,
    AT_DTYPE = 2048
};

static ps_pack_info make_info(const ps_schema *schema, uint32_t capacity,
                              uint32_t depth, bool split)
{
    ps_pack_info info = {.version_major = 2,
                         .capacity = capacity,
                         .depth = depth,
                         .max_displacement = 7,
                         .split = split,
                         .align = 1,
                         .pad_id = 3,
                         .schema = *schema,
                         .seed = 0x1111111111111111,
                         .options_digest = 0x2222222222222222,
                         .n_packs = 5,
                         .n_sequences = 6,
                         .n_tokens = PS_UNKNOWN,
                         .max_seqlen = 8,
                         .min_fill = PS_UNKNOWN};
    ps_error err;

    assert_ok(ps_layout(&info, &err), &err);
    return info;
}

static ps_pack_info rich_info(void)
{
    const ps_schema s = rich_schema(PS_U16);

    return make_info(&s, 20, 6, true);
}

static void assert_same_info(const ps_pack_info *a, const ps_pack_info *b)
{
    assert_int_equal(a->version_major, b->version_major);
    assert_int_equal(a->version_minor, b->version_minor);
    assert_int_equal(a->capacity, b->capacity);
    assert_int_equal(a->depth, b->depth);
    assert_int_equal(a->max_displacement, b->max_displacement);
    assert_int_equal(a->split, b->split);
    assert_int_equal(a->align, b->align);
    assert_int_equal(a->pad_id, b->pad_id);
    assert_true(ps_schema_equal(&a->schema, &b->schema));
    assert_true(a->seed == b->seed);
    assert_true(a->options_digest == b->options_digest);
    assert_true(a->n_packs == b->n_packs);
    assert_true(a->n_sequences == b->n_sequences);
    assert_true(a->n_tokens == b->n_tokens);
    assert_true(a->max_seqlen == b->max_seqlen);
    assert_true(a->min_fill == b->min_fill);
    assert_int_equal(a->row_bytes, b->row_bytes);
    assert_int_equal(a->seq_bytes, b->seq_bytes);
    assert_int_equal(a->block_packs, b->block_packs);
    assert_true(a->block_bytes == b->block_bytes);
    assert_string_equal(a->dtype, b->dtype);
    assert_int_equal(a->n_fields, b->n_fields);
    for (uint32_t i = 0; i < a->n_fields; i++) {
        const ps_field *f = &a->fields[i];
        const ps_field *g = &b->fields[i];

        assert_string_equal(f->channel.name, g->channel.name);
        assert_int_equal(f->channel.type, g->channel.type);
        assert_int_equal(f->channel.kind, g->channel.kind);
        assert_true(f->channel.fill == g->channel.fill);
        assert_int_equal(f->source, g->source);
        assert_int_equal(f->offset, g->offset);
    }
}

static void round_trip(const ps_pack_info *info)
{
    unsigned char header[PS_PACK_HEADER_BYTES];
    ps_pack_info back;
    ps_error err;

    memset(header, 0xee, sizeof header);
    ps_pack_header_encode(info, header);
    assert_ok(ps_pack_header_decode(header, &back, &err), &err);
    assert_same_info(info, &back);
    assert_ok(ps_pack_info_compare(info, &back, &err), &err);
}

/*
 * `n` channels of all types, with names of maximum length; of both kinds in
 * turn if `kind` is 0.
 */
static ps_schema many_channels(uint32_t n, unsigned kind)
{
    ps_schema s = ps_schema_raw(PS_U32);

    s.framed = true;
    s.n_channels = n;
    for (uint32_t i = 0; i < n; i++) {
        ps_channel *c = &s.channels[i];
        unsigned type = 1 + i % 8;

        *c = (ps_channel){.kind = kind == PS_PER_TOKEN || (kind == 0 && i % 2)
                                      ? PS_PER_TOKEN
                                      : PS_PER_SEQUENCE};
        memset(c->name, 'a' + (int)i, PS_NAME_BYTES - 1);
        memcpy(&c->type, &type, sizeof type);
    }
    return s;
}

static void test_round_trip(void **state)
{
    ps_schema raw = ps_schema_raw(PS_U16);
    ps_pack_info info = rich_info();

    round_trip(&info);
    info.align = 5;
    info.depth = 0;
    assert_ok(ps_layout(&info, NULL), NULL);
    round_trip(&info);
    info = make_info(&raw, 1, 1, false);
    round_trip(&info);
    raw.vocab_size = 99;
    info = make_info(&raw, PS_MAX_CAPACITY, PS_MAX_DEPTH, true);
    round_trip(&info);
    for (uint32_t n = 0; n <= PS_MAX_CHANNELS; n++) {
        const ps_schema s = many_channels(n, 0);

        info = make_info(&s, 100, 10, n % 2 == 0);
        round_trip(&info);
    }
}

/* The longest possible dtype literals fit, each on a line. */
static void check_dtype(const ps_pack_info *info)
{
    size_t n = strlen(info->dtype);

    assert_true(n > 0 && n < sizeof info->dtype);
    assert_int_equal(info->dtype[0], '{');
    assert_non_null(strstr(info->dtype, "}\n{"));
    assert_string_equal(info->dtype + n - 2, "}\n");
    for (uint32_t i = 0; i < info->n_fields; i++)
        assert_non_null(strstr(info->dtype, info->fields[i].channel.name));
    round_trip(info);
}

static void test_largest_dtype(void **state)
{
    const uint32_t most = PS_MAX_FIELDS - 6; /* beside split sequences */
    const ps_schema sequences = many_channels(most, PS_PER_SEQUENCE);
    const ps_schema tokens = many_channels(most, PS_PER_TOKEN);
    const ps_schema all = many_channels(PS_MAX_CHANNELS, PS_PER_TOKEN);
    uint32_t capacity = PS_MAX_CAPACITY;
    ps_pack_info info;
    ps_error err;

    info = make_info(&sequences, PS_MAX_CAPACITY, PS_MAX_DEPTH, true);
    assert_int_equal(info.n_fields, PS_MAX_FIELDS);
    check_dtype(&info);
    /* As many tokens as fit a row with so many channels. */
    info = make_info(&tokens, 1, 1, true);
    info.capacity = capacity;
    info.block_packs = 1;
    assert_result(ps_layout(&info, &err), PS_ERR_LIMIT, &err);
    while (ps_layout(&info, NULL) != PS_OK)
        info.capacity = capacity -= 1 << 16;
    assert_true(info.row_bytes > PS_MAX_ROW_BYTES / 8 * 7);
    assert_int_equal(info.n_fields, PS_MAX_FIELDS);
    check_dtype(&info);
    /* One more channel, which fits if sequences are whole. */
    info = make_info(&all, 1, 1, false);
    check_dtype(&info);
    info.split = true;
    assert_result(ps_layout(&info, &err), PS_ERR_LIMIT, &err);
}

/* The literals of a stream without channels. */
static void test_dtype(void **state)
{
    const ps_schema raw = ps_schema_raw(PS_U16);
    const ps_pack_info info = make_info(&raw, 10, 4, false);

    assert_string_equal(
        info.dtype,
        "{'names':['tokens',],'formats':[('<u2',(10,)),],'offsets':[0,],"
        "'itemsize':24}\n"
        "{'names':['seq_id','seq_start','seq_tok',],"
        "'formats':['<u8','<i4','<i4',],"
        "'offsets':[0,8,12,],'itemsize':16}\n");
}

/* An entry of the table as packstream(5) defines it. */
static void check_entry(const unsigned char *entry, const char *name,
                        unsigned type, unsigned kind, unsigned element,
                        unsigned source, uint32_t offset, uint32_t count,
                        uint64_t fill)
{
    char padded[24] = {0};

    memcpy(padded, name, strlen(name));
    assert_memory_equal(entry, padded, 24);
    assert_int_equal(entry[24], type);
    assert_int_equal(entry[25], kind);
    assert_int_equal(entry[26], element);
    assert_int_equal(entry[27], source);
    assert_int_equal(get_u32(entry + 28), offset);
    assert_int_equal(get_u32(entry + 32), count);
    assert_int_equal(get_u32(entry + 36), 0);
    assert_true(get_u64(entry + 40) == fill);
    assert_true(get_u64(entry + 48) == 0 && get_u64(entry + 56) == 0);
}

/*
 * rich_schema's fields at a capacity of 20 and a depth of 6, with offsets
 * worked out on paper.
 */
static void test_layout(void **state)
{
    ps_pack_info info = rich_info();
    unsigned char h[PS_PACK_HEADER_BYTES];
    const unsigned char *entry = h + AT_TABLE;

    ps_pack_header_encode(&info, h);
    assert_memory_equal(h, "\x89PKS\r\n\x1a\n\4\3\2\1\2\0\0\0", 16);
    assert_int_equal(get_u32(h + AT_HEADER_BYTES), 4096);
    assert_int_equal(get_u32(h + AT_ROW_BYTES), 384);
    assert_true(get_u64(h + 24) == 5 && get_u64(h + 32) == 6);
    assert_true(get_u64(h + 40) == UINT64_MAX);
    assert_int_equal(get_u32(h + AT_CAPACITY), 20);
    assert_int_equal(get_u32(h + AT_DEPTH), 6);
    assert_int_equal(get_u32(h + AT_WINDOW), 7);
    assert_int_equal(get_u32(h + 60), 0);
    assert_true(get_u64(h + 64) == 8 && get_u64(h + 72) == UINT64_MAX);
    assert_true(get_u64(h + AT_INCOMPAT) == 0);
    assert_true(get_u64(h + AT_COMPAT) == 1);
    assert_int_equal(get_u32(h + 96), 0xffffffff);
    assert_int_equal(get_u32(h + 104), 2); /* eos */
    assert_int_equal(h[AT_TOKEN_BYTES], 2);
    assert_int_equal(h[AT_LABELS], 1);
    assert_true(get_u64(h + 128) == 0x1111111111111111);
    assert_int_equal(h[136], 0xaa);
    assert_int_equal(h[167], 0x55);
    assert_true(get_u64(h + 168) == 0x2222222222222222);
    assert_int_equal(get_u32(h + AT_PAD), 3);
    assert_int_equal(get_u32(h + AT_ALIGN), 0);
    assert_int_equal(get_u32(h + AT_SEQ_BYTES), 40);
    assert_int_equal(get_u32(h + AT_BLOCK_PACKS), 4096);
    assert_true(get_u64(h + AT_BLOCK_BYTES) == 2719808);
    assert_int_equal(get_u32(h + AT_N_FIELDS), 11);
    check_entry(entry, "tokens", 2, 1, 2, 0, 0, 1, 3);
    check_entry(entry += 64, "labels", 5, 1, 4, 1, 40, 1, 0xffffff9c);
    check_entry(entry += 64, "type_id", 1, 1, 1, 3, 120, 1, 7);
    check_entry(entry += 64, "weight", 7, 1, 4, 5, 140, 3, 0x3f800000);
    check_entry(entry += 64, "seq_id", 4, 2, 8, 0, 0, 1, 0);
    check_entry(entry += 64, "seq_start", 5, 2, 4, 0, 8, 1, 0);
    check_entry(entry += 64, "seq_tok", 5, 2, 4, 0, 12, 1, 0);
    check_entry(entry += 64, "piece_off", 3, 2, 4, 0, 16, 1, 0);
    check_entry(entry += 64, "full_len", 3, 2, 4, 0, 20, 1, 0);
    check_entry(entry += 64, "score", 8, 2, 8, 2, 24, 1, 0);
    check_entry(entry += 64, "group", 2, 2, 2, 4, 32, 1, 0xffff);
    assert_memory_equal(h + AT_DTYPE, "{'names':['tokens','labels',", 28);
    info.align = 5;
    ps_pack_header_encode(&info, h);
    assert_true(get_u64(h + AT_INCOMPAT) == 1);
    assert_int_equal(get_u32(h + AT_ALIGN), 5);
}

/* Sizes of rows and blocks, worked out on paper. */
static void test_sizes(void **state)
{
    static const struct {
        uint32_t capacity;
        uint32_t depth;
        uint32_t align;
        uint32_t asked; /* packs in a block */
        uint32_t row_bytes;
        uint32_t block_packs;
        uint64_t block_bytes;
    } cases[] = {
        {1, 0, 1, 0, 8, 32768, 64 + 32768 * (48 + 16)},
        {2048, 0, 1, 0, 4096, 256, 64 + 256 * 4136 + (1 << 20)},
        {2049, 0, 1, 0, 4104, 256, 64 + 256 * 4144 + (1 << 20)},
        {2028, 0, 1, 0, 4056, 256, 64 + 256 * 4096 + (1 << 20)},
        {2024, 0, 1, 0, 4048, 512, 64 + 512 * 4088 + (1 << 20)},
        {2048, 128, 1, 0, 4096, 256, 64 + 256 * (4136 + 128 * 16)},
        {2048, 0, 16, 0, 4096, 256, 64 + 256 * (4136 + 128 * 16)},
        {2048, 0, 1, 1, 4096, 1, 64 + 4136 + 2048 * 16 + 24},
        {2048, 0, 1, 65536, 4096, 65536, 64 + 65536 * 4136 + (1 << 20)},
        {524268, 1, 1, 0, (1 << 20) - 40, 1, 64 + (1 << 20) + 16},
        {524264, 1, 1, 0, (1 << 20) - 48, 2, 64 + (2 << 20) - 16 + 32},
        {1 << 24, 0, 1, 0, 1 << 25, 1, 64 + (1 << 25) + 40 + (16 << 20) + 24},
        {1 << 24, 0, 1, 8, 1 << 25, 8,
         64 + 8 * ((UINT64_C(1) << 25) + 40) + (16 << 20)},
    };
    const ps_schema s = ps_schema_raw(PS_U16);

    for (size_t i = 0; i < COUNT(cases); i++) {
        ps_pack_info info = make_info(&s, 20, 6, false);
        ps_error err;

        info.capacity = cases[i].capacity;
        info.depth = cases[i].depth;
        info.align = cases[i].align;
        info.block_packs = cases[i].asked;
        assert_ok(ps_layout(&info, &err), &err);
        assert_int_equal(info.row_bytes, cases[i].row_bytes);
        assert_int_equal(info.seq_bytes, 16);
        assert_int_equal(info.block_packs, cases[i].block_packs);
        assert_int_equal(info.block_bytes,
                         (cases[i].block_bytes + 63) / 64 * 64);
    }
}

static void test_limits(void **state)
{
    const ps_schema s = ps_schema_raw(PS_U16);
    ps_pack_info good = make_info(&s, 100, 10, false);
    ps_pack_info info;
    ps_error err;

#define EXPECT(member, value, wanted)                                   \
    info = good;                                                        \
    info.member = value;                                                \
    assert_result(ps_layout(&info, &err), wanted, &err)
    EXPECT(capacity, 0, PS_ERR_ARGUMENT);
    EXPECT(capacity, 9, PS_ERR_ARGUMENT); /* below the depth */
    EXPECT(capacity, 10, PS_OK);
    EXPECT(depth, 0, PS_OK);
    EXPECT(depth, 101, PS_ERR_ARGUMENT);
    EXPECT(align, 10, PS_OK);
    EXPECT(align, 20, PS_ERR_ARGUMENT); /* 5 fit, the depth is 10 */
    EXPECT(align, 3, PS_ERR_ARGUMENT);
    EXPECT(align, 0, PS_ERR_ARGUMENT);
    EXPECT(max_displacement, 0, PS_ERR_ARGUMENT);
    EXPECT(max_displacement, PS_MAX_WINDOW, PS_OK);
    EXPECT(max_displacement, PS_MAX_WINDOW + 1, PS_ERR_ARGUMENT);
    EXPECT(block_packs, 3, PS_ERR_ARGUMENT);
    EXPECT(block_packs, 65536, PS_OK);
    EXPECT(block_packs, 1 << 17, PS_ERR_ARGUMENT);
    good.block_packs = 8;
    EXPECT(capacity, PS_MAX_CAPACITY, PS_OK);
    EXPECT(capacity, PS_MAX_CAPACITY + 1, PS_ERR_ARGUMENT);
    good.capacity = PS_MAX_CAPACITY;
    EXPECT(block_packs, 16, PS_ERR_ARGUMENT); /* rows of 2^29 bytes */
    EXPECT(depth, PS_MAX_DEPTH, PS_OK);
    EXPECT(depth, PS_MAX_DEPTH + 1, PS_ERR_ARGUMENT);
#undef EXPECT
}

/* Writes `n` bytes at an offset, seals and decodes. */
static void expect(size_t at, uint64_t value, size_t n, ps_result wanted)
{
    ps_pack_info info = rich_info();
    unsigned char header[PS_PACK_HEADER_BYTES];
    ps_error err;

    ps_pack_header_encode(&info, header);
    set_number(header + at, value, n);
    seal_header(header, PS_PACK_HEADER_BYTES);
    assert_result(ps_pack_header_decode(header, &info, &err), wanted, &err);
    assert_int_equal(ps_pack_header_decode(header, &info, NULL), wanted);
}

static void test_numbers(void **state)
{
    expect(0, 0x88, 1, PS_ERR_MAGIC);
    expect(1, 'T', 1, PS_ERR_MAGIC);
    expect(AT_MAJOR, 3, 2, PS_ERR_UNSUPPORTED);
    expect(AT_MAJOR, 0xffff, 2, PS_ERR_UNSUPPORTED);
    expect(AT_MAJOR, 1, 2, PS_ERR_UNSUPPORTED);
    expect(AT_MAJOR, 0, 2, PS_ERR_CORRUPT);
    expect(AT_MINOR, 1, 2, PS_OK);
    expect(AT_MINOR, 0xffff, 2, PS_OK);
    expect(8, 0x04030201, 4, PS_ERR_CORRUPT);
    expect(AT_INCOMPAT, 2, 8, PS_ERR_UNSUPPORTED);
    expect(AT_INCOMPAT, 3, 8, PS_ERR_UNSUPPORTED);
    expect(AT_INCOMPAT, UINT64_C(1) << 63, 8, PS_ERR_UNSUPPORTED);
    expect(AT_COMPAT, UINT64_MAX, 8, PS_OK);
    expect(AT_HEADER_BYTES, 8192, 4, PS_ERR_CORRUPT);
    expect(AT_HEADER_BYTES, 0, 4, PS_ERR_CORRUPT);
    expect(AT_ROW_BYTES, 0, 4, PS_ERR_CORRUPT);
    expect(AT_ROW_BYTES, 376, 4, PS_ERR_CORRUPT); /* too small for it */
    expect(AT_ROW_BYTES, 385, 4, PS_ERR_CORRUPT);
    expect(AT_ROW_BYTES, 392, 4, PS_ERR_CORRUPT);
    expect(AT_ROW_BYTES, 0xfffffff8, 4, PS_ERR_CORRUPT);
    expect(AT_SEQ_BYTES, 0, 4, PS_ERR_CORRUPT);
    expect(AT_SEQ_BYTES, 32, 4, PS_ERR_CORRUPT); /* likewise */
    expect(AT_SEQ_BYTES, 44, 4, PS_ERR_CORRUPT);
    expect(AT_SEQ_BYTES, 48, 4, PS_ERR_CORRUPT);
    expect(AT_SEQ_BYTES, 0xfffffff8, 4, PS_ERR_CORRUPT);
    expect(AT_BLOCK_PACKS, 0, 4, PS_ERR_CORRUPT);
    expect(AT_BLOCK_PACKS, 4095, 4, PS_ERR_CORRUPT);
    expect(AT_BLOCK_PACKS, 8192, 4, PS_ERR_CORRUPT); /* not block_bytes */
    expect(AT_BLOCK_PACKS, 1 << 17, 4, PS_ERR_CORRUPT);
    expect(AT_BLOCK_BYTES, 0, 8, PS_ERR_CORRUPT);
    expect(AT_BLOCK_BYTES, 2064448 - 64, 8, PS_ERR_CORRUPT);
    expect(AT_BLOCK_BYTES, 2064448 + 64, 8, PS_ERR_CORRUPT);
    expect(AT_BLOCK_BYTES, UINT64_MAX, 8, PS_ERR_CORRUPT);
    expect(AT_CAPACITY, 0, 4, PS_ERR_CORRUPT);
    expect(AT_CAPACITY, 21, 4, PS_ERR_CORRUPT); /* fields have 20 */
    expect(AT_CAPACITY, UINT32_MAX, 4, PS_ERR_CORRUPT);
    expect(AT_DEPTH, 0, 4, PS_ERR_CORRUPT); /* not block_bytes */
    expect(AT_DEPTH, 5, 4, PS_ERR_CORRUPT);
    expect(AT_DEPTH, 21, 4, PS_ERR_CORRUPT);
    expect(AT_DEPTH, UINT32_MAX, 4, PS_ERR_CORRUPT);
    expect(AT_ALIGN, 1, 4, PS_ERR_CORRUPT); /* without its bit */
    expect(AT_INCOMPAT, 1, 8, PS_ERR_CORRUPT); /* without a number */
    expect(AT_WINDOW, 0, 4, PS_ERR_CORRUPT);
    expect(AT_WINDOW, UINT32_MAX, 4, PS_ERR_CORRUPT);
    expect(AT_TOKEN_BYTES, 3, 1, PS_ERR_CORRUPT);
    expect(AT_TOKEN_BYTES, 4, 1, PS_ERR_CORRUPT); /* tokens are u16 */
    expect(AT_LABELS, 3, 1, PS_ERR_CORRUPT);
    expect(AT_PAD, 4, 4, PS_ERR_CORRUPT); /* not the fill of tokens */
    expect(AT_PAD, 65536 + 3, 4, PS_ERR_CORRUPT);
}

/* Built-in fields whose layout differs from that of every stream. */
static void test_moved_fields(void **state)
{
    const ps_schema raw = ps_schema_raw(PS_U16);

    for (int i = 0; i < 3; i++) {
        ps_pack_info info = make_info(&raw, 10, 4, false);
        unsigned char h[PS_PACK_HEADER_BYTES];
        unsigned char tokens[64];
        ps_error err;

        ps_pack_header_encode(&info, h);
        if (i == 0) { /* tokens after seq_id */
            memcpy(tokens, h + AT_TABLE, 64);
            memcpy(h + AT_TABLE, h + AT_TABLE + 64, 64);
            memcpy(h + AT_TABLE + 64, tokens, 64);
        } else if (i == 1) { /* a gap before seq_tok */
            set_u32(h + AT_TABLE + 3 * 64 + 28, 16);
            set_u32(h + AT_SEQ_BYTES, 24);
        } else { /* seq_tok per token */
            h[AT_TABLE + 3 * 64 + 25] = PS_PER_TOKEN;
            set_u32(h + AT_TABLE + 3 * 64 + 28, 24);
            set_u32(h + AT_ROW_BYTES, 64);
        }
        seal_header(h, PS_PACK_HEADER_BYTES);
        assert_result(ps_pack_header_decode(h, &info, &err), PS_ERR_CORRUPT,
                      &err);
        assert_non_null(strstr(err.text, "is missing in the header"));
    }
}

/* Every file of an earlier version gets the same advice. */
static void test_format_1(void **state)
{
    unsigned char header[PS_PACK_HEADER_BYTES] =
        "\x89PKS\r\n\x1a\n\4\3\2\1\1\0\0\0";
    ps_pack_info info;
    ps_error err;

    assert_result(ps_pack_header_decode(header, &info, &err),
                  PS_ERR_UNSUPPORTED, &err);
    assert_string_equal(err.text, "pack stream format 1 is no longer "
                                  "supported: pack the token records again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_largest_dtype),
        cmocka_unit_test(test_dtype),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_moved_fields),
        cmocka_unit_test(test_format_1),
    };

    return run_as_tap("pack-header", tests, NULL);
}
