/*
 * conf_complete.c - derive options from each other and from the model.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/conf.h"

#include <string.h>

#include "cli/message.h"
#include "cuda/open.h"
#include "files/files.h"
#include "folder/folder.h"
#include "run/rank_message.h"

#define WORD_OF(x) #x
#define WORD(x) WORD_OF(x)

/* ---- The model ---- */

/* Returns the option of BERT's shape that was given, or NULL. */
static const char *given_shape(const conf *c)
{
    const struct {
        const char *name;
        bool given;
    } all[] = {{"--hidden", c->model.hidden > 0},
               {"--layers", c->model.layers > 0},
               {"--heads", c->model.heads > 0},
               {"--intermediate", c->model.intermediate > 0},
               {"--positions", c->model.positions > 0},
               {"--dropout", c->model.dropout >= 0},
               {"--vocab", c->loader.vocab_size > 0}};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].given)
            return all[i].name;
    return NULL;
}

static int refuse_model(const char *folder, const char *what)
{
    rank_message("%s: config.json: %s is not supported", message_name(folder),
                 what);
    return STATUS_DATA;
}

/* Reads config.json.  Returns -1, or the exit status after a message. */
static int read_model(conf *c)
{
    const char *const given = given_shape(c);
    const char *const folder = c->init != NULL ? c->init : c->config;
    int status = -1;
    ps_error err;

    if (c->init != NULL && c->config != NULL)
        status = message_usage("--init and --config exclude each other");
    else if (given != NULL)
        status = message_usage("%s is set by the model's config.json", given);
    else if (model_folder_config(folder, &c->model, &err) != PS_OK)
        status = rank_message_failure(folder, &err);
    else if (c->model.family == TR_BERT && c->model.activation == TR_SILU)
        status = refuse_model(folder, "hidden_act silu in BERT");
    c->loader.vocab_size = c->model.vocab_size;
    return status;
}

static void fill(uint32_t *number, uint32_t value)
{
    if (*number == 0)
        *number = value;
}

/* A new BERT, as described by options. */
static const char *describe_bert(conf *c)
{
    tr_config *const m = &c->model;

    m->family = TR_BERT;
    m->activation = TR_GELU_TANH;
    m->types = 2;
    fill(&m->hidden, 128);
    fill(&m->layers, 2);
    fill(&m->heads, 2);
    fill(&m->intermediate, 4 * m->hidden);
    if (m->dropout < 0)
        m->dropout = 0.1;
    return m->hidden % m->heads == 0
               ? NULL : "--hidden must be a multiple of --heads";
}

/* ---- The device ---- */

/* Width of a head. */
static uint32_t width_of(const conf *c)
{
    return c->model.family == TR_BERT ? c->model.hidden / c->model.heads
                                      : c->model.head_width;
}

/* Returns why cuDNN cannot compute attention, or NULL if it can. */
static const char *check_cudnn(const conf *c)
{
    if (c->device != CONF_CUDA)
        return "--attention=cudnn needs --device=cuda";
    if (c->precision != TR_BF16)
        return "--attention=cudnn needs --precision=bf16";
    if (c->model.family != TR_BERT)
        return "--attention=cudnn is for BERT";
    if (c->graphs == TR_GRAPHS)
        return "--attention=cudnn excludes --graphs=on";
    if (width_of(c) % TR_CUDNN_HEAD != 0)
        return "--attention=cudnn needs heads whose width is a multiple of "
               WORD(TR_CUDNN_HEAD);
    return NULL;
}

/* Returns why --attention=auto does not choose cuDNN, or NULL if it does. */
static const char *avoid_cudnn(const conf *c)
{
    const char *const wrong = check_cudnn(c);

    if (!tr_cudnn_is_built)
        return "this build has no cuDNN";
    if (wrong != NULL)
        return wrong;
    if (c->graphs != TR_EXACT)
        return "--graphs=rounded reproduces --graphs=on";
    if (c->save != NULL)
        return "runs with --save resume exactly; --attention=cudnn is "
               "faster, but not reproducible";
    return NULL;
}

static void choose_attention(conf *c)
{
    const char *const why = avoid_cudnn(c);

    c->attention = why == NULL ? TR_CUDNN : TR_VARLEN;
    if (c->device == CONF_CUDA && c->model.family == TR_BERT)
        c->attention_why = why != NULL
                               ? why
                               : "fastest; --attention=varlen is "
                                 "reproducible";
}

/* Returns an error message if the device does not support the options. */
static const char *check_device(conf *c)
{
    const bool cuda = c->device == CONF_CUDA;

    if (c->precision < 0)
        c->precision = cuda ? TR_BF16 : TR_FLOAT;
    if (!cuda && c->graphs != TR_EXACT)
        return "--graphs needs --device=cuda";
    if (!cuda)
        return c->precision == TR_FLOAT
                   ? NULL : "--device=cpu supports --precision=float only";
    if (c->attention == TR_DENSE)
        return "--device=cuda does not support --attention=dense";
    if (c->model.hidden > TR_CUDA_HIDDEN_MAX)
        return "--device=cuda supports --hidden up to "
               WORD(TR_CUDA_HIDDEN_MAX);
    if (width_of(c) > TR_CUDA_HEAD_MAX)
        return "--device=cuda supports heads of a width up to "
               WORD(TR_CUDA_HEAD_MAX);
    return NULL;
}

/* ---- Learning ---- */

static const char *check_rate(const conf *c)
{
    const tr_schedule *const rate = &c->rate;

    if (rate->total > 0 && rate->total <= rate->warmup)
        return "--total must be greater than --warmup";
    if (rate->total == 0 && rate->decay != TR_DECAY_POWER)
        return "--schedule needs --total";
    if ((rate->decay == TR_DECAY_STABLE) != (rate->cooldown > 0))
        return rate->cooldown > 0 ? "--cooldown needs --schedule=wsd"
                                  : "--schedule=wsd needs --cooldown";
    if (rate->cooldown > rate->total - rate->warmup)
        return "--cooldown must not begin before --warmup ends";
    return NULL;
}

static void complete_learning(conf *c)
{
    const bool given = c->init != NULL || c->config != NULL;

    if (c->optimizer < 0)
        c->optimizer = given ? CONF_ADAMW : CONF_LAMB;
    c->rate.decay = (tr_decay)c->decay;
    c->lamb.trust = c->optimizer == CONF_LAMB;
    c->lamb.epsilon = c->optimizer == CONF_LAMB ? 1e-6 : 1e-8;
    if (c->rate.peak < 0)
        c->rate.peak = c->init != NULL ? 2e-5 : given ? 3e-4 : 0.004;
    if (c->loss < 0)
        c->loss = c->model.family == TR_BERT ? TR_LOSS_PER_SEQUENCE
                                             : TR_LOSS_PER_TOKEN;
    /* With --sequences, the size of a batch does not depend on packing. */
    if (c->factor < 0)
        c->factor = c->loader.sequences > 0 || c->optimizer == CONF_ADAMW;
}

static void complete_loader(conf *c)
{
    tr_loader_options *const l = &c->loader;

    if (l->packs == 0 && l->sequences == 0)
        l->packs = 16;
    l->seed = c->seed;
    l->loss = (tr_loss_weighting)c->loss;
    l->types = c->model.family == TR_BERT ? c->model.types : 0;
    l->causal = c->model.family == TR_LLAMA;
    l->pads = c->rows != TR_UNPADDED;
}

/* ---- All options ---- */

/* Checks combinations of options.  Returns NULL or an error message. */
static const char *check(const conf *c)
{
    if (c->loader.packs > 0 && c->loader.sequences > 0)
        return "--packs and --sequences exclude each other";
    if (c->save != NULL && *c->save == '\0')
        return "--save must be the name of a file";
    if (c->save == NULL && (c->resume || c->save_every > 0))
        return "--resume and --save-every need --save";
    if (c->save != NULL && c->metrics != NULL &&
        files_are_one_name(c->save, c->metrics))
        return "--save and --metrics must be different files";
    if (c->export != NULL && *c->export == '\0')
        return "--export must be the name of a folder";
    if (c->eval == NULL && c->every > 0)
        return "--every needs --eval";
    if (c->eval != NULL && strcmp(c->eval, "-") == 0)
        return "--eval must be the name of a file, which can be read again";
    if (c->eval != NULL && c->graphs != TR_EXACT)
        return "--eval excludes --graphs";
    if (c->micro_batch > 0 && c->graphs != TR_EXACT)
        return "--micro-batch excludes --graphs";
    if (c->attention == TR_DENSE && c->rows == TR_UNPADDED)
        return "--attention=dense does not support --rows=unpadded";
    if (c->attention == TR_DENSE && c->model.family != TR_BERT)
        return "--attention=dense is for BERT";
    return check_rate(c);
}

int conf_complete(conf *c)
{
    const char *wrong = NULL;
    int status = -1;

    if (c->init != NULL || c->config != NULL)
        status = read_model(c);
    else
        wrong = describe_bert(c);
    if (status >= 0)
        return status;
    if (c->rows < 0)
        c->rows = c->attention == TR_DENSE ? TR_PADDED : TR_UNPADDED;
    complete_learning(c);
    if (wrong == NULL)
        wrong = check(c);
    if (wrong == NULL)
        wrong = check_device(c);
    if (wrong == NULL && c->attention == CONF_AUTO)
        choose_attention(c);
    if (wrong == NULL && c->attention == TR_CUDNN)
        wrong = check_cudnn(c);
    complete_loader(c);
    return wrong == NULL ? -1 : message_usage("%s", wrong);
}
