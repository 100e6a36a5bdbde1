/*
 * train.c - bert-train: BERT pre-training on packed data.
 *
 * Steps are queued on the device.  The host waits for them only to print or
 * save, which settles the queued steps.  The CPU settles each step at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "cli/message.h"
#include "cli/signals.h"
#include "cpu/device.h"
#include "cuda/open.h"
#include "data/data_loader.h"
#include "data/rng.h"
#include "model/bert/model.h"
#include "optim/lamb.h"
#include "ranks/workers.h"
#include "run/conf.h"
#include "run/rank_message.h"
#include "run/report.h"
#include "run/run_state.h"
#include "run/shutdown.h"

/* The state after a queued step, if it succeeds. */
typedef struct queued_step {
    report_step report; /* excluding the device's results */
    checkpoint_run run;
    bool idle; /* it had no targets */
} queued_step;

#define QUEUE_MAX 64 /* steps */

/* The members of a run. */
typedef struct training {
    conf conf;
    tr_workers workers;
    tr_device *device;
    tr_loader *loader;
    bert_model *model;
    tr_lamb *lamb;
    run_state state;
    checkpoint_run now; /* state.run plus the queued steps */
    queued_step queue[QUEUE_MAX];
    uint64_t n_queued;
    double started, used; /* seconds, when the first step was queued */
    uint64_t idle;        /* steps without targets */
    report_step unprinted;
    pthread_mutex_t printer; /* protects `unprinted` */
} training;

#define PATIENCE 1 /* seconds to wait for the reader after a signal */

static int complain(const char *what)
{
    rank_message("%s", what);
    return STATUS_FAILURE;
}

/* A signal can also truncate the input; that is not an error. */
static int complain_feed(const training *t, const ps_error *err)
{
    shutdown_now();
    return rank_message_failure(
        t->loader == NULL ? "input" : tr_loader_name(t->loader), err);
}

/* If the reader is gone, main ends the process by SIGPIPE. */
static int complain_stdout(void)
{
    shutdown_now();
    return shutdown_pipe_broke() ? STATUS_FAILURE
                         : complain("stdout: cannot be written");
}

static bool is_alone(const training *t)
{
    return t->workers.ranks == 1;
}

/* Reports that the digests of ranks differ. */
static int complain_difference(const training *t)
{
    if (t->loader == NULL) {
        rank_message("the ranks have different options");
        return STATUS_USAGE;
    }
    rank_message("%s: the ranks read different packs after step %" PRIu64,
                 tr_loader_name(t->loader), t->now.steps);
    return STATUS_FAILURE;
}

/*
 * Returns STATUS_OK if all ranks succeeded with the same digest.  Otherwise all
 * end with the status of the lowest rank that failed, which prints its message.
 * Every failure passes through here before the next joint operation, so no rank
 * waits for one that has ended.
 */
static int agree(training *t, int status, uint64_t digest)
{
    tr_workers_verdict all;

    if (status == STATUS_OK && t->workers.rank > 0 && signals_stopped() != 0) {
        rank_message("rank %" PRIu32 ": a signal ends the run",
                     t->workers.rank);
        status = STATUS_FAILURE;
    }
    shutdown_allow();
    all = tr_workers_agree(&t->workers, status, digest);
    shutdown_forbid();
    rank_message_flush(all.first == t->workers.rank);
    if (all.status != STATUS_OK || all.same)
        return all.status;
    status = complain_difference(t);
    rank_message_flush(t->workers.rank == 0);
    return status;
}

/* Sums the losses of all ranks, for rank 0 to print. */
static void sum_losses(training *t)
{
    report_step *const s = &t->unprinted;
    double sums[] = {s->loss, s->mlm, s->nsp, s->processor, s->exchange,
                     s->waited};

    tr_workers_sum(&t->workers, sums, 6);
    s->loss = sums[0];
    s->mlm = sums[1];
    s->nsp = sums[2];
    s->processor = sums[3];
    s->exchange = sums[4] / t->workers.ranks;
    s->waited = sums[5] / t->workers.ranks;
    if (t->workers.rank > 0)
        *s = (report_step){0};
}

/* Prints the unprinted steps.  The reader may be slow. */
static int print(training *t)
{
    bool written = true;

    shutdown_allow();
    (void)pthread_mutex_lock(&t->printer);
    sum_losses(t);
    if (t->unprinted.steps > 0)
        written = report_print(&t->unprinted, t->conf.stats);
    (void)pthread_mutex_unlock(&t->printer);
    shutdown_forbid();
    return written ? STATUS_OK : complain_stdout();
}

/* ---- Waiting for steps ---- */

static double now(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Records the steps that succeeded; the last one gets the sums of all. */
static void settle_good(training *t, const tr_results *r)
{
    report_step *last = &t->queue[r->steps - 1].report;

    last->gradient = r->gradient;
    last->mlm = r->sum[TR_LOSS_MLM];
    last->nsp = r->sum[TR_LOSS_NSP];
    last->loss = last->mlm + last->nsp;
    last->seconds = now(CLOCK_MONOTONIC) - t->started;
    last->processor = now(CLOCK_PROCESS_CPUTIME_ID) - t->used;
    last->graphs = r->graphs;
    last->launches = r->launches;
    for (uint64_t i = 0; i < r->steps; i++) {
        report_add(&t->unprinted, &t->queue[i].report);
        t->idle += t->queue[i].idle;
    }
    t->state.run = t->queue[r->steps - 1].run;
    run_state_note_positions(&t->state, t->loader);
}

/*
 * Waits for the queued steps.  After a failure the model and state.run are as
 * after the last successful step.  If the device itself failed, nothing can be
 * saved, which is reported once.
 */
static int settle_steps(training *t)
{
    uint64_t n = t->n_queued;
    tr_results r;
    const char *why;

    if (t->device == NULL || (n == 0 && t->state.failed))
        return STATUS_OK;
    t->n_queued = 0;
    if (!t->device->ops->finish(t->device, &r, &why)) {
        t->state.failed = true;
        return complain(why);
    }
    if (r.steps > 0)
        settle_good(t, &r);
    if (r.steps == n)
        return STATUS_OK;
    rank_message("step %" PRIu64 ": the loss is not finite "
                 "(a lower --rate may help)", t->queue[r.steps].report.step);
    return STATUS_FAILURE;
}

/* The same on the main thread, which alone may call MPI_Abort: that ends all
 * ranks if a device failed that others wait for. */
static int settle(training *t)
{
    const int status = settle_steps(t);

    if (status != STATUS_OK && t->state.failed && t->device->is_waited_for) {
        rank_message_flush(true);
        atomic_file_close(&t->state.file);
        tr_workers_abort(&t->workers, status);
    }
    return status;
}

/* Reports `what`, or the failure of the device that caused it. */
static int complain_memory(training *t, const char *what)
{
    int status = settle(t);

    return status == STATUS_OK ? complain(what) : status;
}

/* ---- The start ---- */

/* The final action after a signal.  The main thread waits or prints. */
static int save_and_print(void *context)
{
    training *t = context;
    struct timespec limit;
    int settled, status;

    rank_message_flush(true);
    rank_message_hold(false);
    settled = settle_steps(t);
    status = run_state_save(&t->state, t->device, t->model, t->lamb);
    atomic_file_close(&t->state.file);
    (void)clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += PATIENCE;
    if (is_alone(t) &&
        pthread_mutex_timedlock(&t->printer, &limit) == 0)
        (void)report_print(&t->unprinted, t->conf.stats);
    return settled == STATUS_OK ? status : settled;
}

static tr_device *open_one(const training *t, char *why, size_t size)
{
    return t->conf.device == CONF_CUDA
               ? tr_cuda_open(t->workers.local,
                              (tr_precision)t->conf.precision, why, size)
               : tr_cpu_open();
}

/* Reports the choice of --attention=auto, once for all ranks. */
static void say_attention(const training *t, const char *why)
{
    if (t->workers.rank > 0)
        return;
    rank_message_hold(false);
    rank_message("attention: %s (%s)",
                 t->conf.attention == BERT_CUDNN ? "cudnn" : "varlen", why);
    rank_message_hold(!is_alone(t));
}

/* If cuDNN cannot be opened and auto chose it, continues without. */
static int open_device(training *t)
{
    const char *chosen = t->conf.attention_why;
    char why[200] = "no memory", refusal[200];

    if (t->conf.attention == BERT_CUDNN && !tr_cudnn_is_built)
        return complain("this build has no cuDNN");
    t->device = open_one(t, why, sizeof why);
    if (t->device != NULL && t->conf.attention == BERT_CUDNN
        && !tr_cuda_use_cudnn(t->device, t->conf.model.hidden,
                              t->conf.model.heads, t->conf.model.dropout,
                              refusal, sizeof refusal)) {
        tr_device_close(t->device);
        t->device = NULL;
        if (chosen == NULL)
            return complain(refusal);
        chosen = refusal;
        t->conf.attention = BERT_VARLEN;
        t->device = open_one(t, why, sizeof why);
    }
    if (t->device == NULL)
        return complain(why);
    if (chosen != NULL)
        say_attention(t, chosen);
    return STATUS_OK;
}

/*
 * Rank 0 saves for all.  mpirun passes a signal to all ranks, and kills rank 0
 * once another rank ends by it.  So the others catch the signal and continue.
 */
static int set_ranks(training *t)
{
    t->conf.loader.rank = t->workers.rank;
    t->conf.loader.ranks = t->workers.ranks;
    t->conf.loader.hidden = t->conf.model.hidden;
    if (t->workers.rank == 0 || t->conf.save == NULL)
        return STATUS_OK;
    t->conf.save = NULL;
    signals_catch_stop();
    return STATUS_OK;
}

/*
 * Returns -1, or the exit status.  Rank 0 parses first, so that the help or a
 * message is printed once.
 */
static int parse(training *t, int argc, char **argv)
{
    const char *const why = tr_workers_open(&t->workers);
    int status, all;

    rank_message_hold(!is_alone(t));
    status = agree(t, why == NULL ? STATUS_OK : complain(why), 0);
    if (status != STATUS_OK)
        return status;
    if (t->workers.rank == 0)
        status = conf_parse(&t->conf, argc, argv);
    tr_workers_copy(&t->workers, &status, sizeof status);
    if (status >= 0)
        return status;
    if (t->workers.rank > 0)
        status = conf_parse(&t->conf, argc, argv);
    all = agree(t, status < 0 ? STATUS_OK : status,
                status < 0 ? conf_digest(&t->conf) : 0);
    return all != STATUS_OK ? all : status;
}

/* A name may be a pipe on rank 0's machine only, so rank 0 decides. */
static int settle_input(training *t)
{
    tr_input_kind *const input = &t->conf.loader.input;

    tr_workers_copy(&t->workers, input, sizeof *input);
    if (is_alone(t) || *input == TR_INPUT_SHARED || t->workers.has_second)
        return STATUS_OK;
    return complain("ranks that exchange packs need an MPI with "
                    "MPI_THREAD_MULTIPLE");
}

/* Refuses CUDA graphs with several processes. */
static int settle_graphs(const training *t)
{
    if (is_alone(t) || t->conf.graphs != BERT_GRAPHS)
        return STATUS_OK;
    rank_message("--graphs=on is for one process");
    return STATUS_USAGE;
}

static int prepare(training *t)
{
    /* Before the first rank waits for a writer of its pipe. */
    int status = agree(t, settle_graphs(t), 0);

    if (status == STATUS_OK)
        status = agree(t, settle_input(t), 0);

    if (status == STATUS_OK)
        status = set_ranks(t);
    if (status == STATUS_OK)
        status = open_device(t);
    if (status == STATUS_OK)
        status = run_state_open(&t->state, &t->conf);
    if (status == STATUS_OK && t->conf.save != NULL &&
        !shutdown_catch(save_and_print, t))
        return complain("no thread to wait for signals");
    return status;
}

static int open_feed(training *t)
{
    ps_error err;
    ps_result r;

    shutdown_allow();
    r = tr_loader_open(&t->loader, &t->conf.loader, &err);
    shutdown_forbid();
    return r == PS_OK ? STATUS_OK : complain_feed(t, &err);
}

/* Called once all ranks have opened their input. */
static int join_feed(training *t)
{
    uint32_t capacity;
    ps_error err;
    ps_result r;

    shutdown_allow();
    r = tr_loader_join(t->loader, &t->workers, &err);
    shutdown_forbid();
    if (r != PS_OK)
        return complain_feed(t, &err);
    capacity = tr_loader_shape(t->loader)->capacity;
    if (t->conf.model.positions == 0)
        t->conf.model.positions = capacity;
    if (t->conf.model.positions >= capacity)
        return STATUS_OK;
    rank_message("%s: packs of %" PRIu32 " tokens, and only %" PRIu32
                 " positions",
                 tr_loader_name(t->loader), capacity, t->conf.model.positions);
    return STATUS_USAGE;
}

static tr_lamb *open_lamb(const training *t)
{
    size_t n = bert_model_tensors(t->model);
    tr_part *parts = calloc(n, sizeof *parts);
    tr_lamb *l;

    if (parts == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const bert_tensor *tensor = bert_model_tensor(t->model, i);

        parts[i] = (tr_part){.offset = tensor->offset,
                             .count = (size_t)tensor->rows *
                                      tensor->columns,
                             .decays = tensor->decays};
    }
    l = tr_lamb_open(t->device, &t->conf.lamb, bert_model_numbers(t->model),
                     parts, n);
    free(parts);
    return l;
}

/* Starts to sum a bucket while earlier layers are computed. */
static void sum_bucket(void *context, size_t i)
{
    const training *t = context;
    const bert_bucket bucket = bert_model_bucket(t->model, i);
    real *const x = bert_model_device_gradients(t->model) + bucket.first;

    if (t->device->on_host)
        tr_workers_sum_begin(&t->workers, x, bucket.count);
    else
        t->device->ops->sum_begin(t->device, x, bucket.count);
}

/* If a device failed, all ranks end before they use its sums. */
static int end_sums(training *t)
{
    if (is_alone(t))
        return STATUS_OK;
    if (!t->device->on_host)
        return agree(t, t->device->ops->sum_end(t->device) ? STATUS_OK
                                                           : settle(t), 0);
    shutdown_allow();
    tr_workers_sum_end(&t->workers);
    shutdown_forbid();
    return STATUS_OK;
}

static int open_model(training *t)
{
    bert_config config = t->conf.model;

    config.vocab_size = tr_loader_shape(t->loader)->vocab_size;
    t->model = bert_model_open(t->device, &config, t->conf.seed);
    if (t->model == NULL)
        return complain_memory(t, "no memory for such a model");
    t->lamb = open_lamb(t);
    if (t->lamb == NULL)
        return complain_memory(t, "no memory for the optimiser");
    if (!is_alone(t))
        bert_model_watch(t->model, sum_bucket, t);
    bert_model_set_graph_mode(t->model, (bert_graph_mode)t->conf.graphs);
    conf_settings(&t->conf, &config, t->state.settings,
                  sizeof t->state.settings);
    return run_state_alloc(&t->state, t->loader)
               ? STATUS_OK
               : complain("no memory for input positions");
}

static int join_devices(training *t)
{
    bool joined;

    if (is_alone(t) || t->device->on_host)
        return STATUS_OK;
    shutdown_allow();
    joined = tr_cuda_join(t->device, &t->workers,
                          bert_model_device_gradients(t->model),
                          bert_model_numbers(t->model),
                          bert_model_buckets(t->model));
    shutdown_forbid();
    return agree(t, joined ? STATUS_OK : settle(t), 0);
}

static int resume(training *t)
{
    int status = agree(t, run_state_resume(&t->state, t->model, t->lamb), 0);
    ps_error err;
    ps_result r;

    if (status != STATUS_OK)
        return status;
    shutdown_allow();
    run_state_broadcast(&t->state, &t->workers, t->model, t->lamb);
    shutdown_forbid();
    t->now = t->state.run;
    if (t->now.steps == 0)
        return STATUS_OK;
    shutdown_allow();
    r = tr_loader_resume(t->loader, &t->now.position, &err);
    shutdown_forbid();
    return agree(t, r == PS_OK ? STATUS_OK : complain_feed(t, &err), 0);
}

/* ---- Steps ---- */

static double factor_of(const training *t)
{
    tr_batch_counts n = tr_loader_counts(t->loader);

    return t->conf.factor > 0 ? t->conf.factor
                              : (double)n.sequences / (double)n.packs;
}

/* Starts a step on the loader's batch. */
static int learn(training *t, double rate)
{
    const bert_step how = {.attention = (bert_attention)t->conf.attention,
                           .training = true,
                           .seed = tr_rng_mix(t->conf.seed, t->now.steps),
                           .rows = (tr_rows)t->conf.rows};
    int status = STATUS_OK;

    if (!bert_model_forward(t->model, tr_loader_batch(t->loader), &how))
        status = complain_memory(t, "no memory for a batch in the model");
    /* A single rank has nothing to agree on.  A signal must not be handled in a
     * step that the device may capture, as waiting is impossible then. */
    if (t->conf.graphs != BERT_GRAPHS || status != STATUS_OK)
        status = agree(t, status, 0);
    if (status != STATUS_OK)
        return status;
    bert_model_backward(t->model);
    status = end_sums(t);
    if (status == STATUS_OK)
        tr_lamb_step(t->lamb, bert_model_device_weights(t->model),
                     bert_model_device_gradients(t->model), rate, factor_of(t));
    t->device->ops->step_end(t->device);
    return status;
}

/* Records a queued step; a checkpoint may resume after it. */
static void count_step(training *t, const report_step *step)
{
    checkpoint_run *run = &t->now;

    run->steps++;
    run->sequences = step->sequences;
    run->tokens += step->tokens;
    run->lamb = tr_lamb_get(t->lamb);
    run->position = tr_loader_position(t->loader);
    t->queue[t->n_queued++] = (queued_step){
        .report = *step,
        .run = *run,
        .idle = tr_loader_counts(t->loader).targets == 0};
}

/* True after every `every` steps; 0: never. */
static bool is_due(const training *t, uint64_t every)
{
    return every > 0 && t->now.steps % every == 0;
}

static int one_step(training *t)
{
    tr_batch_counts n = tr_loader_counts(t->loader);
    report_step step = {.step = t->now.steps + 1,
                        .sequences = t->now.sequences + n.sequences,
                        .packs = n.packs,
                        .tokens = n.tokens,
                        .rows = n.rows,
                        .learnt = n.sequences,
                        .exchange = tr_loader_times(t->loader).exchange,
                        .waited = tr_loader_times(t->loader).waited,
                        .imbalance = tr_loader_times(t->loader).imbalance};
    int status;

    step.rate = tr_schedule_rate(&t->conf.rate, step.sequences);
    if (t->n_queued == 0) {
        t->started = now(CLOCK_MONOTONIC);
        t->used = now(CLOCK_PROCESS_CPUTIME_ID);
    }
    status = learn(t, step.rate);
    if (status != STATUS_OK)
        return status;
    count_step(t, &step);
    if (t->device->on_host || t->n_queued == QUEUE_MAX ||
        is_due(t, t->conf.report) || is_due(t, t->conf.save_every))
        status = agree(t, settle(t), 0);
    if (status == STATUS_OK && is_due(t, t->conf.report))
        status = agree(t, print(t), 0);
    if (status == STATUS_OK && is_due(t, t->conf.save_every))
        status = agree(
            t, run_state_save(&t->state, t->device, t->model, t->lamb), 0);
    return status;
}

/* Reads the next batch; sets *ended at the end of the input. */
static int next_batch(training *t, bool *ended)
{
    ps_error err;
    ps_result r;

    shutdown_allow();
    r = tr_loader_next(t->loader, &err);
    shutdown_forbid();
    *ended = r == PS_END;
    if (*ended || r == PS_OK)
        return agree(t, STATUS_OK,
                     *ended ? 0 : tr_loader_counts(t->loader).digest);
    return agree(t, complain_feed(t, &err), 0);
}

static int train(training *t)
{
    int status = STATUS_OK;
    bool ended = false;

    if (t->conf.steps > t->now.steps)
        tr_loader_limit(t->loader, t->conf.steps - t->now.steps);
    while (status == STATUS_OK &&
           (t->conf.steps == 0 || t->now.steps < t->conf.steps)) {
        status = next_batch(t, &ended);
        if (status != STATUS_OK || ended)
            break;
        status = one_step(t);
    }
    return status;
}

/* ---- The end ---- */

/* Saves the last complete step, whatever ended the run. */
static int finish(training *t, int status)
{
    int settled, saved, printed;

    rank_message_hold(false);
    settled = settle(t);
    saved = run_state_save(&t->state, t->device, t->model, t->lamb);
    printed = print(t);
    if (status == STATUS_OK)
        status = settled;
    if (status != STATUS_OK)
        return status;
    shutdown_now();
    if (saved != STATUS_OK || printed != STATUS_OK)
        return saved != STATUS_OK ? saved : printed;
    if (t->idle < t->state.run.steps)
        return STATUS_OK;
    if (t->workers.rank > 0)
        return STATUS_DATA;
    rank_message(
        "%s: %s", tr_loader_name(t->loader),
        t->state.run.steps == 0
            ? "no packs"
            : "nothing was learnt: no step had masked tokens or "
              "next-sentence labels");
    return STATUS_DATA;
}

static void close_all(training *t)
{
    tr_loader_free(t->loader); /* its thread may communicate with other ranks */
    tr_workers_close(&t->workers);
    tr_lamb_free(t->lamb);
    bert_model_free(t->model);
    tr_device_close(t->device);
    run_state_close(&t->state);
}

int main(int argc, char **argv)
{
    training t = {.printer = PTHREAD_MUTEX_INITIALIZER,
                  .workers = {.ranks = 1}};
    int status;

    message_init("bert-train"); /* tests build it under other names, too */
    status = parse(&t, argc, argv);

    if (status >= 0) {
        close_all(&t);
        return status;
    }
    status = prepare(&t);
    if (status == STATUS_OK)
        status = open_feed(&t);
    status = agree(&t, status, 0);
    if (status == STATUS_OK) {
        status = join_feed(&t);
        if (status == STATUS_OK)
            status = open_model(&t);
        status = agree(&t, status, 0);
    }
    if (status == STATUS_OK)
        status = join_devices(&t);
    if (status == STATUS_OK)
        status = resume(&t);
    if (status == STATUS_OK)
        status = train(&t);
    status = finish(&t, status);
    close_all(&t);
    if (status == STATUS_FAILURE && !t.state.failed && shutdown_pipe_broke())
        shutdown_by_signal(SIGPIPE);
    return status;
}
