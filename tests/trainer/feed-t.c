/*
 * feed-t.c - the trainer's batches are what the packs hold.
 *
 * SPDX-License-Identifier: MIT
 */
#include "feed-fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "masking.h"

static void assert_end(feed *f)
{
    ps_error err;

    assert_int_equal(feed_next(f, &err), PS_END);
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

static feed *open_three(feed_loss loss, uint32_t packs, char **name)
{
    ps_schema schema = sentence_schema(WITH_ALL);
    ps_packer_options plain = plain_options(3);
    const char *const *names = (const char *const *)name;
    feed_options o;

    *name = write_packs(&schema, &plain, three, 3);
    o = options_for(names, packs);
    o.loss = loss;
    return open_ok(&o);
}

static void test_rows(void **state)
{
    char *name;
    feed *f = open_three(FEED_PER_SEQUENCE, 2, &name);
    const bert_batch *b = feed_batch(f);

    next_ok(f);
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
    assert_int_equal(feed_count(f).tokens, 9);
    assert_int_equal(feed_count(f).packs, 2);
    assert_int_equal(feed_count(f).sequences, 3);
    assert_end(f);
    feed_free(f);
    remove_packs(name);
}

/* The second sequence has no masked token: its part is 0, not 0 / 0. */
static void test_weights(void **state)
{
    char *name;
    feed *f = open_three(FEED_PER_SEQUENCE, 2, &name);
    const bert_batch *b = feed_batch(f);

    next_ok(f);
    assert_near((double)b->mlm_weight[0], 1.0 / 3);
    assert_near((double)b->mlm_weight[1], 1.0 / 6);
    assert_near((double)b->mlm_weight[2], 1.0 / 6);
    assert_near((double)b->nsp_weight[0], 0.5);
    assert_near((double)b->nsp_weight[1], 0);
    assert_near((double)b->nsp_weight[2], 0.5);
    feed_free(f);
    remove_packs(name);

    f = open_three(FEED_PER_TOKEN, 2, &name);
    next_ok(f);
    for (uint32_t i = 0; i < 3; i++)
        assert_near((double)feed_batch(f)->mlm_weight[i], 1.0 / 3);
    feed_free(f);
    remove_packs(name);
}

/* The ghost of a full pack has no rows; the last batch may be smaller. */
static void test_batches(void **state)
{
    ps_schema schema = sentence_schema(0);
    ps_packer_options plain = plain_options(3);
    const sentence full = {8, {CLS, 5, 6, 7, 8, 9, 10, 11}, {0}, {0}, 0};
    sentence all[3];
    char *name;
    const char *names[1];
    feed_options o;
    feed *f;

    for (int i = 0; i < 3; i++)
        all[i] = full;
    name = write_packs(&schema, &plain, all, 3);
    names[0] = name;
    o = options_for(names, 2);
    f = open_ok(&o);
    next_ok(f);
    assert_array(feed_batch(f)->cu, feed_batch(f)->n_spans + 1, 0, 8, 8, 16,
                 16);
    next_ok(f);
    assert_array(feed_batch(f)->cu, feed_batch(f)->n_spans + 1, 0, 8, 8);
    assert_array(feed_batch(f)->nsp_label, feed_batch(f)->n_seq, -1);
    assert_end(f);
    feed_free(f);
    remove_packs(name);
}

/* What stands in the padding, no model has to take. */
static void test_ghost(void **state)
{
    ps_schema schema = sentence_schema(WITH_TYPES | WITH_LABELS);
    ps_packer_options plain = plain_options(1);
    const char *names[1];
    char *name;
    feed_options o;
    feed *f;

    plain.pad_id = VOCAB;
    schema.channels[0].fill = 9;
    schema.channels[1].fill = 5;
    names[0] = name = write_packs(&schema, &plain, three, 1);
    o = options_for(names, 1);
    f = open_ok(&o);
    next_ok(f);
    assert_array(feed_batch(f)->token, feed_batch(f)->n_rows, 1, 10, 2, 0, 0,
                 0, 0, 0);
    assert_array(feed_batch(f)->type, feed_batch(f)->n_rows, 0, 0, 0, 0, 0,
                 0, 0, 0);
    assert_array(feed_batch(f)->mlm_row, feed_batch(f)->n_mlm, 1);
    feed_free(f);
    remove_packs(name);
}

/* Sequences as they come, with their masks. */
typedef struct hidden {
    int32_t token[64][CAPACITY];
    int32_t label[64][CAPACITY];
    uint32_t n;
    uint32_t chosen;
} hidden;

/* The sequences of all batches, in the order in which they come. */
static hidden read_hidden(const ps_schema *schema, uint32_t depth,
                          const sentence *all, uint32_t n, uint64_t seed,
                          uint32_t epochs)
{
    ps_packer_options plain = plain_options(depth);
    char *name = write_packs(schema, &plain, all, n);
    const char *const names[] = {name};
    feed_options o = options_for(names, 3);
    hidden h = {.n = 0};
    ps_error err;
    feed *f;

    o.seed = seed;
    o.epochs = epochs;
    f = open_ok(&o);
    while (feed_next(f, &err) == PS_OK) {
        const bert_batch *b = feed_batch(f);

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
    feed_free(f);
    remove_packs(name);
    return h;
}

static void test_masks(void **state)
{
    ps_schema schema = sentence_schema(0);
    sentence *all = random_sentences(30, 5);
    hidden one = read_hidden(&schema, 1, all, 30, 7, 2);
    hidden three_each = read_hidden(&schema, 3, all, 30, 7, 2);
    hidden other = read_hidden(&schema, 1, all, 30, 8, 2);

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
    ps_schema schema = sentence_schema(0);
    const sentence all[] = {
        {4, {CLS, 50, SEP, PAD}, {0}, {0}, 0},
        {3, {CLS, SEP, SEP}, {0}, {0}, 0},
    };
    hidden h = read_hidden(&schema, 2, all, 2, 7, 1);

    /* One of a few is more than 15 %, but none would teach nothing. */
    assert_int_equal(h.chosen, 1);
    assert_int_equal(h.label[0][1], 50);
}

/* 15 % of the tokens, of which 80 % are hidden and 10 % are others. */
static void test_shares(void **state)
{
    enum { N = 20000 };
    const masking m = {.share = 0.15, .vocab_size = 1000, .mask_id = 1};
    int32_t *token = must_alloc(N * sizeof *token);
    int32_t *label = must_alloc(N * sizeof *label);
    uint32_t *room = must_alloc(N * sizeof *room);
    uint32_t hid = 0, kept = 0, others = 0;

    for (int32_t i = 0; i < N; i++)
        token[i] = 2 + i % 900;
    assert_int_equal(masking_apply(&m, 3, N, token, label, room), 3000);
    for (int32_t i = 0; i < N; i++) {
        if (label[i] == MASKING_NONE) {
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

/* No more than asked for, and none where nothing may be hidden. */
static void test_bounds(void **state)
{
    masking m = {.share = 0.5, .max = 2, .vocab_size = 9, .mask_id = 1,
                 .special = {5}, .n_special = 1};
    int32_t token[8] = {5, 2, 3, 4, 6, 7, 8, 5}, label[8];
    int32_t special[2] = {5, 5};
    uint32_t room[8];

    assert_int_equal(masking_apply(&m, 3, 8, token, label, room), 2);
    m.max = 0;
    assert_int_equal(masking_apply(&m, 3, 8, token, label, room), 3);
    assert_int_equal(masking_apply(&m, 3, 2, special, label, room), 0);
    m.share = 0;
    assert_int_equal(masking_apply(&m, 3, 8, token, label, room), 0);
    assert_int_equal(label[1], MASKING_NONE);
}

static void test_by_sequences(void **state)
{
    ps_schema schema = sentence_schema(WITH_ALL);
    ps_packer_options plain = plain_options(3);
    char *name = write_packs(&schema, &plain, three, 3);
    const char *const names[] = {name};
    feed_options o = options_for(names, 0);
    ps_error err;
    feed *f;

    o.sequences = 3;
    f = open_ok(&o);
    next_ok(f);
    assert_int_equal(feed_batch(f)->n_seq, 3);
    assert_end(f);
    feed_free(f);
    o.sequences = 1;
    f = open_ok(&o);
    assert_result(feed_next(f, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "--flush-every=1"));
    feed_free(f);
    remove_packs(name);
}

/* Tokens of all batches, one behind the other. */
static bytes read_rest(feed *f)
{
    bytes all = {0};
    ps_error err;
    ps_result r = feed_next(f, &err);

    for (; r == PS_OK; r = feed_next(f, &err)) {
        const bert_batch *b = feed_batch(f);

        put_u32(&all, b->n_packs);
        put_bytes(&all, b->token, b->n_rows * sizeof *b->token);
        put_bytes(&all, b->mlm_row, b->n_mlm * sizeof *b->mlm_row);
    }
    assert_int_equal(r, PS_END);
    return all;
}

/* Two files twice, gone on with from every batch. */
static void test_places(void **state)
{
    ps_schema schema = sentence_schema(0);
    ps_packer_options plain = plain_options(3);
    sentence *all = random_sentences(40, 9);
    char *one = write_packs(&schema, &plain, all, 23);
    char *two = write_packs(&schema, &plain, all + 23, 17);
    const char *const names[] = {one, two};
    feed_options o = options_for(names, 4);
    uint32_t batches = 0;
    ps_error err;
    feed *f;

    o.n_names = 2;
    o.epochs = 2;
    f = open_ok(&o);
    for (ps_result r = PS_OK; r == PS_OK; batches++) {
        feed_place place = feed_save(f);
        feed *other = open_ok(&o);
        feed *same = open_ok(&o);
        bytes rest, again;

        assert_ok(feed_resume(other, &place, &err), &err);
        for (uint32_t i = 0; i < batches; i++)
            next_ok(same);
        rest = read_rest(other);
        again = read_rest(same);
        assert_int_equal(rest.size, again.size);
        if (rest.size > 0)
            assert_memory_equal(rest.data, again.data, rest.size);
        free_bytes(&rest);
        free_bytes(&again);
        feed_free(other);
        feed_free(same);
        r = feed_next(f, &err);
    }
    assert_true(batches > 6);
    feed_free(f);
    o.n_names = 1;
    f = open_ok(&o);
    assert_result(feed_resume(f, &(feed_place){.file = 1}, &err),
                  PS_ERR_ARGUMENT, &err);
    feed_free(f);
    remove_packs(one);
    remove_packs(two);
    free(all);
}

/* No step learns from a sequence of the next epoch. */
static void test_epochs(void **state)
{
    ps_schema schema = sentence_schema(WITH_ALL);
    ps_packer_options plain = plain_options(3);
    char *name = write_packs(&schema, &plain, three, 3);
    const char *const names[] = {name};
    feed_options o = options_for(names, 3);
    feed *f;

    o.epochs = 2;
    f = open_ok(&o);
    for (int i = 0; i < 2; i++) {
        next_ok(f);
        assert_int_equal(feed_count(f).packs, 2);
    }
    assert_end(f);
    feed_free(f);
    remove_packs(name);
}

/* Without masks, next sentences are left; no mask token is needed then. */
static void test_next_sentence_alone(void **state)
{
    ps_schema schema = sentence_schema(WITH_NSP);
    ps_packer_options plain = plain_options(3);
    const char *names[1];
    char *name;
    feed_options o;
    feed *f;

    schema.special[PS_MASK] = PS_NO_ID;
    names[0] = name = write_packs(&schema, &plain, three, 3);
    o = options_for(names, 2);
    o.mask_share = 0;
    f = open_ok(&o);
    next_ok(f);
    assert_int_equal(feed_batch(f)->n_mlm, 0);
    assert_array(feed_batch(f)->nsp_label, feed_batch(f)->n_seq, 1, -1, 0);
    assert_array(feed_batch(f)->token, feed_batch(f)->n_rows, 1, 10, 2, 1, 11,
                 0, 0, 0, 1, 12, 13, 2, 0, 0, 0, 0);
    feed_free(f);
    remove_packs(name);
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
    };

    return run_as_tap("bert-feed", tests, NULL);
}
