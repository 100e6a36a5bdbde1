/*
 * attention-t.cc - attention on unpadded rows compared with loops in double.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/attention.h"
#include "cuda/groups.h"
#include "naive.h"

#include <string>

#ifdef HOSTCUDA
#include "hostcuda.h"
#endif

/* Tolerances of float and bfloat16. */
#ifdef TR_DOUBLE
#define NEAR 1e-12
#else
#define NEAR 2e-6
#endif
#define NEAR_BF16 6e-3

/* ---- Results of the kernels ---- */

/* `limit`: bytes of shared memory in a block; 0: the device's limit. */
static answer compute(const rig &r, const problem &p, size_t limit = 0)
{
    size_t *const has = &cuda_of(r.d)->properties.sharedMemPerBlockOptin;
    const size_t before = *has;
    const vector<int32_t> zero(p.rows());
    tr_batch batch = batch_of(p.cu);
    const array source(r, VALUES, p.qkv), d_out(r, VALUES, p.d_out),
        qkv(r, VALUES, source.n), out(r, VALUES, d_out.n),
        d_qkv(r, VALUES, source.n), kept(r, REALS, p.rows() * p.heads),
        scratch(r, REALS, kept.n);
    tr_results results;
    const char *why = "no memory";

    batch.token = batch.type = batch.position = zero.data();
    batch.place = p.place.data();
    tr_attend a = attend_of(r.ops->stage(r.d, &batch), p.heads, p.width);
    a.kv_heads = p.kv_heads;
    a.causal = p.causal;
    a.window = p.window;
    a.dropout = p.dropout;
    a.site = p.site;
    a.kept = kept;
    a.scratch = scratch;
    a.dropout.place = a.batch ? a.batch->place : NULL;
    if (limit)
        *has = limit;
    /* Without waiting for the stream, NaN is read. */
    cudaMemcpyAsync(qkv, source, qkv.n * r.d->value_size,
                    cudaMemcpyDeviceToDevice, cuda_of(r.d)->stream);
    r.ops->attention_forward(r.d, &a, qkv, out);
    r.ops->attention_backward(r.d, &a, qkv, out, d_out, d_qkv);
    if (!a.batch || !r.ops->finish(r.d, &results, &why)) {
        printf("Bail out! %s\n", why);
        exit(1);
    }
    *has = before;
    return {out.back(), kept.back(), d_qkv.back()};
}

static void compare(const rig &r, const problem &p, const char *what)
{
    const answer x = compute(r, p), right = naive(p);
    const double o = apart(x.out, right.out), k = apart(x.kept, right.kept),
                 d = apart(x.d_qkv, right.d_qkv);
    const double near = r.bf16 ? NEAR_BF16 : NEAR;

    ok(o <= near && k <= NEAR && d <= near,
       "%s, %s, %zu heads of %zu, %zu rows: off by %.1e, kept %.1e, "
       "gradient %.1e",
       r.name, what, p.heads, p.width, p.rows(), o, k, d);
}

/* ---- Tests ---- */

static vector<size_t> widths = {6, 8, 16, 32, 64, 100, 128};
static const bool quick = is_short();

static const vector<int32_t> small = {1, 2, 15, 0, 16, 17, 33, 48};
static const vector<int32_t> mixture = {127, 0, 128, 1, 129, 16, 300, 0};

static void test_numbers(const rig &r)
{
    for (size_t width : widths) {
        compare(r, problem_of(r, quick ? 1 : 3, width, small), "no dropout");
        compare(r, problem_of(r, quick ? 1 : 3, width, small, 0.1),
                "dropout");
    }
    if (quick)
        return;
    for (size_t width : {8, 64, 100})
        compare(r, problem_of(r, 1, width, mixture, 0.1), "a mixture");
    compare(r, problem_of(r, 1, 64, {512, 513, 700}, 0.1), "long spans");
}

/*
 * Masks and shared keys, without dropout.  Some windows end within a step, some
 * at its border, and some are shorter than a warp's rows, so that not all rows
 * see a key of their warp's first step.
 */
static void test_masks(const rig &r)
{
    static const size_t share[] = {1, 2, 4};
    static const struct {
        bool causal;
        size_t window;
        const char *what;
    } kinds[] = {{false, 0, "full"}, {true, 0, "causal"},
                 {false, 9, "window 9"}, {true, 17, "causal, window 17"},
                 {false, 32, "window 32"}, {true, 1, "causal, window 1"},
                 {true, 40, "causal, window 40"}};
    size_t turn = 0;

    for (size_t each : share)
        for (const auto &k : kinds)
            for (size_t width : {32, 64, 128}) {
                if (quick && turn++ % 5)
                    continue;
                char what[80];

                snprintf(what, sizeof what, "%s, %zu share keys", k.what, each);
                compare(r, problem_of(r, quick ? each : 4, width,
                                      {1, 15, 16, 17, 33, 0, 70}, 0,
                                      {(quick ? each : 4) / each, k.causal,
                                       k.window}),
                        what);
            }
}

/* Spans of several tiles and chunks, some of which are masked altogether. */
static void test_long_masks(const rig &r)
{
    const vector<int32_t> lengths = {quick ? 150 : 530, 129};

    compare(r, problem_of(r, 1, 64, lengths, 0, {1, true, 0}), "long, causal");
    compare(r, problem_of(r, 1, 64, lengths, 0, {1, false, 33}),
            "long, window 33");
    compare(r, problem_of(r, 2, 32, lengths, 0, {1, true, 65}),
            "long, causal, window 65");
    compare(r, problem_of(r, 2, 32, lengths, 0, {1, false, 0}),
            "long, keys shared");
    compare(r, problem_of(r, 4, 6, lengths, 0, {2, false, 100}),
            "long, window 100");
}

/* Later keys score higher, so the sums of earlier keys are scaled down. */
static void test_growing(const rig &r)
{
    problem p = problem_of(r, 1, 64, {quick ? 100 : 300}, 0.1);

    for (size_t row = 0; row < p.rows(); row++)
        for (size_t i = 0; i < p.width; i++)
            p.qkv[row * 3 * p.width + p.width + i] *=
                1 << std::min<size_t>(row / 32, 2);
    compare(r, p, "growing scores");
}

/*
 * With unit vectors as values and as d_out, out and the gradient of values are
 * the softmax after dropout: exactly the weights that the CPU drops are 0.
 */
static void test_dropout(const rig &r)
{
    problem p
        = problem_of(r, quick ? 1 : 2, 128, {20, quick ? 40 : 128, 33}, 0.3);
    const size_t hidden = p.hidden();
    size_t wrong = 0, dropped = 0;
    const auto unit = [&](size_t row, size_t column) {
        for (size_t i = 1; i < p.cu.size(); i++)
            if (row < (size_t)p.cu[i])
                return row - (size_t)p.cu[i - 1] == column % p.width;
        return false;
    };

    for (size_t row = 0; row < p.rows(); row++)
        for (size_t i = 0; i < hidden; i++) {
            p.qkv[row * 3 * hidden + 2 * hidden + i] = unit(row, i);
            p.d_out[row * hidden + i] = unit(row, i);
        }
    const answer a = compute(r, p);
    for (size_t s = 0; s + 1 < p.cu.size(); s++) {
        const size_t first = (size_t)p.cu[s], n = (size_t)p.cu[s + 1] - first;

        for (size_t i = 0; i < n * n * p.heads; i++) {
            const size_t row = i / n % n, column = i % n, head = i / n / n;
            const bool stay
                = stays(p, first + row, head, (uint32_t)(first + column));
            const double o
                = a.out[(first + row) * hidden + head * p.width + column];
            const double d = a.d_qkv[(first + column) * 3 * hidden
                                     + 2 * hidden + head * p.width + row];

            dropped += !stay;
            wrong += (o > 0) != stay || (d > 0) != stay;
        }
    }
    ok(wrong == 0 && dropped > 500,
       "%s: of all weights, %zu are dropped as the CPU does", r.name, dropped);
}

/* Compares the bits of a span's rows among other spans and alone. */
static bool same_rows(const problem &p, size_t from, const answer &x,
                      const problem &q, size_t to, const answer &y, size_t n)
{
    const size_t h = p.hidden();

    for (size_t i = 0; i < n * h; i++)
        if (!(x.out[from * h + i] == y.out[to * h + i]))
            return false;
    for (size_t i = 0; i < n * p.stride(); i++)
        if (!(x.d_qkv[from * p.stride() + i] == y.d_qkv[to * p.stride() + i]))
            return false;
    for (size_t i = 0; i < n * p.heads; i++)
        if (!(x.kept[i / n * p.rows() + from + i % n]
              == y.kept[i / n * q.rows() + to + i % n]))
            return false;
    return true;
}

/* A span alone, and with rows in chunks although they would all fit. */
static void test_alone(const rig &r, masks m)
{
    const problem p = problem_of(r, quick ? 2 - !m.kv_heads : 2, 32,
                                 {40, 129, 7, quick ? 9 : 300}, 0, m);
    const answer whole = compute(r, p), chunks = compute(r, p, 48 << 10);
    bool same = true;

    for (size_t s = 0; s + 1 < p.cu.size(); s++) {
        const size_t first = (size_t)p.cu[s], n = (size_t)p.cu[s + 1] - first;
        problem q = problem_of(r, p.heads, 32, {(int32_t)n}, 0, m);

        for (size_t i = 0; i < q.qkv.size(); i++)
            q.qkv[i] = p.qkv[first * p.stride() + i];
        for (size_t i = 0; i < q.d_out.size(); i++)
            q.d_out[i] = p.d_out[first * p.hidden() + i];
        same = same && same_rows(p, first, whole, q, 0, compute(r, q), n);
    }
    ok(same, "%s%s: a span comes to the same bits alone", r.name,
       m.kv_heads ? ", masks" : "");
    ok(same_rows(p, 0, whole, p, 0, chunks, p.rows()),
       "%s%s: and if its rows come in chunks", r.name,
       m.kv_heads ? ", masks" : "");
}

/* Every second span is NaN; the others are unaffected. */
static void test_poison(const rig &r, size_t width, masks m)
{
    const vector<int32_t> lengths
        = {33, 5, 17, quick ? 3 : 130, 64, 1, quick ? 20 : 128, 15};
    const problem p
        = problem_of(r, quick ? 2 - !m.kv_heads : 2, width, lengths, 0.1, m);
    const answer right = compute(r, p);
    bool same = true;

    for (size_t odd = 0; odd < 2; odd++) {
        problem q = p;

        for (size_t s = odd; s < lengths.size(); s += 2) {
            const size_t first = (size_t)p.cu[s], end = (size_t)p.cu[s + 1];

            for (size_t i = first * p.stride(); i < end * p.stride(); i++)
                q.qkv[i] = NAN;
            for (size_t i = first * p.hidden(); i < end * p.hidden(); i++)
                q.d_out[i] = NAN;
        }
        const answer a = compute(r, q);
        for (size_t s = 1 - odd; s < lengths.size(); s += 2)
            same = same
                   && same_rows(p, (size_t)p.cu[s], right, q, (size_t)p.cu[s],
                                a, (size_t)lengths[s]);
    }
    ok(same, "%s%s, heads of %zu: NaN in other spans changes no bit", r.name,
       m.kv_heads ? ", masks" : "", width);
}

/*
 * Steps that are masked altogether are skipped: their NaN multiplied by 0 would
 * be NaN.  The warps of rows 64 to 127 meet no step with NaN, and rows 83 to
 * 108 meet only these rows.
 */
static void test_skips(const rig &r)
{
    const problem p = problem_of(r, 2, 32, {200}, 0, {1, false, 20});
    problem q = p;

    for (size_t row = 0; row < 200; row = row == 31 ? 160 : row + 1) {
        std::fill_n(&q.qkv[row * p.stride()], p.stride(), NAN);
        std::fill_n(&q.d_out[row * p.hidden()], p.hidden(), NAN);
    }
    ok(same_rows(p, 83, compute(r, p), q, 83, compute(r, q), 26),
       "%s: NaN in steps that no row meets changes no bit", r.name);
}

/* Kernels with masks have no dropout. */
static void test_refused()
{
    for (bool backward : {false, true}) {
        const rig r = open_rig(TR_FLOAT);
        const vector<int32_t> cu = {0, 1}, zero(1);
        tr_batch batch = batch_of(cu);
        tr_results results;
        const char *why = "";

        batch.token = batch.type = batch.position = batch.place = zero.data();
        tr_attend a = attend_of(r.ops->stage(r.d, &batch), 1, 8);
        a.causal = true;
        a.dropout = tr_dropout_at(0.1, 1);
        if (backward)
            r.ops->attention_backward(r.d, &a, NULL, NULL, NULL, NULL);
        else
            r.ops->attention_forward(r.d, &a, NULL, NULL);
        const bool good = r.ops->finish(r.d, &results, &why);

        ok(!good && strstr(why, "attention"),
           "dropout of causal attention is refused: %s", why);
        tr_device_close(r.d);
    }
}

static void test_groups()
{
    const vector<int32_t> cu = cu_of(
        {0, 128, 129, 1, 600, 256, 512, 0, 384, 513, 129, 257, 128, 385});
    const tr_batch batch = batch_of(cu);
    vector<int32_t> list(batch.n_spans, -1);
    tr_group group[TR_GROUPS];
    const vector<int32_t> right[TR_GROUPS]
        = {{1, 12, 3}, {5, 2, 10}, {8, 11}, {6, 13}, {4, 9}};
    const uint32_t longest[TR_GROUPS] = {128, 256, 384, 512, 600};
    bool good = true;

    tr_cuda_group(&batch, list.data(), group);
    for (int g = 0; g < TR_GROUPS; g++)
        good = good
               && right[g]
                      == vector<int32_t>(group[g].span,
                                         group[g].span + group[g].count)
               && group[g].longest == longest[g];
    ok(good, "spans are grouped by length, long ones first");

    const vector<int32_t> one = cu_of({0, 0, 300});
    const tr_batch few = batch_of(one);

    tr_cuda_group(&few, list.data(), group);
    for (int g = 0; g < TR_GROUPS; g++)
        good = good && group[g].count == (g == 2)
               && group[g].longest == (g == 2 ? 300u : 0u);
    ok(good && *group[2].span == 2, "groups without spans are empty");
}

/* The model in attention.h, for numbers in float and heads of 64. */
static void test_shapes()
{
    const size_t sm_80 = 163 << 10;
    const size_t single = 2 * (64 * 4 + 16), scores = 16 * 36 * 4;
    tr_attention_shape s
        = tr_attention_shape_of(sm_80, 256, single, 8 * single + scores);

    ok(s.warps == 4 && s.chunk == 256 && s.tiles == 1,
       "256 rows stay in the memory of sm_80");
    s = tr_attention_shape_of(sm_80, 513, single, 8 * single + scores);
    ok(s.warps == 8 && s.chunk == 64 && s.tiles == 5, "513 rows do not");
    s = tr_attention_shape_of(sm_80, 1, single, 8 * single + scores);
    ok(s.warps == 1 && s.chunk == 32 && s.tiles == 1, "a row is little work");
    s = tr_attention_shape_of(sm_80, 1000, 2 * (128 * 8 + 16),
                              32 * (128 * 8 + 16) + 2 * scores);
    ok(s.chunk == 32 && s.warps >= 1 && s.shared <= sm_80
           && s.tiles * s.warps * 16 >= 1000,
       "double of 128 fits in chunks");
}

static void test_sizes()
{
    tr_batch b = {};
    tr_attend a = attend_of(&b, 12, 64);

    b.n_rows = 1000;
    b.n_spans = 10;
    ok(tr_cuda_attention_kept(NULL, &a) == 12000 * sizeof(real)
           && tr_cuda_attention_scratch(NULL, &a) == 12000 * sizeof(real),
       "a real a row and head is kept, and one is scratch");
    b.n_spans = UINT32_MAX / 2;
    ok(tr_cuda_attention_kept(NULL, &a) == SIZE_MAX,
       "more heads of spans than a grid has blocks are refused");
    b.n_spans = 10;
    a.width = 129;
    ok(tr_cuda_attention_kept(NULL, &a) == SIZE_MAX,
       "heads of more than 128 are refused");
    a = attend_of(&b, 12, 64);
    a.kv_heads = 4;
    a.causal = true;
    a.window = 1;
    ok(tr_cuda_attention_kept(NULL, &a) == 12000 * sizeof(real)
           && tr_cuda_attention_scratch(NULL, &a) == 12000 * sizeof(real),
       "masks and shared keys need no more");
}

#ifdef HOSTCUDA

/*
 * Bytes that a kernel moved, compared with the model in attention.h.  The model
 * leaves out the span bounds that up to 256 threads read at each access.
 */
static void same_bytes(const rig &r, const char *which, size_t read,
                       size_t written, size_t asked)
{
    const std::string kernel = std::string("attention_") + which
                               + (r.bf16 ? "_mma_kernel" : "_kernel");
    const hostcuda_count n = hostcuda_counts(kernel.c_str());

    ok(n.read >= read && n.read <= read + asked * 256 * 16
           && n.written == written,
       "%s reads %llu bytes, by the model %zu, and writes %llu, by it %zu",
       kernel.c_str(), n.read, read, n.written, written);
}

/*
 * For a span of n rows, with the shared memory of sm_80; t forward and backward
 * as in attention.h.
 */
static void test_bytes(const rig &r, int32_t n, size_t t, size_t t_queries,
                       size_t t_keys)
{
    const problem p = problem_of(r, 1, 64, {n}, 0.1);
    const size_t h = (size_t)n * p.width * r.d->value_size;
    const size_t column = (size_t)n * sizeof(real);
    /* Once for each chunk of 64 rows, and at the end. */
    const size_t asked = r.bf16 ? (size_t)n / 64 + 3 : 1;

    hostcuda_counts_reset();
    compute(r, p, 163 << 10);
    same_bytes(r, "forward", (1 + 2 * t) * h, h + column, t * asked);
    same_bytes(r, "queries", (3 + 2 * t_queries) * h + 2 * column, h + column,
               t_queries * asked);
    same_bytes(r, "keys", (2 + 2 * t_keys) * h + 2 * t_keys * column, 2 * h,
               t_keys * asked);
}

/*
 * Rows that the tiles of a head load, in chunks of 64, if a row meets those
 * from `down` before it to `up` after it.
 */
static size_t rows_loaded(size_t n, size_t tile, size_t down, size_t up)
{
    size_t rows = 0;

    for (size_t at = 0; at < n; at += tile) {
        const size_t first = at > down ? (at - down) / 64 * 64 : 0;
        const size_t end = std::min(n, at + tile + up);

        rows += std::min(n, first + (end - first + 63) / 64 * 64) - first;
    }
    return rows;
}

/* A causal window of 70 rows on a span in chunks; two heads share keys. */
static void test_masked_bytes(const rig &r, size_t n)
{
    const size_t tile = r.bf16 ? 64 : 128;
    const problem p = problem_of(r, 2, r.bf16 ? 128 : 64, {(int32_t)n}, 0,
                                 {1, true, 70});
    const size_t row = p.width * r.d->value_size, heads = p.heads;
    const size_t back = rows_loaded(n, tile, 69, 0);
    const size_t ahead = rows_loaded(n, tile, 0, 69);
    const size_t tiles = (n + tile - 1) / tile;
    const size_t asked = r.bf16 ? 3 * tiles + ahead / 64 : tiles;

    hostcuda_counts_reset();
    compute(r, p, 163 << 10);
    same_bytes(r, "forward", heads * (n + 2 * back) * row,
               heads * n * (row + sizeof(real)), heads * asked);
    same_bytes(r, "queries",
               heads * ((3 * n + 2 * back) * row + 2 * n * sizeof(real)),
               heads * n * (row + sizeof(real)), heads * asked);
    same_bytes(r, "keys",
               2 * n * row + 2 * heads * ahead * (row + sizeof(real)),
               2 * n * row, heads * asked);
}

/* Checks bytes, if the kernels run so far were built with counters. */
static void test_all_bytes(const rig &r)
{
    if (hostcuda_counts("attention_forward_kernel").read == 0) {
        ok(true, "%s: bytes # SKIP built without counters", r.name);
        return;
    }
    if (!r.bf16) {
        test_bytes(r, 200, 1, 1, 2);
        test_bytes(r, 700, 6, 6, 6);
        test_masked_bytes(r, 600);
        return;
    }
    for (size_t n : {60, 128, 300})
        test_bytes(r, (int32_t)n, (n + 63) / 64, (n + 63) / 64, (n + 63) / 64);
    test_masked_bytes(r, 300);
}

/* Shared memory is configured by a kernel's first launch only. */
static void test_shared_memory(void)
{
    const rig r = open_rig(TR_FLOAT);
    const problem p = problem_of(r, 1, 8, {3});

    compute(r, p);
    hostcuda_fail("cudaFuncSetAttribute:1+");
    ok(apart(compute(r, p).out, naive(p).out) <= NEAR,
       "a kernel is given shared memory once");
    hostcuda_fail(NULL);
    tr_device_close(r.d);
}

#endif

/* All tests for one type of value. */
static void test_all(tr_precision precision)
{
    const rig r = open_rig(precision);

    test_numbers(r);
    test_masks(r);
    test_long_masks(r);
    test_growing(r);
    test_dropout(r);
    test_alone(r, {});
    test_alone(r, {1, true, 50});
    test_skips(r);
    for (size_t width : {16, 100}) {
        test_poison(r, width, {});
        test_poison(r, width, {1, false, 21});
    }
#ifdef HOSTCUDA
    if (sizeof(real) == sizeof(float))
        test_all_bytes(r);
#endif
    tr_device_close(r.d);
}

/* quick: only small spans. */
int main(void)
{
    if (quick)
        widths = {6, 64, 128};
    test_groups();
    test_shapes();
    test_sizes();
    test_refused();
#ifdef HOSTCUDA
    test_shared_memory();
#endif
    test_all(TR_FLOAT);
#ifndef TR_DOUBLE
    test_all(TR_BF16);
#endif
    return done();
}
