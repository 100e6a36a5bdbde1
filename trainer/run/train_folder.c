/*
 * train_folder.c - start from a model of transformers, and write one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/train_parts.h"

#include "folder/folder.h"
#include "run/rank_message.h"

/* Reports tensors that keep their random weights, once for all ranks. */
static void report_missing(const training *t, const model_folder_report *r)
{
    if (r->n_missing == 0 || t->workers.rank > 0)
        return;
    rank_message_hold(false);
    if (r->n_missing == 1)
        rank_message("%s: has no %s: it starts with random weights",
                     message_name(t->conf.init), r->missing->name);
    else
        rank_message("%s: has no %s and %zu other tensors of heads: they "
                     "start with random weights",
                     message_name(t->conf.init), r->missing->name,
                     r->n_missing - 1);
    rank_message_hold(!train_is_alone(t));
}

int train_load(training *t)
{
    const model_folder_request request = {
        .tensors = tr_model_tensor(t->model, 0),
        .n_tensors = tr_model_tensors(t->model)};
    model_folder_report report;
    ps_error err;

    if (t->conf.init == NULL)
        return STATUS_OK;
    if (model_folder_load(t->conf.init, &request, tr_model_weights(t->model),
                          &report, &err) != PS_OK)
        return rank_message_failure(t->conf.init, &err);
    report_missing(t, &report);
    tr_model_store(t->model);
    return STATUS_OK;
}

int train_check_export(const training *t)
{
    ps_error err;

    return t->conf.export == NULL
                   || model_folder_check(t->conf.export, &err) == PS_OK
               ? STATUS_OK : rank_message_failure(t->conf.export, &err);
}

int train_export(training *t)
{
    const model_folder_model model = {
        .source = t->conf.init != NULL ? t->conf.init : t->conf.config,
        .config = tr_model_config(t->model),
        .tensors = tr_model_tensor(t->model, 0),
        .n_tensors = tr_model_tensors(t->model),
        .numbers = tr_model_weights(t->model)};
    tr_results none;
    const char *why;
    ps_error err;

    if (t->conf.export == NULL || t->workers.rank > 0)
        return STATUS_OK;
    tr_model_fetch(t->model);
    if (!t->device->ops->finish(t->device, &none, &why))
        return train_fail(why);
    return model_folder_save(t->conf.export, &model, &err) == PS_OK
               ? STATUS_OK : rank_message_failure(t->conf.export, &err);
}
