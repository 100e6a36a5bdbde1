/*
 * unpacker-hostile-t.c - pack streams whose checksums are all valid, but whose
 * ids, watermarks or pieces are not.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <unistd.h>

#include "format/block.h"
#include "format/pack.h"
#include "format/pack_header.h"
#include "lib-alloc.h"

#define CAPACITY 20
#define DEPTH 6
#define MIB ((size_t)1 << 20)
#define BAD PS_ERR_CORRUPT

/* A pack to write: its watermark, and up to four pieces. */
typedef struct pack {
    uint64_t watermark;
    struct {
        uint64_t id;
        uint32_t n_tok; /* 0 ends the list */
        uint32_t seq_off;
        uint32_t seq_len;
    } pieces[4];
} pack;

/* The stream so far, and the totals that a packer would keep. */
typedef struct maker {
    ps_pack_info info;
    ps_totals totals;
    uint64_t newest;
    bytes out;
    bytes index; /* an entry for each block, of one pack */
} maker;

static void begin(maker *m, uint32_t window, uint32_t depth, bool split)
{
    ps_error err;

    *m = (maker){.info = {.capacity = CAPACITY,
                          .depth = depth,
                          .max_displacement = window,
                          .split = split,
                          .align = 1,
                          .block_packs = 1,
                          .schema = ps_schema_raw(PS_U16),
                          .n_packs = PS_UNKNOWN,
                          .n_sequences = PS_UNKNOWN,
                          .n_tokens = PS_UNKNOWN,
                          .max_seqlen = PS_UNKNOWN,
                          .min_fill = PS_UNKNOWN}};
    assert_ok(ps_layout(&m->info, &err), &err);
    put_zeros(&m->out, PS_PACK_HEADER_BYTES);
    ps_pack_header_encode(&m->info, m->out.data);
}

/* Extends `b` by `n` bytes. */
static unsigned char *room(bytes *b, uint64_t n)
{
    put_zeros(b, (size_t)n);
    return b->data + b->size - n;
}

static void add(maker *m, const pack *p)
{
    const ps_form form = ps_form_of(&m->info);
    const ps_entry entry = {m->out.size, m->totals.packs, p->watermark};
    ps_block_head head = {.n_packs = 1, .first = m->totals.packs};
    ps_pack_builder built = {.form = &form};
    uint64_t min_id = UINT64_MAX;
    ps_block_layout layout;
    unsigned char *block;

    while (head.n_seqs < 4 && p->pieces[head.n_seqs].n_tok > 0)
        head.n_seqs++;
    layout = ps_block_layout_of(&m->info, 1, head.n_seqs);
    head.bytes = layout.bytes;
    block = room(&m->out, layout.bytes);
    built.row = block + PS_BLOCK_HEAD_BYTES;
    built.seq = block + layout.sequences;
    for (uint32_t i = 0; i < head.n_seqs; i++) {
        const ps_piece piece = {.id = p->pieces[i].id,
                                .n_tok = p->pieces[i].n_tok,
                                .seq_off = p->pieces[i].seq_off,
                                .seq_len = p->pieces[i].seq_len};

        ps_pack_add(&built, &piece);
        m->newest = piece.id > m->newest ? piece.id : m->newest;
        min_id = piece.id < min_id ? piece.id : min_id;
    }
    assert_true(built.n_tok <= CAPACITY);
    ps_pack_end(&built);
    ps_head_encode(block + layout.heads, &built, 0, p->watermark);
    ps_block_head_encode(&head, block);
    ps_entry_encode(&entry, room(&m->index, PS_ENTRY_BYTES));
    if (m->newest - min_id > m->totals.max_displacement)
        m->totals.max_displacement = m->newest - min_id;
    ps_totals_add_pack(&m->totals, built.n_seq, built.n_tok,
                       built.max_seqlen);
}

/* Writes a valid END, and seals the stream. */
static void end(maker *m)
{
    const uint32_t n = (uint32_t)(m->index.size / PS_ENTRY_BYTES);
    const uint64_t at = m->out.size;

    m->totals.input_sequences = m->totals.sequences;
    m->totals.input_tokens = m->totals.tokens;
    ps_end_encode(&m->totals, 0, NULL, 0, m->index.data, n, at,
                  room(&m->out, ps_end_bytes(0, n)));
    free_bytes(&m->index);
    seal_packs(&m->out);
}

/* Unpacks to the end; returns the result and the number of sequences. */
static ps_result unpack(const bytes *b, ps_order order, uint64_t *n,
                        ps_error *err)
{
    int fd = open_bytes(b);
    ps_pack_reader *reader;
    ps_unpacker *unpacker;
    ps_sequence s;
    ps_result r;

    *n = 0;
    assert_ok(ps_pack_reader_open(&reader, fd, err), err);
    assert_ok(ps_unpacker_open(&unpacker, reader, order, err), err);
    while ((r = ps_unpacker_next(unpacker, &s, err)) == PS_OK)
        ++*n;
    ps_unpacker_free(unpacker);
    ps_pack_reader_free(reader);
    (void)close(fd);
    return r;
}

/* Some packs, and the result of reading them in input order. */
typedef struct story {
    pack packs[3];
    size_t n_packs;
    uint64_t n;      /* sequences returned before the end */
    ps_result whole; /* result without split; PS_OK: not tried */
    ps_result split; /* result with split */
} story;

/* The stream is valid to the reader, and in pack order as well. */
static void expect(const story *s, bool split, ps_result wanted)
{
    maker m;
    uint64_t came;
    ps_error err;
    size_t held;

    begin(&m, 4, DEPTH, split);
    for (size_t i = 0; i < s->n_packs; i++)
        add(&m, &s->packs[i]);
    end(&m);
    assert_result(read_packs(&m.out, &came, &err), PS_END, &err);
    assert_int_equal(came, s->n_packs);
    assert_result(unpack(&m.out, PS_ORDER_PACK, &came, &err), PS_END, &err);
    assert_int_equal(came, m.totals.sequences);
    alloc_watch();
    held = alloc_so_far().bytes;
    assert_result(unpack(&m.out, PS_ORDER_INPUT, &came, &err), wanted, &err);
    assert_int_equal(came, s->n);
    assert_true(alloc_so_far().peak - held < MIB);
    free_bytes(&m.out);
}

static const story stories[] = {
    /* Valid ones; the others are variations of them. */
    {{{1, {{0, 5, 0, 5}, {2, 5, 0, 5}}},
      {3, {{1, 9, 0, 9}, {4, 3, 0, 3}}},
      {5, {{3, 2, 0, 2}}}}, 3, 5, PS_END, PS_END},
    {{{0, {{0, 5, 0, 5}, {2, 5, 0, 5}}}, /* it could be 1 */
      {0, {{1, 9, 0, 9}, {4, 3, 0, 3}}}}, 2, 4, PS_END, PS_OK},
    {{{0, {{0, 5, 15, 20}, {1, 5, 0, 5}}},
      {0, {{0, 10, 0, 20}}},
      {2, {{0, 5, 10, 20}, {2, 3, 0, 3}}}}, 3, 3, PS_OK, PS_END},
    /* An id twice: in one pack, in two, after it was returned. */
    {{{1, {{0, 5, 0, 5}, {0, 4, 0, 4}}}}, 1, 1, BAD, BAD},
    {{{0, {{0, 5, 0, 5}}},
      {0, {{0, 5, 0, 5}, {1, 1, 0, 1}}}}, 2, 1, BAD, BAD},
    {{{1, {{0, 5, 0, 5}}},
      {2, {{0, 5, 0, 5}, {1, 1, 0, 1}}}}, 2, 1, BAD, BAD},
    /* A watermark that is too high, decreases, or is the maximum. */
    {{{1, {{0, 5, 0, 5}, {2, 5, 0, 5}}},
      {5, {{1, 9, 0, 9}, {4, 3, 0, 3}}},
      {5, {{3, 2, 0, 2}}}}, 3, 4, BAD, PS_OK},
    {{{1, {{0, 5, 0, 5}}}, {0, {{1, 5, 0, 5}}}}, 2, 1, BAD, PS_OK},
    {{{UINT64_MAX, {{0, 5, 0, 5}}},
      {UINT64_MAX, {{1, 5, 0, 5}}}}, 2, 1, BAD, PS_OK},
    {{{UINT64_MAX, {{0, 5, 0, 5}}}}, 1, 1, PS_END, PS_OK},
    /* No watermark exceeds the highest id; the next lower one is valid. */
    {{{0, {{0, 5, 0, 5}, {UINT64_MAX, 5, 0, 5}}}}, 1, 0, BAD, PS_OK},
    {{{0, {{0, 5, 0, 5}, {UINT64_MAX - 1, 5, 0, 5}}}}, 1, 2, PS_END, PS_OK},
};

static void test_stories(void **state)
{
    for (size_t i = 0; i < COUNT(stories); i++) {
        if (stories[i].whole != PS_OK)
            expect(&stories[i], false, stories[i].whole);
        if (stories[i].split != PS_OK)
            expect(&stories[i], true, stories[i].split);
    }
}

/* One pack of up to four pieces of sequence 0; `n` sequences, then damage. */
#define REFUSE(n, ...)                                                  \
    do {                                                                \
        static const story s = {                                        \
            {{1, {__VA_ARGS__}}}, 1, n, PS_OK, BAD};                    \
                                                                        \
        expect(&s, true, BAD);                                          \
    } while (0)

static void test_pieces(void **state)
{
    /* missing */
    REFUSE(0, {0, 5, 10, 15});                 /* the first */
    REFUSE(0, {0, 10, 0, 15});                 /* the last */
    REFUSE(0, {0, 5, 0, 15}, {0, 5, 10, 15});  /* the middle */
    REFUSE(0, {0, 5, 3, 5});                   /* whole, but not at 0 */
    REFUSE(0, {0, 5, 0, 15}, {1, 10, 0, 10});  /* another's tokens */
    REFUSE(0, {0, 5, 0, 10}, {1, 5, 5, 10});   /* another's piece */
    /* too many */
    REFUSE(0, {0, 6, 0, 10}, {0, 5, 5, 10});   /* overlapping */
    REFUSE(0, {0, 6, 0, 10}, {0, 6, 6, 10});   /* beyond the end */
    REFUSE(0, {0, 6, 0, 5});                   /* longer than the whole */
    REFUSE(0, {0, 5, 0, 10}, {0, 5, 0, 10}, {0, 5, 5, 10});
    REFUSE(1, {0, 5, 0, 10}, {0, 5, 5, 10}, {0, 5, 5, 10});
    REFUSE(1, {0, 5, 0, 5}, {0, 5, 5, 10});
    REFUSE(0, {0, 6, 0, 10}, {0, 4, 6, 11});   /* of different lengths */
    REFUSE(0, {0, 6, 0, 0});
    /* of up to 2^32-1 tokens; `expect` sees that no memory is taken */
    REFUSE(0, {0, 5, 0, UINT32_MAX});
    REFUSE(0, {0, 5, 0, UINT32_MAX}, {0, 5, 5, UINT32_MAX});
    REFUSE(0, {0, 5, UINT32_MAX, UINT32_MAX});
    REFUSE(0, {0, 5, UINT32_MAX, 5});
    REFUSE(0, {0, 5, UINT32_MAX - 4, UINT32_MAX});
    REFUSE(0, {0, 5, 0, 10}, {0, 5, UINT32_MAX, 10});
    REFUSE(0, {0, 5, 0, 0x80000000}, {1, 5, 0, 0x80000000});
}

/* `late` full packs of later sequences come before sequence 0. */
static void out_of_order(uint32_t window, uint32_t late, bool zeros,
                         ps_result wanted)
{
    maker m;
    uint64_t n;
    ps_error err;

    begin(&m, window, DEPTH, false);
    for (uint32_t i = 1; i <= late; i++) {
        pack p = {0, {{i, CAPACITY, 0, 0}}};

        add(&m, &p);
    }
    if (zeros) {
        pack p = {late + 1, {{0, CAPACITY, 0, 0}}};

        add(&m, &p);
    }
    end(&m);
    assert_result(unpack(&m.out, PS_ORDER_INPUT, &n, &err), wanted, &err);
    assert_int_equal(n, wanted == PS_END ? late + zeros : 0);
    assert_result(unpack(&m.out, PS_ORDER_PACK, &n, &err), PS_END, &err);
    free_bytes(&m.out);
}

/* No more sequences can wait than a window of that size lets overtake. */
static void test_window(void **state)
{
    for (uint32_t window = 1; window < 20; window++) {
        out_of_order(window, window - 1, true, PS_END);
        out_of_order(window, window, false, PS_END);
        out_of_order(window, window, true, PS_ERR_LIMIT);
        out_of_order(window, window + 1, false, PS_ERR_LIMIT);
        out_of_order(window, 100, true, PS_ERR_LIMIT);
    }
    out_of_order(PS_MAX_WINDOW, 100, true, PS_END);
}

/* Exact to the token: one more than the window's packs hold is too many. */
static void test_window_to_the_token(void **state)
{
    for (uint32_t n = CAPACITY - 1; n <= CAPACITY; n++) {
        const pack p[] = {{0, {{1, 1, 0, 0}}}, {0, {{2, n, 0, 0}}}};
        maker m;
        uint64_t came;
        ps_error err;

        begin(&m, 1, DEPTH, false);
        add(&m, &p[0]);
        add(&m, &p[1]);
        end(&m);
        assert_result(unpack(&m.out, PS_ORDER_INPUT, &came, &err),
                      n < CAPACITY ? PS_END : PS_ERR_LIMIT, &err);
        free_bytes(&m.out);
    }
}

/* Nor more sequences, however short, than `window` times the depth. */
static void test_window_of_short_sequences(void **state)
{
    for (uint32_t packs = 1; packs < 5; packs++) {
        bool fits = 4 * packs <= 2 * DEPTH;
        maker m;
        uint64_t n;
        ps_error err;

        begin(&m, 2, DEPTH, false);
        for (uint32_t i = 0; i < packs; i++) {
            uint64_t id = 4 * i + 1;
            pack p = {0, {{id, 1, 0, 0}, {id + 1, 1, 0, 0},
                          {id + 2, 1, 0, 0}, {id + 3, 1, 0, 0}}};

            add(&m, &p);
        }
        end(&m);
        assert_result(unpack(&m.out, PS_ORDER_INPUT, &n, &err),
                      fits ? PS_END : PS_ERR_LIMIT, &err);
        assert_int_equal(n, fits ? 4 * packs : 0);
        free_bytes(&m.out);
    }
}

/* The depth of each stream applies, not that of the first. */
static void test_deeper_stream(void **state)
{
    const pack shallow = {1, {{0, 1, 0, 0}}};
    const pack deep = {2, {{0, 1, 0, 0}, {1, 1, 0, 0}}};
    maker first;
    maker second;
    uint64_t n;
    ps_error err;

    begin(&first, 1, 1, false);
    add(&first, &shallow);
    end(&first);
    begin(&second, 1, 2, false);
    add(&second, &deep);
    end(&second);
    join_bytes(&first.out, second.out);
    assert_result(unpack(&first.out, PS_ORDER_INPUT, &n, &err), PS_END, &err);
    assert_int_equal(n, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_window_to_the_token),
        cmocka_unit_test(test_window_of_short_sequences),
        cmocka_unit_test(test_deeper_stream),
    };

    return run_as_tap("unpacker-hostile", tests, NULL);
}
