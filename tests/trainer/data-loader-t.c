/*
 * data-loader-t.c - the trainer's batches match the packs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data-loader-fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/masking.h"

static void assert_end(tr_loader *f)
{
    ps_error err;

    assert_int_equal(tr_loader_next(f, &err), PS_END);
}

#define assert_array(got, n, ...)                                         \
    do {                                                                  \
        const int32_t wanted_[] = {__VA_ARGS__};                          \
        assert_int_equal(n, COUNT(wanted_));            \
        assert_memory_equal(got, wanted_, sizeof wanted_);                \
    } while (0)

static void assert_near(double got, double wanted)
{
    assert_true(fabs(got - wanted) < 1e-6);
}

static void test_rows(void **state)
{
    stand s = make_stand(WITH_ALL, 3, 2);
    const tr_batch *b;

    s.options.loss = TR_LOSS_PER_SEQUENCE;
    open_stand(&s);
    b = next_ok(s.loader);
    assert_int_equal(b->n_packs, 2);
    assert_int_equal(b->capacity, 8);
    assert_array(b->token, b->n_rows, 1, 10, 2, 1, 11, 0, 0, 0,
                 1, 12, 13, 2, 0, 0, 0, 0);
    assert_array(b->type, b->n_rows, 0, 0, 0, 0, 1, 0, 0, 0,
                 0, 0, 1, 1, 0, 0, 0, 0);
    assert_array(b->position, b->n_rows, 0, 1, 2, 0, 1, 0, 1, 2,
                 0, 1, 2, 3, 0, 1, 2, 3);
    assert_array(b->segment, b->n_rows, 1, 1, 1, 2, 2, 0, 0, 0,
                 1, 1, 1, 1, 0, 0, 0, 0);
    assert_array(b->cu, b->n_spans + 1, 0, 3, 5, 8, 12, 16);
    assert_int_equal(b->max_span, 4);
    assert_array(b->cls_row, b->n_seq, 0, 3, 8);
    assert_array(b->nsp_label, b->n_seq, 1, -1, 0);
    assert_array(b->mlm_row, b->n_mlm, 1, 9, 10);
    assert_array(b->mlm_label, b->n_mlm, 20, 22, 23);
    assert_array(b->mlm_seq, b->n_mlm, 0, 2, 2);
    assert_int_equal(tr_loader_counts(s.loader).tokens, 9);
    assert_int_equal(tr_loader_counts(s.loader).packs, 2);
    assert_int_equal(tr_loader_counts(s.loader).sequences, 3);
    assert_end(s.loader);
    close_stand(&s);
}

/* The second sequence has no masked token: its loss is 0, not 0 / 0. */
static void test_weights(void **state)
{
    static const double mlm[2][3] = {
        [TR_LOSS_PER_SEQUENCE] = {1 / 3.0, 1 / 6.0, 1 / 6.0},
        [TR_LOSS_PER_TOKEN] = {1 / 3.0, 1 / 3.0, 1 / 3.0}};
    static const double nsp[3] = {0.5, 0, 0.5};

    for (int loss = 0; loss < 2; loss++) {
        stand s = make_stand(WITH_ALL, 3, 2);
        const tr_batch *b;

        s.options.loss = (tr_loss_weighting)loss;
        open_stand(&s);
        b = next_ok(s.loader);
        for (int i = 0; i < 3; i++) {
            assert_near((double)b->mlm_weight[i], mlm[loss][i]);
            assert_near((double)b->nsp_weight[i], nsp[i]);
        }
        close_stand(&s);
    }
}

/* A full pack's dummy sequence has no rows; the last batch may be smaller. */
static void test_batches(void **state)
{
#define FULL {8, {CLS, 5, 6, 7, 8, 9, 10, 11}, {0}, {0}, 0}
    static const sentence full[3] = {FULL, FULL, FULL};
    stand s = make_stand(0, 3, 2);
    const tr_batch *b;

    s.sentences = full;
    open_stand(&s);
    b = next_ok(s.loader);
    assert_array(b->cu, b->n_spans + 1, 0, 8, 8, 16, 16);
    b = next_ok(s.loader);
    assert_array(b->cu, b->n_spans + 1, 0, 8, 8);
    assert_array(b->nsp_label, b->n_seq, -1);
    assert_end(s.loader);
    close_stand(&s);
}

/* No model needs the contents of padding. */
static void test_ghost(void **state)
{
    stand s = make_stand(WITH_TYPES | WITH_LABELS, 1, 1);
    const tr_batch *b;

    s.n = 1;
    s.packing.pad_id = VOCAB;
    s.schema.channels[0].fill = 9;
    s.schema.channels[1].fill = 5;
    open_stand(&s);
    b = next_ok(s.loader);
    assert_array(b->token, b->n_rows, 1, 10, 2, 0, 0, 0, 0, 0);
    assert_array(b->type, b->n_rows, 0, 0, 0, 0, 0, 0, 0, 0);
    assert_array(b->mlm_row, b->n_mlm, 1);
    close_stand(&s);
}

/* Sequences in order, with their masks. */
typedef struct hidden {
    int32_t token[64][CAPACITY];
    int32_t label[64][CAPACITY];
    uint32_t n;
    uint32_t chosen;
} hidden;

/* The sequences of all batches, in order. */
static hidden read_hidden(uint32_t depth, const sentence *all, uint32_t n,
                          uint64_t seed, uint32_t epochs)
{
    stand from = make_stand(0, depth, 3);
    hidden h = {.n = 0};
    ps_error err;

    from.sentences = all;
    from.n = n;
    from.options.seed = seed;
    from.options.epochs = epochs;
    open_stand(&from);
    while (tr_loader_next(from.loader, &err) == PS_OK) {
        const tr_batch *b = tr_loader_batch(from.loader);

        for (uint32_t s = 0; s < b->n_seq; s++, h.n++)
            for (uint32_t k = 0; k < CAPACITY; k++) {
                uint32_t row = (uint32_t)b->cls_row[s] + k;

                h.label[h.n][k] = -100;
                h.token[h.n][k] = row < b->n_rows && b->segment[row] ==
                    b->segment[b->cls_row[s]] ? b->token[row] : -1;
            }
        for (uint32_t m = 0; m < b->n_mlm; m++, h.chosen++) {
            uint32_t s = h.n - b->n_seq + (uint32_t)b->mlm_seq[m];

            h.label[s][b->mlm_row[m] - b->cls_row[b->mlm_seq[m]]] =
                b->mlm_label[m];
        }
    }
    close_stand(&from);
    return h;
}

static void test_masks(void **state)
{
    sentence *all = random_sentences(64, 5);
    hidden one = read_hidden(1, all, 30, 7, 2);
    hidden three_each = read_hidden(3, all, 30, 7, 2);
    hidden other = read_hidden(1, all, 30, 8, 2);

    assert_int_equal(one.n, 60);
    assert_memory_equal(&one, &three_each, sizeof one);
    assert_memory_not_equal(&one, &other, sizeof one);
    /* The second epoch masks other tokens. */
    assert_memory_not_equal(one.label, one.label[30], 30 * sizeof *one.label);
    for (uint32_t i = 0; i < 30; i++)
        for (uint32_t k = 0; k < all[i].n; k++)
            assert_int_equal(one.label[i][k] == -100 ? one.token[i][k]
                                                     : one.label[i][k],
                             all[i].token[k]);
    free(all);
}

static void test_specials_stay(void **state)
{
    const sentence all[] = {
        {4, {CLS, 50, SEP, PAD}, {0}, {0}, 0},
        {3, {CLS, SEP, SEP}, {0}, {0}, 0},
    };
    hidden h = read_hidden(2, all, 2, 7, 1);

    /* One of a few is more than 15 %, but zero would have no loss. */
    assert_int_equal(h.chosen, 1);
    assert_int_equal(h.label[0][1], 50);
}

/* 15 % of the tokens: 80 % of them are hidden and 10 % replaced. */
static void test_shares(void **state)
{
    enum { N = 20000 };
    const tr_masking m = {.share = 0.15, .vocab_size = 1000, .mask_id = 1};
    int32_t *token = must_alloc(N * sizeof *token);
    int32_t *label = must_alloc(N * sizeof *label);
    uint32_t *room = must_alloc(N * sizeof *room);
    uint32_t hid = 0, kept = 0, others = 0;

    for (int32_t i = 0; i < N; i++)
        token[i] = 2 + i % 900;
    assert_int_equal(tr_masking_apply(&m, 3, N, token, label, room), 3000);
    for (int32_t i = 0; i < N; i++) {
        if (label[i] == TR_MASKING_NONE) {
            assert_int_equal(token[i], 2 + i % 900);
            continue;
        }
        assert_int_equal(label[i], 2 + i % 900);
        hid += token[i] == 1;
        kept += token[i] == label[i];
        others += token[i] != 1 && token[i] != label[i];
    }
    assert_int_equal(hid + kept + others, 3000);
    assert_in_range(hid, 2300, 2500);
    assert_in_range(kept, 230, 370);
    assert_in_range(others, 230, 370);
    free(token);
    free(label);
    free(room);
}

/* No more than the limit, and none where masking is not allowed. */
static void test_bounds(void **state)
{
    tr_masking m = {.share = 0.5, .max = 2, .vocab_size = 9, .mask_id = 1,
                    .special = {5}, .n_special = 1};
    int32_t token[8] = {5, 2, 3, 4, 6, 7, 8, 5}, label[8];
    int32_t special[2] = {5, 5};
    uint32_t room[8];

    assert_int_equal(tr_masking_apply(&m, 3, 8, token, label, room), 2);
    m.max = 0;
    assert_int_equal(tr_masking_apply(&m, 3, 8, token, label, room), 3);
    assert_int_equal(tr_masking_apply(&m, 3, 2, special, label, room), 0);
    m.share = 0;
    assert_int_equal(tr_masking_apply(&m, 3, 8, token, label, room), 0);
    assert_int_equal(label[1], TR_MASKING_NONE);
}

static void test_by_sequences(void **state)
{
    stand s = make_stand(WITH_ALL, 3, 0);
    ps_error err;

    s.options.sequences = 3;
    open_stand(&s);
    assert_int_equal(next_ok(s.loader)->n_seq, 3);
    assert_end(s.loader);
    tr_loader_free(s.loader);
    s.options.sequences = 1;
    open_stand(&s);
    assert_result(tr_loader_next(s.loader, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "--flush-every=1"));
    close_stand(&s);
}

/* Tokens of all batches, concatenated. */
static bytes read_rest(tr_loader *f)
{
    bytes all = {0};
    ps_error err;
    ps_result r = tr_loader_next(f, &err);

    for (; r == PS_OK; r = tr_loader_next(f, &err)) {
        const tr_batch *b = tr_loader_batch(f);

        put_u32(&all, b->n_packs);
        put_bytes(&all, b->token, b->n_rows * sizeof *b->token);
        put_bytes(&all, b->mlm_row, b->n_mlm * sizeof *b->mlm_row);
    }
    assert_int_equal(r, PS_END);
    return all;
}

/* Two files, two epochs, resumed after every batch. */
static void test_places(void **state)
{
    sentence *all = random_sentences(40, 9);
    stand one = make_stand(0, 3, 4);
    stand two = one;
    const char *names[2];
    tr_loader_options *o = &one.options;
    uint32_t batches = 0;
    ps_error err;

    one.sentences = all;
    one.n = 23;
    two.sentences = all + 23;
    two.n = 17;
    write_packs(&one);
    write_packs(&two);
    names[0] = one.name;
    names[1] = two.name;
    o->names = names;
    o->n_names = 2;
    o->epochs = 2;
    open_stand(&one);
    for (ps_result r = PS_OK; r == PS_OK; batches++) {
        tr_input_position place = tr_loader_position(one.loader);
        tr_loader *other = open_ok(o);
        tr_loader *same = open_ok(o);
        bytes rest, again;

        assert_ok(tr_loader_resume(other, &place, &err), &err);
        for (uint32_t i = 0; i < batches; i++)
            (void)next_ok(same);
        rest = read_rest(other);
        again = read_rest(same);
        assert_int_equal(rest.size, again.size);
        if (rest.size > 0)
            assert_memory_equal(rest.data, again.data, rest.size);
        free_bytes(&rest);
        free_bytes(&again);
        tr_loader_free(other);
        tr_loader_free(same);
        r = tr_loader_next(one.loader, &err);
    }
    assert_true(batches > 6);
    tr_loader_free(one.loader);
    o->n_names = 1;
    open_stand(&one);
    assert_result(
        tr_loader_resume(one.loader, &(tr_input_position){.file = 1}, &err),
        PS_ERR_ARGUMENT, &err);
    close_stand(&one);
    close_stand(&two);
    free(all);
}

/* No step has sequences of two epochs. */
static void test_epochs(void **state)
{
    stand s = make_stand(WITH_ALL, 3, 3);

    s.options.epochs = 2;
    open_stand(&s);
    for (int i = 0; i < 2; i++) {
        (void)next_ok(s.loader);
        assert_int_equal(tr_loader_counts(s.loader).packs, 2);
    }
    assert_end(s.loader);
    close_stand(&s);
}

/* Without masks, only next sentences are learnt; no mask token is needed. */
static void test_next_sentence_alone(void **state)
{
    stand s = make_stand(WITH_NSP, 3, 2);
    const tr_batch *b;

    s.schema.special[PS_MASK] = PS_NO_ID;
    s.options.mask_share = 0;
    open_stand(&s);
    b = next_ok(s.loader);
    assert_int_equal(b->n_mlm, 0);
    assert_array(b->nsp_label, b->n_seq, 1, -1, 0);
    assert_array(b->token, b->n_rows, 1, 10, 2, 1, 11, 0, 0, 0,
                 1, 12, 13, 2, 0, 0, 0, 0);
    close_stand(&s);
}

static bool is_in(int32_t row, uint32_t first, uint32_t capacity)
{
    return row >= (int32_t)first && row < (int32_t)(first + capacity);
}

/* Everything in a batch about pack i; rows are relative to the pack. */
static bytes pack_of(const tr_batch *b, uint32_t i)
{
    const uint32_t n = b->capacity;
    const uint32_t first = i * n;
    bytes all = {0};

    put_bytes(&all, b->token + first, n * sizeof *b->token);
    put_bytes(&all, b->type + first, n * sizeof *b->type);
    put_bytes(&all, b->position + first, n * sizeof *b->position);
    put_bytes(&all, b->segment + first, n * sizeof *b->segment);
    for (uint32_t k = 0; k < b->n_spans; k++)
        if (is_in(b->cu[k], first, n) && b->cu[k] < b->cu[k + 1])
            put_u32(&all, (uint32_t)b->cu[k + 1] - first);
    for (uint32_t k = 0; k < b->n_seq; k++)
        if (is_in(b->cls_row[k], first, n)) {
            put_u32(&all, (uint32_t)b->cls_row[k] - first);
            put_u32(&all, (uint32_t)b->nsp_label[k]);
            put_bytes(&all, &b->nsp_weight[k], sizeof *b->nsp_weight);
        }
    for (uint32_t k = 0; k < b->n_mlm; k++)
        if (is_in(b->mlm_row[k], first, n)) {
            put_u32(&all, (uint32_t)b->mlm_row[k] - first);
            put_u32(&all, (uint32_t)b->mlm_label[k]);
            put_u32(&all, (uint32_t)b->cls_row[b->mlm_seq[k]] - first);
            put_bytes(&all, &b->mlm_weight[k], sizeof *b->mlm_weight);
        }
    return all;
}

/* Counts the packs of a rank's share, which must match the whole batch. */
static void check_share(tr_loader *one, tr_loader *rank, uint32_t *seen)
{
    const tr_batch *whole = tr_loader_batch(one);
    const tr_batch *b = next_ok(rank);

    assert_int_equal(tr_loader_counts(rank).packs, whole->n_packs);
    assert_int_equal(tr_loader_counts(rank).sequences, whole->n_seq);
    assert_int_equal(b->n_rows, b->n_packs * b->capacity);
    assert_int_equal(b->cu[b->n_spans], b->n_rows);
    for (uint32_t i = 0; i < b->n_packs; i++) {
        const uint32_t place =
            (uint32_t)b->place[i * b->capacity] / b->capacity;
        bytes ours = pack_of(b, i);
        bytes its = pack_of(whole, place);

        assert_true(place < whole->n_packs);
        seen[place]++;
        assert_int_equal(ours.size, its.size);
        assert_memory_equal(ours.data, its.data, its.size);
        free_bytes(&ours);
        free_bytes(&its);
    }
}

#define PACKS 7 /* at most, of a batch */

/*
 * Three ranks together have each pack of a batch once.  Returns true if a rank
 * had no packs.
 */
static bool deal_batches(uint32_t packs)
{
    sentence *all = random_sentences(64, 5);
    stand s = make_stand(WITH_ALL, 3, packs);
    tr_loader *ranks[3];
    bool empty = false;

    s.sentences = all;
    s.n = 64;
    s.options.hidden = 16;
    open_stand(&s);
    s.options.ranks = 3;
    for (s.options.rank = 0; s.options.rank < 3; s.options.rank++)
        ranks[s.options.rank] = open_ok(&s.options);
    for (ps_result r = PS_OK; r == PS_OK;) {
        uint32_t seen[PACKS] = {0};
        ps_error err;

        r = tr_loader_next(s.loader, &err);
        for (int i = 0; i < 3 && r == PS_OK; i++) {
            check_share(s.loader, ranks[i], seen);
            empty |= tr_loader_batch(ranks[i])->n_packs == 0;
            assert_true(tr_loader_counts(ranks[i]).digest ==
                        tr_loader_counts(ranks[0]).digest);
        }
        for (uint32_t i = 0; i < PACKS && r == PS_OK; i++)
            assert_int_equal(seen[i], i < tr_loader_batch(s.loader)->n_packs);
    }
    for (int i = 0; i < 3; i++)
        tr_loader_free(ranks[i]);
    close_stand(&s);
    free(all);
    return empty;
}

/* Equally many packs per rank, or not; some have none in the last batch. */
static void test_ranks(void **state)
{
    bool empty = false;

    for (uint32_t packs = 1; packs <= PACKS; packs++)
        empty |= deal_batches(packs);
    assert_true(empty);
}

/* Ranks notice sequences that differ only in a label or a type. */
static void test_digests(void **state)
{
    uint64_t digests[3];

    for (int i = 0; i < 3; i++) {
        sentence some[3] = {three[0], three[1], three[2]};
        stand s = make_stand(WITH_ALL, 3, 2);

        some[0].nsp ^= i == 1;
        some[2].type[1] ^= i == 2;
        s.sentences = some;
        s.options.ranks = 2;
        open_stand(&s);
        (void)next_ok(s.loader);
        digests[i] = tr_loader_counts(s.loader).digest;
        close_stand(&s);
    }
    assert_true(digests[0] != digests[1]);
    assert_true(digests[0] != digests[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_ghost),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_specials_stay),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_by_sequences),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_next_sentence_alone),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_digests),
    };

    return run_as_tap("data-loader", tests, NULL);
}
