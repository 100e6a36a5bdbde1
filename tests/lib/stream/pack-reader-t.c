/*
 * pack-reader-t.c - packs in: what the reader tells of a good stream, of
 * several, and when it has to wait.  What it refuses is in pack-record-t.c,
 * pack-header-t.c, pack-table-t.c and damage-t.c.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>
#include <unistd.h>

#include "format/totals.h"

static const ps_packer_options usual = {
    40, 6, 7, 5, .overlong = PS_OVERLONG_SPLIT};

static ps_pack_reader *open_reader(int fd)
{
    ps_pack_reader *r;
    ps_error err;

    assert_ok(ps_pack_reader_open(&r, fd, &err), &err);
    return r;
}

static bytes rich_packs(uint32_t count, uint64_t seed, ps_totals *totals)
{
    const ps_schema schema = rich_schema(PS_U32);

    return packs_from(make_corpus(&schema, count, 60, seed), &usual, totals);
}

/* The header as the packer filled it in. */
static void test_info(void **state)
{
    const ps_schema schema = rich_schema(PS_U32);
    bytes b = rich_packs(3, 4, NULL);
    int fd = open_bytes(&b);
    ps_pack_reader *r = open_reader(fd);
    const ps_pack_info *info = ps_pack_reader_info(r);

    assert_int_equal(info->version_major, 1);
    assert_int_equal(info->version_minor, 0);
    assert_int_equal(info->capacity, 40);
    assert_int_equal(info->depth, 6);
    assert_int_equal(info->window, 14); /* twice 7 */
    assert_true(info->split);
    assert_int_equal(info->pad_id, 5);
    assert_true(ps_schema_equal(&info->schema, &schema));
    assert_true(info->n_records == PS_UNKNOWN);
    assert_int_equal(info->record_bytes, get_u32(b.data + 20));
    assert_string_equal(info->fields[PS_FIELD_CU].channel.name, "cu");
    assert_string_equal(info->fields[PS_FIELD_SEQ_LEN].channel.name,
                        "seq_len");
    assert_ptr_equal(ps_pack_field(info, "tokens"),
                     &info->fields[info->tokens_field]);
    assert_int_equal(ps_pack_reader_offset(r), PS_PACK_HEADER_BYTES);
    ps_pack_reader_free(r);
    (void)close(fd);
    free_bytes(&b);
}

/* Indices, offsets and totals over two streams; then the end for good. */
static void test_two_streams(void **state)
{
    ps_totals totals[2];
    bytes all = rich_packs(50, 4, &totals[0]);
    const size_t stride = get_u32(all.data + 20);
    int fd;
    ps_pack_reader *r;
    ps_pack pack;
    ps_error err;
    uint64_t at = PS_PACK_HEADER_BYTES;

    join_bytes(&all, rich_packs(80, 5, &totals[1]));
    fd = open_bytes(&all);
    r = open_reader(fd);
    for (uint32_t stream = 0; stream < 2; stream++) {
        for (uint64_t i = 0; i < totals[stream].packs; i++) {
            assert_ok(ps_pack_reader_next(r, &pack, &err), &err);
            assert_int_equal(pack.stream, stream);
            assert_int_equal(pack.index, i);
            assert_int_equal(pack.offset, at);
            at += stride;
            assert_int_equal(ps_pack_reader_offset(r), at);
        }
        at += stride + PS_PACK_HEADER_BYTES;
    }
    assert_int_equal(ps_pack_reader_totals(r)->packs, totals[0].packs);
    for (int i = 0; i < 3; i++)
        assert_result(ps_pack_reader_next(r, &pack, &err), PS_END, &err);
    assert_true(ps_totals_add(&totals[0], &totals[1]));
    assert_totals(ps_pack_reader_totals(r), &totals[0]);
    assert_int_equal(ps_pack_reader_offset(r), all.size);
    ps_pack_reader_free(r);
    (void)close(fd);
    free_bytes(&all);
}

/* The counts of the header, where it has them, must be right. */
static void test_counts_in_header(void **state)
{
    static const size_t places[] = {24, 32, 40, 64, 72};
    ps_totals t;
    bytes b = rich_packs(20, 4, &t);
    const uint64_t right[] = {t.packs, t.sequences, t.tokens, t.max_seqlen,
                              t.min_fill};
    uint64_t n;
    ps_error err;

    for (size_t i = 0; i < 5; i++) {
        set_u64(b.data + places[i], right[i]);
        seal_packs(&b);
        assert_result(read_packs(&b, &n, &err), PS_END, &err);
        set_u64(b.data + places[i], right[i] + 1);
        seal_packs(&b);
        assert_result(read_packs(&b, &n, &err), PS_ERR_CORRUPT, &err);
        set_u64(b.data + places[i], right[i]);
    }
    free_bytes(&b);
}

/* Each END is right by itself, but together they exceed 64 bits. */
static void test_totals_beyond_64_bits(void **state)
{
    const uint64_t rejected = UINT64_C(1) << 63;
    ps_totals t;
    bytes b = rich_packs(20, 4, &t);
    bytes all = {0};
    uint64_t n;
    ps_error err;

    set_u64(record_at(&b, t.packs, 64 + 5 * 8), t.tokens + rejected);
    set_u64(record_at(&b, t.packs, 64 + 7 * 8), rejected);
    seal_packs(&b);
    put_bytes(&all, b.data, b.size);
    assert_result(read_packs(&all, &n, &err), PS_END, &err);
    put_bytes(&all, b.data, b.size);
    assert_result(read_packs(&all, &n, &err), PS_ERR_CORRUPT, &err);
    assert_int_equal(n, 2 * t.packs);
    free_bytes(&all);
    free_bytes(&b);
}

/* Behind END: the header of another stream, or nothing. */
static void test_behind_end(void **state)
{
    ps_totals t;
    bytes b = rich_packs(20, 4, &t);
    size_t size = b.size;
    uint64_t n;
    ps_error err;

    put_bytes(&b, "\x89PKS\r\n\x1a\r", 8);
    for (b.size = size + 1; b.size <= size + 8; b.size++) {
        assert_result(read_packs(&b, &n, &err),
                      b.size < size + 8 ? PS_ERR_TRUNCATED : PS_ERR_CORRUPT,
                      &err);
        assert_int_equal(n, t.packs);
    }
    b.data[size] = 0;
    b.size = size + 1;
    assert_result(read_packs(&b, &n, &err), PS_ERR_CORRUPT, &err);
    free_bytes(&b);
}

/*
 * The stream as a later minor version might write it: a larger record, with
 * a field of its own, and a meaning for what is zero in ours.
 */
static bytes make_later(const bytes *b)
{
    size_t stride = get_u32(b->data + 20);
    uint32_t n_fields = get_u32(b->data + 200);
    bytes later = {0};
    unsigned char *entry;

    entry = b->data + 256 + 64 * (size_t)(n_fields - 1);
    assert_true(get_u32(entry + 28) + 4 * 40 < stride);
    put_bytes(&later, b->data, PS_PACK_HEADER_BYTES);
    for (size_t at = PS_PACK_HEADER_BYTES; at < b->size; at += stride) {
        put_bytes(&later, b->data + at, stride);
        put_zeros(&later, 64);
        memset(later.data + later.size - 64, 'n', 64);
        later.data[later.size - 64 - stride + 60] = 1; /* in the head */
        later.data[later.size - 64 - 1] = 1; /* behind the last field */
    }
    later.data[14] = 1;
    set_u32(later.data + 20, (uint32_t)stride + 64);
    set_u32(later.data + 200, n_fields + 1);
    entry = later.data + 256 + 64 * (size_t)n_fields;
    memcpy(entry, "novelty", 7);
    entry[24] = PS_U8;
    entry[25] = PS_PER_TOKEN;
    entry[26] = 1;
    set_u32(entry + 28, (uint32_t)stride);
    set_u32(entry + 32, 40);
    seal_packs(&later);
    return later;
}

/* It reads as ever; the rules that we know still count. */
static void test_later_version(void **state)
{
    ps_totals t;
    bytes b = rich_packs(30, 4, &t);
    bytes later = make_later(&b);
    int fd = open_bytes(&later);
    ps_pack_reader *r = open_reader(fd);
    const ps_pack_info *info = ps_pack_reader_info(r);
    ps_pack pack;
    ps_error err;
    uint64_t n;

    for (n = 0; ps_pack_reader_next(r, &pack, &err) == PS_OK; n++)
        assert_ok(ps_pack_check(info, &pack, &err), &err);
    assert_int_equal(n, t.packs);
    assert_result(ps_pack_reader_next(r, &pack, &err), PS_END, &err);
    ps_pack_reader_free(r);
    (void)close(fd);
    later.data[14] = 0; /* as ours it would be damaged */
    seal_packs(&later);
    assert_result(read_packs(&later, &n, &err), PS_ERR_CORRUPT, &err);
    free_bytes(&later);
    free_bytes(&b);
}

/* A writer that passes on one more record whenever it is waited for. */
typedef struct lazy {
    int fd;
    uint32_t calls;
    const bytes *stream;
    size_t at;
} lazy;

static ps_result on_wait(void *context, ps_error *err)
{
    lazy *l = context;
    size_t stride = get_u32(l->stream->data + 20);

    (void)err;
    l->calls++;
    if (l->at == l->stream->size) {
        (void)close(l->fd);
        return PS_OK;
    }
    assert_int_equal(write(l->fd, l->stream->data + l->at, stride), stride);
    l->at += stride;
    return PS_OK;
}

static void test_wait_hook(void **state)
{
    bytes b = rich_packs(10, 4, NULL);
    lazy l = {.stream = &b, .at = PS_PACK_HEADER_BYTES};
    int ends[2];
    ps_pack_reader *r;
    ps_pack pack;
    ps_error err;
    uint32_t packs = 0;

    assert_int_equal(pipe(ends), 0);
    l.fd = ends[1];
    assert_int_equal(write(l.fd, b.data, l.at), l.at);
    r = open_reader(ends[0]);
    ps_pack_reader_on_wait(r, on_wait, &l);
    while (ps_pack_reader_next(r, &pack, &err) == PS_OK)
        assert_int_equal(l.calls, ++packs);
    assert_result(ps_pack_reader_next(r, &pack, &err), PS_END, &err);
    assert_int_equal(l.calls, packs + 2);
    ps_pack_reader_free(r);
    (void)close(ends[0]);
    free_bytes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_two_streams),
        cmocka_unit_test(test_counts_in_header),
        cmocka_unit_test(test_totals_beyond_64_bits),
        cmocka_unit_test(test_behind_end),
        cmocka_unit_test(test_later_version),
        cmocka_unit_test(test_wait_hook),
    };

    return run_as_tap("pack-reader", tests, NULL);
}
