/*
 * train.c - bert-train: BERT's pre-training on packs.
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "conf.h"
#include "draw.h"
#include "fail.h"
#include "feed.h"
#include "keep.h"
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
    keep keep;
    uint64_t idle; /* steps that had nothing to learn */
    report_step unprinted;
    pthread_mutex_t printer; /* who has it may print what is unprinted */
} training;

#define PATIENCE 1 /* seconds that a reader has when a signal came */

static int complain(const char *what)
{
    say(CONF_PROGRAM, "%s", what);
    return STATUS_FAILURE;
}

/* A signal may come with a cut input; then the cut is no error. */
static int complain_feed(const training *t, const ps_error *err)
{
    stop_now();
    return say_failure(CONF_PROGRAM,
                       t->feed == NULL ? "feed" : feed_name(t->feed), err);
}

/* A reader that is gone is told by SIGPIPE, when all is done. */
static int complain_stdout(void)
{
    stop_now();
    return stop_broken() ? STATUS_FAILURE
                         : complain("stdout: cannot be written");
}

/* Prints what is unprinted; a reader may be slow. */
static int print(training *t)
{
    bool written;

    stop_allow();
    (void)pthread_mutex_lock(&t->printer);
    written = report_print(&t->unprinted, t->conf.stats == 1);
    (void)pthread_mutex_unlock(&t->printer);
    stop_forbid();
    return written ? STATUS_OK : complain_stdout();
}

/* ---- The start ---- */

/* What a signal leaves to do.  Our other thread waits, or is printing. */
static int stopped(void *context)
{
    training *t = context;
    int status = keep_save(&t->keep, t->model, t->lamb);
    struct timespec limit;

    (void)clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += PATIENCE;
    if (pthread_mutex_timedlock(&t->printer, &limit) == 0)
        (void)report_print(&t->unprinted, t->conf.stats == 1);
    return status;
}

static int prepare(training *t)
{
    int status = keep_try(&t->conf);

    t->keep.name = t->conf.save;
    if (status == STATUS_OK && t->conf.save != NULL &&
        !stop_catch(stopped, t))
        return complain("no thread to wait for signals");
    return status;
}

static int open_feed(training *t)
{
    const ps_pack_info *info;
    ps_error err;
    ps_result r;

    stop_allow();
    r = feed_open(&t->feed, &t->conf.feed, &err);
    stop_forbid();
    if (r != PS_OK)
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
    conf_settings(&t->conf, &config, t->keep.settings,
                  sizeof t->keep.settings);
    return STATUS_OK;
}

static int resume(training *t)
{
    int status = keep_read(&t->keep, t->model, t->lamb);
    ps_error err;
    ps_result r;

    if (status != STATUS_OK || t->keep.run.steps == 0)
        return status;
    stop_allow();
    r = feed_resume(t->feed, &t->keep.run.place, &err);
    stop_forbid();
    return r == PS_OK ? STATUS_OK : complain_feed(t, &err);
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

static int complain_loss(const report_step *step)
{
    say(CONF_PROGRAM, "step %" PRIu64 ": the loss is no number any more "
        "(a lower --rate may help)", step->step);
    return STATUS_FAILURE;
}

/* Learns from the feed's batch; after a failure the model is as before. */
static int learn(training *t, report_step *step)
{
    const bert_batch *batch = feed_batch(t->feed);
    const bert_step how = {.attention = (bert_attention)t->conf.attention,
                           .training = true,
                           .seed = draw_mix(t->conf.seed,
                                            t->keep.run.steps)};
    bert_losses losses = {0};

    if (!bert_model_forward(t->model, batch, &how, &losses))
        return complain("no memory for a batch in the model");
    t->idle += batch->n_mlm == 0 && !(losses.nsp > 0);
    if (!isfinite(losses.total))
        return complain_loss(step);
    bert_model_clear_gradients(t->model);
    bert_model_backward(t->model, batch, &how);
    step->rate = schedule_rate(&t->conf.rate, step->sequences);
    step->gradient = lamb_step(t->lamb, bert_model_weights(t->model),
                               bert_model_gradients(t->model), step->rate,
                               factor_of(t));
    step->loss = losses.total;
    step->mlm = losses.mlm;
    step->nsp = losses.nsp;
    return isfinite(step->gradient) ? STATUS_OK : complain_loss(step);
}

/* A step is whole: this is what a checkpoint goes on from. */
static void count_step(training *t)
{
    checkpoint_run *run = &t->keep.run;
    feed_counts n = feed_count(t->feed);

    run->steps++;
    run->sequences += n.sequences;
    run->tokens += n.tokens;
    run->lamb = lamb_get(t->lamb);
    run->place = feed_save(t->feed);
}

static int one_step(training *t)
{
    const checkpoint_run *run = &t->keep.run;
    feed_counts n = feed_count(t->feed);
    report_step step = {.step = run->steps + 1,
                        .sequences = run->sequences + n.sequences,
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
    count_step(t);
    report_add(&t->unprinted, &step);
    if (run->steps % t->conf.report == 0)
        status = print(t);
    if (status == STATUS_OK && t->conf.save_every > 0 &&
        run->steps % t->conf.save_every == 0)
        status = keep_save(&t->keep, t->model, t->lamb);
    return status;
}

static int train(training *t)
{
    int status = STATUS_OK;

    while (status == STATUS_OK &&
           (t->conf.steps == 0 || t->keep.run.steps < t->conf.steps)) {
        ps_error err;
        ps_result r;

        stop_allow();
        r = feed_next(t->feed, &err);
        stop_forbid();
        if (r == PS_END)
            break;
        status = r == PS_OK ? one_step(t) : complain_feed(t, &err);
    }
    return status;
}

/* ---- The end ---- */

/* Whatever ended the run: its last whole step is kept. */
static int finish(training *t, int status)
{
    int saved = keep_save(&t->keep, t->model, t->lamb);
    int printed = t->unprinted.steps > 0 ? print(t) : STATUS_OK;

    if (status != STATUS_OK)
        return status;
    stop_now();
    if (saved != STATUS_OK || printed != STATUS_OK)
        return saved != STATUS_OK ? saved : printed;
    if (t->idle < t->keep.run.steps)
        return STATUS_OK;
    say(CONF_PROGRAM, "%s: %s", feed_name(t->feed),
        t->keep.run.steps == 0
            ? "no packs"
            : "nothing was learnt: in no step a token was masked, or a "
              "sequence had a next_sentence_label");
    return STATUS_DATA;
}

static void close_all(training *t)
{
    lamb_free(t->lamb);
    bert_model_free(t->model);
    feed_free(t->feed);
}

int main(int argc, char **argv)
{
    training t = {.printer = PTHREAD_MUTEX_INITIALIZER};
    int status = conf_parse(&t.conf, argc, argv);

    if (status >= 0)
        return status;
    /* We share the work out ourselves; more threads would only wait. */
    openblas_set_num_threads(1);
    status = prepare(&t);
    if (status == STATUS_OK)
        status = open_feed(&t);
    if (status == STATUS_OK)
        status = open_model(&t);
    if (status == STATUS_OK)
        status = resume(&t);
    if (status == STATUS_OK)
        status = train(&t);
    status = finish(&t, status);
    close_all(&t);
    if (status == STATUS_FAILURE && !t.keep.failed && stop_broken())
        stop_die(SIGPIPE);
    return status;
}
