/*
 * loader-t.c - each batch of a loader has the packs it should, for every
 * input, rank, view and set of buffers.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-mark-fixture.h"

#include <stdlib.h>
#include <string.h>

/* Packs to load, from `start`, and the options. */
typedef struct plan {
    const given *g;
    input_kind kind;
    ps_loader_options o;
    uint64_t start;
    uint32_t places; /* slots of each pack in PS_VIEW_STATIC */
} plan;

static uint32_t ranks_of(const plan *p)
{
    return p->o.ranks == 0 ? 1 : p->o.ranks;
}

/* First pack of round `k`. */
static uint64_t round_begin(const plan *p, uint64_t k)
{
    const uint64_t at = p->start + k * p->o.packs * ranks_of(p);

    return at < p->g->e.n ? at : p->g->e.n;
}

#define MOST_OWN 1024

static bool is_dealt(const plan *p)
{
    return p->o.cost.tokens != 0 || p->o.cost.squares != 0;
}

/* The rank of each pack of a round, if packs are assigned by cost. */
static void deal_round(const plan *p, uint64_t k, uint32_t *whose)
{
    const uint64_t first = round_begin(p, k);
    const uint64_t n = round_begin(p, k + 1) - first;
    const uint32_t per_rank =
        (uint32_t)((n + ranks_of(p) - 1) / ranks_of(p));
    uint64_t costs[MOST_OWN] = {0};
    ps_deal *deal;
    ps_error err;

    assert_in_range(per_rank * ranks_of(p), n, MOST_OWN);
    for (uint64_t i = 0; i < n; i++)
        assert_ok(ps_pack_cost(&p->o.cost, &p->g->e.packs[first + i],
                               &costs[i], &err), &err);
    assert_ok(ps_deal_open(&deal, ranks_of(p), per_rank, &err), &err);
    assert_ok(ps_deal_make(deal, costs, whose, &err), &err);
    ps_deal_free(deal);
}

/* Number and indexes of this rank's packs in the round. */
static uint32_t own_packs(const plan *p, uint64_t k, uint64_t *numbers)
{
    const uint64_t first = round_begin(p, k);
    uint32_t whose[MOST_OWN];
    uint32_t n = 0;

    if (is_dealt(p) && round_begin(p, k + 1) > first)
        deal_round(p, k, whose);
    for (uint64_t i = first; i < round_begin(p, k + 1); i++)
        if ((is_dealt(p) ? whose[i - first] : i % ranks_of(p)) == p->o.rank)
            numbers[n++] = i;
    return n;
}

static uint32_t ours(const plan *p, uint64_t k)
{
    uint64_t numbers[MOST_OWN];

    return own_packs(p, k, numbers);
}

/* True if the loader returns batch `k`. */
static bool is_given(const plan *p, uint64_t k)
{
    const uint64_t packs = round_begin(p, k + 1) - round_begin(p, k);

    if (packs == (uint64_t)p->o.packs * ranks_of(p))
        return true;
    return (p->o.last == PS_LAST_SHORT && ours(p, k) > 0) ||
           (p->o.last == PS_LAST_PAD && packs > 0);
}

/* ---------------------------------------------------------------------
 * One batch
 */

/* Lengths of the sequences of pack `i`, which start at slot `first`. */
static void check_lengths(const plan *p, const ps_batch *b, uint32_t i,
                          uint32_t first)
{
    const ps_pack_info *info = &p->g->e.info;
    const uint32_t n_seq = b->spans.n_seqs[i];
    const uint32_t places =
        p->o.view == PS_VIEW_STATIC ? p->places : n_seq;

    assert_int_equal(b->spans.lengths != NULL, info->align > 1);
    for (uint32_t q = 0; info->align > 1 && q < places; q++)
        assert_int_equal(b->spans.lengths[first + q],
                         q < n_seq
                             ? ps_pack_piece(info, &b->heads[i], q).n_tok
                             : 0);
}

/* Boundaries of one pack; a padding pack has no sequence. */
static void check_boundaries(const plan *p, const ps_batch *b, uint32_t i,
                             uint32_t *span, uint32_t *base)
{
    const ps_pack_info *info = &p->g->e.info;
    const uint32_t n_seq = i < b->n_packs ? b->heads[i].n_seq : 0;
    const uint32_t n_tok = i < b->n_packs ? b->heads[i].n_tok : 0;
    uint32_t seen = 0;
    uint32_t at = *base;

    assert_int_equal(b->spans.n_seqs[i], n_seq);
    for (uint32_t q = 0; q < n_seq; q++) {
        assert_int_equal(b->spans.cu[(*span)++], at);
        const uint32_t n = ps_pack_piece(info, &b->heads[i], q).n_tok;

        seen += n;
        at += (n + info->align - 1) / info->align * info->align;
    }
    assert_int_equal(seen, n_tok);
    if (p->o.view != PS_VIEW_RAGGED) {
        assert_int_equal(b->spans.cu[(*span)++], at);
        at = *base + info->capacity;
    }
    for (uint32_t q = n_seq; p->o.view == PS_VIEW_STATIC && q < p->places; q++)
        assert_int_equal(b->spans.cu[(*span)++], at);
    *base = at;
}

static void check_spans(const plan *p, const ps_batch *b)
{
    const ps_spans *s = &b->spans;
    uint32_t span = 0;
    uint32_t base = 0;
    uint32_t longest = 0;
    uint32_t place = 0;

    assert_int_equal(s->view, p->o.view);
    assert_int_equal(s->n_packs, p->o.last == PS_LAST_PAD ? p->o.packs
                                                          : b->n_packs);
    for (uint32_t i = 0; i < s->n_packs; i++) {
        check_boundaries(p, b, i, &span, &base);
        check_lengths(p, b, i, place);
        place += s->view == PS_VIEW_STATIC ? p->places : s->n_seqs[i];
    }
    assert_int_equal(s->n_spans, span);
    assert_int_equal(s->n_rows, base);
    assert_int_equal(s->cu[span], base);
    for (uint32_t i = 0; i < span; i++)
        if (s->cu[i + 1] - s->cu[i] > (int32_t)longest)
            longest = (uint32_t)(s->cu[i + 1] - s->cu[i]);
    assert_int_equal(s->max_seqlen, longest);
    assert_int_equal(s->n_seq, b->n_seq);
}

/* A padding pack: the fills of unused positions, and zeros. */
static void check_padding(const plan *p, const unsigned char *row)
{
    const ps_pack_info *info = &p->g->e.info;
    uint32_t at = 0;

    for (uint32_t f = 0; f < info->n_fields; f++) {
        const ps_field *field = &info->fields[f];
        const uint32_t width = (uint32_t)ps_type_bytes(field->channel.type);
        const uint32_t n =
            info->capacity * (uint32_t)ps_channel_bytes(&field->channel);

        if (field->channel.kind != PS_PER_TOKEN)
            continue;
        for (; at < field->offset; at++)
            assert_int_equal(row[at], 0);
        for (uint32_t i = 0; i < n; i++, at++)
            assert_int_equal(row[at],
                             field->channel.fill >> 8 * (i % width) & 0xff);
    }
    for (; at < info->row_bytes; at++)
        assert_int_equal(row[at], 0);
}

/* Checks batch `k` in full. */
static void check_batch(const plan *p, uint64_t k, const ps_batch *b)
{
    uint64_t numbers[MOST_OWN];
    const uint32_t n = own_packs(p, k, numbers);
    const ps_pack_info *info = &p->g->e.info;
    uint64_t at = round_begin(p, k);
    uint64_t squares = 0;
    uint32_t n_seq = 0;
    uint32_t n_tok = 0;

    while (at % ranks_of(p) != p->o.rank)
        at++;
    assert_int_equal(b->first, n > 0 ? numbers[0] : at);
    assert_int_equal(b->n_packs, n);
    assert_ptr_equal(b->rows, b->memory);
    assert_int_equal((uintptr_t)b->memory % 16, 0);
    for (uint32_t i = 0; i < b->n_packs; i++) {
        assert_ptr_equal(b->heads[i].row, b->rows + i * info->row_bytes);
        assert_ptr_equal(b->heads[i].sequences,
                         b->sequences + n_seq * info->seq_bytes);
        assert_true(is_pack(&p->g->e, numbers[i], &b->heads[i]));
        n_seq += b->heads[i].n_seq;
        n_tok += b->heads[i].n_tok;
        squares += b->heads[i].sum_len_sq;
    }
    assert_int_equal(b->n_seq, n_seq);
    assert_int_equal(b->n_tok, n_tok);
    assert_int_equal(b->sum_len_sq, squares);
    check_spans(p, b);
    for (uint32_t i = b->n_packs; i < b->spans.n_packs; i++)
        check_padding(p, b->rows + i * info->row_bytes);
}

/* ---------------------------------------------------------------------
 * All batches
 */

typedef struct load {
    ps_loader *loader;
    ps_pack_reader *reader;
    int fd;
} load;

static load open_load(const plan *p)
{
    load l;
    ps_error err;

    l.reader = open_packs(&p->g->b, p->kind, &l.fd);
    if (p->start > 0)
        assert_ok(ps_pack_reader_resume(l.reader,
                                        p->g->marks[p->start].bytes, &err),
                  &err);
    assert_ok(ps_loader_open(&l.loader, l.reader, &p->o, &err), &err);
    return l;
}

static void close_load(load *l)
{
    ps_loader_free(l->loader);
    close_packs(l->reader, l->fd);
}

static void check_mark(const load *l, const plan *p, uint64_t pack)
{
    mark m;

    ps_loader_save(l->loader, m.bytes);
    assert_memory_equal(&m, &p->g->marks[pack], sizeof m);
}

/* Batches that are to stay valid have not changed since they were returned. */
static void check_kept(const plan *p, uint64_t k, const ps_batch *batches)
{
    const uint32_t keep = p->o.keep == 0 ? 1 : p->o.keep;

    for (uint32_t i = 0; i < keep && i <= k; i++)
        check_batch(p, k - i, &batches[(k - i) % keep]);
}

static void check_plan(plan *p)
{
    load l = open_load(p);
    ps_batch kept[8];
    const uint32_t keep = p->o.keep == 0 ? 1 : p->o.keep;
    uint64_t k = 0;
    ps_error err;

    p->places = ps_max_sequences(ps_loader_info(l.loader));
    check_mark(&l, p, p->start);
    for (; is_given(p, k); k++) {
        assert_ok(ps_loader_next(l.loader, &kept[k % keep], &err), &err);
        check_kept(p, k, kept);
        check_mark(&l, p, round_begin(p, k + 1));
    }
    for (int again = 0; again < 2; again++)
        assert_result(ps_loader_next(l.loader, &kept[k % keep], &err),
                      PS_END, &err);
    check_mark(&l, p, round_begin(p, k));
    assert_totals(ps_pack_reader_totals(l.reader), &p->g->e.totals);
    close_load(&l);
}

/* ---------------------------------------------------------------------
 * Tests
 */

static given make_two(void)
{
    return make_streams((const uint32_t[]){40, 33, 0}, 3);
}

static void test_batches(void **state)
{
    given g = make_two();

    assert_true(g.e.n > 20);
    for (uint32_t packs = 1; packs <= 80; packs += packs < 8 ? 1 : 35)
        for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++)
            for (int no_thread = 0; no_thread < 2; no_thread++) {
                plan p = {&g, kind, {.packs = packs, .view = PS_VIEW_GHOST},
                          0, 0};

                p.o.no_thread = no_thread != 0;
                check_plan(&p);
            }
}

/* Every view, with every kind of last batch. */
static void check_views(const given *g)
{
    for (uint32_t packs = 1; packs <= 80; packs *= 3)
        for (ps_view view = PS_VIEW_RAGGED; view <= PS_VIEW_STATIC; view++)
            for (ps_last last = PS_LAST_SHORT; last <= PS_LAST_PAD; last++) {
                plan p = {g, PLAIN_FILE,
                          {.packs = packs, .view = view, .last = last}, 0, 0};

                if (last != PS_LAST_PAD || view != PS_VIEW_RAGGED)
                    check_plan(&p);
            }
}

static void test_views(void **state)
{
    given g = make_two();

    check_views(&g);
}

static void test_aligned(void **state)
{
    static const uint32_t aligns[] = {2, 3, 8, 24};
    const ps_schema schema = rich_schema(PS_U16);

    for (size_t i = 0; i < COUNT(aligns); i++) {
        const ps_packer_options o = {24, 3, 7, 1, .align = aligns[i]};
        given g = make_given(
            packs_from(make_corpus(&schema, 60, 24, i + 2), &o, NULL));

        check_views(&g);
    }
}

/* Each pack goes to one rank, the planned one. */
static void test_ranks(void **state)
{
    given g = make_two();

    for (uint32_t ranks = 1; ranks <= 5; ranks++)
        for (uint32_t rank = 0; rank < ranks; rank++)
            for (uint32_t packs = 1; packs <= 40; packs += 1 + 2 * packs)
                for (ps_last last = PS_LAST_SHORT; last <= PS_LAST_PAD;
                     last++) {
                    plan p = {&g, rank % 2 == 0 ? PLAIN_FILE : ZSTD_PIPE,
                              {.packs = packs,
                               .rank = rank,
                               .ranks = ranks,
                               .view = PS_VIEW_STATIC,
                               .last = last},
                              0, 0};

                    check_plan(&p);
                }
}

/* Assigned by cost, each step has the same packs as without. */
static void test_dealt(void **state)
{
    static const ps_cost costs[] = {{1, 0}, {0, 1}, {48, 1}};
    given g = make_two();
    uint32_t round = 0;

    for (uint32_t ranks = 1; ranks <= 5; ranks++)
        for (uint32_t rank = 0; rank < ranks; rank++)
            for (uint32_t packs = 1; packs <= 13; packs += 1 + 2 * packs)
                for (ps_last last = PS_LAST_SHORT; last <= PS_LAST_PAD;
                     last++, round++) {
                    const uint64_t whole = (uint64_t)ranks * packs;
                    plan p = {&g, round % 2 == 0 ? PLAIN_FILE : ZSTD_PIPE,
                              {.packs = packs,
                               .rank = rank,
                               .ranks = ranks,
                               .view = PS_VIEW_STATIC,
                               .last = last,
                               .no_thread = round % 4 == 1,
                               .cost = costs[round % 3]},
                              0, 0};

                    check_plan(&p);
                    /* Resumed after a step. */
                    if (whole < g.e.n) {
                        p.start = whole;
                        check_plan(&p);
                    }
                }
}

/* Resumes from every mark, with any number of ranks. */
static void test_resume(void **state)
{
    given g = make_two();

    for (uint64_t start = 0; start <= g.e.n; start++)
        for (uint32_t ranks = 1; ranks <= 3; ranks++)
            for (uint32_t rank = 0; rank < ranks; rank++) {
                plan p = {&g, (input_kind)(start % INPUT_KINDS),
                          {.packs = 3,
                           .rank = rank,
                           .ranks = ranks,
                           .view = PS_VIEW_GHOST,
                           .last = PS_LAST_PAD},
                          start, 0};

                check_plan(&p);
            }
}

/* The depth is known from END in a file, but not in a pipe. */
static void test_unknown_depth(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    const ps_packer_options o = {24, 0, 7, 1, .align = 1};
    given g = make_given(
        packs_from(make_corpus(&schema, 60, 24, 5), &o, NULL));

    assert_in_range(g.e.totals.max_depth, 2, 23);
    for (input_kind kind = PLAIN_FILE; kind <= PLAIN_PIPE; kind++)
        for (ps_view view = PS_VIEW_RAGGED; view <= PS_VIEW_STATIC; view++) {
            plan p = {&g, kind, {.packs = 4, .view = view}, 0, 0};

            check_plan(&p);
            assert_int_equal(p.places,
                             kind == PLAIN_FILE ? g.e.totals.max_depth : 24);
        }
}

/* In the static view all ranks fail alike, after the batches that fit. */
static void check_too_deep(const given *g, uint64_t fit, uint32_t rank,
                           ps_cost cost)
{
    plan p = {g, PLAIN_FILE,
              {.packs = 2,
               .rank = rank,
               .ranks = 3,
               .view = PS_VIEW_STATIC,
               .cost = cost},
              0, 0};
    load l = open_load(&p);
    ps_batch b;
    ps_error err;

    for (uint64_t k = 0; k < fit / 6; k++)
        assert_ok(ps_loader_next(l.loader, &b, &err), &err);
    for (int again = 0; again < 2; again++)
        assert_result(ps_loader_next(l.loader, &b, &err), PS_ERR_LIMIT, &err);
    assert_non_null(strstr(err.text, "it has 3 sequences, but the static view "
                                     "has room for 2"));
    close_load(&l);
}

/* Packs of a later stream can be deeper than the first header says. */
static void test_deeper_streams(void **state)
{
    static const uint32_t ones[] = {4, 4, 4, 4, 1, 1, 1, 1, 1, 4, 4};
    const ps_schema schema = rich_schema(PS_U16);
    ps_packer_options o = {6, 2, 4, 1, .policy = PS_POLICY_NEXTFIT};
    bytes b = packs_from(make_corpus(&schema, 30, 6, 5), &o, NULL);
    uint64_t fit;
    uint64_t i = 0;
    given g;

    o.depth = 5;
    join_bytes(&b, packs_from(make_lengths(&schema, 11, ones, 5), &o, NULL));
    g = make_given(b);
    while (g.e.packs[i].n_seq <= 2)
        i++;
    fit = i;
    for (uint32_t packs = 1; packs <= 40; packs *= 4)
        for (ps_view view = PS_VIEW_RAGGED; view <= PS_VIEW_GHOST; view++) {
            plan p = {&g, PLAIN_FILE, {.packs = packs, .view = view}, 0, 0};

            check_plan(&p);
        }
    for (uint32_t rank = 0; rank < 3; rank++) {
        check_too_deep(&g, fit, rank, (ps_cost){0});
        check_too_deep(&g, fit, rank, (ps_cost){1, 0});
    }
}

static void test_no_packs(void **state)
{
    given g = make_streams((const uint32_t[]){1, 0}, 8);

    for (ps_last last = PS_LAST_SHORT; last <= PS_LAST_PAD; last++) {
        plan p = {&g, PLAIN_FILE,
                  {.packs = 2, .view = PS_VIEW_GHOST, .last = last}, 0, 0};

        check_plan(&p);
    }
}

/* ---------------------------------------------------------------------
 * Buffers
 */

/* The caller's buffers; the bytes after them must not change. */
static void check_buffers(const given *g, uint32_t keep, uint32_t buffers,
                          bool no_thread)
{
    void *memory[8];
    plan p = {g, PLAIN_FILE,
              {.packs = 3,
               .view = PS_VIEW_STATIC,
               .last = PS_LAST_PAD,
               .keep = keep,
               .buffers = buffers,
               .no_thread = no_thread},
              0, 0};
    ps_loader_layout layout;
    ps_error err;

    assert_ok(ps_loader_plan(&g->e.info, &p.o, &layout, &err), &err);
    for (uint32_t i = 0; i < buffers; i++) {
        memory[i] = must_alloc(layout.bytes + 16);
        memset(memory[i], 0x77, layout.bytes + 16);
    }
    p.o.memory = memory;
    check_plan(&p);
    for (uint32_t i = 0; i < buffers; i++) {
        for (uint32_t k = 0; k < 16; k++)
            assert_int_equal(
                ((unsigned char *)memory[i])[layout.bytes + k], 0x77);
        free(memory[i]);
    }
}

static void test_buffers(void **state)
{
    given g = make_two();

    for (uint32_t keep = 1; keep <= 4; keep++)
        for (uint32_t buffers = keep + 1; buffers <= 8; buffers++) {
            check_buffers(&g, keep, buffers, false);
            check_buffers(&g, keep, buffers, true);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_dealt),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_unknown_depth),
        cmocka_unit_test(test_deeper_streams),
        cmocka_unit_test(test_no_packs),
        cmocka_unit_test(test_buffers),
    };

    return run_as_tap("loader", tests, NULL);
}
