/*
 * checkpoint-t.c - checkpoints are restored exactly, or refused.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data-loader-fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/checkpoint.h"

#define NUMBERS 5

/* A run, and the path of its checkpoint in a separate folder. */
typedef struct place {
    char folder[32];
    char name[48];
    char next[48];
    real weights[NUMBERS], mean[NUMBERS], square[NUMBERS];
    checkpoint kept;
    checkpoint_run run;
} place;

static void number(real *to, double from)
{
    for (int i = 0; i < NUMBERS; i++)
        to[i] = (real)(from + i / 3.0);
}

static int make_place(void **state)
{
    place *p = must_alloc(sizeof *p);

    *p = (place){.folder = "/tmp/bert-checkpoint-t.XXXXXX"};
    assert_non_null(mkdtemp(p->folder));
    (void)snprintf(p->name, sizeof p->name, "%s/ck", p->folder);
    (void)snprintf(p->next, sizeof p->next, "%s/ck.new", p->folder);
    number(p->weights, 1);
    number(p->mean, 100);
    number(p->square, 1000);
    p->kept = (checkpoint){.settings = "hidden=4 layers=2 rate=0.5",
                           .numbers = NUMBERS,
                           .weights = p->weights,
                           .mean = p->mean,
                           .square = p->square};
    p->run = (checkpoint_run){.steps = 3,
                              .sequences = UINT64_C(1) << 40,
                              .tokens = 77,
                              .lamb = {0.1, 1.0 / 3},
                              .position = {.epoch = 5, .file = 6}};
    for (int i = 0; i < PS_PACK_MARK_BYTES; i++)
        p->run.position.mark[i] = (unsigned char)i;
    *state = p;
    return 0;
}

static int remove_place(void **state)
{
    place *p = *state;

    (void)unlink(p->name);
    (void)unlink(p->next);
    (void)rmdir(p->folder);
    free(p);
    return 0;
}

static void write_ok(const place *p)
{
    atomic_file file;

    assert_true(checkpoint_open(&file, p->name));
    assert_true(checkpoint_write(&file, &p->kept, &p->run));
    atomic_file_close(&file);
}

/* Reads into other arrays; `settings` may differ from those saved. */
static ps_result read_it(const place *p, const char *settings,
                         uint32_t numbers, place *to, ps_error *err)
{
    *to = (place){.run = {0}};
    to->kept = (checkpoint){.settings = settings,
                            .numbers = numbers,
                            .weights = to->weights,
                            .mean = to->mean,
                            .square = to->square};
    return checkpoint_read(p->name, &to->kept, &to->run, err);
}

static void test_there_and_back(void **state)
{
    const place *p = *state;
    place q;
    ps_error err;

    assert_int_equal(read_it(p, p->kept.settings, NUMBERS, &q, &err), PS_END);
    write_ok(p);
    /* An older checkpoint is replaced. */
    write_ok(p);
    assert_int_equal(access(p->next, F_OK), -1);
    assert_ok(read_it(p, p->kept.settings, NUMBERS, &q, &err), &err);
    assert_memory_equal(q.weights, p->weights, sizeof p->weights);
    assert_memory_equal(q.mean, p->mean, sizeof p->mean);
    assert_memory_equal(q.square, p->square, sizeof p->square);
    assert_true(q.run.steps == p->run.steps);
    assert_true(q.run.sequences == p->run.sequences);
    assert_true(q.run.tokens == p->run.tokens);
    assert_true(q.run.lamb.product1 == p->run.lamb.product1);
    assert_true(q.run.lamb.product2 == p->run.lamb.product2);
    assert_int_equal(q.run.position.epoch, 5);
    assert_int_equal(q.run.position.file, 6);
    assert_memory_equal(q.run.position.mark, p->run.position.mark,
                        PS_PACK_MARK_BYTES);
}

static void test_other_settings(void **state)
{
    const place *p = *state;
    place q;
    ps_error err;

    write_ok(p);
    assert_result(read_it(p, "hidden=4 layers=23 rate=0.5", NUMBERS, &q,
                          &err), PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, "saved with layers=2, not with layers=23");
    assert_result(read_it(p, p->kept.settings, NUMBERS - 1, &q, &err),
                  PS_ERR_CORRUPT, &err);
}

static bytes slurp(const char *name)
{
    FILE *file = fopen(name, "r");
    bytes b = {0};
    int c;

    assert_non_null(file);
    while ((c = getc(file)) != EOF)
        put_u8(&b, (unsigned)c);
    (void)fclose(file);
    return b;
}

static void spill(const char *name, const void *data, size_t n)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* Every byte with a flipped bit, every byte removed, and one added. */
static void test_damage(void **state)
{
    const place *p = *state;
    bytes b;
    place q;
    ps_error err;

    write_ok(p);
    b = slurp(p->name);
    for (size_t i = 0; i < b.size; i++) {
        b.data[i] ^= (unsigned char)(1 << i % 8);
        spill(p->name, b.data, b.size);
        b.data[i] ^= (unsigned char)(1 << i % 8);
        assert_int_not_equal(read_it(p, p->kept.settings, NUMBERS, &q, &err),
                             PS_OK);
        assert_int_not_equal(err.code, PS_OK);
    }
    for (size_t n = 0; n < b.size; n++) {
        spill(p->name, b.data, n);
        assert_result(read_it(p, p->kept.settings, NUMBERS, &q, &err),
                      PS_ERR_TRUNCATED, &err);
    }
    put_u8(&b, 0);
    spill(p->name, b.data, b.size);
    assert_result(read_it(p, p->kept.settings, NUMBERS, &q, &err),
                  PS_ERR_CORRUPT, &err);
    free_bytes(&b);
}

static void test_other_files(void **state)
{
    const place *p = *state;
    static const char text[1000] = "not a checkpoint";
    bytes b;
    place q;
    ps_error err;

    spill(p->name, text, sizeof text);
    assert_result(read_it(p, p->kept.settings, NUMBERS, &q, &err),
                  PS_ERR_MAGIC, &err);
    write_ok(p);
    b = slurp(p->name);
    b.data[8]--; /* the version: weights had another order */
    spill(p->name, b.data, b.size);
    assert_result(read_it(p, p->kept.settings, NUMBERS, &q, &err),
                  PS_ERR_UNSUPPORTED, &err);
    b.data[8]++;
    b.data[16] ^= 12; /* double for float, or vice versa */
    spill(p->name, b.data, b.size);
    assert_result(read_it(p, p->kept.settings, NUMBERS, &q, &err),
                  PS_ERR_UNSUPPORTED, &err);
    free_bytes(&b);
}

/* A failed write keeps the old checkpoint, and leaves no other file. */
static void test_no_room(void **state)
{
    const place *p = *state;
    atomic_file file;
    place q, r;
    ps_error err;

    write_ok(p);
    r = *p;
    r.run.steps = 4;
    assert_true(checkpoint_open(&file, p->name));
    assert_int_equal(unlink(p->next), 0);
    assert_false(checkpoint_write(&file, &r.kept, &r.run));
    atomic_file_close(&file);
    assert_ok(read_it(p, p->kept.settings, NUMBERS, &q, &err), &err);
    assert_true(q.run.steps == 3);
    (void)snprintf(r.name, sizeof r.name, "%s/none/ck", p->folder);
    assert_false(checkpoint_open(&file, r.name));
    atomic_file_close(&file);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_there_and_back), TEST(test_other_settings),
        TEST(test_damage),         TEST(test_other_files),
        TEST(test_no_room),
    };

    return run_as_tap("checkpoint", tests, NULL);
}
