/*
 * packer-t.c - packing: every sequence is packed once or accounted for, totals
 * balance, and watermarks hold.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Offset in the head of a pack. */
#define AT_WATERMARK 32

/* Counts over the packs of a stream. */
typedef struct audit {
    const corpus *c;
    const ps_packer_options *options;
    const ps_pack_info *info;
    uint32_t *kept; /* tokens of each sequence found in packs */
    uint32_t *pieces;
    uint64_t newest;
    uint64_t came; /* pieces in packs */
    uint64_t done; /* those with ids up to the watermark */
    uint64_t counted; /* the ids that `done` covers */
    ps_totals seen;
} audit;

/* Compares tokens and channels of a piece with those of its sequence. */
static void check_payload(const audit *a, const ps_pack *pack, uint32_t i)
{
    const ps_schema *s = &a->info->schema;
    ps_piece piece = ps_pack_piece(a->info, pack, i);
    const sample *whole = &a->c->samples[piece.id];
    size_t n = (size_t)ps_payload_bytes(s, piece.n_tok);
    unsigned char *payload = must_alloc(n);

    ps_pack_payload(a->info, pack, i, payload);
    for (uint32_t c = 0; c <= s->n_channels; c++) {
        uint32_t channel = c == s->n_channels ? PS_TOKENS : c;
        bool per_token = channel == PS_TOKENS ||
                         s->channels[c].kind == PS_PER_TOKEN;
        size_t element = channel == PS_TOKENS
                             ? ps_type_bytes(s->token_type)
                             : ps_channel_bytes(&s->channels[c]);

        assert_memory_equal(
            payload + ps_payload_offset(s, channel, piece.n_tok),
            whole->payload + ps_payload_offset(s, channel, whole->n_tok) +
                (per_token ? piece.seq_off * element : 0),
            element * (per_token ? piece.n_tok : 1));
    }
    free(payload);
}

static void check_piece(audit *a, const ps_pack *pack, uint32_t i)
{
    ps_piece piece = ps_pack_piece(a->info, pack, i);
    uint32_t whole;

    assert_true(piece.id < a->c->count);
    assert_int_equal(piece.begin % a->info->align, 0);
    whole = a->c->samples[piece.id].n_tok;
    assert_true(piece.seq_off + piece.n_tok <= whole);
    if (a->info->split)
        assert_int_equal(piece.seq_len, whole);
    check_payload(a, pack, i);
    a->kept[piece.id] += piece.n_tok;
    a->pieces[piece.id]++;
    a->came++;
    if (piece.id < a->counted)
        a->done++;
    if (piece.id > a->newest)
        a->newest = piece.id;
}

/* Tokens of a sequence that must appear in packs. */
static uint32_t to_keep(const audit *a, uint32_t id)
{
    const ps_packer_options *o = a->options;
    uint32_t n = a->c->samples[id].n_tok;

    if (n <= o->capacity || o->policy == PS_POLICY_CONCAT ||
        o->overlong == PS_OVERLONG_SPLIT)
        return n;
    return o->overlong == PS_OVERLONG_TRUNCATE ? o->capacity : 0;
}

/* Sequences below the watermark are complete; it is as high as possible. */
static void check_watermark(const audit *a, const ps_pack *pack)
{
    uint32_t id = 0;

    while (id < a->c->count && a->kept[id] == to_keep(a, id))
        id++;
    assert_true(pack->watermark <= id);
    for (uint64_t w = pack->watermark; w < id; w++)
        assert_int_equal(to_keep(a, (uint32_t)w), 0);
}

/* No more pieces than the window may overtake others. */
static void check_overtaking(audit *a, const ps_pack *pack)
{
    while (a->counted <= pack->watermark && a->counted < a->c->count)
        a->done += a->pieces[a->counted++];
    assert_true(a->came - a->done <= a->info->max_displacement);
}

static void check_pack(audit *a, const ps_pack *pack)
{
    ps_totals *t = &a->seen;
    ps_error err;

    assert_ok(ps_pack_check(a->info, pack, &err), &err);
    assert_true(pack->n_tok <= a->options->capacity);
    assert_true(pack->n_seq <= a->info->depth);
    assert_int_equal(pack->index, t->packs);
    for (uint32_t i = 0; i < pack->n_seq; i++)
        check_piece(a, pack, i);
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        uint64_t behind = a->newest - ps_pack_piece(a->info, pack, i).id;

        if (behind > t->max_displacement)
            t->max_displacement = behind;
    }
    check_watermark(a, pack);
    check_overtaking(a, pack);
    if (t->packs == 0 || pack->n_tok < t->min_fill)
        t->min_fill = pack->n_tok;
    if (pack->n_seq > t->max_depth)
        t->max_depth = pack->n_seq;
    if (pack->max_seqlen > t->max_seqlen)
        t->max_seqlen = pack->max_seqlen;
    t->packs++;
    t->sequences += pack->n_seq;
    t->tokens += pack->n_tok;
}

/* Adds each sequence's fate to the totals. */
static void count_input(audit *a)
{
    for (uint32_t i = 0; i < a->c->count; i++) {
        uint32_t n = a->c->samples[i].n_tok;
        uint32_t kept = a->kept[i];

        assert_int_equal(kept, to_keep(a, i));
        a->seen.input_sequences++;
        a->seen.input_tokens += n;
        if (kept == 0) {
            a->seen.rejected_sequences++;
            a->seen.rejected_tokens += n;
        } else if (kept < n) {
            a->seen.truncated_sequences++;
            a->seen.truncated_tokens += n - kept;
        }
        if (a->pieces[i] > 1) {
            a->seen.split_sequences++;
            a->seen.extra_pieces += a->pieces[i] - 1;
        }
    }
}

/* The delay that the options guarantee. */
static uint64_t promised_delay(const ps_packer_options *o)
{
    uint32_t window = o->window;

    if (o->max_delay != 0)
        return o->max_delay;
    /* Policies without a window still hold the open pack. */
    if (o->policy == PS_POLICY_NEXTFIT || o->policy == PS_POLICY_CONCAT) {
        uint32_t fit = o->capacity / (o->align > 1 ? o->align : 1);

        fit = o->depth > 0 && o->depth < fit ? o->depth : fit;
        window = window < fit ? fit : window;
    }
    return (uint64_t)window * (o->order == PS_PACKS_SHUFFLED ? 4 : 2);
}

/* Packs a corpus, with a drain after one sequence in `drains`, at random;
   0: never. */
static bytes pack_corpus(const corpus *c, const ps_packer_options *options,
                         uint32_t drains, ps_totals *totals)
{
    uint64_t random = 5;
    int fd = open_empty();
    ps_packer *p;
    bytes b;
    ps_error err;

    assert_ok(ps_packer_open(&p, fd, &c->schema, options, &err), &err);
    for (uint32_t i = 0; i < c->count; i++) {
        ps_sequence s = corpus_sequence(c, i);

        assert_ok(ps_packer_put(p, &s, &err), &err);
        if (drains > 0 && random_below(&random, drains) == 0) {
            assert_ok(ps_packer_flush(p, PS_FLUSH_DRAIN, &err), &err);
            assert_true(ps_totals_balance(ps_packer_totals(p)));
        }
    }
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    assert_true(ps_packer_delay(p) <= promised_delay(options));
    *totals = *ps_packer_totals(p);
    ps_packer_free(p);
    b = read_back(fd);
    (void)close(fd);
    return b;
}

/* Packs a corpus, reads the packs back and checks every guarantee. */
static void audit_packing(const corpus *c, const ps_packer_options *options,
                          uint32_t drains)
{
    ps_totals totals;
    bytes b = pack_corpus(c, options, drains, &totals);
    audit a = {.c = c, .options = options};
    int fd = open_bytes(&b);
    ps_pack_reader *reader;
    ps_pack pack;
    ps_result r = PS_OK;
    ps_error err;

    a.kept = calloc(c->count + 1, sizeof *a.kept);
    a.pieces = calloc(c->count + 1, sizeof *a.pieces);
    assert_true(a.kept != NULL && a.pieces != NULL);
    assert_ok(ps_pack_reader_open(&reader, fd, &err), &err);
    a.info = ps_pack_reader_info(reader);
    assert_int_equal(a.info->max_displacement, promised_delay(options));
    assert_int_equal(a.info->align, options->align > 1 ? options->align : 1);
    /* Without a cap, the depth is the greatest of any pack. */
    if (options->depth == 0 && options->policy != PS_POLICY_NONE)
        assert_int_equal(a.info->depth, totals.max_depth);
    else
        assert_true(a.info->depth == 1 || a.info->depth <= options->depth);
    while ((r = ps_pack_reader_next(reader, &pack, &err)) == PS_OK)
        check_pack(&a, &pack);
    assert_result(r, PS_END, &err);
    count_input(&a);
    assert_totals(&a.seen, &totals);
    assert_totals(&a.seen, ps_pack_reader_totals(reader));
    assert_true(ps_totals_balance(&totals));
    assert_true(totals.max_displacement < promised_delay(options));
    assert_true(totals.packs >=
                ps_lower_bound(totals.tokens, options->capacity));
    ps_pack_reader_free(reader);
    (void)close(fd);
    free(a.kept);
    free(a.pieces);
    if (totals.rejected_sequences == 0 && totals.truncated_sequences == 0)
        assert_unpacked(&b, c);
    free_bytes(&b);
}

static void test_every_overlong(void **state)
{
    static const uint32_t capacities[] = {1, 2, 7, 50, 300};
    static const uint32_t windows[] = {1, 2, 13, 400};
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 250, 120, 9);

    for (unsigned p = PS_OVERLONG_DROP; p <= PS_OVERLONG_SPLIT; p++)
        for (size_t l = 0; l < 5; l++)
            for (size_t w = 0; w < 4; w++) {
                ps_packer_options o = {capacities[l], 1 + p, windows[w], 9,
                                       .overlong = PS_OVERLONG_ERROR};

                memcpy(&o.overlong, &p, sizeof o.overlong);
                audit_packing(&c, &o, 0);
                o.depth = 64;
                audit_packing(&c, &o, 30);
            }
}

/* Random options that are valid together. */
static ps_packer_options random_options(uint64_t *random, ps_policy policy,
                                        ps_pack_order order)
{
    ps_packer_options o = {
        .capacity = 1 + random_below(random, 90),
        .depth = random_below(random, 4) * random_below(random, 5),
        .window = 1 + random_below(random, 60),
        .policy = policy,
        .order = order,
        .seed = 1 + random_below(random, 9),
        .even_cost = random_below(random, 2) == 0,
        .block_packs = (UINT32_C(1) << random_below(random, 6)) / 2,
    };

    if (policy != PS_POLICY_CONCAT) {
        unsigned overlong = 1 + random_below(random, 3);

        memcpy(&o.overlong, &overlong, sizeof o.overlong);
    }
    if (random_below(random, 2) == 0)
        o.max_delay = 1 + random_below(random, 200);
    if (random_below(random, 2) == 0)
        o.max_bytes = 4096 + random_below(random, 50000);
    if (random_below(random, 2) == 0) {
        o.align = 1 + random_below(random, 12);
        o.capacity = o.align * (1 + random_below(random, 90 / o.align));
    }
    return o;
}

static void test_every_policy(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    uint64_t random = 77;

    for (int policy = PS_POLICY_AUTO; policy <= PS_POLICY_CONCAT; policy++)
        for (int order = PS_PACKS_BY_WINDOW; order <= PS_PACKS_SHUFFLED;
             order++)
            for (int i = 0; i < 12; i++) {
                ps_packer_options o = random_options(
                    &random, (ps_policy)policy, (ps_pack_order)order);
                corpus c = make_corpus(&schema, random_below(&random, 400),
                                       1 + random_below(&random, 120),
                                       1 + random_below(&random, 1000));

                audit_packing(&c, &o, random_below(&random, 3) * 20);
            }
}

/*
 * Worked out on paper: lengths 6 7 4 3 in a window of 3.  It is full with
 * 6 7 4, and the oldest takes 4; then 7 takes 3.
 */
static void test_displacement(void **state)
{
    static const uint32_t lengths[] = {6, 7, 4, 3};
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {10, 8, 3, 0, .policy = PS_POLICY_BESTFIT};
    corpus c = make_lengths(&schema, 4, lengths, 1);
    ps_totals totals;
    bytes b = corpus_packs(&c, &o, &totals);

    assert_int_equal(totals.packs, 2);
    assert_int_equal(totals.max_displacement, 2);
    assert_int_equal(totals.min_fill, 10);
    assert_int_equal(get_u64(head_at(&b, 0, AT_WATERMARK)), 1);
    assert_int_equal(get_u64(head_at(&b, 1, AT_WATERMARK)), 4);
    audit_packing(&c, &o, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_overlong),
        cmocka_unit_test(test_every_policy),
        cmocka_unit_test(test_displacement),
    };

    return run_as_tap("packer", tests, NULL);
}
