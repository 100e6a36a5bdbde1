/*
 * train_eval.c - evaluate the model on other packs.
 *
 * The packs are read from the start each time, in batches of the size of a
 * step or of a micro-batch.  Each rank evaluates its share, as in training.
 * Masks depend on the seed and on the sequences, so all evaluations see the
 * same masks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/train_parts.h"

#include <stdlib.h>

#include "run/rank_message.h"

/* The state of an evaluation. */
typedef struct evaluation {
    report_sums all;
    report_sums by[TR_SOURCES_MAX];
    uint32_t sources; /* 0, or the highest source plus 1 */
    size_t room;      /* of the arrays, which have one entry per row */
    double *loss;
    double *nsp;
    int32_t *right;
} evaluation;

/* ---- A batch ---- */

static bool reserve(evaluation *e, size_t rows)
{
    if (e->room >= rows)
        return true;
    free(e->loss);
    free(e->nsp);
    free(e->right);
    e->loss = calloc(rows, sizeof *e->loss);
    e->nsp = calloc(rows, sizeof *e->nsp);
    e->right = calloc(rows, sizeof *e->right);
    e->room = e->loss && e->nsp && e->right ? rows : 0;
    return e->room > 0;
}

static void add_one(report_sums *sums, double loss, int32_t right)
{
    sums->targets++;
    sums->loss += loss;
    sums->right += right;
}

static void add_batch(evaluation *e, const tr_batch *b)
{
    for (uint32_t i = 0; i < b->n_mlm; i++) {
        const int32_t source = b->source[b->mlm_seq[i]];

        add_one(&e->all, e->loss[i], e->right[i]);
        if (source < 0)
            continue;
        add_one(&e->by[source], e->loss[i], e->right[i]);
        if (e->sources <= (uint32_t)source)
            e->sources = (uint32_t)source + 1;
    }
}

static int evaluate_batch(training *t, evaluation *e, const tr_batch *batch)
{
    const tr_step how = {.attention = (tr_attention)t->conf.attention,
                         .rows = (tr_rows)t->conf.rows};
    tr_results results;
    const char *why;

    if (batch->n_rows == 0)
        return STATUS_OK;
    if (!reserve(e, batch->n_rows)
        || !tr_model_evaluate(t->model, batch, &how))
        return train_fail("no memory for a batch of --eval");
    tr_model_row_losses(t->model, e->loss, e->nsp);
    tr_model_row_right(t->model, e->right);
    if (!t->device->ops->finish(t->device, &results, &why)) {
        t->state.failed = true;
        return train_fail(why);
    }
    add_batch(e, batch);
    return STATUS_OK;
}

/* ---- All batches ---- */

static int fail_loader(const tr_loader *l, const ps_error *err)
{
    return l == NULL ? train_fail("no memory for --eval")
                     : rank_message_failure(tr_loader_name(l), err);
}

/* The caller frees *loader, also after a failure. */
static ps_result open_packs(const training *t, tr_loader **loader,
                            ps_error *err)
{
    tr_loader_options options = t->conf.loader;

    options.names = &t->conf.eval;
    options.n_names = 1;
    options.epochs = 1;
    options.input = TR_INPUT_SHARED;
    options.sources = true;
    if (train_micro_batch(t) > 0) {
        options.packs = train_micro_batch(t) * t->workers.ranks;
        options.sequences = 0;
    }
    options.vocab_size = tr_loader_shape(t->loader)->vocab_size;
    return tr_loader_open(loader, &options, err);
}

static int fail_targets(const training *t)
{
    rank_message("%s: the packs have no targets", message_name(t->conf.eval));
    return STATUS_DATA;
}

int train_check_eval(const training *t)
{
    tr_loader *loader = NULL;
    uint64_t targets = 0;
    ps_error err;
    ps_result r;
    int status = STATUS_OK;

    if (t->conf.eval == NULL)
        return STATUS_OK;
    r = open_packs(t, &loader, &err);
    while (r == PS_OK) {
        r = tr_loader_next(loader, &err);
        if (r == PS_OK)
            targets += tr_loader_counts(loader).targets;
    }
    if (r != PS_END)
        status = fail_loader(loader, &err);
    else if (targets == 0)
        status = fail_targets(t);
    tr_loader_free(loader);
    return status;
}

static int evaluate_all(training *t, evaluation *e)
{
    tr_loader *loader = NULL;
    ps_error err;
    ps_result r = open_packs(t, &loader, &err);
    int status = STATUS_OK;

    while (r == PS_OK && status == STATUS_OK) {
        r = tr_loader_next(loader, &err);
        if (r == PS_OK)
            status = evaluate_batch(t, e, tr_loader_batch(loader));
    }
    if (status == STATUS_OK && r != PS_OK && r != PS_END)
        status = fail_loader(loader, &err);
    tr_loader_free(loader);
    return status;
}

/* Sums an evaluation over all ranks. */
static void sum_ranks(const training *t, evaluation *e)
{
    const int each = (int)(sizeof(report_sums) / sizeof(double));

    if (train_is_alone(t))
        return;
    tr_workers_sum(&t->workers, &e->all.targets, each);
    tr_workers_sum(&t->workers, &e->by[0].targets, TR_SOURCES_MAX * each);
    for (e->sources = TR_SOURCES_MAX; e->sources > 0; e->sources--)
        if (e->by[e->sources - 1].targets > 0)
            break;
}

static int show(training *t, const evaluation *e)
{
    const report_eval result = {.step = t->state.run.steps,
                                .all = e->all,
                                .by = e->by,
                                .sources = e->sources};

    if (t->workers.rank > 0)
        return STATUS_OK;
    if (!report_print_eval(&result, t->conf.stats))
        return train_fail("stdout: cannot be written");
    return metrics_eval(&t->metrics, &result);
}

int train_evaluate(training *t)
{
    evaluation *const e = calloc(1, sizeof *e);
    int status = train_settle(t);

    if (e == NULL)
        status = train_fail("no memory for --eval");
    if (status == STATUS_OK)
        status = evaluate_all(t, e);
    status = train_agree(t, status, 0);
    if (status == STATUS_OK) {
        sum_ranks(t, e);
        if (e->all.targets <= 0)
            status = fail_targets(t);
    }
    if (status == STATUS_OK) {
        t->evaluated = t->state.run.steps + 1;
        status = train_agree(t, show(t, e), 0);
    }
    if (e != NULL) {
        free(e->loss);
        free(e->nsp);
        free(e->right);
    }
    free(e);
    return status;
}

int train_evaluate_last(training *t)
{
    const int status = train_agree(t, train_settle(t), 0);

    if (status != STATUS_OK || t->conf.eval == NULL
        || t->evaluated == t->state.run.steps + 1)
        return status;
    return train_evaluate(t);
}
