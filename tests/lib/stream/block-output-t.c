/*
 * block-output-t.c - where blocks close, and the index after them.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <unistd.h>

#include <xxhash.h>
#include <zstd.h>

#include "format/pack_header.h"
#include "lib-alloc.h"
#include "stream/block_output.h"

/*
 * Packs of one-token sequences whose token is the lower half of the id; `hash`
 * is the XXH3-64 of the stream that tests/support/packwrite.py writes for them.
 */
typedef struct shape {
    uint32_t capacity;
    uint32_t block_packs;
    uint32_t n;           /* packs */
    uint32_t n_seq[8];    /* of the first packs, then repeated */
    uint32_t period;
    uint32_t closed;      /* bit i: the block is closed after pack i */
    uint64_t hash;
} shape;

/* Blocks that are closed early, or late. */
static const shape few = {3, 4, 11, {1, 2, 3}, 3, 1 << 1 | 1 << 8,
                          UINT64_C(0x6b300ca566f50507)};
/* More blocks than an INDEX block lists. */
static const shape many = {1, 1, 8197, {1}, 1, 0,
                           UINT64_C(0xff3b51a6d56b17ce)};

static ps_pack_info info_of(const shape *s)
{
    ps_pack_info info = {.version_major = 2,
                         .capacity = s->capacity,
                         .max_displacement = 8,
                         .align = 1,
                         .schema = ps_schema_raw(PS_U16),
                         .n_packs = PS_UNKNOWN,
                         .n_sequences = PS_UNKNOWN,
                         .n_tokens = PS_UNKNOWN,
                         .max_seqlen = PS_UNKNOWN,
                         .min_fill = PS_UNKNOWN,
                         .block_packs = s->block_packs};
    ps_error err;

    assert_ok(ps_layout(&info, &err), &err);
    return info;
}

/* Puts the first `packs` packs. */
static void put_packs(ps_block_output *b, const shape *s, uint32_t packs)
{
    uint32_t id = 0;
    ps_error err;

    for (uint32_t i = 0; i < packs; i++) {
        const uint32_t n = s->n_seq[i % s->period];
        ps_pack_builder pack;

        assert_ok(ps_block_output_pack(b, n, &pack, &err), &err);
        for (uint32_t k = 0; k < n; k++, id++) {
            const ps_piece piece = {.id = id, .n_tok = 1};

            (void)ps_pack_next_sequence(&pack);
            set_number(pack.row + (size_t)2 * k, id & 0xffff, 2);
            ps_pack_add(&pack, &piece);
        }
        ps_pack_end(&pack);
        assert_ok(ps_block_output_add(b, &pack, id, &err), &err);
        if (i < 32 && (s->closed >> i & 1) != 0)
            assert_ok(ps_block_output_close(b, &err), &err);
    }
}

static void put_end(ps_block_output *b, const shape *s)
{
    ps_totals t = {0};
    ps_error err;

    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t n = s->n_seq[i % s->period];

        ps_totals_add_pack(&t, n, n, 1);
        if (n - 1 > t.max_displacement)
            t.max_displacement = n - 1;
    }
    t.input_sequences = t.sequences;
    t.input_tokens = t.tokens;
    assert_ok(ps_block_output_end(b, &t, &err), &err);
}

static void open_output(ps_block_output *b, int fd, const ps_pack_info *info,
                        const ps_output_options *options)
{
    ps_error err;

    assert_ok(ps_block_output_open(b, fd, info, options, &err), &err);
}

/* Writes one stream or several in a row. */
static bytes write_streams(const shape *s, const ps_output_options *options,
                           uint32_t streams)
{
    const ps_pack_info info = info_of(s);
    int fd = open_empty();
    ps_block_output b = {0};
    ps_error err;
    bytes all;

    open_output(&b, fd, &info, options);
    while (streams-- > 0) {
        assert_ok(ps_block_output_begin(&b, false, &err), &err);
        put_packs(&b, s, s->n);
        put_end(&b, s);
    }
    assert_ok(ps_output_finish(b.output, &err), &err);
    ps_block_output_free(&b);
    all = read_back(fd);
    (void)close(fd);
    return all;
}

/*
 * A block closes when it is full, on request, and before its sequence rows
 * exceed 1 MiB, unless a single pack does.
 */
static void test_streams(void **state)
{
    static const shape others[] = {
        {1, 1, 0, {1}, 1, 0, UINT64_C(0x1c3008da48d0f72b)},
        {1, 1, 1, {1}, 1, 0, UINT64_C(0x3ae68e7a9ca50e8d)},
        {1, 1, 4095, {1}, 1, 0, UINT64_C(0xbea79dc270243daa)},
        {1, 1, 4096, {1}, 1, 0, UINT64_C(0x91943a074d55018a)},
        {70000, 8, 8, {30000, 30000, 5536, 1, 65536, 65537, 2, 70000}, 8, 0,
         UINT64_C(0xad41a35d6b929f0c)},
    };
    const shape *const shapes[] = {&few,       &many,      &others[0],
                                   &others[1], &others[2], &others[3],
                                   &others[4]};

    for (size_t i = 0; i < COUNT(shapes); i++)
        for (uint32_t threads = 0; threads < 2; threads++) {
            const ps_output_options o = {.threads = threads};
            bytes b = write_streams(shapes[i], &o, 1);

            assert_true(XXH3_64bits(b.data, b.size) == shapes[i]->hash);
        }
}

/* Header, block, INDEX and END each have their own frame. */
static void test_frames(void **state)
{
    const shape *const shapes[] = {&few, &many};

    for (size_t i = 0; i < COUNT(shapes); i++)
        for (uint32_t threads = 0; threads < 3; threads += 2) {
            const ps_output_options plain = {0};
            const ps_output_options o = {
                .threads = threads, .compressed = true, .level = 1};
            bytes wanted = write_streams(shapes[i], &plain, 1);
            bytes b = write_streams(shapes[i], &o, 1);
            unsigned char *frame = must_alloc(wanted.size);
            size_t from = 0;

            for (size_t at = 0, n; at < wanted.size; at += n) {
                const size_t size =
                    ZSTD_findFrameCompressedSize(b.data + from, b.size - from);

                n = at == 0 ? PS_PACK_HEADER_BYTES
                            : block_bytes(wanted.data + at);
                assert_false(ZSTD_isError(size));
                assert_int_equal(ZSTD_decompress(frame, wanted.size,
                                                 b.data + from, size),
                                 n);
                assert_memory_equal(frame, wanted.data + at, n);
                from += size;
            }
            free(frame);
        }
}

/* The maximum number of INDEX blocks. */
static void test_too_many_blocks(void **state)
{
    const ps_pack_info info = info_of(&many);
    const ps_output_options o = {0};
    int fd = open_empty();
    ps_block_output b = {0};
    ps_pack_builder pack;
    ps_error err;

    open_output(&b, fd, &info, &o);
    assert_ok(ps_block_output_begin(&b, false, &err), &err);
    put_packs(&b, &many, 4095);
    b.parts.n = PS_MAX_INDEX_PARTS;
    assert_ok(ps_block_output_pack(&b, 1, &pack, &err), &err);
    ps_pack_add(&pack, &(ps_piece){.id = 4095, .n_tok = 1});
    assert_result(ps_block_output_add(&b, &pack, 0, &err), PS_ERR_LIMIT,
                  &err);
    b.parts.n = 0;
    ps_block_output_free(&b);
}

static void test_memory(void **state)
{
    const shape wide = {70000, 8, 3, {70000, 1, 65536}, 3, 0, 0};
    const shape *const shapes[] = {&few, &many, &wide};

    for (size_t i = 0; i < 2 * COUNT(shapes); i++) {
        const shape *s = shapes[i / 2];
        const ps_output_options o = {
            .compressed = i % 2 > 0, .level = 1, .max_frames = 10000};
        const ps_pack_info info = info_of(s);
        const size_t before = alloc_so_far().bytes;
        int fd = open_empty();
        ps_block_output b = {0};
        ps_error err;

        alloc_watch();
        open_output(&b, fd, &info, &o);
        assert_ok(ps_block_output_begin(&b, false, &err), &err);
        put_packs(&b, s, s->n);
        put_end(&b, s);
        assert_ok(ps_output_finish(b.output, &err), &err);
        assert_true(alloc_so_far().peak - before <=
                    ps_block_output_bytes(&info, &o));
        ps_block_output_free(&b);
        assert_int_equal(alloc_so_far().bytes, before);
        (void)close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_too_many_blocks),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("block-output", tests, NULL);
}
