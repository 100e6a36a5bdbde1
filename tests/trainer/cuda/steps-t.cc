/*
 * steps-t.cc - the parts of a step around its operations: staged batches,
 * LAMB, the sums for finish(), and failures.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cuda_runtime.h>

#include <memory>

#include "rig.h"

#ifdef HOSTCUDA
#include "hostcuda.h"
#endif

/* ---- Batches ---- */

#define BATCHES 7
#define WIDTH 16
#define MOST_ROWS 205 /* of a batch; its buffers must grow */

/* A batch whose size, rows and labels follow from its number. */
struct host_batch {
    std::vector<int32_t> token, zero, place, cu, mlm_row, mlm_label;
    std::vector<real> weight;
    tr_batch batch;

    explicit host_batch(int number) : batch()
    {
        const uint32_t rows = 5 + 100 * (uint32_t)(number % 3);

        token = draw_index(rows, number, 50);
        zero.assign(rows, 0);
        place = draw_places(rows, 300 + number);
        cu = {0, (int32_t)rows};
        mlm_row = draw_index(4, 100 + number, rows);
        mlm_label = draw_index(4, 200 + number, WIDTH);
        weight.assign(4, (real)(number + 1));
        batch.n_packs = 1;
        batch.capacity = batch.n_rows = rows;
        batch.n_spans = 1;
        batch.max_span = rows;
        batch.cu = cu.data();
        batch.token = token.data();
        batch.type = batch.position = batch.segment = zero.data();
        batch.place = place.data();
        batch.n_mlm = 4;
        batch.mlm_row = mlm_row.data();
        batch.mlm_label = mlm_label.data();
        batch.mlm_seq = zero.data();
        batch.mlm_weight = weight.data();
    }
    void spoil()
    {
        for (std::vector<int32_t> *v :
             {&token, &place, &mlm_row, &mlm_label, &cu})
            v->assign(v->size(), -1000000);
        weight.assign(weight.size(), (real)NAN);
    }
};

/* The loss of the rows of x that a batch selects. */
static double loss_of(const host_batch &b, const numbers &x)
{
    double total = 0;

    for (size_t i = 0; i < b.mlm_row.size(); i++) {
        const double *const row = &x[(size_t)b.mlm_row[i] * WIDTH];
        double all = 0;

        for (size_t j = 0; j < WIDTH; j++)
            all += exp(row[j]);
        total += b.weight[i] * (log(all) - row[b.mlm_label[i]]);
    }
    return total;
}

/* Queues the loss of a staged batch; a step adds it to the others. */
static void ask(const rig &r, const tr_batch *b, const array &x,
                const array &rows, const array &loss)
{
    const tr_lamb_args still = {true, 0.9, 0.9, 1, 1, 1e-6, 0, 0, 0};

    r.ops->gather_rows(r.d, b->n_mlm, WIDTH, b->mlm_row, x, rows);
    r.ops->cross_entropy(r.d, TR_LOSS_MLM, b->n_mlm, WIDTH, WIDTH, rows,
                         b->mlm_label, b->mlm_weight,
                         (double *)(void *)loss.p, false);
    r.ops->lamb(r.d, &still, 0, NULL, 0, (real *)x.p, NULL, NULL, NULL);
}

/* `ahead`: stage each batch before the operations on the previous one. */
static void test_stage(const rig &r, bool ahead)
{
    const numbers x = draw(r, VALUES, MOST_ROWS * WIDTH, 1);
    const array from(r, VALUES, x), rows(r, VALUES, 4 * WIDTH);
    const array loss(r, DOUBLES, 4), weights(r, REALS, numbers(8));
    const tr_batch *staged[BATCHES];
    tr_results results;
    const char *why;
    double right = 0;
    bool good = true;

    r.ops->weights_written(r.d, (real *)from.p, 8);
    for (int i = 0; i < BATCHES; i++) {
        host_batch b(i);

        right += loss_of(b, x);
        staged[i] = r.ops->stage(r.d, &b.batch);
        good = good && staged[i] != NULL;
        b.spoil();
        if (!good)
            break;
        if (!ahead)
            ask(r, staged[i], from, rows, loss);
        else if (i > 0)
            ask(r, staged[i - 1], from, rows, loss);
    }
    if (ahead && good)
        ask(r, staged[BATCHES - 1], from, rows, loss);
    good = r.ops->finish(r.d, &results, &why) && good;
    good = good && results.steps == BATCHES
           && same({results.sum[TR_LOSS_MLM]}, {right}, 2 * r.near);
    ok(good, "%s: %d batches, %s", r.name, BATCHES,
       ahead ? "each staged before the operations on the last" : "in turn");
}

#define SITE 5

/* Arrays that the norms of a batch read and write. */
struct norm_arrays {
    array zero, vector, dy, d_gain, d_bias, y, hat, inverse, dx, d_branch;
    tr_norm norm;
    tr_norm_kept kept;

    explicit norm_arrays(const rig &r)
        : zero(r, VALUES, numbers(MOST_ROWS * WIDTH)),
          vector(r, REALS, numbers(WIDTH, 1)),
          dy(r, VALUES, draw(r, VALUES, MOST_ROWS * WIDTH, 9)),
          d_gain(r, REALS, numbers(WIDTH)), d_bias(r, REALS, numbers(WIDTH)),
          y(r, VALUES, MOST_ROWS * WIDTH), hat(r, VALUES, MOST_ROWS * WIDTH),
          inverse(r, REALS, MOST_ROWS), dx(r, VALUES, MOST_ROWS * WIDTH),
          d_branch(r, VALUES, MOST_ROWS * WIDTH),
          norm{WIDTH, 1e-12, false, vector, vector, d_gain, d_bias, false},
          kept{hat.p, inverse}
    {
    }
    void forward(const rig &r, const tr_batch *b) const
    {
        const tr_dropout dropout = dropout_by(0.5, b->place);

        r.ops->sum_norm_forward(r.d, &norm, b->n_rows, zero, zero, vector,
                                &dropout, SITE, &kept, y);
    }
    void backward(const rig &r, const tr_batch *b) const
    {
        const tr_dropout dropout = dropout_by(0.5, b->place);

        r.ops->norm_backward(r.d, &norm, b->n_rows, &kept, dy, &dropout, SITE,
                             dx, d_branch);
    }
};

/* True if a bias and its gradient were dropped exactly as at these places. */
static bool is_dropped_by(const std::vector<int32_t> &place,
                          const norm_arrays &n)
{
    const tr_dropout dropout = dropout_by(0.5, place.data());
    const numbers hat = n.hat.back(), d_branch = n.d_branch.back();

    for (size_t i = 0; i < place.size() * WIDTH; i++) {
        const bool stays = dropped(dropout, SITE, i / WIDTH,
                                   (uint32_t)(i % WIDTH), 1) > 0;

        if ((hat[i] > 0) != stays || (d_branch[i] != 0) != stays)
            return false;
    }
    return true;
}

/* Stages each batch between the forward and backward of the previous one. */
static void test_places(const rig &r)
{
    std::vector<std::unique_ptr<norm_arrays>> arrays;
    const tr_batch *before = NULL;
    bool good = true;

    for (int i = 0; i < BATCHES; i++)
        arrays.emplace_back(new norm_arrays(r));
    for (int i = 0; i < BATCHES; i++) {
        host_batch b(i);
        const tr_batch *const staged = r.ops->stage(r.d, &b.batch);

        b.spoil();
        if (before)
            arrays[i - 1]->backward(r, before);
        arrays[i]->forward(r, staged);
        before = staged;
    }
    arrays.back()->backward(r, before);
    for (int i = 0; i < BATCHES; i++)
        good = is_dropped_by(host_batch(i).place, *arrays[i]) && good;
    ok(good, "%s: norms drop by the places of %d batches", r.name, BATCHES);
}

/* ---- All arrays of a batch ---- */

#define HEADS 2
#define HEAD 8
#define HIDDEN (HEADS * HEAD)

/* Spans of two groups; rows selected twice, in order and out of order. */
struct full_batch {
    std::vector<int32_t> cu = {0, 5, 135, 175}, token = draw_index(175, 1, 50),
                         type = draw_index(175, 2, 2),
                         position = draw_index(175, 3, 130),
                         segment = draw_index(175, 4, 3),
                         place = draw_places(175, 8), cls_row = {5, 5, 135},
                         nsp_label = {1, -1, 0}, mlm_row = {3, 3, 9, 170, 3},
                         mlm_label = draw_index(5, 5, WIDTH),
                         mlm_seq = {0, 0, 1, 2, 0};
    std::vector<real> nsp_weight = {1, 0, 2}, mlm_weight = {1, 2, 3, 4, 5};
    tr_batch batch = {1, 175, 175, token.data(), type.data(),
                        position.data(), segment.data(), 3, 130, cu.data(), 3,
                        cls_row.data(), nsp_label.data(), nsp_weight.data(),
                        5, mlm_row.data(), mlm_label.data(), mlm_seq.data(),
                        mlm_weight.data(), place.data(), false, NULL};
};

/* True if an array is the same on the device and the host. */
template <typename T>
static bool is_there(const rig &r, const std::vector<T> &host, const T *there)
{
    std::vector<T> back(host.size());

    r.ops->download(r.d, back.data(), there, back.size() * sizeof(T));
    return back == host;
}

static void test_arrays(const rig &r)
{
    const full_batch b;
    const numbers x = draw(r, VALUES, 5 * WIDTH, 6);
    const array logits(r, VALUES, x), loss(r, DOUBLES, 5),
        to(r, VALUES, numbers(175 * WIDTH)), rows(r, VALUES, 3 * WIDTH);
    const tr_batch *const s = r.ops->stage(r.d, &b.batch);
    numbers after(175 * WIDTH);
    bool good;

    /* The first array of the batch to be read. */
    r.ops->cross_entropy(r.d, TR_LOSS_MLM, 5, WIDTH, WIDTH, logits,
                         s->mlm_label, s->mlm_weight,
                         (double *)(void *)loss.p, false);
    r.ops->scatter_rows(r.d, 5, WIDTH, s->mlm_row, array(r, VALUES, x), to);
    r.ops->gather_rows(r.d, 3, WIDTH, s->cls_row, to, rows);
    r.ops->scatter_rows(r.d, 3, WIDTH, s->cls_row, array(r, VALUES, x), to);
    for (size_t i = 0; i < x.size(); i++)
        after[(size_t)b.mlm_row[i / WIDTH] * WIDTH + i % WIDTH] += x[i];
    for (size_t i = 0; i < 3 * WIDTH; i++)
        after[(size_t)b.cls_row[i / WIDTH] * WIDTH + i % WIDTH] += x[i];
    good = same(to.back(), after, r.near);
    for (double each : loss.back())
        good = good && each > 0;
    ok(good, "%s: rows that a batch names twice are added", r.name);
    good = is_there(r, b.cu, s->cu) && is_there(r, b.token, s->token)
           && is_there(r, b.type, s->type)
           && is_there(r, b.position, s->position)
           && is_there(r, b.place, s->place)
           && s->segment == NULL
           && is_there(r, b.cls_row, s->cls_row)
           && is_there(r, b.nsp_label, s->nsp_label)
           && is_there(r, b.nsp_weight, s->nsp_weight)
           && is_there(r, b.mlm_row, s->mlm_row)
           && is_there(r, b.mlm_label, s->mlm_label)
           && s->mlm_seq == NULL
           && is_there(r, b.mlm_weight, s->mlm_weight);
    ok(good, "%s: all arrays that kernels read are there", r.name);
}

/* Attention of one row and head over the rows of its span. */
static void attend(const numbers &qkv, size_t row, size_t head, size_t first,
                   size_t end, double *out)
{
    numbers weight(end - first);
    double all = 0;

    for (size_t j = first; j < end; j++) {
        double score = 0;

        for (size_t i = head * HEAD; i < (head + 1) * HEAD; i++)
            score += qkv[row * 3 * HIDDEN + i]
                     * qkv[j * 3 * HIDDEN + HIDDEN + i] / sqrt(HEAD);
        all += weight[j - first] = exp(score);
    }
    for (size_t j = first; j < end; j++)
        for (size_t i = head * HEAD; i < (head + 1) * HEAD; i++)
            out[i] += weight[j - first] / all
                      * qkv[j * 3 * HIDDEN + 2 * HIDDEN + i];
}

/* Attention over the spans of a batch that no other operation has read. */
static void test_attention(const rig &r)
{
    const full_batch b;
    const numbers x = draw(r, VALUES, 175 * 3 * HIDDEN, 7);
    const array qkv(r, VALUES, x), out(r, VALUES, 175 * HIDDEN),
        kept(r, REALS, 175 * HEADS);
    tr_attend a = {};
    numbers right(175 * HIDDEN);

    a.batch = r.ops->stage(r.d, &b.batch);
    a.heads = a.kv_heads = HEADS;
    a.width = HEAD;
    a.dropout = tr_dropout_at(0, 1);
    a.kept = kept;
    r.ops->attention_forward(r.d, &a, qkv, out);
    for (size_t s = 0; s + 1 < b.cu.size(); s++)
        for (size_t row = (size_t)b.cu[s]; row < (size_t)b.cu[s + 1]; row++)
            for (size_t head = 0; head < HEADS; head++)
                attend(x, row, head, (size_t)b.cu[s], (size_t)b.cu[s + 1],
                       &right[row * HIDDEN]);
    ok(same(out.back(), right, r.near), "%s: attention over a staged batch",
       r.name);
}

/* ---- LAMB ---- */

struct tensors {
    std::vector<tr_part> parts;
    size_t numbers;
};

/* Tensors of every class of sizes, some of them misaligned. */
static tensors tensors_of(size_t first)
{
    static const size_t counts[] = {3, 5000, 1, 4096, 8192, 0, 777, 20000};
    tensors t = {{}, first};

    for (size_t count : counts) {
        t.parts.push_back({t.numbers, count, count % 2 == 0});
        t.numbers += count;
    }
    return t;
}

static tr_lamb_args step_at(int number, double clip)
{
    return {true, 0.9, 0.99, 1 - pow(0.9, number), 1 - pow(0.99, number), 1e-6,
            0.01, clip, 0.1};
}

struct tr_lamb_state {
    numbers weights, mean, square;
};

/* A step in double precision; returns the norm of the gradient. */
static double lamb_right(const tr_lamb_args &s, const tensors &t,
                         const numbers &gradients, tr_lamb_state *state)
{
    double norm = 0, scale = 1;

    for (double g : gradients)
        norm += g * g;
    norm = sqrt(norm);
    if (s.clip > 0 && norm > s.clip)
        scale = s.clip / norm;
    for (const tr_part &p : t.parts) {
        numbers update(p.count);
        double sum[2] = {0, 0}, rate = s.rate;

        for (size_t k = 0; k < p.count; k++) {
            const size_t i = p.offset + k;
            const double g = gradients[i] * scale, w = state->weights[i];
            double *const m = &state->mean[i], *const v = &state->square[i];

            *m = s.beta1 * *m + (1 - s.beta1) * g;
            *v = s.beta2 * *v + (1 - s.beta2) * g * g;
            update[k] = *m / s.correct1 / (sqrt(*v / s.correct2) + s.epsilon)
                        + (p.decays ? s.decay * w : 0);
            sum[0] += w * w;
            sum[1] += update[k] * update[k];
        }
        if (p.decays && sum[0] > 0 && sum[1] > 0)
            rate *= sqrt(sum[0] / sum[1]);
        for (size_t k = 0; k < p.count; k++)
            state->weights[p.offset + k] -= rate * update[k];
    }
    return norm;
}

/* The weights that a device uses: a product of each with 1. */
static bool is_copy_new(const rig &r, const array &weights, size_t n)
{
    const array one(r, VALUES, numbers(1, 1)), y(r, VALUES, n);
    const numbers w = weights.back();
    const tr_linear l = {1, n, n, weights, weights, NULL, NULL, false};

    r.ops->linear_forward(r.d, &l, 1, one, false, y);
    return same(y.back(), w, r.bf16 ? 4e-3 : r.near);
}

/* Tensors of a step: from step 2 on they start at 0; step 3 flips decay. */
static tensors tensors_at(int number, size_t first)
{
    tensors t = tensors_of(first);

    for (tr_part &p : t.parts) {
        p.decays = p.decays != (number == 3);
        p.offset -= number > 1 ? first : 0;
    }
    return t;
}

/*
 * Steps over tensors from `first` on; weights begin at `shift`.  Some gradients
 * are always 0, and so are the weights of a tensor with decay.
 */
static void test_lamb(const rig &r, size_t first, size_t shift, double clip)
{
    const tensors t = tensors_of(first);
    const size_t n = t.numbers;
    array w(r, REALS, shift + n), g(r, REALS, shift + n),
        m(r, REALS, shift + n), v(r, REALS, shift + n);
    tr_lamb_state state = {draw(r, REALS, shift + n, 40), numbers(shift + n),
                        numbers(shift + n)};
    tr_results results;
    const char *why;
    double norm = 0;
    bool good;

    for (size_t i = 0; i < t.parts[3].count; i++)
        state.weights[shift + t.parts[3].offset + i] = 0;
    w.set(state.weights);
    m.set(state.mean);
    v.set(state.square);
    state.weights.erase(state.weights.begin(),
                        state.weights.begin() + (ptrdiff_t)shift);
    r.ops->weights_written(r.d, w, shift + n);
    for (int i = 1; i <= 3; i++) {
        const tr_lamb_args step = step_at(i, clip);
        const tensors now = tensors_at(i, first);
        numbers gradient = draw(r, REALS, shift + n, 41 + i);

        for (size_t j = 5; j < gradient.size(); j += 97)
            gradient[j] = 0;
        g.set(gradient);
        gradient.erase(gradient.begin(), gradient.begin() + (ptrdiff_t)shift);
        norm = lamb_right(step, now, gradient, &state);
        r.ops->lamb(r.d, &step, now.parts.size(), now.parts.data(), n,
                    (real *)w + shift, (real *)g + shift, (real *)m + shift,
                    (real *)v + shift);
    }
    good = r.ops->finish(r.d, &results, &why) && results.steps == 3;
    good = same({results.gradient}, {norm}, 1e-5) && good;
    good = is_copy_new(r, w, shift + n) && good;
    state.weights.insert(state.weights.begin(), shift, 0);
    {
        numbers got = w.back();

        for (size_t i = 0; i < shift; i++)
            got[i] = 0;
        good = same(got, state.weights, 2e-5) && good;
    }
    ok(good, "%s: LAMB, tensors from %zu on, arenas from %zu on, clip %g",
       r.name, first, shift, clip);
}

/* The norm of more numbers than one block has threads for. */
static void test_norm(const rig &r)
{
    const size_t n = ((size_t)1 << 22) + 5000;
    const numbers x = draw(r, REALS, n, 60);
    const array g(r, REALS, x), w(r, REALS, 4);
    const tr_lamb_args step = step_at(1, 1);
    tr_results results;
    const char *why;
    double sum = 0;
    bool good;

    for (double each : x)
        sum += each * each;
    r.ops->weights_written(r.d, w, 4);
    r.ops->lamb(r.d, &step, 0, NULL, n, w, g, NULL, NULL);
    good = r.ops->finish(r.d, &results, &why)
           && same({results.gradient}, {sqrt(sum)}, 1e-6);
    ok(good, "%s: the norm of %zu numbers", r.name, n);
}

/* A NaN stops all steps up to finish(), and nothing else. */
static void test_halt(const rig &r, bool in_loss)
{
    const tensors t = tensors_of(0);
    const tr_lamb_args step = step_at(1, 1);
    numbers gradient = draw(r, REALS, t.numbers, 50);
    array w(r, REALS, draw(r, REALS, t.numbers, 51)),
        g(r, REALS, gradient), m(r, REALS, numbers(t.numbers)),
        v(r, REALS, numbers(t.numbers)), loss(r, DOUBLES, 1),
        x(r, VALUES, numbers(8)), label(r, INDEX, numbers(1)),
        weight(r, REALS, numbers(1, in_loss ? NAN : 1));
    const numbers before = w.back();
    tr_results results;
    const char *why;
    bool good;

    if (!in_loss)
        gradient[7000] = INFINITY;
    g.set(gradient);
    r.ops->weights_written(r.d, w, t.numbers);
    r.ops->cross_entropy(r.d, TR_LOSS_MLM, 1, 2, 8, x, label, weight,
                         (double *)(void *)loss.p, false);
    r.ops->lamb(r.d, &step, t.parts.size(), t.parts.data(), t.numbers, w, g,
                m, v);
    g.set(draw(r, REALS, t.numbers, 50));
    weight.set({1});
    x.set(numbers(8));
    r.ops->cross_entropy(r.d, TR_LOSS_MLM, 1, 2, 8, x, label, weight,
                         (double *)(void *)loss.p, false);
    r.ops->lamb(r.d, &step, t.parts.size(), t.parts.data(), t.numbers, w, g,
                m, v);
    good = r.ops->finish(r.d, &results, &why) && results.steps == 0
           && same(w.back(), before, 0) && same(m.back(), numbers(t.numbers),
                                                0);
    r.ops->lamb(r.d, &step, t.parts.size(), t.parts.data(), t.numbers, w, g,
                m, v);
    good = r.ops->finish(r.d, &results, &why) && results.steps == 1
           && w.back() != before && good;
    ok(good, "%s: a %s that is NaN", r.name,
       in_loss ? "loss" : "gradient");
}

/* ---- Failures ---- */

#ifdef HOSTCUDA
/* Calls everything once on a device that may fail; true if nothing failed. */
static bool run_all(char *why, size_t size)
{
    tr_device *const d = tr_cuda_open(0, TR_BF16, why, size);
    const tr_lamb_args step = step_at(1, 1);
    const tr_part part = {0, 8, true};
    const char *text = NULL;
    tr_results results;
    host_batch b(1);
    bool good = true;

    if (d == NULL)
        return false;
    real *const w = (real *)d->ops->alloc(d, 4 * 8 * sizeof *w);
    const tr_linear l = {2, 4, 4, w, w, w + 8, w + 16, false};

    if (w != NULL) {
        d->ops->fill(d, w, 0, 4 * 8 * sizeof *w);
        d->ops->weights_written(d, w, 8);
        good = d->ops->stage(d, &b.batch) != NULL;
        d->ops->linear_backward_weight(d, &l, 1, w + 24, w + 24);
        d->ops->lamb(d, &step, 1, &part, 8, w, w + 8, w + 16, w + 24);
    }
    good = d->ops->finish(d, &results, &text) && w != NULL && good;
    if (!good)
        snprintf(why, size, "%s", text ? text : "NULL");
    d->ops->release(d, w);
    tr_device_close(d);
    return good;
}

/* Makes each call of a kind fail in turn, until a run succeeds. */
static void test_failures(const char *what)
{
    char spec[64], why[200];
    int n = 0;
    bool good = true;

    for (;; n++) {
        bool ran;

        why[0] = 0;
        snprintf(spec, sizeof spec, "%s:%d", what, n + 1);
        hostcuda_fail(spec);
        ran = run_all(why, sizeof why);
        hostcuda_fail(NULL);
        if (ran)
            break;
        if (n == 0)
            printf("# %s\n", why);
        good = good && why[0];
    }
    ok(good && n > 0, "%d calls of %s fail, one by one", n, what);
}

static void test_no_device(void)
{
    char why[200] = "";

    hostcuda_fail("cudaGetDeviceCount:1=35");
    ok(tr_cuda_open(0, TR_FLOAT, why, sizeof why) == NULL
           && strstr(why, "driver version is insufficient"),
       "an old driver");
    hostcuda_fail("cudaGetDeviceCount:1=100");
    ok(tr_cuda_open(0, TR_FLOAT, why, sizeof why) == NULL
           && strstr(why, "no CUDA-capable"),
       "no device");
    hostcuda_fail(NULL);
}

/* After alloc() has failed, a smaller block can still be allocated. */
static void test_memory(void)
{
    const rig r = open_rig(TR_FLOAT);
    tr_results results;
    const char *why;
    bool good;

    hostcuda_fail("cudaMalloc:1");
    good = r.ops->alloc(r.d, 8) == NULL;
    hostcuda_fail(NULL);
    {
        const array x(r, VALUES, numbers(4));

        r.ops->tanh_forward(r.d, 4, x);
        good = r.ops->finish(r.d, &results, &why) && good;
    }
    ok(good, "no memory, and then some");
    tr_device_close(r.d);
}

/* The call that reports a failed kernel is not blamed for it. */
static void test_late(const char *what, bool late)
{
    const rig r = open_rig(TR_FLOAT);
    tr_results results;
    const char *why = "";
    bool good;

    hostcuda_fail(what);
    good = !r.ops->finish(r.d, &results, &why)
           && (strncmp(why, "a kernel before ", 16) == 0) == late;
    hostcuda_fail(NULL);
    ok(good, "%s: %s", what, why);
    tr_device_close(r.d);
}

/* The first failure is reported by every call, and stage() returns no batch. */
static void test_sticky(void)
{
    const rig r = open_rig(TR_FLOAT);
    host_batch b(0);
    tr_results results;
    const char *why;
    char first[200];
    bool good;

    hostcuda_fail("kernel:1");
    {
        const array x(r, VALUES, numbers(4));

        r.ops->tanh_forward(r.d, 4, x);
        good = !r.ops->finish(r.d, &results, &why);
        snprintf(first, sizeof first, "%s", why);
        hostcuda_fail(NULL);
        r.ops->release(r.d, NULL); /* fails as well */
        good = !r.ops->finish(r.d, &results, &why) && !strcmp(why, first)
               && good;
        good = r.ops->stage(r.d, &b.batch) == NULL && good;
        good = r.ops->alloc(r.d, 1) == NULL && good;
    }
    ok(good, "a failed kernel: %s", why);
    tr_device_close(r.d);
}

/*
 * A failed launch that no later call reports.  The error is kept, operations
 * queued later are skipped, and a later failure does not replace it.
 */
static void test_launch(void)
{
    const rig r = open_rig(TR_FLOAT);
    const numbers x = draw(r, VALUES, 4, 1);
    tr_results results;
    const char *why = "";
    real there[4];
    bool good;

    {
        const array y(r, VALUES, x);

        hostcuda_fail("cudaLaunchKernelEx:1=9,cudaStreamSynchronize:1=1");
        r.ops->tanh_forward(r.d, 4, y);
        r.ops->tanh_forward(r.d, 4, y);
        r.ops->release(r.d, NULL); /* its wait fails as well */
        hostcuda_fail(NULL);
        good = !r.ops->finish(r.d, &results, &why)
               && !strncmp(why, "tanh: ", 6);
        cudaMemcpy(there, y.p, sizeof there, cudaMemcpyDeviceToHost);
        good = same(numbers(there, there + 4), x, 0) && good;
    }
    ok(good, "a failed launch: %s", why);
    tr_device_close(r.d);
}
#endif

/* The source may change once upload() has returned, pinned or not. */
static void test_upload(const rig &r)
{
    const array x(r, REALS, 4);
    real *pinned = NULL;
    bool good = cudaMallocHost((void **)&pinned, 4 * sizeof *pinned) == 0;

    for (int i = 0; good && i < 4; i++)
        pinned[i] = (real)i;
    if (good) {
        r.ops->upload(r.d, x.p, pinned, 4 * sizeof *pinned);
        memset(pinned, 0xff, 4 * sizeof *pinned);
        good = same(x.back(), {0, 1, 2, 3}, 0);
    }
    ok(good, "%s: pinned memory is copied when upload() returns", r.name);
    cudaFreeHost(pinned);
}

static void test_limits(void)
{
    const rig r = open_rig(TR_FLOAT);
    tr_batch b = {};
    tr_results results;
    const char *why = "";
    bool good;

    b.n_rows = UINT32_MAX;
    good = r.ops->stage(r.d, &b) == NULL;
    good = !r.ops->finish(r.d, &results, &why) && good;
    ok(good, "a batch of too many rows: %s", why);
    tr_device_close(r.d);
}

static void test_all(tr_precision precision, bool quick)
{
    const rig r = open_rig(precision);

    test_stage(r, false);
    test_stage(r, true);
    test_places(r);
    test_arrays(r);
    if (sizeof(real) == sizeof(float) || !r.bf16) /* bf16 needs float */
        test_attention(r);
    test_lamb(r, 2, 0, 1);
    if (!quick) {
        test_lamb(r, 0, 0, 0);
        test_lamb(r, 0, 0, 1);
        test_lamb(r, 0, 1, 0);
        test_halt(r, false);
        test_halt(r, true);
    }
    tr_device_close(r.d);
}

/* quick: every kernel, but not every combination. */
int main(void)
{
    const bool quick = is_short();

    test_all(TR_FLOAT, quick);
    test_all(TR_BF16, quick);
    {
        const rig r = open_rig(TR_FLOAT);

        if (!quick)
            test_norm(r);
        test_upload(r);
        tr_device_close(r.d);
    }
    test_limits();
#ifdef HOSTCUDA
    test_no_device();
    test_memory();
    test_sticky();
    test_launch();
    for (const char *what : {"cudaStreamSynchronize:1=214",
                             "cudaStreamSynchronize:1=710",
                             "cudaStreamSynchronize:1=716"})
        test_late(what, true);
    test_late("cudaStreamSynchronize:1=701", false);
    for (const char *what :
         {"cudaMalloc", "cudaMallocHost", "kernel", "cudaLaunchKernelEx",
          "cudaMemcpyAsync", "cudaMemsetAsync", "cudaStreamCreateWithFlags",
          "cudaEventCreateWithFlags", "cudaStreamSynchronize",
          "cudaEventSynchronize", "cudaEventRecord"})
        if (!quick)
            test_failures(what);
#endif
    return done();
}
