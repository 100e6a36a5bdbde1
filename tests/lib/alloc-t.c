/*
 * alloc-t.c - allocations fail one by one: every handle reports it, leaks
 * nothing and does not crash.
 *
 * Each scenario opens a handle, runs it and frees it.  It is tried with the
 * first allocation failing, then the second, and so on until none fails; once
 * with only that allocation failing, and once with all later ones failing as
 * well.  If there are many hundreds, only some are tried.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-file-fixture.h"

#include <stdlib.h>
#include <unistd.h>

#include "lib-alloc.h"

/* Inputs, made once, and an output to write to. */
typedef struct inputs {
    corpus c;
    corpus large; /* more than the buffers hold */
    int records;
    int packs;
    int split_packs;
    int deep_packs; /* with no cap in the header */
    int zstd_records;
    int zstd_packs;
    int out;
    unsigned char mark[PS_PACK_MARK_BYTES]; /* of split_packs, after three */
    unsigned char zstd_mark[PS_PACK_MARK_BYTES];
} inputs;

static const ps_packer_options whole = {
    90, 9, 280, 0, .overlong = PS_OVERLONG_DROP};
static const ps_packer_options split = {
    70, 9, 280, 0, .overlong = PS_OVERLONG_SPLIT};
static const ps_packer_options deep = {
    70, 0, 60, 0, .overlong = PS_OVERLONG_SPLIT, .policy = PS_POLICY_BESTFIT};

/* Two frames; the second one needs a larger window. */
static int open_compressed(const bytes *b)
{
    bytes packed = {0};
    size_t first = b->size / 20;
    int fd;

    put_frame(&packed, b->data, first, 1);
    put_frame(&packed, b->data + first, b->size - first, 9);
    fd = open_bytes(&packed);
    return fd;
}

/* The position after the third pack. */
static void make_mark(int fd, unsigned char mark[PS_PACK_MARK_BYTES])
{
    ps_pack_reader *r;
    ps_pack pack;
    ps_error err;

    assert_ok(ps_pack_reader_open(&r, fd, &err), &err);
    for (int i = 0; i < 3; i++)
        assert_ok(ps_pack_reader_next(r, &pack, &err), &err);
    ps_pack_reader_save(r, mark);
    ps_pack_reader_free(r);
}

static int setup(void **state)
{
    static inputs in;
    const ps_schema schema = rich_schema(PS_U16);
    bytes b;

    in.c = make_corpus(&schema, 300, 100, 7);
    set_groups(&in.c);
    in.large = make_corpus(&schema, 30, 5000, 7);
    b = corpus_records(&in.c);
    in.records = open_bytes(&b);
    b = corpus_packs(&in.c, &whole, NULL);
    in.packs = open_bytes(&b);
    b = corpus_records(&in.large);
    in.zstd_records = open_compressed(&b);
    b = corpus_packs(&in.large, &split, NULL);
    in.zstd_packs = open_compressed(&b);
    b = corpus_packs(&in.c, &split, NULL);
    in.split_packs = open_bytes(&b);
    b = corpus_packs(&in.c, &deep, NULL);
    in.deep_packs = open_bytes(&b);
    make_mark(in.split_packs, in.mark);
    make_mark(in.zstd_packs, in.zstd_mark);
    in.out = open_empty();
    *state = &in;
    return 0;
}

static int teardown(void **state)
{
    inputs *in = *state;

    (void)close(in->records);
    (void)close(in->packs);
    (void)close(in->split_packs);
    (void)close(in->deep_packs);
    (void)close(in->zstd_records);
    (void)close(in->zstd_packs);
    (void)close(in->out);
    free_corpus(&in->c);
    free_corpus(&in->large);
    return 0;
}

/* Parameters of a scenario; unused members are not set. */
typedef struct job {
    const inputs *in;
    int fd;
    const unsigned char *mark; /* or a state */
    size_t mark_bytes;
    const ps_packer_options *options;
    ps_order order;
    uint32_t count; /* number of sequences of in->c */
} job;

/* A scenario; returns PS_OK or PS_END on success. */
typedef ps_result scenario(const job *j, ps_error *err);

/* Runs it with the nth allocation failing; true if none failed. */
static bool attempt(scenario *run, const job *j, uint64_t nth, bool for_ever)
{
    const inputs *in = j->in;
    const int fds[] = {in->records,    in->packs,        in->split_packs,
                       in->deep_packs, in->zstd_records, in->zstd_packs,
                       in->out};
    size_t blocks = alloc_so_far().blocks;
    ps_error err = {PS_OK, 0, ""};
    ps_result r;
    bool failed;

    for (size_t i = 0; i < COUNT(fds); i++)
        rewind_fd(fds[i]);
    assert_int_equal(ftruncate(in->out, 0), 0);
    alloc_watch();
    alloc_fail(nth, for_ever);
    r = run(j, &err);
    failed = alloc_so_far().failed > 0;
    alloc_fail(0, false);
    if (failed)
        assert_result(r, PS_ERR_MEMORY, &err);
    else
        assert_in_range(r, PS_OK, PS_END);
    assert_int_equal(alloc_so_far().blocks, blocks);
    return !failed;
}

/*
 * A scenario must make at least `min` allocations.  If it makes many, fewer and
 * fewer of the later ones fail.
 */
static void exhaust(scenario *run, job j, uint64_t min)
{
    uint64_t once = 1;
    uint64_t for_ever = 1;

    while (!attempt(run, &j, once, false))
        once += 1 + once / 60;
    while (!attempt(run, &j, for_ever, true))
        for_ever += 1 + for_ever / 60;
    assert_int_equal(once, for_ever);
    assert_true(once > min);
}

static ps_result read_tokens(ps_token_reader *r, ps_error *err)
{
    ps_result result = PS_OK;
    ps_sequence s;

    while (result == PS_OK) {
        result = ps_token_reader_next(r, 80, &s, err);
        if (result == PS_ERR_OVERLONG && s.id % 2 == 0)
            result = ps_token_reader_skip(r, err);
        else if (result == PS_ERR_OVERLONG)
            result = ps_token_reader_hold(r, &s, err);
    }
    return result;
}

static ps_result token_reader(const job *j, ps_error *err)
{
    ps_token_reader *r = NULL;
    ps_result result = ps_token_reader_open(&r, j->fd, PS_U16, NULL, err);

    assert_int_equal(r == NULL, result != PS_OK);
    if (result == PS_OK)
        result = read_tokens(r, err);
    ps_token_reader_free(r);
    return result;
}

static ps_result appended_tokens(const job *j, ps_error *err)
{
    ps_token_reader *r;
    ps_result result =
        ps_token_reader_open(&r, j->in->records, PS_U16, NULL, err);

    if (result == PS_OK)
        result = read_tokens(r, err);
    if (result == PS_END)
        result = ps_token_reader_append(r, j->in->zstd_records, err);
    if (result == PS_OK)
        result = read_tokens(r, err);
    ps_token_reader_free(r);
    return result;
}

/* A sequence of a million tokens, so that the input buffer grows. */
static ps_result large_record(const job *j, ps_error *err)
{
    static const unsigned char count[] = {0x40, 0x42, 0x0f, 0};
    ps_token_reader *r;
    ps_sequence s;
    ps_result result;

    assert_int_equal(pwrite(j->in->out, count, 4, 0), 4);
    assert_int_equal(ftruncate(j->in->out, 2000004), 0);
    result = ps_token_reader_open(&r, j->in->out, PS_U16, NULL, err);
    while (result == PS_OK)
        result = ps_token_reader_next(r, UINT32_MAX, &s, err);
    ps_token_reader_free(r);
    return result;
}

static void test_token_reader(void **state)
{
    const inputs *in = *state;

    exhaust(token_reader, (job){in, .fd = in->records}, 3);
    exhaust(token_reader, (job){in, .fd = in->zstd_records}, 5);
    exhaust(appended_tokens, (job){.in = in}, 8);
    exhaust(large_record, (job){.in = in}, 5);
}

static ps_result token_writer(const job *j, ps_error *err)
{
    const corpus *c = &j->in->c;
    ps_token_writer *w = NULL;
    ps_result r = ps_token_writer_open(&w, j->in->out, &c->schema, err);

    assert_int_equal(w == NULL, r != PS_OK);
    for (uint32_t i = 0; i < c->count && r == PS_OK; i++)
        r = ps_token_writer_put(w, c->samples[i].n_tok,
                                c->samples[i].payload, err);
    if (r == PS_OK)
        r = ps_token_writer_finish(w, err);
    ps_token_writer_free(w);
    return r;
}

static void test_token_writer(void **state)
{
    exhaust(token_writer, (job){.in = *state}, 4);
}

static ps_result file_lengths(const job *j, ps_error *err)
{
    ps_histogram *h = (ps_histogram *)&h;
    ps_result r;

    rewind_fd(j->fd);
    r = ps_histogram_read(&h, j->fd, err);
    assert_int_equal(h == NULL, r != PS_OK);
    ps_histogram_free(h);
    return r;
}

static void test_file_lengths(void **state)
{
    const inputs *in = *state;

    exhaust(file_lengths, (job){in, .fd = in->records}, 4);
}

/* Writes one share: all packs of an input. */
static ps_result pack_writer(const job *j, ps_error *err)
{
    const ps_pack_writer_options options = {
        .compressed = j->options != NULL, .level = 1};
    ps_pack_file *f;
    ps_pack_writer *w = NULL;
    ps_pack pack;
    ps_result r = ps_pack_file_open(&f, j->in->packs, err);

    if (r != PS_OK)
        return r;
    r = ps_pack_writer_open(&w, j->in->out, ps_pack_file_info(f), &options,
                            err);
    assert_int_equal(w == NULL, r != PS_OK);
    for (uint64_t i = 0; i < ps_pack_file_packs(f) && r == PS_OK; i++) {
        r = ps_pack_file_read(f, i, &pack, err);
        if (r == PS_OK)
            r = ps_pack_writer_put(w, &pack, err);
    }
    for (int i = 0; i < 3 && r == PS_OK; i++)
        r = ps_pack_writer_end(w, ps_pack_file_totals(f),
                               i < 2 ? ps_pack_file_info(f) : NULL, err);
    if (r == PS_OK)
        r = ps_pack_writer_finish(w, err);
    ps_pack_writer_free(w);
    ps_pack_file_free(f);
    return r;
}

static void test_pack_writer(void **state)
{
    exhaust(pack_writer, (job){.in = *state}, 5);
    exhaust(pack_writer, (job){*state, .options = &whole}, 8);
}

static ps_result packer(const job *j, ps_error *err)
{
    const corpus *c = &j->in->c;
    ps_packer *p = NULL;
    ps_result r = ps_packer_open(&p, j->in->out, &c->schema, j->options, err);

    assert_int_equal(p == NULL, r != PS_OK);
    for (uint32_t i = 0; i < c->count && r == PS_OK; i++) {
        ps_sequence s = corpus_sequence(c, i);

        r = i % 9 == 4 ? ps_packer_reject(p, &s, PS_REJECT_OUT_OF_VOCAB, err)
                       : ps_packer_put(p, &s, err);
    }
    if (r == PS_OK)
        r = ps_packer_flush(p, PS_FLUSH_FINISH, err);
    ps_packer_free(p);
    return r;
}

/* The same through a reader, taking most records as they are ready. */
static ps_result ready(const job *j, ps_error *err)
{
    ps_packer *p = NULL;
    ps_token_reader *reader;
    ps_result r = ps_token_reader_open(&reader, j->fd, PS_U16, NULL, err);

    if (r == PS_OK) {
        ps_token_reader_check_lengths(reader);
        r = ps_packer_open(&p, j->in->out, &j->in->c.schema, j->options, err);
    }
    while (r == PS_OK) {
        ps_sequence s;
        uint64_t n;

        r = ps_packer_put_ready(p, reader, 10, UINT64_MAX, &n, err);
        if (r != PS_OK || n > 0)
            continue;
        r = ps_token_reader_next(reader, UINT32_MAX, &s, err);
        if (r == PS_OK)
            r = ps_packer_put(p, &s, err);
    }
    if (r == PS_END)
        r = ps_packer_flush(p, PS_FLUSH_FINISH, err);
    ps_packer_free(p);
    ps_token_reader_free(reader);
    return r;
}

static void test_packer(void **state)
{
    static const ps_packer_options shuffling = {
        .capacity = 70,
        .depth = 9,
        .window = 60,
        .policy = PS_POLICY_CONCAT,
        .order = PS_PACKS_SHUFFLED,
        .seed = 1,
    };
    /* Plans are made throughout, and packs are emitted to free memory. */
    static const ps_packer_options planning = {
        .capacity = 100,
        .depth = 4,
        .window = 20,
        .policy = PS_POLICY_NNLSHP,
        .max_bytes = 12000,
    };
    static const ps_packer_options planning_shuffled = {
        .capacity = 100,
        .depth = 4,
        .window = 20,
        .policy = PS_POLICY_NNLSHP,
        .order = PS_PACKS_SHUFFLED,
        .seed = 1,
        .max_bytes = 200000,
    };

    const inputs *in = *state;

    exhaust(packer, (job){*state, .options = &whole}, 12);
    exhaust(packer, (job){*state, .options = &split}, 12);
    exhaust(packer, (job){*state, .options = &shuffling}, 12);
    exhaust(packer, (job){*state, .options = &deep}, 12);
    exhaust(packer, (job){*state, .options = &planning}, 100);
    exhaust(packer, (job){*state, .options = &planning_shuffled}, 100);
    exhaust(ready, (job){in, .fd = in->records, .options = &whole}, 15);
}

/* Puts sequences `from` to `to` - 1. */
static ps_result put_some(const job *j, ps_packer *p, uint64_t from,
                          uint64_t to, ps_error *err)
{
    ps_result r = PS_OK;

    for (uint64_t i = from; i < to && r == PS_OK; i++) {
        ps_sequence s = corpus_sequence(&j->in->c, (uint32_t)i);

        r = ps_packer_put(p, &s, err);
    }
    return r;
}

static ps_result saved(const job *j, ps_error *err)
{
    unsigned char *state = NULL;
    size_t n = 1;
    ps_packer *p;
    ps_result r = ps_packer_open(&p, j->in->out, &j->in->c.schema, j->options,
                                 err);

    if (r == PS_OK)
        r = put_some(j, p, 0, j->count, err);
    if (r == PS_OK) {
        r = ps_packer_save(p, "", 0, &state, &n, err);
        assert_int_equal(state == NULL, r != PS_OK);
        assert_int_equal(n == 0, r != PS_OK);
    }
    ps_packer_free(p);
    free(state);
    return r;
}

static ps_result blank(const job *j, ps_error *err)
{
    unsigned char *state;
    size_t n;
    ps_result r = ps_state_blank(j, sizeof *j, &state, &n, err);

    free(state);
    return r;
}

/* Resumes at j->mark, which is a state. */
static ps_result resumed(const job *j, ps_error *err)
{
    ps_packer *p;
    ps_state says;
    ps_result r = ps_state_fits(j->mark, j->mark_bytes, &j->in->c.schema,
                                j->options, err);

    if (r == PS_OK)
        r = ps_state_read(j->mark, j->mark_bytes, &says, err);
    if (r != PS_OK)
        return r;
    r = ps_packer_resume(&p, j->in->out, &j->in->c.schema, j->options, j->mark,
                         j->mark_bytes, err);
    assert_int_equal(p == NULL, r != PS_OK);
    if (r == PS_OK)
        r = put_some(j, p, says.resume_from_id, j->in->c.count, err);
    if (r == PS_OK)
        r = ps_packer_flush(p, PS_FLUSH_FINISH, err);
    ps_packer_free(p);
    return r;
}

/* Packs everything before the state again, and verifies the state. */
static ps_result proved(const job *j, ps_error *err)
{
    ps_packer *p;
    ps_result r = ps_packer_open(&p, j->in->out, &j->in->c.schema, j->options,
                                 err);

    if (r == PS_OK)
        r = ps_packer_verify_replay(p, j->mark, j->mark_bytes, err);
    if (r == PS_OK)
        r = put_some(j, p, 0, j->in->c.count, err);
    if (r == PS_OK)
        r = ps_packer_flush(p, PS_FLUSH_FINISH, err);
    if (r == PS_OK)
        r = ps_packer_replay_verified(p, err);
    ps_packer_free(p);
    return r;
}

/* Makes and uses a state after j.count sequences. */
static void exhaust_state(job j)
{
    unsigned char *made;
    ps_packer *p;
    ps_error err;

    exhaust(saved, j, 10);
    rewind_fd(j.in->out);
    assert_ok(ps_packer_open(&p, j.in->out, &j.in->c.schema, j.options, &err),
              &err);
    assert_ok(put_some(&j, p, 0, j.count, &err), &err);
    assert_ok(ps_packer_save(p, "", 0, &made, &j.mark_bytes, &err), &err);
    ps_packer_free(p);
    j.mark = made;
    exhaust(resumed, j, 10);
    exhaust(proved, j, 10);
    free(made);
}

static void test_states(void **state)
{
    static const ps_packer_options options[] = {
        {100, 4, 60, 1, .policy = PS_POLICY_AUTO},
        {100, 4, 60, 1, .policy = PS_POLICY_AUTO, .block_packs = 4},
        {100, 4, 20, 1, .policy = PS_POLICY_NNLSHP},
        {70, 9, 60, 1, .overlong = PS_OVERLONG_SPLIT,
         .order = PS_PACKS_SHUFFLED, .seed = 3},
        {100, 4, 60, 1, .compressed = true, .level = 1},
        {100, 0, 20, 1, .overlong = PS_OVERLONG_DROP, .group = "group"},
    };
    const inputs *in = *state;

    exhaust(blank, (job){.in = in}, 0);
    for (size_t i = 0; i < COUNT(options); i++)
        exhaust_state((job){.in = in, .options = &options[i], .count = 200});
}

/* A state that has part of the index: 4096 blocks. */
static void test_long_states(void **state)
{
    static const ps_packer_options o = {
        1, 0, 9, 1, .policy = PS_POLICY_NONE, .block_packs = 1};
    const ps_schema schema = ps_schema_raw(PS_U16);
    inputs in = *(const inputs *)*state;

    in.c = make_corpus(&schema, 4100, 1, 7);
    exhaust_state((job){.in = &in, .options = &o, .count = 4098});
}

static ps_result pack_lengths(const job *j, ps_error *err)
{
    static uint32_t lengths[300];
    static uint64_t order[300], ends[300];
    uint64_t n_packs = 1;
    ps_result r;

    for (uint32_t i = 0; i < j->count; i++)
        lengths[i] = j->in->c.samples[i].n_tok;
    r = ps_pack_lengths(lengths, NULL, j->count, j->options, order, ends,
                        &n_packs, err);
    assert_int_equal(n_packs > 0, r == PS_OK);
    return r;
}

static void test_pack_lengths(void **state)
{
    ps_packer_options o = {.capacity = 100, .depth = 3, .window = 60};

    exhaust(pack_lengths, (job){*state, .options = &o, .count = 300}, 30);
    o.depth = 0;
    o.order = PS_PACKS_SHUFFLED;
    o.seed = 1;
    exhaust(pack_lengths, (job){*state, .options = &o, .count = 300}, 10);
    o.policy = PS_POLICY_NNLSHP;
    o.window = 20;
    exhaust(pack_lengths, (job){*state, .options = &o, .count = 60}, 100);
    o.depth = 3;
    exhaust(pack_lengths, (job){*state, .options = &o, .count = 60}, 100);
}

/* From the mark, if any, and then as one of three ranks. */
static ps_result pack_reader(const job *j, ps_error *err)
{
    ps_pack_reader *r = NULL;
    ps_pack pack;
    ps_result result = ps_pack_reader_open(&r, j->fd, err);

    assert_int_equal(r == NULL, result != PS_OK);
    if (result == PS_OK && j->mark != NULL)
        result = ps_pack_reader_resume(r, j->mark, err);
    if (result == PS_OK && j->mark != NULL)
        result = ps_pack_reader_share(r, 1, 3, err);
    while (result == PS_OK)
        result = ps_pack_reader_next(r, &pack, err);
    ps_pack_reader_free(r);
    return result;
}

static void test_pack_reader(void **state)
{
    const inputs *in = *state;

    exhaust(pack_reader, (job){in, .fd = in->packs}, 3);
    exhaust(pack_reader, (job){in, .fd = in->deep_packs}, 6);
    exhaust(pack_reader, (job){in, .fd = in->zstd_packs}, 5);
    exhaust(pack_reader, (job){in, .fd = in->split_packs, .mark = in->mark},
            3);
    exhaust(pack_reader,
            (job){in, .fd = in->zstd_packs, .mark = in->zstd_mark}, 5);
}

static ps_result unpacker(const job *j, ps_error *err)
{
    ps_pack_reader *reader;
    ps_unpacker *u = NULL;
    ps_sequence s;
    ps_result r = ps_pack_reader_open(&reader, j->fd, err);

    if (r == PS_OK) {
        r = ps_unpacker_open(&u, reader, j->order, err);
        assert_int_equal(u == NULL, r != PS_OK);
    }
    while (r == PS_OK)
        r = ps_unpacker_next(u, &s, err);
    ps_unpacker_free(u);
    ps_pack_reader_free(reader);
    return r;
}

static void test_unpacker(void **state)
{
    const inputs *in = *state;

    exhaust(unpacker,
            (job){in, .fd = in->packs, .order = PS_ORDER_INPUT}, 250);
    exhaust(unpacker, /* which joins pieces */
            (job){in, .fd = in->split_packs, .order = PS_ORDER_INPUT}, 250);
    exhaust(unpacker,
            (job){in, .fd = in->split_packs, .order = PS_ORDER_PACK}, 250);
}

static ps_result any(const job *j, ps_error *err)
{
    ps_pack_reader *packs = NULL;
    ps_token_reader *tokens = NULL;
    ps_result r = ps_open_any(j->fd, PS_U16, &packs, &tokens, err);

    assert_int_equal((packs != NULL) + (tokens != NULL), r == PS_OK);
    ps_pack_reader_free(packs);
    ps_token_reader_free(tokens);
    return r;
}

static void test_open_any(void **state)
{
    const inputs *in = *state;

    exhaust(any, (job){in, .fd = in->zstd_packs}, 4);
    exhaust(any, (job){in, .fd = in->zstd_records}, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_reader),
        cmocka_unit_test(test_token_writer),
        cmocka_unit_test(test_file_lengths),
        cmocka_unit_test(test_pack_writer),
        cmocka_unit_test(test_packer),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_long_states),
        cmocka_unit_test(test_pack_lengths),
        cmocka_unit_test(test_pack_reader),
        cmocka_unit_test(test_unpacker),
        cmocka_unit_test(test_open_any),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("alloc", tests, setup, teardown);
}
