/*
 * train_device.c - the device of a rank, and sums over devices.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/train_parts.h"

#include "cpu/device.h"
#include "cuda/open.h"
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
                 t->conf.attention == BERT_CUDNN ? "cudnn" : "varlen", why);
    rank_message_hold(!train_is_alone(t));
}

int train_open_device(training *t)
{
    const char *chosen = t->conf.attention_why;
    char why[200] = "no memory", refusal[200];

    if (t->conf.attention == BERT_CUDNN && !tr_cudnn_is_built)
        return train_fail("this build has no cuDNN");
    t->device = open_one(t, why, sizeof why);
    if (t->device != NULL && t->conf.attention == BERT_CUDNN
        && !tr_cuda_use_cudnn(t->device, t->conf.model.hidden,
                              t->conf.model.heads, t->conf.model.dropout,
                              refusal, sizeof refusal)) {
        tr_device_close(t->device);
        t->device = NULL;
        if (chosen == NULL)
            return train_fail(refusal);
        chosen = refusal;
        t->conf.attention = BERT_VARLEN;
        t->device = open_one(t, why, sizeof why);
    }
    if (t->device == NULL)
        return train_fail(why);
    if (chosen != NULL)
        report_attention(t, chosen);
    return STATUS_OK;
}

/* ---- Sums over ranks ---- */

int train_join_devices(training *t)
{
    bool joined;

    if (train_is_alone(t) || t->device->on_host)
        return STATUS_OK;
    shutdown_allow();
    joined = tr_cuda_join(t->device, &t->workers,
                          bert_model_device_gradients(t->model),
                          bert_model_numbers(t->model),
                          bert_model_buckets(t->model));
    shutdown_forbid();
    return train_agree(t, joined ? STATUS_OK : train_settle(t), 0);
}

void train_sum_bucket(void *context, size_t i)
{
    const training *t = context;
    const bert_bucket bucket = bert_model_bucket(t->model, i);
    real *const x = bert_model_device_gradients(t->model) + bucket.first;

    if (t->device->on_host)
        tr_workers_sum_begin(&t->workers, x, bucket.count);
    else
        t->device->ops->sum_begin(t->device, x, bucket.count);
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
