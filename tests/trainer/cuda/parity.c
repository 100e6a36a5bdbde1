/*
 * parity.c - the same training on the CPU and with the CUDA back end.
 *
 * usage: parity FILE ROWS DROPOUT STEPS NEAR
 *
 * Both begin with the same weights and train on the same packs: the CPU with
 * all padding, CUDA with the padding that ROWS (padded, stripped, unpadded)
 * leaves.  After each step the losses, and the gradient and weights of each
 * tensor, may differ by NEAR, relative to their size.  Prints the differences;
 * exits with 1 if they are larger.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/device.h"
#include "cuda/open.h"
#include "data/data_loader.h"
#include "model/model.h"
#include "optim/lamb.h"

#define RATE 0.004

/* A device and its model. */
typedef struct pupil {
    tr_device *device;
    tr_rows rows;
    tr_model *model;
    tr_lamb *lamb;
    tr_results results; /* of the last step */
} pupil;

/* The greatest differences so far. */
typedef struct worst {
    double loss, gradient, weight;
    char gradient_name[64], weight_name[64];
} worst;

static void need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "parity: %s\n", what);
    exit(1);
}

static tr_rows rows_of(const char *word)
{
    static const char *const words[] = {"padded", "stripped", "unpadded"};
    int i = 0;

    while (i < 3 && strcmp(word, words[i]) != 0)
        i++;
    need(i < 3, "ROWS are padded, stripped or unpadded");
    return (tr_rows)i;
}

static void open_pupil(pupil *p, tr_device *device, tr_rows rows,
                       const tr_config *config)
{
    static const tr_lamb_options options = {.trust = true, .beta1 = 0.9,
                                            .beta2 = 0.999, .epsilon = 1e-6,
                                            .decay = 0.01, .clip = 1};
    tr_part *parts;
    size_t n;

    p->device = device;
    p->rows = rows;
    p->model = tr_model_open(device, config, 1);
    need(p->model != NULL, "no memory for the model");
    n = tr_model_tensors(p->model);
    parts = calloc(n, sizeof *parts);
    need(parts != NULL, "no memory");
    for (size_t i = 0; i < n; i++) {
        const tr_tensor *t = tr_model_tensor(p->model, i);

        parts[i] = (tr_part){t->offset, (size_t)t->rows * t->columns,
                               t->decays};
    }
    p->lamb =
        tr_lamb_open(device, &options, tr_model_numbers(p->model), parts, n);
    need(p->lamb != NULL, "no memory for the optimiser");
    free(parts);
}

static void close_pupil(pupil *p)
{
    tr_lamb_free(p->lamb);
    tr_model_free(p->model);
    tr_device_close(p->device);
}

static void learn(pupil *p, const tr_batch *batch, uint64_t seed)
{
    const tr_step how = {TR_VARLEN, true, seed, p->rows, 0, false};
    const char *why = NULL;

    need(tr_model_forward(p->model, batch, &how), "no memory for a batch");
    tr_model_backward(p->model);
    tr_lamb_step(p->lamb, tr_model_device_weights(p->model),
                 tr_model_device_gradients(p->model), RATE, 1);
    need(p->device->ops->finish(p->device, &p->results, &why), why);
    need(p->results.steps == 1, "the loss is NaN");
    tr_model_fetch(p->model);
    tr_model_fetch_gradients(p->model);
}

static double length(size_t n, const real *x, const real *y)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += pow((double)x[i] - (y == NULL ? 0 : (double)y[i]), 2);
    return sqrt(sum);
}

static void note(double off, const char *name, double *most, char *of)
{
    if (off <= *most || isnan(*most))
        return;
    *most = off;
    strcpy(of, name);
}

/*
 * Softmax ignores a shift, so the gradients of keys' biases are rounding
 * errors: they are measured relative to those of the queries' biases, and the
 * weights that LAMB computes from them are not compared.
 */
static void compare(const pupil *a, const pupil *b, worst *w)
{
    const real *ga = tr_model_gradients(a->model),
               *gb = tr_model_gradients(b->model),
               *wa = tr_model_weights(a->model),
               *wb = tr_model_weights(b->model);
    double query = 0;

    for (int i = 0; i < TR_LOSSES; i++)
        w->loss = fmax(w->loss, fabs(b->results.loss[i] / a->results.loss[i] -
                                     1));
    for (size_t i = 0; i < tr_model_tensors(a->model); i++) {
        const tr_tensor *t = tr_model_tensor(a->model, i);
        size_t n = (size_t)t->rows * t->columns, at = t->offset;
        double size = length(n, ga + at, NULL);
        bool key = strstr(t->name, "key.bias") != NULL;

        if (strstr(t->name, "query.bias") != NULL)
            query = size;
        note(length(n, gb + at, ga + at) / (key ? query : size), t->name,
             &w->gradient, w->gradient_name);
        if (!key)
            note(length(n, wb + at, wa + at) / length(n, wa + at, NULL),
                 t->name, &w->weight, w->weight_name);
    }
}

/* Trains on the batches of a file with both; false if they diverge. */
static bool run(tr_loader *f, tr_rows rows, double dropout, int steps,
                double near)
{
    const tr_config config = {.vocab_size = tr_loader_shape(f)->vocab_size,
                                .hidden = 32, .layers = 2, .heads = 2,
                                .intermediate = 72,
                                .positions = tr_loader_shape(f)->capacity,
                                .types = 2, .dropout = dropout};
    char why[200] = "no memory";
    pupil a, b;
    worst w = {0};
    ps_error err;

    open_pupil(&a, tr_cpu_open(), TR_PADDED, &config);
    b.device = tr_cuda_open(0, TR_FLOAT, why, sizeof why);
    need(b.device != NULL, why);
    open_pupil(&b, b.device, rows, &config);
    for (int i = 0; i < steps; i++) {
        need(tr_loader_next(f, &err) == PS_OK, "too few packs");
        learn(&a, tr_loader_batch(f), (uint64_t)i);
        learn(&b, tr_loader_batch(f), (uint64_t)i);
        compare(&a, &b, &w);
    }
    printf("%d steps, dropout %g: losses %.2g, gradients %.2g (%s), weights "
           "%.2g (%s)\n", steps, dropout, w.loss, w.gradient,
           w.gradient_name, w.weight, w.weight_name);
    close_pupil(&a);
    close_pupil(&b);
    return w.loss <= near && w.gradient <= near && w.weight <= near &&
           w.gradient > 0;
}

int main(int argc, char **argv)
{
    tr_loader_options options = {.n_names = 1, .epochs = 100, .packs = 5,
                                 .types = 2, .mask_share = -1, .seed = 1};
    tr_loader *f;
    ps_error err;
    bool near;

    need(argc == 6, "usage: parity FILE ROWS DROPOUT STEPS NEAR");
    options.names = (const char *const *)argv + 1;
    need(tr_loader_open(&f, &options, &err) == PS_OK,
         "the file cannot be read");
    near = run(f, rows_of(argv[2]), atof(argv[3]), atoi(argv[4]),
               atof(argv[5]));
    tr_loader_free(f);
    return near ? EXIT_SUCCESS : EXIT_FAILURE;
}
