/*
 * block-output-t.c - where blocks close, the index behind them, and outputs
 * that are saved anywhere and go on.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>
#include <unistd.h>

#include <xxhash.h>
#include <zstd.h>

#include "format/pack_header.h"
#include "lib-alloc.h"
#include "stream/block_output.h"

/*
 * Packs of sequences of one token, which is the lower half of the id; `hash`
 * is the XXH3-64 of the stream that tests/support/packwrite.py makes of them.
 */
typedef struct shape {
    uint32_t capacity;
    uint32_t block_packs;
    uint32_t n;           /* packs */
    uint32_t n_seq[8];    /* of the first; then again */
    uint32_t period;
    uint32_t closed;      /* bit i: the block is closed behind pack i */
    uint64_t hash;
} shape;

/* Blocks that are closed early, and late. */
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

/* Puts packs `from` to `to`, not included. */
static void put_packs(ps_block_output *b, const shape *s, uint32_t from,
                      uint32_t to)
{
    uint32_t id = 0;
    ps_error err;

    for (uint32_t i = 0; i < to; i++) {
        const uint32_t n = s->n_seq[i % s->period];
        ps_pack_builder pack;

        if (i < from) {
            id += n;
            continue;
        }
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

/* Writes a stream, or some, behind one another. */
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
        put_packs(&b, s, 0, s->n);
        put_end(&b, s);
    }
    assert_ok(ps_output_finish(b.output, &err), &err);
    ps_block_output_free(&b);
    all = read_back(fd);
    (void)close(fd);
    return all;
}

/* ---------------------------------------------------------------- streams */

/*
 * Blocks close when they are full, when they are told to, and before their
 * sequence rows would have more than 1 MiB, unless a single pack does.
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
            free_bytes(&b);
        }
}

/* Behind END the next stream begins, with an index of its own. */
static void test_second_stream(void **state)
{
    const shape *const shapes[] = {&few, &many};
    const ps_output_options o = {0};

    for (size_t i = 0; i < COUNT(shapes); i++) {
        bytes wanted = write_streams(shapes[i], &o, 1);
        bytes b = write_streams(shapes[i], &o, 2);

        join_bytes(&wanted, write_streams(shapes[i], &o, 1));
        assert_same_bytes(&b, &wanted);
        free_bytes(&b);
        free_bytes(&wanted);
    }
}

/* Header, block, INDEX and END are a frame each. */
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
            free_bytes(&b);
            free_bytes(&wanted);
        }
}

/* The stream without its first `dropped` blocks, of four. */
static bytes drop_blocks(const bytes *whole, uint32_t dropped)
{
    const unsigned char *end = end_at(whole, 0);
    const unsigned char *from = block_at(whole, dropped, 0);
    const size_t gap =
        (size_t)(from - whole->data) - PS_PACK_HEADER_BYTES;
    const size_t size = dropped < 3 ? 320 : 256; /* of the new END */
    bytes b = {0};
    unsigned char *new;

    put_bytes(&b, whole->data, PS_PACK_HEADER_BYTES);
    put_bytes(&b, from, (size_t)(end - from));
    put_bytes(&b, end, 192);
    for (uint32_t k = dropped; k < 4; k++) {
        put_u64(&b, get_u64(end + 192 + 24 * k) - gap);
        put_bytes(&b, end + 192 + 24 * k + 8, 16);
    }
    put_zeros(&b, size - 192 - 24 * (4 - dropped) - 24);
    put_u64(&b, size);
    put_u64(&b, b.size + 16);
    put_bytes(&b, "\x89PKE\r\n\x1a\n", 8);
    new = b.data + b.size - size;
    set_u64(new + 24, size);
    set_u32(new + 188, 4 - dropped);
    set_u64(new + 48, XXH3_64bits(new + 64, size - 64));
    set_u64(new + 56, XXH3_64bits(new, 56));
    return b;
}

/*
 * Blocks with packs before the first one alone are not written, and not
 * listed; the others keep their indexes, and the digest is that of all.
 */
static void test_first_pack(void **state)
{
    const ps_output_options o = {0};
    bytes whole = write_streams(&few, &o, 1);

    for (uint32_t first = 1; first <= few.n; first++) {
        const ps_pack_info info = info_of(&few);
        const uint32_t dropped = first >= 11  ? 4
                                 : first >= 9 ? 3
                                 : first >= 6 ? 2
                                 : first >= 2 ? 1
                                              : 0;
        bytes wanted = drop_blocks(&whole, dropped);
        ps_block_output b = {.first_pack = first};
        int fd = open_empty();
        ps_error err;
        bytes got;

        open_output(&b, fd, &info, &o);
        assert_ok(ps_block_output_begin(&b, false, &err), &err);
        put_packs(&b, &few, 0, few.n);
        put_end(&b, &few);
        assert_ok(ps_output_finish(b.output, &err), &err);
        ps_block_output_free(&b);
        got = read_back(fd);
        assert_same_bytes(&got, &wanted);
        free_bytes(&wanted);
        free_bytes(&got);
        (void)close(fd);
    }
    free_bytes(&whole);
}

/* As many INDEX blocks as there may be. */
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
    put_packs(&b, &many, 0, 4095);
    b.parts.n = PS_MAX_INDEX_PARTS;
    assert_ok(ps_block_output_pack(&b, 1, &pack, &err), &err);
    ps_pack_add(&pack, &(ps_piece){.id = 4095, .n_tok = 1});
    assert_result(ps_block_output_add(&b, &pack, 0, &err), PS_ERR_LIMIT,
                  &err);
    b.parts.n = 0;
    ps_block_output_free(&b);
    (void)close(fd);
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
        put_packs(&b, s, 0, s->n);
        put_end(&b, s);
        assert_ok(ps_output_finish(b.output, &err), &err);
        assert_true(alloc_so_far().peak - before <=
                    ps_block_output_bytes(&info, &o));
        ps_block_output_free(&b);
        assert_int_equal(alloc_so_far().bytes, before);
        (void)close(fd);
    }
}

/* ----------------------------------------------------------------- states */

/* What is saved behind some packs, and what its owner saves besides. */
typedef struct saved {
    unsigned char *bytes;
    size_t n;
    uint64_t whole; /* packs in whole blocks, */
    uint32_t all;   /* and all */
    uint64_t digest;
    uint64_t written;
    bytes table;
} saved;

static saved save(ps_block_output *b, uint32_t n)
{
    saved s = {.all = n};
    ps_saver saver = {0};
    ps_output_place place;
    ps_error err;

    assert_ok(ps_output_where(b->output, &place, &err), &err);
    ps_block_output_save(b, &saver);
    assert_false(saver.failed);
    s.bytes = saver.bytes;
    s.n = saver.n;
    s.whole = b->followed;
    s.digest = b->digest;
    s.written = place.written;
    put_bytes(&s.table, place.table, place.table_bytes);
    return s;
}

static void free_saved(saved *s)
{
    free(s->bytes);
    free_bytes(&s->table);
}

static ps_result load(ps_block_output *b, const saved *s, ps_error *err)
{
    unsigned char *copy = must_alloc(s->n); /* as large, for sanitizers */
    ps_restorer restorer = {.at = memcpy(copy, s->bytes, s->n),
                            .left = s->n};
    ps_result r =
        ps_block_output_load(b, &restorer, s->whole, s->all, err);

    if (r == PS_OK && restorer.left > 0)
        fail_msg("%zu bytes are left", restorer.left);
    free(copy);
    b->digest = s->digest;
    return r;
}

/* A stream that is stopped behind `n` packs, and goes on elsewhere. */
static void resume_at(const shape *s, const ps_output_options *options,
                      uint32_t n, const bytes *wanted)
{
    const ps_pack_info info = info_of(s);
    ps_output_options o = *options;
    int fd = open_empty();
    ps_block_output b = {0};
    saved state;
    ps_error err;
    bytes got;

    open_output(&b, fd, &info, &o);
    assert_ok(ps_block_output_begin(&b, false, &err), &err);
    put_packs(&b, s, 0, n);
    state = save(&b, n);
    ps_block_output_free(&b);
    assert_int_equal(state.written, size_of(fd));
    o.written = state.written;
    o.table = state.table.size > 0 ? state.table.data : NULL;
    o.table_bytes = state.table.size;
    open_output(&b, fd, &info, &o);
    assert_ok(load(&b, &state, &err), &err);
    put_packs(&b, s, n, s->n);
    put_end(&b, s);
    assert_ok(ps_output_finish(b.output, &err), &err);
    ps_block_output_free(&b);
    got = read_back(fd);
    assert_same_bytes(&got, wanted);
    free_bytes(&got);
    free_saved(&state);
    (void)close(fd);
}

static void test_resumed(void **state)
{
    static const uint32_t places[] = {0,    1,    4095, 4096, 4097,
                                      8191, 8192, 8196, 8197};
    static const ps_output_options kinds[] = {
        {.threads = 0},
        {.threads = 1},
        {.compressed = true, .level = 1},
        {.compressed = true, .level = 1, .threads = 2},
    };

    for (size_t k = 0; k < COUNT(kinds); k++) {
        bytes wanted = write_streams(&few, &kinds[k], 1);

        for (uint32_t n = 0; n <= few.n; n++)
            resume_at(&few, &kinds[k], n, &wanted);
        free_bytes(&wanted);
        wanted = write_streams(&many, &kinds[k], 1);
        for (size_t i = 0; i < COUNT(places); i++)
            resume_at(&many, &kinds[k], places[i], &wanted);
        free_bytes(&wanted);
    }
}

/* The state of a stream behind `n` packs. */
static saved state_of(const shape *s, uint32_t n)
{
    const ps_pack_info info = info_of(s);
    const ps_output_options o = {0};
    int fd = open_empty();
    ps_block_output b = {0};
    saved state;
    ps_error err;

    open_output(&b, fd, &info, &o);
    assert_ok(ps_block_output_begin(&b, false, &err), &err);
    put_packs(&b, s, 0, n);
    state = save(&b, n);
    ps_block_output_free(&b);
    (void)close(fd);
    return state;
}

static ps_result try_state(const shape *s, const saved *state, ps_error *err)
{
    const ps_pack_info info = info_of(s);
    const ps_output_options o = {0};
    int fd = open_empty();
    ps_block_output b = {0};
    ps_result r;

    open_output(&b, fd, &info, &o);
    r = load(&b, state, err);
    ps_block_output_free(&b);
    (void)close(fd);
    return r;
}

/* Where the state of `few` has what, behind 8 packs: 2 blocks and 2 packs. */
enum {
    AT = 0,
    N_PARTS = 16,
    N_BLOCKS = 20,
    BLOCKS = 24,
    N_PACKS = BLOCKS + 2 * 24 + 8,
    N_SEQS = N_PACKS + 4,
    HEADS = N_SEQS + 4 + 2 * 8,
    STATE = HEADS + 2 * 40 + 3 * 16
};

static void test_false_numbers(void **state)
{
    static const struct {
        size_t at;
        uint64_t value;
        size_t bytes;
    } cases[] = {
        {AT, 0, 8},
        {AT, 4032, 8},
        {AT, 4096 + 256, 8}, /* before its last block ends */
        {AT, 4096 + 256 + 448 + 32, 8},
        {N_PARTS, 1, 4},
        {N_PARTS, (1 << 20) + 1, 4},
        {N_PARTS, UINT32_MAX, 4},
        {N_BLOCKS, 1, 4},
        {N_BLOCKS, 3, 4},
        {N_BLOCKS, 4096, 4},
        {N_BLOCKS, UINT32_MAX, 4},
        {BLOCKS, 4032, 8},
        {BLOCKS, 4096 + 256, 8},
        {BLOCKS + 8, 2, 8},
        {BLOCKS + 24, 4097 + 256, 8},
        {BLOCKS + 24 + 8, 6, 8},
        {N_PACKS, 1, 4},
        {N_PACKS, 3, 4},
        {N_PACKS, UINT32_MAX, 4},
        {N_SEQS, 2, 4},
        {N_SEQS, 4, 4},
        {N_SEQS, UINT32_MAX, 4},
        {HEADS + 8, 1, 4},
        {HEADS + 12, 0, 4},
        {HEADS + 12, 2, 4},
        {HEADS + 16, 4, 4}, /* tokens beyond the capacity */
        {HEADS + 40 + 8, 0, 4},
        {HEADS + 40 + 8, 2, 4},
        {HEADS + 40 + 12, 1, 4},
        {HEADS + 40 + 12, UINT32_MAX, 4},
    };
    saved s = state_of(&few, 8);
    ps_error err;

    assert_int_equal(s.n, STATE);
    assert_int_equal(s.whole, 6);
    assert_ok(try_state(&few, &s, &err), &err);
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned char kept[8];

        memcpy(kept, s.bytes + cases[i].at, 8);
        set_number(s.bytes + cases[i].at, cases[i].value, cases[i].bytes);
        if (try_state(&few, &s, &err) != PS_ERR_CORRUPT)
            fail_msg("case %zu is not refused", i);
        memcpy(s.bytes + cases[i].at, kept, 8);
    }
    /* Its owner knows how many packs there are. */
    for (s.all = 7; s.all <= 9; s.all += 2)
        assert_result(try_state(&few, &s, &err), PS_ERR_CORRUPT, &err);
    s.all = 8;
    for (s.whole = 5; s.whole <= 7; s.whole += 2)
        assert_result(try_state(&few, &s, &err), PS_ERR_CORRUPT, &err);
    free_saved(&s);
}

/* More sequence rows than a block has, all of them there. */
static void test_long_state(void **state)
{
    saved s = state_of(&few, 8);
    ps_error err;

    s.n = STATE + (1 << 20);
    s.bytes = realloc(s.bytes, s.n);
    assert_non_null(s.bytes);
    memset(s.bytes + STATE, 0, 1 << 20);
    set_u32(s.bytes + N_SEQS, 3 + (1 << 20) / 16);
    assert_result(try_state(&few, &s, &err), PS_ERR_CORRUPT, &err);
    free_saved(&s);
}

/* Every cut is refused, and no bit that flips does harm. */
static void test_damaged_states(void **state)
{
    saved s = state_of(&few, 8);
    ps_error err;

    for (s.n = 0; s.n < STATE; s.n++)
        assert_result(try_state(&few, &s, &err), PS_ERR_CORRUPT, &err);
    for (size_t bit = 0; bit < 8 * (size_t)STATE; bit++) {
        ps_result r;

        s.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        r = try_state(&few, &s, &err);
        assert_result(r, r == PS_OK ? PS_OK : PS_ERR_CORRUPT, &err);
        s.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free_saved(&s);
    /* Of more than one INDEX block. */
    s = state_of(&many, 8195);
    assert_ok(try_state(&many, &s, &err), &err);
    assert_int_equal(get_u32(s.bytes + N_PARTS), 2);
    set_u64(s.bytes + N_PARTS + 4 + 24, get_u64(s.bytes + N_PARTS + 4));
    assert_result(try_state(&many, &s, &err), PS_ERR_CORRUPT, &err);
    free_saved(&s);
}

/* A replay has the packs that there were before, or others. */
static void test_proof(void **state)
{
    const ps_pack_info info = info_of(&few);
    const ps_output_options o = {0};
    saved s = state_of(&few, 6);

    for (uint64_t wrong = 0; wrong < 2; wrong++)
        for (uint64_t packs = 5; packs <= 7; packs++) {
            int fd = open_empty();
            ps_block_output b = {.proof_packs = packs,
                                 .proof = s.digest ^ wrong};
            ps_error err;

            open_output(&b, fd, &info, &o);
            assert_ok(ps_block_output_begin(&b, false, &err), &err);
            put_packs(&b, &few, 0, few.n);
            assert_ok(ps_block_output_settle(&b, &err), &err);
            assert_int_equal(b.followed, few.n);
            assert_int_equal(b.differs, wrong > 0 || packs != 6);
            ps_block_output_free(&b);
            (void)close(fd);
        }
    free_saved(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_second_stream),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_first_pack),
        cmocka_unit_test(test_too_many_blocks),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_false_numbers),
        cmocka_unit_test(test_long_state),
        cmocka_unit_test(test_damaged_states),
        cmocka_unit_test(test_proof),
    };

    return run_as_tap("block-output", tests, NULL);
}
