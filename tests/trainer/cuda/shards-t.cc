/*
 * shards-t.cc - ranks that update shards, compared with a device that updates
 * all weights from the summed gradients.
 *
 * Started alone, it runs itself by mpirun with two, three and four ranks, each
 * of which is a test point.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rig.h"

#include <string>

#include "cuda/device.h"
#include "optim/lamb.h"
#include "ranks/shards.h"
#include "ranks/workers.h"

#define STEPS 3
#define RATE 0.1

static tr_workers ranks;
static bool failed;

__attribute__((format(printf, 2, 3)))
static void check(bool good, const char *format, ...)
{
    va_list list;

    if (good)
        return;
    failed = true;
    fprintf(stderr, "# rank %u: ", ranks.rank);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
}

/* ---- Tensors and buckets ---- */

/*
 * Buckets in the order of backward: the last starts at 0.  Most begin and end
 * off 16-byte boundaries; the third has fewer numbers than ranks have shards.
 */
static const std::vector<std::vector<tr_part>> sizes = {
    {{0, 20000, true}, {0, 2, false}, {0, 1001, true}},
    {{0, 8196, true}, {0, 777, false}},
    {{0, 5, true}},
    {{0, 5000, true}, {0, 3, false}, {0, 1000, true}, {0, 4097, false}}};

struct layout {
    std::vector<tr_part> parts;
    std::vector<tr_range> buckets;
    size_t n;
};

static layout layout_of()
{
    layout l = {{}, std::vector<tr_range>(sizes.size()), 0};

    for (size_t i = sizes.size(); i-- > 0;) {
        l.buckets[i].first = l.n;
        for (tr_part p : sizes[i]) {
            p.offset = l.n;
            l.parts.push_back(p);
            l.n += p.count;
        }
        l.buckets[i].count = l.n - l.buckets[i].first;
    }
    return l;
}

/* ---- A device with weights ---- */

static size_t allocated;
static void *(*usual_alloc)(tr_device *d, size_t bytes);

static void *counting_alloc(tr_device *d, size_t bytes)
{
    allocated += bytes;
    return usual_alloc(d, bytes);
}

struct pupil {
    rig r;
    array weights, gradients;
    tr_lamb *lamb;

    pupil(const rig &r_, const layout &l, bool joins)
        : r(r_), weights(r, REALS, l.n + TR_SPARE), gradients(r, REALS, l.n)
    {
        static const tr_lamb_options options = {true, 0.9, 0.99, 1e-6, 0.01,
                                                1};
        numbers start = draw(r, REALS, l.n, 1);

        if (joins)
            check(tr_cuda_join(r.d, &ranks, gradients, l.buckets.data(),
                               l.buckets.size()), "cannot join");
        start.resize(l.n + TR_SPARE);
        weights.set(start);
        r.ops->weights_written(r.d, weights, l.n);
        usual_alloc = cuda_of(r.d)->table.alloc;
        cuda_of(r.d)->table.alloc = counting_alloc;
        allocated = 0;
        lamb = tr_lamb_open(r.d, &options, l.n, l.parts.data(),
                            l.parts.size());
        cuda_of(r.d)->table.alloc = usual_alloc;
    }
    ~pupil()
    {
        tr_lamb_free(lamb);
    }
    void finish(uint64_t steps, double *norm)
    {
        tr_results results = {};
        const char *why = NULL;
        const bool good = r.ops->finish(r.d, &results, &why);

        check(good && results.steps == steps, "%s: %llu steps: %s",
              r.name, (unsigned long long)results.steps,
              why ? why : "no failure");
        *norm = results.gradient;
    }
};

/* ---- Gradients ---- */

/* Two rows, whose sum is not a bfloat16. */
static numbers rows_of(const rig &r, size_t n, int step, uint32_t rank)
{
    const uint64_t seed = (uint64_t)(100 * step + (int)rank);
    numbers rows = draw(r, VALUES, n, seed, 0.01);
    const numbers more = draw(r, VALUES, n, seed + 50, 1e-4);

    rows.insert(rows.end(), more.begin(), more.end());
    return rows;
}

static double add(const rig &r, double x, double y)
{
    return r.bf16 ? as_bf16((float)x + (float)y) : (float)x + (float)y;
}

/* Sums over ranks, rounded as a ring of GPUs rounds them. */
static numbers summed(const rig &r, const layout &l, int step)
{
    std::vector<numbers> of(ranks.ranks);
    numbers sum(l.n);

    for (uint32_t rank = 0; rank < ranks.ranks; rank++) {
        of[rank] = rows_of(r, l.n, step, rank);
        for (size_t i = 0; i < l.n; i++) {
            const float x = (float)of[rank][i] + (float)of[rank][l.n + i];

            of[rank][i] = r.bf16 ? as_bf16(x) : x;
        }
    }
    for (const tr_range &bucket : l.buckets)
        for (uint32_t rank = 0; rank < ranks.ranks; rank++) {
            const tr_range s = tr_shard_of(bucket, rank, ranks.ranks);

            for (size_t i = s.first; i < s.first + s.count; i++)
                for (uint32_t k = 1; k <= ranks.ranks; k++) {
                    const double x = of[(rank + k) % ranks.ranks][i];

                    sum[i] = k == 1 ? x : add(r, sum[i], x);
                }
        }
    return sum;
}

/* ---- Steps ---- */

/* The weights of each bucket that forward uses, in the order of forward. */
typedef std::vector<std::vector<array *>> outputs;

/* Queues everything without waiting, as in training. */
static void queue_steps(const pupil &p, const layout &l, const array &one,
                        const std::vector<array *> &rows, const array &unused,
                        const outputs &y)
{
    const rig &r = p.r;

    for (size_t step = 0; step < rows.size(); step++) {
        for (size_t i = 0; i < l.buckets.size(); i++) {
            const tr_range b = l.buckets[i];
            const tr_linear to = {1, b.count, l.n, NULL, NULL,
                                  (real *)p.gradients + b.first, unused,
                                  false};

            r.ops->linear_backward_weight(
                r.d, &to, 2, rows[step]->p + b.first * r.d->value_size, one);
            r.ops->sum_begin(r.d, i);
        }
        check(r.ops->sum_end(r.d), "%s: sums fail", r.name);
        tr_lamb_step(p.lamb, p.weights, p.gradients, RATE, 1);
        for (size_t i = l.buckets.size(); i-- > 0;) {
            const tr_range b = l.buckets[i];
            const real *const w = (real *)p.weights + b.first;
            const tr_linear from = {1, b.count, b.count, w, w, NULL, NULL,
                                    false};

            r.ops->await_weights(r.d, i);
            r.ops->linear_forward(r.d, &from, 1, one, false, y[step][i]->p);
        }
    }
}

/* Compares the numbers of this rank, or of all ranks if `whole`. */
static void compare(const pupil &p, const layout &l, const char *what,
                    const numbers &got, const numbers &right, bool whole)
{
    for (size_t i = 0; i < l.buckets.size(); i++) {
        const tr_range own = tr_shard_of(l.buckets[i], ranks.rank,
                                         ranks.ranks);

        for (size_t k = l.buckets[i].first;
             k < l.buckets[i].first + l.buckets[i].count; k++)
            if ((whole || (k >= own.first && k < own.first + own.count))
                && !(fabs(got[k] - right[k]) <= 2e-5)) {
                check(false, "%s: %s %zu is %.9g, not %.9g", p.r.name, what,
                      k, got[k], right[k]);
                return;
            }
    }
}

static numbers as_doubles(const real *x, size_t n)
{
    return numbers(x, x + n);
}

/* Each vector, which all ranks have as real. */
static void compare_vectors(const pupil &p, const layout &l,
                            const numbers &got, const numbers &right)
{
    for (const tr_part &part : l.parts)
        for (size_t i = part.offset; i < part.offset + part.count; i++)
            if (!part.decays && !(fabs(got[i] - right[i]) <= 2e-5)) {
                check(false, "%s: vector %zu is %.9g, not %.9g", p.r.name, i,
                      got[i], right[i]);
                return;
            }
}

static void compare_all(const pupil &p, const pupil &alone, const layout &l)
{
    const numbers got = p.weights.back(), right = alone.weights.back();

    tr_lamb_fetch(p.lamb);
    tr_lamb_fetch(alone.lamb);
    compare(p, l, "weight", got, right, !p.r.bf16);
    compare_vectors(p, l, got, right);
    compare(p, l, "mean", as_doubles(tr_lamb_mean(p.lamb), l.n),
            as_doubles(tr_lamb_mean(alone.lamb), l.n), false);
    compare(p, l, "square", as_doubles(tr_lamb_square(p.lamb), l.n),
            as_doubles(tr_lamb_square(alone.lamb), l.n), false);
}

static void test_steps(const rig &r, const rig &other)
{
    const layout l = layout_of();
    pupil p(r, l, true), alone(other, l, false);
    const array one(r, VALUES, numbers(2, 1)), unused(r, REALS, l.n);
    std::vector<array *> rows;
    outputs y(STEPS);
    double norm, right;

    for (int step = 0; step < STEPS; step++) {
        rows.push_back(new array(r, VALUES,
                                 rows_of(r, l.n, step, ranks.rank)));
        for (const tr_range &b : l.buckets)
            y[(size_t)step].push_back(new array(r, VALUES, b.count));
    }
    queue_steps(p, l, one, rows, unused, y);
    p.finish(STEPS, &norm);
    for (size_t step = 0; step < STEPS; step++) {
        numbers now;

        alone.gradients.set(summed(r, l, (int)step));
        tr_lamb_step(alone.lamb, alone.weights, alone.gradients, RATE, 1);
        now = alone.weights.back();
        for (size_t i = 0; i < l.buckets.size(); i++) {
            const auto from = now.begin() + (long)l.buckets[i].first;

            check(same(y[step][i]->back(),
                       numbers(from, from + (long)l.buckets[i].count),
                       r.bf16 ? 4e-3 : r.near),
                  "%s: bucket %zu in step %zu", r.name, i, step);
        }
    }
    alone.finish(STEPS, &right);
    check(fabs(norm - right) <= 1e-5 * right, "%s: norm %g, not %g", r.name,
          norm, right);
    compare_all(p, alone, l);
    for (array *each : rows)
        delete each;
    for (std::vector<array *> &each : y)
        for (array *bucket : each)
            delete bucket;
}

/* A NaN on one rank stops the step on all ranks. */
static void test_halt(const rig &r, bool in_loss)
{
    const layout l = layout_of();
    pupil p(r, l, true);
    const array one(r, VALUES, numbers(2, 1)), unused(r, REALS, l.n),
        x(r, VALUES, numbers(8)), label(r, INDEX, numbers(1)),
        weight(r, REALS, numbers(1, in_loss && ranks.rank == 1 ? NAN : 1)),
        loss(r, DOUBLES, 1);
    numbers gradients = rows_of(r, l.n, 0, ranks.rank), before, after;
    outputs y(1);
    double norm;

    if (!in_loss && ranks.rank == 1)
        gradients[7000] = INFINITY;
    array rows(r, VALUES, gradients);
    for (const tr_range &b : l.buckets)
        y[0].push_back(new array(r, VALUES, b.count));
    before = p.weights.back();
    r.ops->cross_entropy(r.d, TR_LOSS_MLM, 1, 2, 8, x, label, weight,
                         (double *)(void *)loss.p, false);
    queue_steps(p, l, one, {&rows}, unused, y);
    p.finish(0, &norm);
    after = p.weights.back();
    check(same(numbers(after.begin(), after.begin() + (long)l.n),
               numbers(before.begin(), before.begin() + (long)l.n), 0),
          "%s: a step with NaN in a %s changed weights", r.name,
          in_loss ? "loss" : "gradient");
    for (size_t i = 0; i < l.buckets.size(); i++) {
        const auto from = before.begin() + (long)l.buckets[i].first;

        check(same(y[0][i]->back(),
                   numbers(from, from + (long)l.buckets[i].count),
                   r.bf16 ? 4e-3 : r.near),
              "%s: bucket %zu after NaN", r.name, i);
        delete y[0][i];
    }
}

/* Moments take a rank's share of memory, and allow wide accesses. */
static void test_memory(const rig &r)
{
    const layout l = layout_of();
    const pupil p(r, l, true);
    const size_t moments = 2 * l.n * sizeof(real);
    const size_t padding = 2 * (2 * TR_SHARD_ROUND * l.buckets.size()
                                + TR_SPARE) * sizeof(real);

    check(allocated >= moments / ranks.ranks
              && allocated <= moments / ranks.ranks + padding,
          "%zu bytes of moments, of %zu of all ranks", allocated, moments);
    for (size_t i = 0; i < r.d->shards->n; i++) {
        const tr_shard *const s = &r.d->shards->list[i];

        check((s->begin - s->at) % TR_SHARD_ROUND == 0, "shard %zu", i);
    }
}

/* ---- Ranks ---- */

static int be_rank()
{
    const char *const why = tr_workers_open(&ranks);

    check(why == NULL, "%s", why);
    for (tr_precision precision : {TR_FLOAT, TR_BF16}) {
        const auto open = [precision] {
            char text[200] = "";
            rig r = open_rig(precision);

            tr_device_close(r.d);
            r.d = tr_cuda_open(ranks.rank, precision, text, sizeof text);
            check(r.d != NULL, "%s", text);
            r.ops = r.d->ops;
            return r;
        };
        rig r = open(), other = open();

        test_steps(r, other);
        tr_device_close(other.d);
        for (int i = 0; i < 3; i++) {
            tr_device_close(r.d);
            r = open();
            if (i < 2)
                test_halt(r, i == 1);
            else
                test_memory(r);
        }
        tr_device_close(r.d);
    }
    tr_workers_close(&ranks);
    return failed;
}

/* Runs this program with n ranks; true if all succeed. */
static bool run(const char *self, int n)
{
    const char *const given = getenv("MPIRUN");
    const std::string command = std::string(given ? given : "mpirun")
                                + " -q -n " + std::to_string(n) + " " + self
                                + " rank >&2";

    return system(command.c_str()) == 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return be_rank();
    for (const char *name :
         {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
          "OMPI_MCA_rmaps_base_oversubscribe"})
        setenv(name, "1", 1);
    setenv("OMPI_MCA_btl", "self,vader", 1);
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
    setenv("HOSTCUDA_DEVICES", "9.0,9.0,9.0,9.0", 1);
    setenv("HOSTCUDA_THREADS", "1", 1);
    for (int n = 2; n <= 4; n++)
        ok(run(argv[0], n), "%d ranks", n);
    return done();
}
