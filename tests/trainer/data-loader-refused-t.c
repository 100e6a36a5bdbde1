/*
 * data-loader-refused-t.c - input that the trainer's data loader refuses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data-loader-fixture.h"

#include <string.h>

/* The next batch is refused with exactly this message. */
static void refuse_next(stand *s, ps_result wanted, const char *why)
{
    ps_error err;

    open_stand(s);
    assert_result(tr_loader_next(s->loader, &err), wanted, &err);
    assert_string_equal(err.text, why);
    close_stand(s);
}

static void test_bad_numbers(void **state)
{
    static const struct {
        sentence sentence;
        uint32_t vocab_size;
        const char *why;
    } cases[] = {
        {{2, {1, 50}, {0}, {-100, -100}, 0}, 50,
         "pack 0: tokens of 50, must be from 0 to 49"},
        {{1, {1}, {2}, {-100}, 0}, 0,
         "pack 0: token_type_ids of 2, must be from 0 to 1"},
        {{1, {1}, {0}, {100}, 0}, 0,
         "pack 0: labels of 100, must be from 0 to 99"},
        {{1, {1}, {0}, {-1}, 0}, 0,
         "pack 0: labels of -1, must be from 0 to 99"},
        {{1, {1}, {0}, {-100}, 2}, 0,
         "pack 0: next_sentence_label of 2, must be from -1 to 1"},
        {{1, {1}, {0}, {-100}, -2}, 0,
         "pack 0: next_sentence_label of -2, must be from -1 to 1"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        stand s = make_stand(WITH_ALL, 1, 1);

        s.sentences = &cases[i].sentence;
        s.n = 1;
        s.options.vocab_size = cases[i].vocab_size;
        refuse_next(&s, PS_ERR_RANGE, cases[i].why);
    }
}

static void test_pieces(void **state)
{
    stand s = make_stand(WITH_ALL, 2, 9);

    s.packing.capacity = 3;
    s.packing.overlong = PS_OVERLONG_SPLIT;
    refuse_next(&s, PS_ERR_ARGUMENT,
                "pack 2 has a piece of sequence 2: masked language models need "
                "whole sequences");
}

/* A loader that cannot be opened; `why` is a part of the message. */
static void refuse_open(stand s, const char *why)
{
    ps_error err;

    write_packs(&s);
    assert_result(tr_loader_open(&s.loader, &s.options, &err), PS_ERR_ARGUMENT,
                  &err);
    assert_non_null(strstr(err.text, why));
    assert_string_equal(tr_loader_name(s.loader), s.name);
    close_stand(&s);
}

static void test_bad_streams(void **state)
{
    stand s = make_stand(0, 1, 1);

    s.schema.special[PS_MASK] = PS_NO_ID;
    refuse_open(s, "no mask token");
    s = make_stand(WITH_ALL, 1, 1);
    s.schema.vocab_size = 0;
    refuse_open(s, "declares no vocabulary size");
    s = make_stand(WITH_LABELS, 1, 1);
    s.schema.labels = PS_LABELS_SHIFTED;
    refuse_open(s, "shifted to the next token");
    s = make_stand(WITH_LABELS, 1, 1);
    s.schema.channels[0].type = PS_F32;
    s.schema.channels[0].fill = 0;
    refuse_open(s, "channel labels must be an integer per token");
    s = make_stand(WITH_NSP, 1, 1);
    s.schema.channels[0].type = PS_F32;
    s.schema.channels[0].fill = 0;
    refuse_open(s, "must be an integer per sequence");
    s = make_stand(WITH_ALL, 2, 1);
    s.packing.align = 4;
    refuse_open(s, "its sequences are aligned to 4");
    /* All tokens would count as masked. */
    s = make_stand(WITH_LABELS, 1, 1);
    s.schema.channels[0].type = PS_U32;
    refuse_open(s, "channel labels is u32, which cannot hold -100");
}

static void test_shares(void **state)
{
    static const struct {
        int with;
        double share;
        const char *why;
    } cases[] = {
        {WITH_LABELS, 0.15, "--mask is for streams without labels"},
        {WITH_ALL, 0, "--mask is for streams without labels"},
        {0, 0, "nothing to learn"},
        {WITH_TYPES, 0, "nothing to learn"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        stand s = make_stand(cases[i].with, 1, 1);

        s.options.mask_share = cases[i].share;
        refuse_open(s, cases[i].why);
    }
}

static void test_other_capacity(void **state)
{
    stand one = make_stand(WITH_ALL, 2, 9);
    stand two = make_stand(WITH_ALL, 2, 9);
    const char *names[2];
    ps_error err;

    two.packing.capacity = 16;
    write_packs(&one);
    write_packs(&two);
    names[0] = one.name;
    names[1] = two.name;
    one.options.names = names;
    one.options.n_names = 2;
    open_stand(&one);
    assert_result(tr_loader_next(one.loader, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "of 16 tokens, previous files have 8"));
    assert_string_equal(tr_loader_name(one.loader), two.name);
    close_stand(&one);
    close_stand(&two);
}

static void test_bad_files(void **state)
{
    char *text = write_file("no packs", 8);
    const struct {
        const char *names[2];
        uint32_t n_names;
        uint32_t epochs;
        ps_result result;
        const char *name; /* of the file in the message */
    } cases[] = {
        {{"/nonexistent/packs"}, 1, 1, PS_ERR_IO, NULL},
        {{text}, 1, 1, PS_ERR_MAGIC, NULL},
        {{"-", "-"}, 2, 1, PS_ERR_ARGUMENT, NULL},
        {{"-"}, 1, 2, PS_ERR_ARGUMENT, "stdin"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        stand s = make_stand(0, 1, 1);
        ps_error err;

        s.options.names = cases[i].names;
        s.options.n_names = cases[i].n_names;
        s.options.epochs = cases[i].epochs;
        assert_result(tr_loader_open(&s.loader, &s.options, &err),
                      cases[i].result, &err);
        if (cases[i].name != NULL)
            assert_string_equal(tr_loader_name(s.loader), cases[i].name);
        tr_loader_free(s.loader);
    }
    remove_file(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_bad_streams),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_other_capacity),
        cmocka_unit_test(test_bad_files),
    };

    return run_as_tap("data-loader-refused", tests, NULL);
}
