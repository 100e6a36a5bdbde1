/*
 * graphs-t.c - steps captured as CUDA graphs: their results are bit-identical
 * to steps whose kernels are launched one by one.  Counts graphs, too.
 *
 * Batches of one kind share only their shape.  Steps are queued without
 * waiting, so a replay with another step's batch, seed or rate would show.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/open.h"
#include "model/model.h"
#include "model/counter_rng.h"
#include "optim/lamb.h"

void hostcuda_fail(const char *spec);

/* ---- TAP ---- */

static int count, failures;
static uint64_t bits; /* digest of all weights read back */

__attribute__((format(printf, 2, 3)))
static void ok(bool good, const char *format, ...)
{
    va_list list;

    printf("%s %d - ", good ? "ok" : "not ok", ++count);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
    fflush(stdout);
    failures += !good;
}

static void need(bool good, const char *what)
{
    if (good)
        return;
    printf("Bail out! %s\n", what);
    exit(1);
}

/* hostcuda never frees destroyed events, so that it can detect their use. */
__attribute__((used)) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:cudaEventCreateWithFlags";
}

/* ---- Batches ---- */

#define VOCAB 40
#define MOST_ROWS 320
#define MOST_SPANS (2 * MOST_ROWS)

/* Properties of all batches of a kind. */
typedef struct kind {
    uint32_t n_packs, capacity;
    uint32_t shortest, longest; /* sequence... */
    uint32_t rest; /* ...of all but the first of a pack; 0: same range */
    uint32_t masked; /* of 16 tokens */
    bool dead;       /* its loss is NaN */
} kind;

/*
 * a: the usual kind, x: the same with a loss of NaN.  With as many rows, b has
 * no masked tokens and c has more sequences.  d and f are alike, except for the
 * group of one span.  e has fewer rows, z more.
 */
static kind kind_of(char name)
{
    switch (name) {
    case 'b': return (kind){3, 32, 9, 16, 0, 0, false};
    case 'c': return (kind){3, 32, 2, 2, 0, 2, false};
    case 'd': return (kind){1, 180, 130, 140, 2, 2, false};
    case 'e': return (kind){2, 32, 9, 16, 0, 2, false};
    case 'f': return (kind){1, 180, 120, 128, 2, 2, false};
    case 'x': return (kind){3, 32, 9, 16, 0, 2, true};
    case 'z': return (kind){6, 32, 9, 16, 0, 2, false};
    default: return (kind){3, 32, 9, 16, 0, 2, false};
    }
}

typedef struct store {
    int32_t token[MOST_ROWS], type[MOST_ROWS], position[MOST_ROWS],
        segment[MOST_ROWS], cu[MOST_SPANS], cls_row[MOST_ROWS],
        nsp_label[MOST_ROWS], mlm_row[MOST_ROWS], mlm_label[MOST_ROWS],
        mlm_seq[MOST_ROWS];
    real nsp_weight[MOST_ROWS], mlm_weight[MOST_ROWS];
    tr_batch batch;
    uint64_t seed, drawn;
} store;

static uint32_t draw(store *s, uint32_t below)
{
    return (uint32_t)(tr_counter_rng(s->seed, s->drawn++) % below);
}

static void put_span(store *s, uint32_t length, int32_t segment,
                     const kind *k)
{
    tr_batch *const b = &s->batch;

    for (uint32_t i = 0; i < length; i++) {
        const uint32_t row = b->n_rows++;

        s->token[row] = (int32_t)draw(s, VOCAB);
        s->type[row] = i > length / 2;
        s->position[row] = (int32_t)i;
        s->segment[row] = segment;
        if (segment == 0 || draw(s, 16) >= k->masked)
            continue;
        s->mlm_row[b->n_mlm] = (int32_t)row;
        s->mlm_label[b->n_mlm] = (int32_t)draw(s, VOCAB);
        s->mlm_seq[b->n_mlm] = (int32_t)b->n_seq;
        s->mlm_weight[b->n_mlm++] = k->dead ? (real)NAN : (real)0.01;
    }
    s->cu[++b->n_spans] = (int32_t)b->n_rows;
    b->max_span = length > b->max_span ? length : b->max_span;
}

static void put_pack(store *s, const kind *k)
{
    tr_batch *const b = &s->batch;
    uint32_t left = k->capacity;
    int32_t segment = 0;

    while (left >= (segment > 0 && k->rest > 0 ? k->rest : k->longest)) {
        const uint32_t length =
            segment > 0 && k->rest > 0
                ? k->rest
                : k->shortest + draw(s, k->longest - k->shortest + 1);

        s->cls_row[b->n_seq] = (int32_t)b->n_rows;
        s->nsp_label[b->n_seq] = (int32_t)draw(s, 3) - 1;
        s->nsp_weight[b->n_seq] = s->nsp_label[b->n_seq] < 0 ? 0 : (real)0.1;
        put_span(s, length, ++segment, k);
        b->n_seq++;
        left -= length;
    }
    put_span(s, left, 0, k);
}

static const tr_batch *fill(store *s, char name, uint64_t seed)
{
    const kind k = kind_of(name);

    s->batch = (tr_batch){
        .n_packs = k.n_packs, .capacity = k.capacity, .token = s->token,
        .type = s->type, .position = s->position, .segment = s->segment,
        .cu = s->cu, .cls_row = s->cls_row, .nsp_label = s->nsp_label,
        .nsp_weight = s->nsp_weight, .mlm_row = s->mlm_row,
        .mlm_label = s->mlm_label, .mlm_seq = s->mlm_seq,
        .mlm_weight = s->mlm_weight};
    s->seed = seed;
    s->drawn = 0;
    for (uint32_t i = 0; i < k.n_packs; i++)
        put_pack(s, &k);
    return &s->batch;
}

/* ---- Training ---- */

typedef struct pupil {
    tr_device *device;
    tr_rows rows;
    tr_model *model;
    tr_lamb *lamb;
    store *store;
    int steps;
    tr_results results; /* of the last finish() */
    const char *why;      /* error message, or NULL */
} pupil;

static void open_lamb(pupil *p)
{
    static const tr_lamb_options options = {.trust = true, .beta1 = 0.9,
                                            .beta2 = 0.999, .epsilon = 1e-6,
                                            .decay = 0.01, .clip = 1};
    const size_t n = tr_model_tensors(p->model);
    tr_part *const parts = calloc(n, sizeof *parts);

    need(parts != NULL, "no memory");
    for (size_t i = 0; i < n; i++) {
        const tr_tensor *const t = tr_model_tensor(p->model, i);

        parts[i] = (tr_part){t->offset, (size_t)t->rows * t->columns,
                               t->decays};
    }
    p->lamb = tr_lamb_open(p->device, &options, tr_model_numbers(p->model),
                           parts, n);
    need(p->lamb != NULL, "no memory for the optimiser");
    free(parts);
}

static pupil open_pupil(tr_precision precision, tr_rows rows,
                        tr_graph_mode repeat)
{
    static const tr_config config = {.vocab_size = VOCAB, .hidden = 16,
                                       .layers = 1, .heads = 1,
                                       .intermediate = 24, .positions = 256,
                                       .types = 2, .dropout = 0.1};
    char why[200] = "no memory";
    pupil p = {.rows = rows, .store = calloc(1, sizeof *p.store)};

    p.device = tr_cuda_open(0, precision, why, sizeof why);
    need(p.device != NULL && p.store != NULL, why);
    p.model = tr_model_open(p.device, &config, 1);
    need(p.model != NULL, "no memory for the model");
    open_lamb(&p);
    tr_model_set_graph_mode(p.model, repeat);
    return p;
}

static void close_pupil(pupil *p)
{
    tr_lamb_free(p->lamb);
    tr_model_free(p->model);
    tr_device_close(p->device);
    free(p->store);
}

/* Queues a step with its own seed, rate and factor; false: out of memory. */
static bool ask(pupil *p, char name)
{
    const uint64_t seed = tr_counter_rng(7, (uint64_t)p->steps);
    const tr_step how = {TR_VARLEN, true, seed, p->rows, 0, false};
    const double rate = 0.01 / (1 + p->steps % 3);

    if (!tr_model_forward(p->model, fill(p->store, name, seed), &how))
        return false;
    tr_model_backward(p->model);
    tr_lamb_step(p->lamb, tr_model_device_weights(p->model),
                 tr_model_device_gradients(p->model), rate,
                 1 + p->steps % 2);
    p->device->ops->step_end(p->device);
    p->steps++;
    return true;
}

static bool finish(pupil *p)
{
    return p->device->ops->finish(p->device, &p->results, &p->why);
}

static void fetch(pupil *p)
{
    tr_model_fetch(p->model);
    tr_model_fetch_gradients(p->model);
    tr_lamb_fetch(p->lamb);
}

/* Queues steps of these kinds, then waits for all of them. */
static bool learn(pupil *p, const char *names)
{
    bool good = true;

    for (; *names && good; names++)
        good = ask(p, *names);
    good = finish(p) && good;
    if (good)
        fetch(p);
    return good;
}

static bool same_numbers(pupil *p, const real *a, const real *b)
{
    return memcmp(a, b, tr_model_numbers(p->model) * sizeof *a) == 0;
}

/* True if both runs have the same weights, gradients, moments and losses. */
static bool same(pupil *a, pupil *b)
{
    const unsigned char *const w =
        (const unsigned char *)tr_model_weights(a->model);

    for (size_t i = 0; i < tr_model_numbers(a->model) * sizeof(real); i++)
        bits = (bits ^ w[i]) * UINT64_C(0x100000001b3);
    return same_numbers(a, tr_model_weights(a->model),
                        tr_model_weights(b->model))
           && same_numbers(a, tr_model_gradients(a->model),
                           tr_model_gradients(b->model))
           && same_numbers(a, tr_lamb_mean(a->lamb), tr_lamb_mean(b->lamb))
           && same_numbers(a, tr_lamb_square(a->lamb), tr_lamb_square(b->lamb))
           && a->results.steps == b->results.steps
           && memcmp(a->results.sum, b->results.sum, sizeof a->results.sum)
                  == 0;
}

static bool is_near(double a, double b, double near)
{
    return fabs(a - b) <= near * fabs(a);
}

/* ---- Bit-identical results ---- */

/* Most launches of a step are of this kernel; within a graph, all. */
#define LAUNCHES 60

/* Repeated and new shapes; `graphs` of the steps are run as graphs. */
static void test_bits(tr_precision precision, tr_rows rows,
                      const char *names, uint64_t graphs)
{
    static const char *const precisions[] = {"float", "tf32", "bf16"};
    pupil plain = open_pupil(precision, rows, TR_ROUNDED);
    pupil graph = open_pupil(precision, rows, TR_GRAPHS);
    const size_t n = strlen(names);
    bool good = learn(&plain, names) && learn(&graph, names);

    good = good && same(&graph, &plain) && graph.results.steps == n;
    ok(good, "%s, %s: the bits of steps %s", precisions[precision],
       rows == TR_PADDED ? "padded" : "unpadded", names);
    good = graph.results.graphs == graphs
           && graph.results.launches >= graphs + LAUNCHES * (n - graphs)
           && graph.results.launches <= graphs + 2 * LAUNCHES * (n - graphs);
    ok(good, "%zu steps are %d graphs and %d launches; without, %d", n,
       (int)graph.results.graphs, (int)graph.results.launches,
       (int)plain.results.launches);
    close_pupil(&plain);
    close_pupil(&graph);
}

/* Rounded to bfloat16, only the order of sums differs. */
static void test_exact(void)
{
    pupil exact = open_pupil(TR_FLOAT, TR_UNPADDED, TR_EXACT);
    pupil graph = open_pupil(TR_FLOAT, TR_UNPADDED, TR_GRAPHS);
    double sum[2] = {0, 0}, off[2] = {0, 0};
    bool good = learn(&exact, "aaaaba") && learn(&graph, "aaaaba");

    for (int i = 0; i < TR_LOSSES; i++)
        good = good && is_near(exact.results.sum[i], graph.results.sum[i],
                               1e-6);
    for (size_t i = 0; good && i < tr_model_numbers(exact.model); i++) {
        const double w = (double)tr_model_weights(exact.model)[i];
        const double g = (double)tr_model_gradients(exact.model)[i];

        sum[0] += w * w;
        sum[1] += g * g;
        off[0] += pow(w - (double)tr_model_weights(graph.model)[i], 2);
        off[1] += pow(g - (double)tr_model_gradients(graph.model)[i], 2);
    }
    off[0] = sqrt(off[0] / sum[0]);
    off[1] = sqrt(off[1] / sum[1]);
    ok(good && off[0] < 1e-5 && off[1] < 1e-5,
       "rounded, losses differ by less than 1e-6, weights by %.1g and "
       "gradients by %.1g after 6 steps", off[0], off[1]);
    close_pupil(&exact);
    close_pupil(&graph);
}

/* ---- Stopping and resuming ---- */

/* Copies weights and moments from one run to another. */
static void copy_run(pupil *from, pupil *to)
{
    const size_t bytes = tr_model_numbers(from->model) * sizeof(real);

    memcpy(tr_model_weights(to->model), tr_model_weights(from->model),
           bytes);
    memcpy(tr_lamb_mean(to->lamb), tr_lamb_mean(from->lamb), bytes);
    memcpy(tr_lamb_square(to->lamb), tr_lamb_square(from->lamb), bytes);
    tr_model_store(to->model);
    tr_lamb_store(to->lamb);
    tr_lamb_set(to->lamb, tr_lamb_get(from->lamb));
    to->steps = from->steps;
}

static void test_resume(void)
{
    pupil whole = open_pupil(TR_BF16, TR_PADDED, TR_GRAPHS);
    pupil part = open_pupil(TR_BF16, TR_PADDED, TR_GRAPHS);
    bool good = learn(&whole, "aaa");

    copy_run(&whole, &part);
    good = learn(&whole, "aaaa") && learn(&part, "aaaa") && good;
    ok(good && same(&whole, &part) && part.results.graphs == 2
           && whole.results.graphs == 4,
       "a run resumes with the same bits, without the graphs");
    close_pupil(&whole);
    close_pupil(&part);
}

/* A step whose loss is NaN, in a graph, and the steps after it. */
static void test_halt(void)
{
    pupil plain = open_pupil(TR_FLOAT, TR_PADDED, TR_ROUNDED);
    pupil graph = open_pupil(TR_FLOAT, TR_PADDED, TR_GRAPHS);
    bool good = learn(&plain, "aaaaxa") && learn(&graph, "aaaaxa");

    good = good && graph.results.steps == 4
           && same_numbers(&plain, tr_model_weights(plain.model),
                           tr_model_weights(graph.model))
           && graph.results.graphs == 4;
    good = good && learn(&plain, "a") && learn(&graph, "a")
           && same(&plain, &graph) && graph.results.graphs == 1;
    ok(good, "steps after a NaN loss are skipped");
    close_pupil(&plain);
    close_pupil(&graph);
}

/* ---- Shapes ---- */

/* An empty step with this many rows. */
static bool pass(pupil *p, uint32_t rows)
{
    tr_batch batch = *fill(p->store, 'a', 1);
    const tr_batch *staged;

    p->store->cu[1] = (int32_t)rows;
    batch.n_rows = rows;
    batch.n_spans = 1;
    batch.n_seq = batch.n_mlm = 0;
    staged = p->device->ops->stage(p->device, &batch);
    if (staged == NULL)
        return false;
    (void)p->device->ops->step_begin(p->device, staged, 1);
    p->device->ops->step_end(p->device);
    return true;
}

/* Three rounds over this many shapes, each in both slots. */
static void test_shapes(uint32_t shapes, uint64_t graphs)
{
    pupil p = open_pupil(TR_FLOAT, TR_PADDED, TR_EXACT);
    bool good = pass(&p, MOST_ROWS / 2) && pass(&p, MOST_ROWS / 2);

    for (uint32_t i = 0; i < 3 * 2 * shapes && good; i++)
        good = pass(&p, 1 + i / 2 % shapes);
    good = finish(&p) && good;
    ok(good && p.results.graphs == graphs, "%d shapes in turn: %d graphs",
       (int)shapes, (int)p.results.graphs);
    close_pupil(&p);
}

/* A step differs from the one that was captured. */
static void test_other(void)
{
    pupil p = open_pupil(TR_FLOAT, TR_PADDED, TR_GRAPHS);
    const tr_step how = {TR_VARLEN, true, 1, TR_PADDED, 0, false};
    bool good = learn(&p, "aaaa") && p.results.graphs == 2;

    good = tr_model_forward(p.model, fill(p.store, 'a', 1), &how) && good;
    p.device->ops->step_end(p.device);
    good = !finish(&p) && strstr(p.why, "differs from its graph") && good;
    ok(good, "half a step instead of a whole one: %s", p.why);
    close_pupil(&p);
}

/* ---- Failures ---- */

/* A run in which one call fails reports the error and learns nothing. */
static void test_failure(const char *what, const char *said)
{
    pupil p = open_pupil(TR_FLOAT, TR_PADDED, TR_GRAPHS);
    bool good;

    hostcuda_fail(what);
    good = !learn(&p, "aaaa") && p.why != NULL && strstr(p.why, said);
    hostcuda_fail(NULL);
    ok(good, "%s: %s", what, p.why ? p.why : "no error reported");
    close_pupil(&p);
}

int main(void)
{
    const char *const is_long = getenv("LONG");
    const bool quick = is_long == NULL || *is_long == '\0';

    test_bits(TR_BF16, TR_UNPADDED, "aaaaa", 3);
    test_bits(TR_FLOAT, TR_PADDED, "aabbaaccaabbcc", 8);
    test_bits(TR_FLOAT, TR_PADDED, "aaaazaaaa", 5);
    test_halt();
    test_shapes(32, 128);
    test_shapes(33, 0);
    if (!quick) {
        test_bits(TR_BF16, TR_PADDED, "ddffddff", 4);
        test_resume();
        test_exact();
    }
    test_other();
    test_failure("cudaStreamBeginCapture:1", "CUDA graph of a step: out of");
    test_failure("cudaGraphInstantiate:1", "CUDA graph of a step: out of");
    test_failure("cudaGraphLaunch:1", "CUDA graph of a step: out of");
    test_failure("cudaLaunchKernelEx:180=9", "sums of columns: invalid conf");
    test_failure("kernel:240", "a kernel before ");
#ifndef __SANITIZE_ADDRESS__ /* hostcuda leaks what these calls fail to free */
    test_failure("cudaGraphDestroy:2", "CUDA graph of a step: out of");
    test_failure("cudaStreamEndCapture:2", "CUDA graph of a step: out of");
#endif
    printf("1..%d\n# bits %016llx\n", count, (unsigned long long)bits);
    return failures != 0;
}
