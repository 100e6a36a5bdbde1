/*
 * model_state.c - print a model's results and gradients for a batch of packs.
 *
 * usage: model_state DIR PACKS padded|stripped|unpadded OUT
 *
 * Reads the model in DIR, and all packs as one batch.  Prints arrays of the
 * batch, one per line, and writes OUT, a safetensors file with the gradient of
 * each tensor, the losses of the targets, and "decoder", the input of the
 * decoder for each target.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cpu/device.h"
#include "data/data_loader.h"
#include "folder/folder.h"
#include "folder/safetensors.h"
#include "model/bert/activations.h"
#include "model/model_parts.h"
#include "model/prenorm/activations.h"

static void check(ps_result r, const ps_error *err)
{
    if (r == PS_OK)
        return;
    fprintf(stderr, "model_state: %s\n", err->text);
    exit(1);
}

static tr_model *open_model(tr_device *device, const char *dir)
{
    model_folder_request request = {0};
    model_folder_report report;
    tr_config config;
    tr_model *model;
    ps_error err;

    check(model_folder_config(dir, &config, &err), &err);
    model = tr_model_open(device, &config, 1);
    if (model == NULL)
        exit(2);
    request.tensors = tr_model_tensor(model, 0);
    request.n_tensors = tr_model_tensors(model);
    check(model_folder_load(dir, &request, tr_model_weights(model), &report,
                            &err),
          &err);
    tr_model_store(model);
    return model;
}

static tr_loader *open_packs(const tr_config *config, const char *name)
{
    const char *const names[] = {name};
    const tr_loader_options options = {
        .names = names,
        .n_names = 1,
        .epochs = 1,
        .packs = 65536,
        .vocab_size = config->vocab_size,
        .types = config->family == TR_BERT ? config->types : 0,
        .causal = config->family == TR_LLAMA,
        .loss = TR_LOSS_PER_TOKEN,
        .mask_share = -1,
        .seed = 1,
        .ranks = 1,
        .hidden = config->hidden};
    tr_loader *loader;
    ps_error err;

    check(tr_loader_open(&loader, &options, &err), &err);
    check(tr_loader_next(loader, &err), &err);
    return loader;
}

static void print_array(const char *name, const int32_t *array, size_t n)
{
    printf("%s", name);
    for (size_t i = 0; i < n; i++)
        printf(" %d", (int)array[i]);
    printf("\n");
}

static void print_batch(const tr_batch *b)
{
    print_array("token", b->token, b->n_rows);
    print_array("cu", b->cu, (size_t)b->n_spans + 1);
    print_array("segment", b->segment, b->n_rows);
    print_array("target_row", b->mlm_row, b->n_mlm);
    print_array("target_label", b->mlm_label, b->n_mlm);
}

/* ---- The results ---- */

static const void *decoder_input(const tr_model *m)
{
    if (m->config.family == TR_BERT)
        return bert_kept(&m->pass)->mlm.out;
    return pre_kept(&m->pass)->head.out;
}

static safetensors_item item(const char *name, size_t rank, uint64_t rows,
                             uint64_t columns, const real *numbers)
{
    return (safetensors_item){.name = name,
                              .rank = rank,
                              .shape = {rank == 1 ? columns : rows, columns},
                              .numbers = numbers};
}

static void write_all(const char *name, const tr_model *m, const real *decoder,
                      const double *loss, uint32_t targets)
{
    const size_t n = m->params.n_tensors;
    safetensors_item *const all = calloc(n + 2, sizeof *all);
    real *const losses = calloc(targets + 1, sizeof *losses);
    ps_error err;

    if (all == NULL || losses == NULL)
        exit(2);
    for (size_t i = 0; i < n; i++) {
        const tr_tensor *const t = m->params.tensors + i;

        all[i] = item(t->name, t->vector ? 1 : 2, t->rows, t->columns,
                      m->params.gradients.host + t->offset);
    }
    for (uint32_t i = 0; i < targets; i++)
        losses[i] = (real)loss[i];
    all[n] = item("decoder", 2, targets, m->config.hidden, decoder);
    all[n + 1] = item("loss", 1, 1, targets, losses);
    check(safetensors_write(AT_FDCWD, name, all, n + 2, &err),
          &err);
    free(all);
    free(losses);
}

int main(int argc, char **argv)
{
    tr_device *const device = tr_cpu_open();
    tr_step step = {.rows = TR_UNPADDED};
    tr_model *model;
    tr_loader *loader;
    const tr_batch *batch;
    real *decoder;
    double *loss, *nsp;

    if (argc != 5 || device == NULL)
        return 2;
    message_init("model_state");
    if (strcmp(argv[3], "padded") == 0)
        step.rows = TR_PADDED;
    else if (strcmp(argv[3], "stripped") == 0)
        step.rows = TR_STRIPPED;
    model = open_model(device, argv[1]);
    loader = open_packs(tr_model_config(model), argv[2]);
    batch = tr_loader_batch(loader);
    print_batch(batch);
    loss = calloc(batch->n_mlm + 1, sizeof *loss);
    nsp = calloc(batch->n_seq + 1, sizeof *nsp);
    decoder = calloc((size_t)batch->n_mlm * model->config.hidden + 1,
                     sizeof *decoder);
    if (!loss || !nsp || !decoder || !tr_model_evaluate(model, batch, &step))
        return 2;
    memcpy(decoder, decoder_input(model),
           (size_t)batch->n_mlm * model->config.hidden * sizeof *decoder);
    if (!tr_model_forward(model, batch, &step))
        return 2;
    tr_model_row_losses(model, loss, nsp);
    tr_model_backward(model);
    write_all(argv[4], model, decoder, loss, batch->n_mlm);
    free(loss);
    free(nsp);
    free(decoder);
    tr_loader_free(loader);
    tr_model_free(model);
    tr_device_close(device);
    return 0;
}
