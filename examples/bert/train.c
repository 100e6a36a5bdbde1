/*
 * train.c - bert-train: BERT's pre-training on packs.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checkpoint.h"
#include "conf.h"
#include "draw.h"
#include "fail.h"
#include "feed.h"
#include "lamb.h"
#include "model.h"
#include "report.h"
#include "stop.h"

/* All that a run works with. */
typedef struct training {
    conf conf;
    feed *feed;
    bert_model *model;
    lamb *lamb;
    char settings[CHECKPOINT_SETTINGS];
    checkpoint_run run;
    uint64_t saved; /* steps in the checkpoint */
    report_step unprinted;
} training;

static int complain(const char *what)
{
    say(CONF_PROGRAM, "%s", what);
    return STATUS_FAILURE;
}

static int complain_feed(const training *t, const ps_error *err)
{
    return say_failure(CONF_PROGRAM,
                       t->feed == NULL ? "feed" : feed_name(t->feed), err);
}

/* ---- The start ---- */

static int open_feed(training *t)
{
    const ps_pack_info *info;
    ps_error err;

    if (feed_open(&t->feed, &t->conf.feed, &err) != PS_OK)
        return complain_feed(t, &err);
    info = feed_info(t->feed);
    if (t->conf.model.positions == 0)
        t->conf.model.positions = info->capacity;
    if (t->conf.model.positions >= info->capacity)
        return STATUS_OK;
    say(CONF_PROGRAM,
        "%s: packs of %" PRIu32 " tokens, and only %" PRIu32 " positions",
        feed_name(t->feed), info->capacity, t->conf.model.positions);
    return STATUS_USAGE;
}

static lamb *open_lamb(const training *t)
{
    size_t n = bert_model_tensors(t->model);
    lamb_part *parts = calloc(n, sizeof *parts);
    lamb *l;

    if (parts == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const bert_tensor *tensor = bert_model_tensor(t->model, i);

        parts[i] = (lamb_part){.offset = tensor->offset,
                               .count = (size_t)tensor->rows *
                                        tensor->columns,
                               .decays = tensor->decays};
    }
    l = lamb_open(&t->conf.lamb, bert_model_numbers(t->model), parts, n);
    free(parts);
    return l;
}

static int open_model(training *t)
{
    bert_config config = t->conf.model;

    config.vocab_size = feed_vocab(t->feed);
    t->model = bert_model_open(&config, t->conf.seed);
    if (t->model == NULL)
        return complain("no memory for such a model");
    t->lamb = open_lamb(t);
    if (t->lamb == NULL)
        return complain("no memory for the optimiser");
    conf_settings(&t->conf, &config, t->settings, sizeof t->settings);
    return STATUS_OK;
}

/* ---- Checkpoints ---- */

static checkpoint kept(const training *t)
{
    return (checkpoint){.settings = t->settings,
                        .numbers = bert_model_numbers(t->model),
                        .weights = bert_model_weights(t->model),
                        .mean = lamb_mean(t->lamb),
                        .square = lamb_square(t->lamb)};
}

static int save(training *t)
{
    const checkpoint c = kept(t);
    ps_error err;

    if (t->conf.save == NULL || t->saved == t->run.steps)
        return STATUS_OK;
    t->run.lamb = lamb_get(t->lamb);
    t->run.place = feed_save(t->feed);
    if (checkpoint_write(t->conf.save, &c, &t->run, &err) != PS_OK)
        return say_failure(CONF_PROGRAM, t->conf.save, &err);
    t->saved = t->run.steps;
    return STATUS_OK;
}

static int resume(training *t)
{
    const checkpoint c = kept(t);
    ps_error err;
    ps_result r;

    if (t->conf.save == NULL)
        return STATUS_OK;
    r = checkpoint_read(t->conf.save, &c, &t->run, &err);
    if (r == PS_END)
        return STATUS_OK;
    if (!t->conf.resume) {
        say(CONF_PROGRAM, "%s: is there already (--resume goes on from it)",
            t->conf.save);
        return STATUS_USAGE;
    }
    if (r != PS_OK)
        return say_failure(CONF_PROGRAM, t->conf.save, &err);
    lamb_set(t->lamb, t->run.lamb);
    t->saved = t->run.steps;
    if (feed_resume(t->feed, &t->run.place, &err) != PS_OK)
        return complain_feed(t, &err);
    return STATUS_OK;
}

/* ---- Steps ---- */

static double now(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double factor_of(const training *t)
{
    feed_counts n = feed_count(t->feed);

    return t->conf.factor > 0 ? t->conf.factor
                              : (double)n.sequences / (double)n.packs;
}

/* Learns from the feed's batch. */
static int learn(training *t, report_step *step)
{
    const bert_batch *batch = feed_batch(t->feed);
    const bert_step how = {.attention = (bert_attention)t->conf.attention,
                           .training = true,
                           .seed = draw_mix(t->conf.seed, t->run.steps)};
    bert_losses losses = {0};

    if (!bert_model_forward(t->model, batch, &how, &losses))
        return complain("no memory for a batch in the model");
    bert_model_clear_gradients(t->model);
    bert_model_backward(t->model, batch, &how);
    step->rate = schedule_rate(&t->conf.rate, step->sequences);
    step->gradient = lamb_step(t->lamb, bert_model_weights(t->model),
                               bert_model_gradients(t->model), step->rate,
                               factor_of(t));
    step->loss = losses.total;
    step->mlm = losses.mlm;
    step->nsp = losses.nsp;
    if (isfinite(losses.total) && isfinite(step->gradient))
        return STATUS_OK;
    say(CONF_PROGRAM, "step %" PRIu64 ": the loss is no number any more "
        "(a lower --rate may help)", step->step);
    return STATUS_FAILURE;
}

static int one_step(training *t)
{
    feed_counts n = feed_count(t->feed);
    report_step step = {.step = t->run.steps + 1,
                        .sequences = t->run.sequences + n.sequences,
                        .packs = n.packs,
                        .tokens = n.tokens,
                        .rows = feed_batch(t->feed)->n_rows,
                        .learnt = n.sequences};
    double start = now(CLOCK_MONOTONIC);
    double used = now(CLOCK_PROCESS_CPUTIME_ID);
    int status = learn(t, &step);

    if (status != STATUS_OK)
        return status;
    step.seconds = now(CLOCK_MONOTONIC) - start;
    step.processor = now(CLOCK_PROCESS_CPUTIME_ID) - used;
    t->run.steps++;
    t->run.sequences += n.sequences;
    t->run.tokens += n.tokens;
    report_add(&t->unprinted, &step);
    if (t->run.steps % t->conf.report == 0 &&
        !report_print(&t->unprinted, t->conf.stats == 1))
        return complain("stdout: cannot be written");
    if (t->conf.save_every > 0 && t->run.steps % t->conf.save_every == 0)
        return save(t);
    return STATUS_OK;
}

static int train(training *t)
{
    int status = STATUS_OK;
    ps_error err;
    ps_result r = PS_OK;

    while (status == STATUS_OK && stop_came() == 0 &&
           (t->conf.steps == 0 || t->run.steps < t->conf.steps)) {
        r = feed_next(t->feed, &err);
        if (r != PS_OK)
            break;
        status = one_step(t);
    }
    if (r != PS_OK && r != PS_END)
        return complain_feed(t, &err);
    return status;
}

/* ---- The end ---- */

static int finish(training *t)
{
    bool written = report_print(&t->unprinted, t->conf.stats == 1);
    int status = save(t);

    if (!written)
        return complain("stdout: cannot be written");
    if (status == STATUS_OK && t->run.steps == 0) {
        say(CONF_PROGRAM, "%s: no packs", feed_name(t->feed));
        return STATUS_DATA;
    }
    return status;
}

static void close_all(training *t)
{
    lamb_free(t->lamb);
    bert_model_free(t->model);
    feed_free(t->feed);
}

int main(int argc, char **argv)
{
    training t = {0};
    int status = conf_parse(&t.conf, argc, argv);

    if (status >= 0)
        return status;
    /* We share the work out ourselves; more threads would only wait. */
    openblas_set_num_threads(1);
    if (t.conf.save != NULL)
        stop_catch();
    status = open_feed(&t);
    if (status == STATUS_OK)
        status = open_model(&t);
    if (status == STATUS_OK)
        status = resume(&t);
    if (status == STATUS_OK)
        status = train(&t);
    if (status == STATUS_OK)
        status = finish(&t);
    close_all(&t);
    if (status == STATUS_OK && stop_came() != 0)
        stop_die(stop_came());
    return status;
}
