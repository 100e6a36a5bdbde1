/*
 * feed-refused-t.c - what the trainer's feed does not take.
 *
 * SPDX-License-Identifier: MIT
 */
#include "feed-fixture.h"

#include <string.h>

static void refuse_next(const sentence *s, uint32_t vocab, const char *why)
{
    ps_schema schema = sentence_schema(WITH_ALL);
    ps_packer_options plain = plain_options(1);
    char *name = write_packs(&schema, &plain, s, 1);
    const char *const names[] = {name};
    feed_options o = options_for(names, 1);
    ps_error err;
    feed *f;

    o.vocab_size = vocab;
    f = open_ok(&o);
    assert_result(feed_next(f, &err), PS_ERR_RANGE, &err);
    assert_string_equal(err.text, why);
    feed_free(f);
    remove_packs(name);
}

static void test_bad_numbers(void **state)
{
    refuse_next(&(sentence){2, {1, 50}, {0}, {-100, -100}, 0}, 50,
                "pack 0: tokens of 50, which is not from 0 to 49");
    refuse_next(&(sentence){1, {1}, {2}, {-100}, 0}, 0,
                "pack 0: token_type_ids of 2, which is not from 0 to 1");
    refuse_next(&(sentence){1, {1}, {0}, {100}, 0}, 0,
                "pack 0: labels of 100, which is not from 0 to 99");
    refuse_next(&(sentence){1, {1}, {0}, {-1}, 0}, 0,
                "pack 0: labels of -1, which is not from 0 to 99");
    refuse_next(&(sentence){1, {1}, {0}, {-100}, 2}, 0,
                "pack 0: next_sentence_label of 2, which is not from -1 to 1");
    refuse_next(&(sentence){1, {1}, {0}, {-100}, -2}, 0,
                "pack 0: next_sentence_label of -2, which is not from -1 to "
                "1");
}

/* A feed that cannot be opened; `why` is a part of what it tells. */
static void refuse_open(const ps_schema *schema, const char *why)
{
    ps_packer_options plain = plain_options(1);
    char *name = write_packs(schema, &plain, three, 1);
    const char *const names[] = {name};
    feed_options o = options_for(names, 1);
    ps_error err;
    feed *f;

    assert_result(feed_open(&f, &o, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, why));
    assert_string_equal(feed_name(f), name);
    feed_free(f);
    remove_packs(name);
}

static void test_bad_streams(void **state)
{
    ps_schema schema = sentence_schema(0);

    schema.special[PS_MASK] = PS_NO_ID;
    refuse_open(&schema, "no mask token");
    schema = sentence_schema(WITH_ALL);
    schema.vocab_size = 0;
    refuse_open(&schema, "does not declare how large its vocabulary is");
    schema = sentence_schema(WITH_LABELS);
    schema.labels = PS_LABELS_SHIFTED;
    refuse_open(&schema, "for the token behind them");
    schema = sentence_schema(WITH_LABELS);
    schema.channels[0].type = PS_F32;
    schema.channels[0].fill = 0;
    refuse_open(&schema, "labels is not a whole number for each token");
    schema = sentence_schema(WITH_NSP);
    schema.channels[0].type = PS_F32;
    schema.channels[0].fill = 0;
    refuse_open(&schema, "is not a whole number for each sequence");
}

/* All tokens would be masked ones. */
static void test_unsigned_labels(void **state)
{
    ps_schema schema = sentence_schema(WITH_LABELS);

    schema.channels[0].type = PS_U32;
    refuse_open(&schema, "its channel labels is u32, which cannot hold the "
                "-100 of a token that is not masked: it has to be i32 or i64");
}

/* As refuse_open, for a share that was asked for. */
static void refuse_share(int with, double share, const char *why)
{
    ps_schema schema = sentence_schema(with);
    ps_packer_options plain = plain_options(1);
    char *name = write_packs(&schema, &plain, three, 1);
    const char *const names[] = {name};
    feed_options o = options_for(names, 1);
    ps_error err;
    feed *f;

    o.mask_share = share;
    assert_result(feed_open(&f, &o, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, why));
    feed_free(f);
    remove_packs(name);
}

static void test_shares(void **state)
{
    refuse_share(WITH_LABELS, 0.15, "--mask is for streams without");
    refuse_share(WITH_ALL, 0, "--mask is for streams without");
    refuse_share(0, 0, "there is nothing to learn");
    refuse_share(WITH_TYPES, 0, "there is nothing to learn");
}

static void test_pieces(void **state)
{
    ps_schema schema = sentence_schema(WITH_ALL);
    ps_packer_options split = plain_options(2);
    char *name;
    const char *names[1];
    feed_options o;
    ps_error err;
    feed *f;

    split.capacity = 3;
    split.overlong = PS_OVERLONG_SPLIT;
    name = write_packs(&schema, &split, three, 3);
    names[0] = name;
    o = options_for(names, 9);
    f = open_ok(&o);
    assert_result(feed_next(f, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "a piece of sequence 2"));
    feed_free(f);
    remove_packs(name);
}

static void test_aligned(void **state)
{
    ps_schema schema = sentence_schema(WITH_ALL);
    ps_packer_options aligned = plain_options(2);
    char *name;
    const char *names[1];
    feed_options o;
    ps_error err;
    feed *f;

    aligned.align = 4;
    name = write_packs(&schema, &aligned, three, 3);
    names[0] = name;
    o = options_for(names, 1);
    assert_result(feed_open(&f, &o, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "its sequences are aligned to 4"));
    feed_free(f);
    remove_packs(name);
}

static void test_other_capacity(void **state)
{
    ps_schema schema = sentence_schema(WITH_ALL);
    ps_packer_options plain = plain_options(2);
    char *one = write_packs(&schema, &plain, three, 3), *two;
    const char *names[2] = {one};
    feed_options o;
    ps_error err;
    feed *f;

    plain.capacity = 16;
    two = write_packs(&schema, &plain, three, 3);
    names[1] = two;
    o = options_for(names, 9);
    o.n_names = 2;
    f = open_ok(&o);
    assert_result(feed_next(f, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "of 16 tokens, those before of 8"));
    assert_string_equal(feed_name(f), two);
    feed_free(f);
    remove_packs(one);
    remove_packs(two);
}

static void test_bad_files(void **state)
{
    const char *const missing[] = {"/nonexistent/packs"};
    const char *const twice[] = {"-", "-"};
    char *text = write_file("no packs", 8);
    const char *const named[] = {text};
    feed_options o = options_for(missing, 1);
    ps_error err;
    feed *f;

    assert_result(feed_open(&f, &o, &err), PS_ERR_IO, &err);
    feed_free(f);
    o = options_for(named, 1);
    assert_result(feed_open(&f, &o, &err), PS_ERR_MAGIC, &err);
    feed_free(f);
    o = options_for(twice, 1);
    o.n_names = 2;
    assert_result(feed_open(&f, &o, &err), PS_ERR_ARGUMENT, &err);
    feed_free(f);
    o.n_names = 1;
    o.epochs = 2;
    assert_result(feed_open(&f, &o, &err), PS_ERR_ARGUMENT, &err);
    assert_string_equal(feed_name(f), "stdin");
    feed_free(f);
    remove_packs(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_bad_streams),
        cmocka_unit_test(test_unsigned_labels),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_other_capacity),
        cmocka_unit_test(test_bad_files),
    };

    return run_as_tap("bert-feed-refused", tests, NULL);
}
