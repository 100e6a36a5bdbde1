/*
 * span-arrays-t.c - arrays derived from boundaries, compared with a walk over
 * all rows.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-file-fixture.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define IGNORE PS_NO_LABEL
#define CAPACITY 24
#define UNTOUCHED 77777

/* The expected values of a row. */
typedef struct row {
    uint32_t pack;
    int32_t segment;  /* in its pack, from 1; 0: padding */
    int32_t sequence; /* through all packs, or -1 */
    int32_t position;
    bool first;
    bool last;
    uint32_t at; /* position in its pack */
} row;

/* Some packs in a view, and the expected values of all rows. */
typedef struct scene {
    ps_loader *loader;
    ps_pack_reader *reader;
    int fd;
    ps_batch batch;
    row *rows;
    uint32_t n_rows;
    int32_t *first; /* row of each sequence */
} scene;

static int32_t *new_array(size_t n)
{
    int32_t *a = must_alloc((n + 1) * sizeof *a);

    for (size_t i = 0; i <= n; i++)
        a[i] = UNTOUCHED;
    return a;
}

/* Frees an array, after checking that nothing was written past its end. */
static void free_array(int32_t *a, size_t n)
{
    assert_int_equal(a[n], UNTOUCHED);
    free(a);
}

/*
 * Adds the `n` rows of one piece, or of padding if `segment` is 0, and those
 * of the gap that follows.
 */
static void add_rows(scene *s, uint32_t pack, int32_t segment,
                     int32_t sequence, uint32_t begin, uint32_t n,
                     uint32_t gap)
{
    if (segment > 0)
        s->first[sequence] = (int32_t)s->n_rows;
    for (uint32_t i = 0; i < n + gap; i++)
        s->rows[s->n_rows++] = (row){.pack = pack,
                                     .segment = i < n ? segment : 0,
                                     .sequence = i < n ? sequence : -1,
                                     .position = (int32_t)i,
                                     .first = i == 0,
                                     .last = i + 1 == n,
                                     .at = begin + i};
}

static void find_rows(scene *s)
{
    const ps_pack_info *info = ps_loader_info(s->loader);
    const ps_batch *b = &s->batch;
    int32_t sequence = 0;

    s->rows = must_alloc(sizeof *s->rows * b->spans.n_packs * info->capacity);
    s->first = must_alloc(sizeof *s->first * (b->n_seq + 1));
    s->n_rows = 0;
    for (uint32_t p = 0; p < b->spans.n_packs; p++) {
        const ps_pack *pack = p < b->n_packs ? &b->heads[p] : NULL;
        const uint32_t n_seq = pack == NULL ? 0 : pack->n_seq;
        uint32_t end = 0;

        for (uint32_t i = 0; i < n_seq; i++) {
            ps_piece piece = ps_pack_piece(info, pack, i);
            uint32_t over = piece.n_tok % info->align;
            uint32_t gap = over == 0 ? 0 : info->align - over;

            assert_int_equal(piece.begin, end);
            add_rows(s, p, (int32_t)i + 1, sequence++, piece.begin,
                     piece.n_tok, gap);
            end += piece.n_tok + gap;
        }
        if (b->spans.view != PS_VIEW_RAGGED)
            add_rows(s, p, 0, -1, end, info->capacity - end, 0);
    }
    assert_int_equal(s->n_rows, b->spans.n_rows);
}

/*
 * The last batch of a stream is padded, except in the ragged view, where it
 * is short.
 */
static scene make_scene(const bytes *b, uint32_t packs, ps_view view)
{
    const ps_loader_options o = {.packs = packs,
                                 .view = view,
                                 .last = view == PS_VIEW_RAGGED
                                             ? PS_LAST_SHORT
                                             : PS_LAST_PAD,
                                 .keep = 2,
                                 .no_thread = true};
    ps_batch next;
    ps_error err;
    ps_result r;
    scene s = {.fd = open_bytes(b)};

    assert_ok(ps_pack_reader_open(&s.reader, s.fd, &err), &err);
    assert_ok(ps_loader_open(&s.loader, s.reader, &o, &err), &err);
    while ((r = ps_loader_next(s.loader, &next, &err)) == PS_OK)
        s.batch = next;
    assert_result(r, PS_END, &err);
    find_rows(&s);
    return s;
}

static void free_scene(scene *s)
{
    ps_loader_free(s->loader);
    ps_pack_reader_free(s->reader);
    (void)close(s->fd);
    free(s->rows);
    free(s->first);
}

/* ---------------------------------------------------------------------
 * The arrays
 */

static void check_positions(const scene *s)
{
    int32_t *counts = new_array(s->n_rows);
    int32_t *zeros = new_array(s->n_rows);
    int32_t *ids = new_array(s->n_rows);

    ps_spans_positions(&s->batch.spans, PS_GHOST_COUNTS, counts);
    ps_spans_positions(&s->batch.spans, PS_GHOST_ZERO, zeros);
    ps_spans_segment_ids(&s->batch.spans, ids);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const row *r = &s->rows[i];

        assert_int_equal(counts[i], r->position);
        assert_int_equal(zeros[i], r->segment > 0 ? r->position : 0);
        assert_int_equal(ids[i], r->segment);
    }
    free_array(counts, s->n_rows);
    free_array(zeros, s->n_rows);
    free_array(ids, s->n_rows);
}

/* Slots for sequences that the view has in pack `p`. */
static uint32_t places_of(const scene *s, uint32_t p)
{
    if (s->batch.spans.view == PS_VIEW_STATIC)
        return ps_max_sequences(ps_loader_info(s->loader));
    return p < s->batch.n_packs ? s->batch.heads[p].n_seq : 0;
}

static void check_first_rows(const scene *s)
{
    uint32_t all = 0;
    uint32_t place = 0;
    int32_t sequence = 0;
    int32_t *rows;

    for (uint32_t p = 0; p < s->batch.spans.n_packs; p++)
        all += places_of(s, p);
    rows = new_array(all);
    ps_spans_first_rows(&s->batch.spans, -7, rows);
    for (uint32_t p = 0; p < s->batch.spans.n_packs; p++)
        for (uint32_t i = 0; i < places_of(s, p); i++, place++)
            if (p < s->batch.n_packs && i < s->batch.heads[p].n_seq)
                assert_int_equal(rows[place], s->first[sequence++]);
            else
                assert_int_equal(rows[place], -7);
    assert_int_equal(sequence, s->batch.n_seq);
    free_array(rows, all);
}

static void check_next_labels(const scene *s)
{
    int32_t *tokens = new_array(s->n_rows);
    int32_t *aligned = new_array(s->n_rows);
    int32_t *shifted = new_array(s->n_rows);

    for (uint32_t i = 0; i < s->n_rows; i++)
        tokens[i] = (int32_t)(1000 + i);
    ps_spans_next_labels(&s->batch.spans, PS_LABELS_ALIGNED, tokens, aligned);
    ps_spans_next_labels(&s->batch.spans, PS_LABELS_SHIFTED, tokens, shifted);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const row *r = &s->rows[i];
        const bool is_real = r->segment > 0;

        assert_int_equal(aligned[i],
                         is_real && !r->first ? tokens[i] : PS_NO_LABEL);
        assert_int_equal(shifted[i],
                         is_real && !r->last ? tokens[i + 1] : PS_NO_LABEL);
    }
    free_array(tokens, s->n_rows);
    free_array(aligned, s->n_rows);
    free_array(shifted, s->n_rows);
}

/* Labels in some rows, dummy sequences included; some sequences have none. */
static int32_t *make_labels(const scene *s, int32_t ignore)
{
    uint64_t random = 5;
    int32_t *labels = new_array(s->n_rows);

    for (uint32_t i = 0; i < s->n_rows; i++)
        labels[i] = s->rows[i].sequence % 3 != 2 &&
                            random_below(&random, 4) == 0
                        ? (int32_t)(ignore + 1 + (int32_t)i)
                        : ignore;
    return labels;
}

/* Number of labels of sequence `q`, or of all sequences if it is -1. */
static uint32_t count_labels(const scene *s, const int32_t *labels,
                             int32_t ignore, int32_t q)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_rows; i++)
        n += labels[i] != ignore && s->rows[i].sequence >= 0 &&
             (q < 0 || s->rows[i].sequence == q);
    return n;
}

static void check_targets(const scene *s, const int32_t *labels,
                          int32_t ignore)
{
    const ps_targets t = ps_spans_targets(&s->batch.spans, labels, ignore);
    uint32_t sequences = 0;
    uint32_t n = 0;
    int32_t *rows = new_array((size_t)t.tokens);
    int32_t *of = new_array((size_t)t.tokens);

    assert_int_equal(t.tokens, count_labels(s, labels, ignore, -1));
    for (uint32_t q = 0; q < s->batch.n_seq; q++)
        sequences += count_labels(s, labels, ignore, (int32_t)q) > 0;
    assert_int_equal(t.sequences, sequences);
    assert_int_equal(ps_spans_target_rows(&s->batch.spans, labels, ignore,
                                          rows, NULL),
                     t.tokens);
    assert_int_equal(ps_spans_target_rows(&s->batch.spans, labels, ignore,
                                          rows, of),
                     t.tokens);
    for (uint32_t i = 0; i < s->n_rows; i++)
        if (labels[i] != ignore && s->rows[i].sequence >= 0) {
            assert_int_equal(rows[n], i);
            assert_int_equal(of[n++], s->rows[i].sequence);
        }
    free_array(rows, (size_t)t.tokens);
    free_array(of, (size_t)t.tokens);
}

static void check_weight(float got, double wanted)
{
    assert_true(fabs((double)got - wanted) <= 1e-7 * fabs(wanted));
}

static void check_weights(const scene *s, const int32_t *labels,
                          int32_t ignore)
{
    float *token = must_alloc((s->n_rows + 1) * sizeof *token);
    float *sequence = must_alloc((s->n_rows + 1) * sizeof *sequence);
    float *none = must_alloc((s->n_rows + 1) * sizeof *none);

    ps_spans_weights(&s->batch.spans, labels, ignore, PS_LOSS_PER_TOKEN, 123,
                     token);
    ps_spans_weights(&s->batch.spans, labels, ignore, PS_LOSS_PER_SEQUENCE,
                     41, sequence);
    ps_spans_weights(&s->batch.spans, labels, ignore, PS_LOSS_PER_SEQUENCE,
                     0, none);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const int32_t q = s->rows[i].sequence;
        const bool counts = labels[i] != ignore && q >= 0;
        const uint32_t m =
            counts ? count_labels(s, labels, ignore, q) : 1;

        check_weight(token[i], counts ? 1.0 / 123 : 0);
        check_weight(sequence[i], counts ? 1.0 / (m * 41.0) : 0);
        check_weight(none[i], 0);
    }
    free(token);
    free(sequence);
    free(none);
}

/* ---------------------------------------------------------------------
 * Fields
 */

/* Element `i` of a per-token field of a pack, padding or not. */
static const unsigned char *element(const scene *s, uint32_t pack,
                                    const ps_field *f, uint32_t i)
{
    return s->batch.rows +
           (size_t)pack * ps_loader_info(s->loader)->row_bytes + f->offset +
           i * ps_channel_bytes(&f->channel);
}

static int64_t value_of(const unsigned char *p, ps_type type)
{
    if (type == PS_U8)
        return p[0];
    if (type == PS_U16)
        return p[0] | p[1] << 8;
    if (type == PS_I32)
        return (int32_t)get_u32(p);
    if (type == PS_U32)
        return get_u32(p);
    return (int64_t)((uint64_t)get_u32(p + 4) << 32 | get_u32(p));
}

/* The elements of a field in gathering order. */
static bytes wanted_elements(const scene *s, const ps_field *f)
{
    const size_t width = ps_channel_bytes(&f->channel);
    const size_t size = ps_loader_info(s->loader)->seq_bytes;
    const ps_batch *batch = &s->batch;
    bytes b = {0};

    if (f->channel.kind == PS_PER_TOKEN) {
        for (uint32_t i = 0; i < s->n_rows; i++)
            put_bytes(&b, element(s, s->rows[i].pack, f, s->rows[i].at),
                      width);
        return b;
    }
    for (uint32_t p = 0; p < batch->spans.n_packs; p++)
        for (uint32_t i = 0; i < places_of(s, p); i++)
            if (p < batch->n_packs && i < batch->heads[p].n_seq)
                put_bytes(&b, batch->heads[p].sequences + i * size + f->offset,
                          width);
            else
                for (uint32_t k = 0; k < ps_channel_values(&f->channel); k++)
                    put_number(&b, f->channel.fill,
                               (unsigned)ps_type_bytes(f->channel.type));
    return b;
}

static void gather(const scene *s, const ps_field *f, ps_type as, void *to,
                   ps_result wanted)
{
    ps_error err;

    assert_result(ps_spans_gather(&s->batch.spans, ps_loader_info(s->loader),
                                  s->batch.rows, s->batch.sequences, f, as,
                                  to, &err),
                  wanted, &err);
}

static void check_gather(const scene *s, const ps_field *f)
{
    const ps_type type = f->channel.type;
    const size_t width = ps_type_bytes(type);
    const bool fits_i32 = type < PS_U64 || type == PS_I32;
    const bool fits_i64 = type <= PS_I64;
    bytes wanted = wanted_elements(s, f);
    const size_t n = wanted.size / width;
    unsigned char *got = must_alloc(wanted.size + 1);
    int32_t *i32 = new_array(n);
    int64_t *i64 = must_alloc((n + 1) * sizeof *i64);

    got[wanted.size] = 0x5a;
    gather(s, f, PS_AS_STORED, got, PS_OK);
    if (wanted.size > 0)
        assert_memory_equal(got, wanted.data, wanted.size);
    assert_int_equal(got[wanted.size], 0x5a);
    i64[n] = UNTOUCHED;
    gather(s, f, PS_I32, i32, fits_i32 ? PS_OK : PS_ERR_ARGUMENT);
    gather(s, f, PS_I64, i64, fits_i64 ? PS_OK : PS_ERR_ARGUMENT);
    for (size_t i = 0; i < n && fits_i64; i++) {
        const int64_t value = value_of(wanted.data + i * width, type);

        assert_true(!fits_i32 || i32[i] == (int32_t)value);
        assert_int_equal(i64[i], value);
    }
    assert_int_equal(i64[n], UNTOUCHED);
    free(i64);
    free_array(i32, n);
    free(got);
    free_bytes(&wanted);
}

static void check_gathers(const scene *s)
{
    static const ps_type not_made[] = {PS_U8, PS_U32, PS_U64, PS_F32,
                                       (ps_type)9};
    const ps_pack_info *info = ps_loader_info(s->loader);
    ps_field signed_id = *ps_pack_field(info, "seq_id");
    unsigned char none;

    /* No channel is i64, but any eight-byte type will do. */
    signed_id.channel.type = PS_I64;
    check_gather(s, &signed_id);
    for (uint32_t f = 0; f < info->n_fields; f++)
        check_gather(s, &info->fields[f]);
    for (size_t i = 0; i < COUNT(not_made); i++)
        gather(s, &info->fields[PS_FIELD_TOKENS], not_made[i], &none,
               PS_ERR_ARGUMENT);
}

/* ---------------------------------------------------------------------
 * Scenes
 */

static void check_scene(const bytes *b, uint32_t packs, ps_view view)
{
    scene s = make_scene(b, packs, view);
    int32_t *labels = make_labels(&s, IGNORE);
    int32_t *mask = make_labels(&s, 0);

    check_positions(&s);
    check_first_rows(&s);
    check_next_labels(&s);
    check_targets(&s, labels, IGNORE);
    check_targets(&s, mask, 0);
    check_weights(&s, labels, IGNORE);
    check_weights(&s, mask, 0);
    check_gathers(&s);
    free_array(labels, s.n_rows);
    free_array(mask, s.n_rows);
    free_scene(&s);
}

static void check_arrays(uint32_t depth, uint32_t align, ps_type type)
{
    const ps_packer_options o = {CAPACITY, depth, 16, 0,
                                 .overlong = PS_OVERLONG_SPLIT,
                                 .align = align};
    const ps_schema schema = rich_schema(type);
    bytes b = packs_from(make_corpus(&schema, 40, 30, 3 + depth), &o, NULL);

    for (uint32_t packs = 1; packs <= 64; packs *= 4)
        for (ps_view view = PS_VIEW_RAGGED; view <= PS_VIEW_STATIC; view++)
            check_scene(&b, packs, view);
}

static void test_arrays(void **state)
{
    check_arrays(1, 1, PS_U16);
    check_arrays(3, 1, PS_U32);
    check_arrays(24, 1, PS_U16);
    check_arrays(0, 1, PS_U16);
}

/* Padding between the sequences as well. */
static void test_aligned(void **state)
{
    static const uint32_t aligns[] = {2, 3, 8, 12, 24};

    for (size_t i = 0; i < COUNT(aligns); i++) {
        check_arrays(3, aligns[i], PS_U16);
        check_arrays(24, aligns[i], PS_U32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_aligned),
    };

    return run_as_tap("span-arrays", tests, NULL);
}
