/*
 * sdpa-t.cc - attention with cuDNN (sdpa.cc): numbers compared with plain
 * loops, dropout, and buckets.  With the emulation in tests/hostcuda also
 * cached plans and failures; the last part tests the errors of the emulation.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cuda_runtime.h>

#include "cuda/sdpa.h"
#include "naive.h"

#ifdef HOSTCUDA
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "cuda/sdpa_graph.h"
#include "hostcuda.h"
#endif

#define NEAR 1e-2      /* of bfloat16, rounded twice */
#define NEAR_KEPT 1e-5 /* of float */
#define PLANS 16       /* size of the cache */

/* ---- Results of cuDNN ---- */

/* A device whose attention uses cuDNN; `rate` is the model's dropout. */
static rig open_cudnn(size_t heads, size_t width, double rate)
{
    const rig r = open_rig(TR_BF16);
    char why[200] = "";

    if (!tr_cuda_use_cudnn(r.d, heads * width, heads, rate, why, sizeof why)) {
        printf("Bail out! %s\n", why);
        exit(1);
    }
    return r;
}

/* Layers of one batch, and the arrays of their attention. */
struct layers {
    const rig &r;
    const problem &p;
    vector<int32_t> zero;
    tr_batch batch;
    const array source, d_source, qkv, d_out;
    tr_attend attend = {};
    size_t kept_bytes, scratch_bytes;

    layers(const rig &r_, const problem &p_)
        : r(r_), p(p_), zero(p.rows()), batch(batch_of(p.cu)),
          source(r, VALUES, p.qkv), d_source(r, VALUES, p.d_out),
          qkv(r, VALUES, source.n), d_out(r, VALUES, d_source.n)
    {
        batch.token = batch.type = batch.position = zero.data();
        batch.place = p.place.data();
        attend = attend_of(&batch, p.heads, p.width);
        kept_bytes = r.ops->attention_kept(r.d, &attend);
        scratch_bytes = r.ops->attention_scratch(r.d, &attend);
        attend.dropout = p.dropout;
        attend.site = p.site;
    }
    /* Without waiting for the stream, NaN is read. */
    void stage()
    {
        attend.batch = r.ops->stage(r.d, &batch);
        attend.dropout.place = attend.batch ? attend.batch->place : NULL;
        cudaMemcpyAsync(qkv, source, qkv.n * r.d->value_size,
                        cudaMemcpyDeviceToDevice, cuda_of(r.d)->stream);
        cudaMemcpyAsync(d_out, d_source, d_out.n * r.d->value_size,
                        cudaMemcpyDeviceToDevice, cuda_of(r.d)->stream);
    }
    tr_attend layer(uint32_t nth, void *kept, void *scratch) const
    {
        tr_attend a = attend;

        a.site += 3 * nth;
        a.kept = kept;
        a.scratch = scratch;
        return a;
    }
};

/* Results of the first of two layers: both forward, then both backward. */
static answer compute(const rig &r, const problem &p)
{
    layers l(r, p);
    const array out(r, VALUES, l.d_out.n), other(r, VALUES, l.d_out.n),
        d_qkv(r, VALUES, l.qkv.n), d_other(r, VALUES, l.qkv.n),
        kept(r, REALS, 2 * l.kept_bytes / sizeof(real)),
        scratch(r, REALS, l.scratch_bytes / sizeof(real) + 32);
    tr_results results;
    const char *why = "no memory";

    l.stage();
    const tr_attend first = l.layer(0, kept, scratch.p + 64);
    const tr_attend second = l.layer(1, kept.p + l.kept_bytes,
                                     scratch.p + 64);

    r.ops->attention_forward(r.d, &first, l.qkv, out);
    r.ops->attention_forward(r.d, &second, l.qkv, other);
    r.ops->attention_backward(r.d, &second, l.qkv, other, l.d_out, d_other);
    r.ops->attention_backward(r.d, &first, l.qkv, out, l.d_out, d_qkv);
    if (!first.batch || !r.ops->finish(r.d, &results, &why)) {
        printf("Bail out! %s\n", why);
        exit(1);
    }
    return {out.back(), kept.back(), d_qkv.back()};
}

#ifdef HOSTCUDA

/* The dropout of the emulation, with the seed that sdpa.h guarantees. */
static bool cudnn_stays(const problem &p, size_t row, size_t head,
                        uint32_t column)
{
    const tr_batch batch = batch_of(p.cu);
    tr_spans spans = {};
    uint64_t span = 0;

    tr_spans_count(&batch, &spans);
    while ((size_t)p.cu[span + 1] <= row)
        span++;
    const size_t first = (size_t)p.cu[span], s = spans.longest;

    return hostcuda_cudnn_keeps(
        (int64_t)tr_counter_rng(tr_counter_rng(p.dropout.seed, p.site),
                                (uint32_t)p.place[0]),
        0, (float)p.dropout.threshold / 4294967296.0f,
        ((span * p.heads + head) * s + row - first) * s + column - first);
}

#endif

/* It is not documented which numbers cuDNN itself drops. */
static problem problem_with(const rig &r, size_t heads, size_t width,
                            const vector<int32_t> &lengths, double rate = 0)
{
    problem p = problem_of(r, heads, width, lengths, rate);

#ifdef HOSTCUDA
    p.stays = cudnn_stays;
#endif
    return p;
}

/* The log-sum-exp kept for each row, by plain loops. */
static numbers kept_rows(const problem &p, const numbers &kept)
{
    const tr_batch batch = batch_of(p.cu);
    tr_spans spans = {};
    numbers rows(p.rows() * p.heads);

    tr_spans_count(&batch, &spans);
    for (size_t i = 0; i + 1 < p.cu.size(); i++)
        for (size_t h = 0; h < p.heads; h++)
            for (int32_t row = p.cu[i]; row < p.cu[i + 1]; row++)
                rows[h * p.rows() + (size_t)row]
                    = kept[(i * p.heads + h) * spans.longest
                           + (size_t)(row - p.cu[i])];
    return rows;
}

static void compare(const rig &r, const problem &p, const char *what)
{
    const answer x = compute(r, p), right = naive(p);
    const double o = apart(x.out, right.out),
                 k = apart(kept_rows(p, x.kept), right.kept),
                 d = apart(x.d_qkv, right.d_qkv);

    ok(o <= NEAR && k <= NEAR_KEPT && d <= NEAR,
       "%s, %zu heads of %zu, %zu rows: off by %.1e, kept %.1e, gradient "
       "%.1e",
       what, p.heads, p.width, p.rows(), o, k, d);
}

/* ---- Numbers ---- */

static const vector<int32_t> small = {1, 2, 15, 0, 16, 17, 33, 48};

/* With dropout where the mask is known. */
static void test_numbers(size_t heads, size_t width)
{
    const rig r = open_cudnn(heads, width, 0.1);
    double rate = 0;

    compare(r, problem_with(r, heads, width, small), "no dropout");
#ifdef HOSTCUDA
    rate = 0.1;
    compare(r, problem_with(r, heads, width, small, rate), "dropout");
#endif
    compare(r, problem_with(r, heads, width, {0, 0, 1}, rate), "a row");
    if (width == 8 && !is_short())
        for (int32_t longest : {127, 128, 129, 384, 513})
            compare(r, problem_with(r, heads, width, {longest, 3}, rate),
                    "a bucket's edge");
    tr_device_close(r.d);
}

/*
 * With unit vectors as values and as d_out, out and the gradient of values are
 * the softmax after dropout: forward and backward drop the same scores.
 */
static void test_dropout(void)
{
    const size_t n = 64;
    const rig r = open_cudnn(1, n, 0.5);
    problem p = problem_with(r, 1, n, {(int32_t)n}, 0.5);
    bool same = true;
    int zeros = 0;

    for (size_t i = 0; i < n * n; i++)
        p.qkv[i / n * 3 * n + 2 * n + i % n] = p.d_out[i]
            = i / n == i % n ? 1 : 0;
    const answer a = compute(r, p);
    for (size_t i = 0; i < n * n; i++) {
        const double turned = a.d_qkv[i % n * 3 * n + 2 * n + i / n];

        same = same && fabs(a.out[i] - turned) <= NEAR * a.out[i];
        zeros += a.out[i] == 0;
    }
    ok(same && zeros > 45 * (int)(n * n) / 100
           && zeros < 55 * (int)(n * n) / 100,
       "forward and backward drop the same %d of %zu numbers", zeros, n * n);
    tr_device_close(r.d);
}

static void test_masks(void)
{
    const rig r = open_cudnn(2, 8, 0.5);
    const problem p = problem_with(r, 2, 8, {40}, 0.5);
    const numbers once = compute(r, p).out;
    problem q = p;

    ok(once == compute(r, p).out, "a step's masks are always the same");
    q.dropout.seed++;
    ok(once != compute(r, q).out, "another step has others");
    q = p;
    q.site++;
    ok(once != compute(r, q).out, "so has another site");
    q = p;
    q.place[0]++;
    ok(once != compute(r, q).out, "and another place among the ranks");
    tr_device_close(r.d);
}

#ifdef HOSTCUDA

/* True if rows of two results are the same, bit by bit. */
static bool same_rows(const problem &p, size_t first, const answer &a,
                      size_t at, const answer &b, size_t n)
{
    const size_t hidden = p.hidden();
    bool same = true;

    for (size_t i = 0; i < n * hidden; i++)
        same = same && a.out[first * hidden + i] == b.out[at * hidden + i];
    for (size_t i = 0; i < n * 3 * hidden; i++)
        same = same
               && a.d_qkv[first * 3 * hidden + i]
                      == b.d_qkv[at * 3 * hidden + i];
    return same;
}

static void test_alone(void)
{
    const rig r = open_cudnn(2, 16, 0);
    const problem p = problem_with(r, 2, 16, small);
    const answer whole = compute(r, p);
    bool same = true;

    for (size_t s = 0; s < small.size(); s++) {
        const size_t n = (size_t)small[s], first = (size_t)p.cu[s];
        problem q = problem_with(r, 2, 16, {(int32_t)n, 7});
        const size_t at = first * p.hidden();

        for (size_t i = 0; i < 3 * n * p.hidden(); i++)
            q.qkv[i] = p.qkv[3 * at + i];
        for (size_t i = 0; i < n * p.hidden(); i++)
            q.d_out[i] = p.d_out[at + i];
        same = same && same_rows(p, first, whole, 0, compute(r, q), n);
    }
    ok(same, "a span comes to the same bits in another batch");
    tr_device_close(r.d);
}

/* Every second span is NaN, as padding may be; the others are unaffected. */
static void test_poison(void)
{
    const rig r = open_cudnn(2, 16, 0.1);
    const problem p = problem_with(r, 2, 16, small, 0.1);
    const answer right = compute(r, p);
    bool same = true;

    for (size_t odd = 0; odd < 2; odd++) {
        problem q = p;

        for (size_t s = odd; s < small.size(); s += 2)
            for (size_t i = (size_t)p.cu[s] * p.hidden();
                 i < (size_t)p.cu[s + 1] * p.hidden(); i++)
                q.qkv[3 * i] = q.qkv[3 * i + 1] = q.qkv[3 * i + 2]
                    = q.d_out[i] = NAN;
        const answer a = compute(r, q);
        for (size_t s = 1 - odd; s < small.size(); s += 2)
            same = same
                   && same_rows(p, (size_t)p.cu[s], right, (size_t)p.cu[s], a,
                                (size_t)small[s]);
    }
    ok(same, "NaN in other spans changes no bit");
    tr_device_close(r.d);
}

#endif

/* ---- Buckets and plans ---- */

static bool in_bucket(size_t spans, int32_t longest, uint32_t count,
                      uint32_t rows)
{
    vector<int32_t> lengths(spans, 1);
    tr_spans s = {};

    lengths.back() = longest;
    const vector<int32_t> cu = cu_of(lengths);
    const tr_batch batch = batch_of(cu);

    tr_spans_count(&batch, &s);
    return s.count == count && s.longest == rows && s.place == 0;
}

static void test_buckets(void)
{
    ok(in_bucket(1, 1, 32, 128) && in_bucket(32, 1, 32, 128)
           && in_bucket(33, 1, 64, 128) && in_bucket(64, 1, 64, 128)
           && in_bucket(512, 1, 512, 128) && in_bucket(513, 1, 1024, 128)
           && in_bucket(1024, 1, 1024, 128) && in_bucket(1025, 1, 1536, 128),
       "spans are rounded up");
    ok(in_bucket(1, 0, 32, 128) && in_bucket(2, 128, 32, 128)
           && in_bucket(2, 129, 32, 256) && in_bucket(2, 512, 32, 512)
           && in_bucket(2, 513, 32, 1024) && in_bucket(2, 1024, 32, 1024)
           && in_bucket(2, 1025, 32, 2048),
       "so is the longest");

    const vector<int32_t> cu = cu_of({2, 0, 3});
    const tr_batch batch = batch_of(cu);
    const vector<int32_t> right_out = {0, 20, 20, 50, 50, 50},
                          right_in = {0, 60, 60, 150, 150, 150},
                          right_length = {2, 0, 3, 0, 0};
    vector<int32_t> in(6), out(6), length(5);
    tr_spans s = {};

    s.count = 5;
    tr_spans_fill(&batch, &s, 10, in.data(), out.data(), length.data());
    ok(out == right_out && in == right_in && length == right_length,
       "empty spans lie at the end");
}

/* Offsets are int32_t. */
static void test_sizes(void)
{
    const rig r = open_cudnn(16, 64, 0.1);
    vector<int32_t> cu = {0, INT32_MAX / 3 / 1024};
    tr_batch batch = batch_of(cu);
    const tr_attend a = attend_of(&batch, 16, 64);

    ok(r.ops->attention_kept(r.d, &a) < SIZE_MAX,
       "offsets up to INT32_MAX are taken");
    cu[1]++;
    batch = batch_of(cu);
    ok(r.ops->attention_kept(r.d, &a) == SIZE_MAX,
       "and above they are not");
    tr_device_close(r.d);
}

#ifdef HOSTCUDA

/* How many plans a batch makes, both ways; -1: its numbers are wrong. */
static int plans(const rig &r, const vector<int32_t> &lengths)
{
    const unsigned before = hostcuda_cudnn_counts().plans;
    const problem p = problem_with(r, 1, 8, lengths, 0.1);

    if (!(apart(compute(r, p).out, naive(p).out) <= NEAR))
        return -1;
    return (int)(hostcuda_cudnn_counts().plans - before);
}

static vector<int32_t> ones(size_t n)
{
    return vector<int32_t>(n, 1);
}

static void test_plans(void)
{
    const rig r = open_cudnn(1, 8, 0.1);
    bool good = true;

    ok(plans(r, {1, 2}) == 2 && plans(r, ones(32)) == 0
           && plans(r, {128}) == 0,
       "a bucket is planned once");
    ok(plans(r, {129, 2}) == 2 && plans(r, {1, 2}) == 0
           && plans(r, {200}) == 0 && plans(r, {256}) == 0,
       "another longest span has another plan");
    ok(plans(r, ones(33)) == 2 && plans(r, ones(64)) == 0,
       "so have more spans");
    for (size_t i = 4; i <= PLANS; i++)
        good = plans(r, ones(512 * (i - 3))) == 2 && good;
    ok(good && plans(r, {1}) == 0
           && hostcuda_cudnn_counts().graphs == 2 * PLANS,
       "%d of them are kept", PLANS);
    ok(plans(r, ones(512 * (PLANS - 2))) == 2 && plans(r, {1}) == 0
           && hostcuda_cudnn_counts().graphs == 2 * PLANS
           && plans(r, {129}) == 2,
       "one more takes the place of the least recently used");
    tr_device_close(r.d);
    ok(hostcuda_cudnn_counts().graphs == 0
           && hostcuda_cudnn_counts().handles == 0,
       "graphs and handle are destroyed");
}

/* A plan that is queued is not evicted. */
static void queue_and_plan(const rig &r)
{
    const problem p = problem_with(r, 1, 8, {5});
    layers l(r, p);
    const array out(r, VALUES, l.d_out.n),
        kept(r, REALS, l.kept_bytes / sizeof(real)),
        scratch(r, REALS, l.scratch_bytes / sizeof(real));
    tr_results results;
    const char *why;

    l.stage();
    const tr_attend a = l.layer(0, kept, scratch.p);

    r.ops->attention_forward(r.d, &a, l.qkv, out);
    for (size_t i = 1; i <= PLANS; i++) {
        const vector<int32_t> cu = cu_of(ones(512 * i));
        const tr_batch batch = batch_of(cu);
        const tr_attend planned = attend_of(&batch, 1, 8);

        r.ops->attention_scratch(r.d, &planned);
    }
    ok(r.ops->finish(r.d, &results, &why)
           && apart(out.back(), naive(p).out) <= NEAR,
       "a plan that is still to run is not thrown away");
}

static void test_queued(void)
{
    const rig r = open_cudnn(1, 8, 0);

    queue_and_plan(r);
    tr_device_close(r.d);
}

/* ---- Failures ---- */

/* Forward and backward on a device that may fail; true if nothing failed. */
static bool run_attention(char *why, size_t size)
{
    tr_device *const d = tr_cuda_open(0, TR_BF16, why, size);
    const vector<int32_t> cu = {0, 5}, zero(5);
    tr_batch batch = batch_of(cu);
    tr_attend a = attend_of(&batch, 1, 8);
    const char *text = NULL;
    tr_results results;
    bool good = false;

    if (d == NULL || !tr_cuda_use_cudnn(d, 8, 1, 0.1, why, size)) {
        tr_device_close(d);
        return false;
    }
    batch.token = batch.type = batch.position = zero.data();
    const size_t kept = d->ops->attention_kept(d, &a);
    const size_t scratch = d->ops->attention_scratch(d, &a);
    char *const block = scratch < SIZE_MAX
                            ? (char *)d->ops->alloc(d, 1024 + kept + scratch)
                            : NULL;

    if (block && (a.batch = d->ops->stage(d, &batch)) != NULL) {
        a.dropout = tr_dropout_at(0.1, 1);
        a.kept = block + 1024;
        a.scratch = block + 1024 + kept;
        d->ops->fill(d, block, 0, 1024);
        d->ops->attention_forward(d, &a, block, block + 256);
        d->ops->attention_backward(d, &a, block, block + 256, block + 384,
                                   block + 512);
        good = true;
    }
    good = d->ops->finish(d, &results, &text) && good;
    if (!good)
        snprintf(why, size, "%s", text ? text : "no memory");
    d->ops->release(d, block);
    tr_device_close(d);
    return good;
}

/* Makes each call of a kind fail in turn, until a run succeeds. */
static void test_failures(const char *what)
{
    char spec[80], why[200] = "";
    int n = 0;
    bool good = true;

    for (;; n++) {
        bool ran;

        snprintf(spec, sizeof spec, "%s:%d", what, n + 1);
        hostcuda_fail(spec);
        ran = run_attention(why, sizeof why);
        hostcuda_fail(NULL);
        if (ran)
            break;
        if (n == 0)
            printf("# %s\n", why);
        good = good && why[0] && !strchr(why, '\n')
               && hostcuda_cudnn_counts().graphs == 0
               && hostcuda_cudnn_counts().handles == 0;
        why[0] = 0;
    }
    ok(good && n > 0, "%d calls of %s fail, one by one", n, what);
}

static void test_message(const char *spec, const char *right)
{
    char why[200] = "";

    hostcuda_fail(spec);
    ok(!run_attention(why, sizeof why) && strcmp(why, right) == 0, "%s", why);
    hostcuda_fail(NULL);
}

/* ---- Errors of the cuDNN emulation ---- */

/* A graph, and its tensors, which a test may invalidate. */
struct call {
    tr_sdpa_shape shape = {32, 128, 2, 8, 1 << 30};
    fe::graph::Graph graph;
    cudnnHandle_t handle = NULL;
    std::unordered_map<int64_t, void *> pointers;
    char *memory = NULL;

    fe::graph::Tensor_attributes rows() const
    {
        fe::graph::Tensor_attributes t;

        tr_sdpa_lay(t, shape, TR_SDPA_Q, 3, nullptr);
        return t;
    }
    call()
    {
        cudnnCreate(&handle);
        cudnnSetStream(handle, 0);
        cudaMalloc(&memory, 1 << 20);
        for (int64_t uid = TR_SDPA_IN; uid <= TR_SDPA_OFFSET; uid++)
            pointers[uid] = memory + (uid << 14);
    }
    ~call()
    {
        cudaFree(memory);
        cudnnDestroy(handle);
    }
    fe::error_t plan()
    {
        fe::error_t error = graph.validate();

        if (error.is_good())
            error = graph.build_operation_graph(handle);
        if (error.is_good())
            error = graph.create_execution_plans({fe::HeurMode_t::A});
        if (error.is_good())
            error = graph.check_support(handle);
        return error.is_good() ? graph.build_plans(handle) : error;
    }
    fe::error_t run()
    {
        return graph.execute(handle, pointers, memory);
    }
};

/* The graph or its execution is refused; the message contains `why`. */
static void refused(const char *why, fe::error_t (*spoilt)(call &))
{
    call c;
    fe::error_t error = spoilt(c);

    ok(error.is_bad() && strstr(error.get_message().c_str(), why),
       "refused: %s", error.get_message().c_str());
}

/* The forward graph with one change. */
static void test_refusals_of_graphs(void)
{
    refused("not of one operation", [](call &c) {
        c.graph.set_io_data_type(fe::DataType_t::BFLOAT16)
            .set_intermediate_data_type(fe::DataType_t::FLOAT)
            .set_compute_data_type(fe::DataType_t::FLOAT);
        return c.plan();
    });
    refused("not of one operation", [](call &c) {
        tr_sdpa_graph(c.graph, c.shape, false);
        tr_sdpa_graph(c.graph, c.shape, false);
        return c.plan();
    });
    refused("compute in float", [](call &c) {
        tr_sdpa_graph(c.graph, c.shape, false);
        c.graph.set_compute_data_type(fe::DataType_t::BFLOAT16);
        return c.plan();
    });
    refused("8 does not divide", [](call &c) {
        c.shape.width = 12;
        tr_sdpa_graph(c.graph, c.shape, false);
        return c.plan();
    });
    refused("8 does not divide", [](call &c) {
        c.shape.width = 136;
        tr_sdpa_graph(c.graph, c.shape, true);
        return c.plan();
    });
    refused("queries of nothing", [](call &c) {
        c.shape.longest = 0;
        tr_sdpa_graph(c.graph, c.shape, false);
        return c.plan();
    });
    refused("one id, or none", [](call &c) {
        tr_sdpa_graph(c.graph, c.shape, false);
        c.graph.tensor(c.rows());
        return c.plan();
    });
}

/* A graph whose operation is assembled by hand. */
static fe::error_t by_hand(call &c, bool masked, bool stats, int64_t row)
{
    const tr_sdpa_inputs i = tr_sdpa_inputs_of(c.graph, c.shape);
    auto options
        = tr_sdpa_options<fe::graph::SDPA_attributes>(c.graph, c.shape);
    const auto [out, kept] = c.graph.sdpa(
        i.q, i.k, i.v,
        options.set_padding_mask(masked).set_generate_stats(stats));

    c.graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    tr_sdpa_lay(out->set_output(true), c.shape, TR_SDPA_O, 1, i.out);
    tr_sdpa_lay_stats(kept->set_output(true), c.shape);
    if (row)
        out->set_stride({c.shape.longest * row, c.shape.width, row, 1});
    return c.plan();
}

static void test_refusals_of_parts(void)
{
    ok(by_hand(*std::make_unique<call>(), true, true, 0).is_good(),
       "a graph that is let pass");
    refused("without a mask",
            [](call &c) { return by_hand(c, false, true, 0); });
    refused("does not put out",
            [](call &c) { return by_hand(c, true, false, 0); });
    refused("strides that overlap",
            [](call &c) { return by_hand(c, true, true, 12); });
}

static void test_refusals_of_runs(void)
{
    refused("another order", [](call &c) {
        tr_sdpa_graph(c.graph, c.shape, false);
        return c.run();
    });
    refused("another order", [](call &c) {
        tr_sdpa_graph(c.graph, c.shape, false);
        return c.graph.build_operation_graph(c.handle);
    });
    refused("missing, too many", [](call &c) {
        tr_sdpa_graph(c.graph, c.shape, false);
        c.pointers.erase(TR_SDPA_SEED);
        return c.plan().is_good() ? c.run() : fe::error_t();
    });
    refused("missing, too many", [](call &c) {
        tr_sdpa_graph(c.graph, c.shape, false);
        c.pointers[TR_SDPA_DQ] = c.memory;
        return c.plan().is_good() ? c.run() : fe::error_t();
    });
    refused("or misaligned", [](call &c) {
        tr_sdpa_graph(c.graph, c.shape, false);
        c.pointers[TR_SDPA_Q] = c.memory + 8;
        return c.plan().is_good() ? c.run() : fe::error_t();
    });
    refused("a workspace", [](call &c) {
        tr_sdpa_graph(c.graph, c.shape, false);
        return c.plan().is_good()
                   ? c.graph.execute(c.handle, c.pointers, c.memory + 64)
                   : fe::error_t();
    });
    refused("a handle", [](call &c) {
        call other;

        tr_sdpa_graph(c.graph, c.shape, false);
        return c.plan().is_good()
                   ? c.graph.execute(other.handle, c.pointers, c.memory)
                   : fe::error_t();
    });
}

/* Runs a graph for empty spans with one number changed. */
static void run_with(tr_sdpa_uid uid, int at, int32_t number)
{
    call c;

    tr_sdpa_graph(c.graph, c.shape, false);
    cudaMemset(c.memory, 0, 1 << 20);
    cudaMemcpy((int32_t *)c.pointers[uid] + at, &number, sizeof number,
               cudaMemcpyHostToDevice);
    if (c.plan().is_bad() || c.run().is_bad() || cudaDeviceSynchronize())
        _exit(1);
}

/* f ends the process with a message that contains `why`; NULL: it does not. */
static void faults(const char *why, void (*f)(void))
{
    char said[400] = "";
    int ends[2], status = 0;
    pid_t child;

    fflush(stdout);
    if (pipe(ends) != 0 || (child = fork()) < 0) {
        ok(false, "no process for a fault");
        return;
    }
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        f();
        _exit(0);
    }
    close(ends[1]);
    for (size_t n = 0, more = 1; more > 0 && n + 1 < sizeof said; n += more)
        more = (size_t)std::max<ssize_t>(
            read(ends[0], said + n, sizeof said - 1 - n), 0);
    close(ends[0]);
    waitpid(child, &status, 0);
    said[strcspn(said, "\n")] = 0;
    ok(why ? WIFSIGNALED(status) && strstr(said, why)
           : WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "%s", why ? said : "empty spans are let pass");
}

static void test_faults(void)
{
    faults(NULL, [] { run_with(TR_SDPA_ROWS_Q, 0, 0); });
    faults("129 rows, planned for 128",
           [] { run_with(TR_SDPA_ROWS_Q, 31, 129); });
    faults("-1 rows", [] { run_with(TR_SDPA_ROWS_Q, 0, -1); });
    faults("1 queries and 0 keys",
           [] { run_with(TR_SDPA_ROWS_Q, 7, 1); });
    faults("from 0 to 48", [] { run_with(TR_SDPA_IN, 32, 48); });
    faults("from 0 to 16", [] { run_with(TR_SDPA_OUT, 1, 16); });
    faults("still to run", [] {
        call *const c = new call();

        tr_sdpa_graph(c->graph, c->shape, false);
        if (c->plan().is_bad() || c->run().is_bad())
            _exit(1);
        c->graph.~Graph();
    });
}

#endif /* HOSTCUDA */

int main(void)
{
#ifdef HOSTCUDA
    test_faults(); /* while this process has one thread */
#endif
    test_numbers(2, 8);
    test_numbers(3, 64);
    test_numbers(1, 128);
    test_dropout();
    test_masks();
#ifdef HOSTCUDA
    test_alone(); /* bit by bit */
    test_poison();
#endif
    test_buckets();
    test_sizes();
#ifdef HOSTCUDA
    test_plans();
    test_queued();
    for (const char *what :
         {"cudnnCreate", "cudnnSetStream", "validate",
          "build_operation_graph", "create_execution_plans", "check_support",
          "build_plans", "get_workspace_size", "execute",
          "attention by cuDNN", "cudaLaunchKernelEx", "cudaMalloc"})
        test_failures(what);
    test_message("build_plans:2",
                 "attention by cuDNN, plan: build_plans fails, as was "
                 "ordered");
    test_message("cudnnCreate:1",
                 "attention by cuDNN, a handle: "
                 "CUDNN_STATUS_NOT_INITIALIZED");
    test_refusals_of_graphs();
    test_refusals_of_parts();
    test_refusals_of_runs();
#endif
    return done();
}
