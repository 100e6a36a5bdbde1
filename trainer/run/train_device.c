/*
 * train_device.c - the device of a rank, and sums over devices.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/train_parts.h"

#include <stdlib.h>

#include "cpu/device.h"
#include "cuda/open.h"
#include "ranks/shards.h"
#include "run/rank_message.h"
#include "run/shutdown.h"

static tr_device *open_one(const training *t, char *why, size_t size)
{
    return t->conf.device == CONF_CUDA
               ? tr_cuda_open(t->workers.local,
                              (tr_precision)t->conf.precision, why, size)
               : tr_cpu_open();
}

/* Reports the choice of --attention=auto, once for all ranks. */
static void report_attention(const training *t, const char *why)
{
    if (t->workers.rank > 0)
        return;
    rank_message_hold(false);
    rank_message("attention: %s (%s)",
                 t->conf.attention == TR_CUDNN ? "cudnn" : "varlen", why);
    rank_message_hold(!train_is_alone(t));
}

int train_open_device(training *t)
{
    const char *chosen = t->conf.attention_why;
    char why[200] = "no memory", refusal[200];

    if (t->conf.attention == TR_CUDNN && !tr_cudnn_is_built)
        return train_fail("this build has no cuDNN");
    t->device = open_one(t, why, sizeof why);
    if (t->device != NULL && t->conf.attention == TR_CUDNN
        && !tr_cuda_use_cudnn(t->device, t->conf.model.hidden,
                              t->conf.model.heads, t->conf.model.dropout,
                              refusal, sizeof refusal)) {
        tr_device_close(t->device);
        t->device = NULL;
        if (chosen == NULL)
            return train_fail(refusal);
        chosen = refusal;
        t->conf.attention = TR_VARLEN;
        t->device = open_one(t, why, sizeof why);
    }
    if (t->device == NULL)
        return train_fail(why);
    if (chosen != NULL)
        report_attention(t, chosen);
    return STATUS_OK;
}

/* ---- Sums over ranks ---- */

static bool join(training *t)
{
    const size_t n = tr_model_buckets(t->model);
    tr_range *const buckets = calloc(n, sizeof *buckets);
    bool joined;

    if (buckets != NULL)
        for (size_t i = 0; i < n; i++)
            buckets[i] = tr_model_bucket(t->model, i);
    joined = tr_cuda_join(t->device, &t->workers,
                          tr_model_device_gradients(t->model), buckets, n);
    free(buckets);
    return joined;
}

int train_join_devices(training *t)
{
    bool joined;

    if (train_is_alone(t))
        return STATUS_OK;
    train_watch_buckets(t);
    if (t->device->on_host)
        return STATUS_OK;
    shutdown_allow();
    joined = join(t);
    shutdown_forbid();
    shutdown_defer(t->device->shards != NULL);
    return train_agree(t, joined ? STATUS_OK : train_settle(t), 0);
}

static void await_bucket(void *context, size_t i)
{
    const training *t = context;

    if (t->device->shards != NULL)
        t->device->ops->await_weights(t->device, i);
}

static void sum_bucket(void *context, size_t i)
{
    const training *t = context;
    const tr_range bucket = tr_model_bucket(t->model, i);

    if (t->device->on_host)
        tr_workers_sum_begin(&t->workers,
                             tr_model_device_gradients(t->model)
                                 + bucket.first, bucket.count);
    else
        t->device->ops->sum_begin(t->device, i);
}

void train_watch_buckets(training *t)
{
    tr_model_watch(t->model, &(tr_watch){.needed = await_bucket,
                                             .done = sum_bucket,
                                             .context = t});
}

int train_end_sums(training *t)
{
    if (train_is_alone(t))
        return STATUS_OK;
    if (!t->device->on_host)
        return train_agree(t, t->device->ops->sum_end(t->device)
                                  ? STATUS_OK : train_settle(t), 0);
    shutdown_allow();
    tr_workers_sum_end(&t->workers);
    shutdown_forbid();
    return STATUS_OK;
}

/* ---- Checkpoints of shards ---- */

/* Copies every rank's shards to rank 0's mirror. */
static void gather_mirror(const training *t, real *mirror)
{
    for (size_t i = 0; i < tr_model_buckets(t->model); i++)
        for (uint32_t rank = 1; rank < t->workers.ranks; rank++) {
            const tr_range shard = tr_shard_of(tr_model_bucket(t->model, i),
                                               rank, t->workers.ranks);

            tr_workers_send_first(&t->workers, rank, mirror + shard.first,
                                  shard.count * sizeof *mirror);
        }
}

int train_gather(training *t)
{
    int status;

    if (t->device == NULL || t->device->shards == NULL || !t->saves ||
        t->gathered == t->state.run.steps)
        return STATUS_OK;
    tr_model_fetch(t->model);
    tr_lamb_fetch(t->lamb);
    status = train_settle(t); /* ends all ranks if the device has failed */
    if (status != STATUS_OK)
        return status;
    gather_mirror(t, tr_model_weights(t->model));
    gather_mirror(t, tr_lamb_mean(t->lamb));
    gather_mirror(t, tr_lamb_square(t->lamb));
    t->gathered = t->state.run.steps;
    return STATUS_OK;
}
