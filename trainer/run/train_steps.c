/*
 * train_steps.c - the loop over steps.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/train_parts.h"

#include "data/rng.h"
#include "run/shutdown.h"

/* Rows that the CPU computes at a time: more take memory, and no less time. */
#define ROWS_AT_ONCE 8192

uint32_t train_micro_batch(const training *t)
{
    const uint32_t capacity = tr_loader_shape(t->loader)->capacity;

    if (t->conf.micro_batch > 0 || !t->device->on_host)
        return t->conf.micro_batch;
    return capacity < ROWS_AT_ONCE ? ROWS_AT_ONCE / capacity : 1;
}

static double factor_of(const training *t)
{
    tr_batch_counts n = tr_loader_counts(t->loader);

    return t->conf.factor > 0 ? t->conf.factor
                              : (double)n.sequences / (double)n.packs;
}

/* Queues a step on the loader's batch. */
static int learn(training *t, double rate)
{
    const tr_step how = {.attention = (tr_attention)t->conf.attention,
                           .training = true,
                           .seed = tr_rng_mix(t->conf.seed, t->now.steps),
                           .rows = (tr_rows)t->conf.rows,
                           .micro_batch = train_micro_batch(t),
                           .recompute = t->conf.recompute};
    int status = STATUS_OK;

    if (!tr_model_forward(t->model, tr_loader_batch(t->loader), &how))
        status = train_fail_memory(t, "no memory for a batch in the model; "
                                      "--micro-batch=1 and --recompute need "
                                      "less");
    /* A step that the device may capture must not wait, so signals are not
     * handled here; graphs run on a single rank, which need not agree. */
    if (t->conf.graphs != TR_GRAPHS || status != STATUS_OK)
        status = train_agree(t, status, 0);
    if (status != STATUS_OK)
        return status;
    tr_model_backward(t->model);
    status = train_end_sums(t);
    if (status == STATUS_OK)
        tr_lamb_step(t->lamb, tr_model_device_weights(t->model),
                     tr_model_device_gradients(t->model), rate, factor_of(t));
    t->device->ops->step_end(t->device);
    return status;
}

/* Records a queued step, after which a run can resume. */
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
        .run = *run};
}

/* True every `every` steps; never if `every` is 0. */
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
                        .idle = n.targets == 0,
                        .exchange = tr_loader_times(t->loader).exchange,
                        .waited = tr_loader_times(t->loader).waited,
                        .imbalance = tr_loader_times(t->loader).imbalance};
    int status;

    step.rate = tr_schedule_rate(&t->conf.rate, step.sequences);
    if (t->n_queued == 0) {
        t->started = train_clock(CLOCK_MONOTONIC);
        t->used = train_clock(CLOCK_PROCESS_CPUTIME_ID);
    }
    status = learn(t, step.rate);
    if (status != STATUS_OK)
        return status;
    count_step(t, &step);
    if (t->device->on_host || t->n_queued == QUEUE_MAX ||
        is_due(t, t->conf.report) || is_due(t, t->conf.save_every))
        status = train_agree(t, train_settle(t), 0);
    if (status == STATUS_OK && is_due(t, t->conf.report))
        status = train_agree(t, train_print(t), 0);
    if (status == STATUS_OK && is_due(t, t->conf.save_every))
        status = train_gather(t);
    if (status == STATUS_OK && is_due(t, t->conf.save_every))
        status = train_agree(
            t, run_state_save(&t->state, t->device, t->model, t->lamb), 0);
    if (status == STATUS_OK && is_due(t, t->conf.every))
        status = train_evaluate(t);
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
        return train_agree(t, STATUS_OK,
                           *ended ? 0 : tr_loader_counts(t->loader).digest);
    return train_agree(t, train_fail_loader(t, &err), 0);
}

int train_steps(training *t)
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
