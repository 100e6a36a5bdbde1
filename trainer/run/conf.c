/*
 * conf.c - the options of bert-train.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/conf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "cli/options.h"
#include "cuda/open.h"
#include "data/input_files.h"
#include "data/masking.h"
#include "data/number_option.h"
#include "data/rng.h"

#define ROWS_MAX 65536 /* packs or sequences per batch */
#define WIDTH_MAX 65536
#define LAYERS_MAX 1024
#define EPOCHS_MAX 1000000

#define WORD_OF(x) #x
#define WORD(x) WORD_OF(x)

#define AUTO (BERT_CUDNN + 1) /* --attention=auto */

static const option_word attentions[] = {{"varlen", BERT_VARLEN},
                                         {"dense", BERT_DENSE},
                                         {"cudnn", BERT_CUDNN},
                                         {"auto", AUTO},
                                         {NULL, 0}};
static const option_word rows[] = {{"padded", TR_PADDED},
                                   {"stripped", TR_STRIPPED},
                                   {"unpadded", TR_UNPADDED},
                                   {NULL, 0}};
static const option_word devices[] = {
    {"cpu", CONF_CPU}, {"cuda", CONF_CUDA}, {NULL, 0}};
static const option_word precisions[] = {{"float", TR_FLOAT},
                                         {"tf32", TR_TF32},
                                         {"bf16", TR_BF16},
                                         {NULL, 0}};
static const option_word graphs[] = {{"off", BERT_EXACT},
                                     {"rounded", BERT_ROUNDED},
                                     {"on", BERT_GRAPHS},
                                     {NULL, 0}};
static const option_word losses[] = {{"sequence", TR_LOSS_PER_SEQUENCE},
                                     {"token", TR_LOSS_PER_TOKEN},
                                     {NULL, 0}};
static const option_word stats[] = {{"text", false}, {"json", true}, {NULL, 0}};

#define NUMBER(member, low, high) OPTION_NUMBER(conf, member, low, high)
#define COUNT(member, low) OPTION_NUMBER(conf, member, low, UINT64_MAX)
#define WORDS(member, table) OPTION_WORD(conf, member, table)
#define SHARE(member) OPTION_CALL_FOR(conf, member, tr_option_share)
#define BELOW_1(member) OPTION_CALL_FOR(conf, member, tr_option_below_1)
#define POSITIVE(member) OPTION_CALL_FOR(conf, member, tr_option_positive)

static const option_entry entries[] = {
    /* Batches. */
    {0, "packs", "N", "packs per step, on all ranks together (default: 16)",
     NUMBER(loader.packs, 1, ROWS_MAX)},
    {0, "sequences", "N",
     "sequences per step, instead of --packs; needs packs\n"
     "from packstream --flush-every=N",
     NUMBER(loader.sequences, 1, ROWS_MAX)},
    {0, "epochs", "N", "read the files N times (default: 1)",
     NUMBER(loader.epochs, 1, EPOCHS_MAX)},
    {0, "steps", "N", "stop after N steps, including steps before --resume",
     COUNT(steps, 1)},
    {0, "vocab", "N", "size of the vocabulary (default: the stream's)",
     NUMBER(loader.vocab_size, 1, INT32_MAX)},
    {0, "mask", "SHARE",
     "share of tokens to mask in streams without labels\n(default: 0.15)",
     SHARE(loader.mask_share)},
    {0, "loss", "WORD",
     "what the loss weighs equally: each sequence, or each\n"
     "masked token (default: sequence)",
     WORDS(loader.loss, losses)},

    /* The model. */
    {0, "hidden", "N", "width of the model (default: 128)",
     NUMBER(model.hidden, 1, WIDTH_MAX)},
    {0, "layers", "N", "number of layers (default: 2)",
     NUMBER(model.layers, 1, LAYERS_MAX)},
    {0, "heads", "N", "attention heads (default: 2)",
     NUMBER(model.heads, 1, WIDTH_MAX)},
    {0, "intermediate", "N",
     "width of the feed-forward network (default: 4 x hidden)",
     NUMBER(model.intermediate, 1, 4 * WIDTH_MAX)},
    {0, "positions", "N",
     "maximum tokens in a sequence (default: as in a pack)",
     NUMBER(model.positions, 1, WIDTH_MAX)},
    {0, "dropout", "SHARE", "dropout rate (default: 0.1)",
     BELOW_1(model.dropout)},

    /* Computation. */
    {0, "device", "WORD", "cpu, or cuda: one GPU per process (default: cpu)",
     WORDS(device, devices)},
    {0, "precision", "WORD",
     "format of products and activations: float, tf32, bf16\n"
     "(default: float on the CPU, bf16 on a GPU)",
     WORDS(precision, precisions)},
    {0, "attention", "WORD",
     "varlen: one sequence at a time; dense: all pairs of a\n"
     "pack, masked; cudnn: varlen by cuDNN; auto: cudnn on\n"
     "a GPU unless --save is given (default: auto)",
     WORDS(attention, attentions)},
    {0, "rows", "WORD",
     "how much padding to compute: padded (all), stripped (up\n"
     "to the fullest pack of a step) or unpadded (none)\n"
     "(default: unpadded; padded if --attention=dense)",
     WORDS(rows, rows)},
    {0, "graphs", "WORD",
     "launch steps of the same shape as CUDA graphs: off or\n"
     "on; rounded: only round shapes up (default: off)",
     WORDS(graphs, graphs)},

    /* The optimiser. */
    {0, "rate", "X", "peak learning rate (default: 0.004)",
     POSITIVE(rate.peak)},
    {0, "warmup", "N", "sequences until the rate peaks (default: 0)",
     COUNT(rate.warmup, 0)},
    {0, "total", "N", "sequences until the rate is 0 (default: 0, never)",
     COUNT(rate.total, 0)},
    {0, "power", "X", "exponent of the decay to 0; 1: linear (default: 1)",
     POSITIVE(rate.power)},
    {0, "beta1", "X", "decay of LAMB's mean of gradients (default: 0.9)",
     BELOW_1(lamb.beta1)},
    {0, "beta2", "X", "decay of LAMB's mean of squares (default: 0.999)",
     BELOW_1(lamb.beta2)},
    {0, "factor", "X",
     "exponent of the betas; 0: sequences per pack in a step\n"
     "(default: 0; 1 with --sequences)",
     POSITIVE(factor)},
    {0, "decay", "X", "weight decay (default: 0.01)", SHARE(lamb.decay)},
    {0, "clip", "X", "maximum norm of the gradient; 0: no limit (default: 1)",
     POSITIVE(lamb.clip)},
    {0, "seed", "N", "seed of weights, dropout and masks (default: 1)",
     COUNT(seed, 0)},

    /* The run. */
    {0, "save", "FILE", "write checkpoints to FILE", OPTION_TEXT(conf, save)},
    {0, "save-every", "N", "also write one every N steps",
     COUNT(save_every, 1)},
    {0, "resume", NULL, "continue from the checkpoint, if there is one",
     OPTION_FLAG(conf, resume)},
    {0, "report", "N", "print a line every N steps (default: 10)",
     COUNT(report, 1)},
    {0, "stats", "WORD", "format of these lines: text or json (default: text)",
     WORDS(stats, stats)},
    {0},
};

/* A negative share means that the option is not set. */
static conf defaults(void)
{
    return (conf){.loader = {.epochs = 1, .types = 2, .mask_share = -1},
                  .model = {.hidden = 128,
                            .layers = 2,
                            .heads = 2,
                            .types = 2,
                            .dropout = 0.1},
                  .lamb = {.trust = true,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .epsilon = 1e-6,
                           .decay = 0.01,
                           .clip = 1},
                  .rate = {.peak = 0.004, .power = 1},
                  .attention = AUTO,
                  .rows = -1,
                  .precision = -1,
                  .factor = -1,
                  .seed = 1,
                  .report = 10};
}

/* Returns why cuDNN cannot compute attention, or NULL if it can. */
static const char *check_cudnn(const conf *c)
{
    if (c->device != CONF_CUDA)
        return "--attention=cudnn needs --device=cuda";
    if (c->precision != TR_BF16)
        return "--attention=cudnn needs --precision=bf16";
    if (c->graphs == BERT_GRAPHS)
        return "--attention=cudnn excludes --graphs=on";
    if (c->model.hidden / c->model.heads % TR_CUDNN_HEAD != 0)
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
    if (c->graphs != BERT_EXACT)
        return "--graphs=rounded reproduces --graphs=on";
    if (c->save != NULL)
        return "runs with --save resume exactly; --attention=cudnn is "
               "faster, but not reproducible";
    return NULL;
}

static void choose_attention(conf *c)
{
    const char *const why = avoid_cudnn(c);

    c->attention = why == NULL ? BERT_CUDNN : BERT_VARLEN;
    if (c->device == CONF_CUDA)
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
    if (!cuda && c->graphs != BERT_EXACT)
        return "--graphs needs --device=cuda";
    if (!cuda)
        return c->precision == TR_FLOAT
                   ? NULL : "--device=cpu supports --precision=float only";
    if (c->attention == BERT_DENSE)
        return "--device=cuda does not support --attention=dense";
    if (c->model.hidden > TR_CUDA_HIDDEN_MAX)
        return "--device=cuda supports --hidden up to "
               WORD(TR_CUDA_HIDDEN_MAX);
    if (c->model.hidden / c->model.heads > TR_CUDA_HEAD_MAX)
        return "--device=cuda supports heads of a width up to "
               WORD(TR_CUDA_HEAD_MAX);
    return NULL;
}

/* Checks combinations of options.  Returns NULL or an error message. */
static const char *check(conf *c)
{
    const char *wrong;

    if (c->loader.packs > 0 && c->loader.sequences > 0)
        return "--packs and --sequences exclude each other";
    if (c->loader.packs == 0 && c->loader.sequences == 0)
        c->loader.packs = 16;
    if (c->model.hidden % c->model.heads != 0)
        return "--hidden must be a multiple of --heads";
    if (c->rate.total > 0 && c->rate.total <= c->rate.warmup)
        return "--total must be greater than --warmup";
    if (c->save != NULL && *c->save == '\0')
        return "--save must be the name of a file";
    if (c->save == NULL && (c->resume || c->save_every > 0))
        return "--resume and --save-every need --save";
    if (c->model.intermediate == 0)
        c->model.intermediate = 4 * c->model.hidden;
    c->loader.seed = c->seed;
    if (c->rows < 0)
        c->rows = c->attention == BERT_DENSE ? TR_PADDED : TR_UNPADDED;
    if (c->rows == TR_UNPADDED && c->attention == BERT_DENSE)
        return "--attention=dense does not support --rows=unpadded";
    c->loader.pads = c->rows != TR_UNPADDED;
    /* With --sequences, the size of a batch does not depend on packing. */
    if (c->factor < 0)
        c->factor = c->loader.sequences > 0 ? 1 : 0;
    wrong = check_device(c);
    if (wrong == NULL && c->attention == AUTO)
        choose_attention(c);
    return wrong == NULL && c->attention == BERT_CUDNN ? check_cudnn(c)
                                                       : wrong;
}

static int finish(conf *c, int argc, char **argv, int first)
{
    const char *wrong = check(c);
    int n;

    if (wrong != NULL)
        return message_usage("%s", wrong);
    c->loader.names = option_files(argc, argv, first, &n);
    c->loader.n_names = (uint32_t)n;
    wrong = tr_input_find_kind(c->loader.names, c->loader.n_names,
                               &c->loader.input);
    if (wrong == NULL)
        return -1;
    return message_usage("%s: needs %%d for the rank, like the other names",
                         message_name(wrong));
}

int conf_parse(conf *c, int argc, char **argv)
{
    const option_program program = {
        .usage = "[OPTION]... [FILE]...",
        .summary = "Train a BERT on packs from files or standard input.  If "
                   "names contain %d, each\nof several processes reads "
                   "the files of its rank.",
        .entries = entries};
    option_outcome outcome;
    int first;

    *c = defaults();
    outcome = option_parse(&program, argc, argv, c, &first);
    return outcome == OPTION_RUN ? finish(c, argc, argv, first)
                                 : option_status(outcome);
}

uint64_t conf_digest(const conf *c)
{
    uint64_t digest = c->loader.n_names;

    for (const option_entry *e = entries; e->name != NULL; e++) {
        const unsigned char *const at = (const unsigned char *)c + e->at;
        uint64_t value = 0;

        if (e->type == OPTION_TYPE_TEXT)
            value = *(const char *const *)(const void *)at != NULL;
        else
            memcpy(&value, at, e->size);
        digest = tr_rng_mix(digest, value);
    }
    return digest;
}

void conf_settings(const conf *c, const bert_config *model, char *to,
                   size_t bytes)
{
    size_t n;

    (void)snprintf(
        to, bytes,
        "vocab=%" PRIu32 " hidden=%" PRIu32 " layers=%" PRIu32
        " heads=%" PRIu32 " intermediate=%" PRIu32 " positions=%" PRIu32
        " types=%" PRIu32 " dropout=%.15g attention=%d loss=%d packs=%" PRIu32
        " sequences=%" PRIu32 " mask=%.15g rate=%.15g warmup=%" PRIu64
        " total=%" PRIu64 " power=%.15g beta1=%.15g beta2=%.15g "
        "factor=%.15g decay=%.15g clip=%.15g seed=%" PRIu64 " precision=%s",
        model->vocab_size, model->hidden, model->layers, model->heads,
        model->intermediate, model->positions, model->types, model->dropout,
        c->attention, (int)c->loader.loss, c->loader.packs, c->loader.sequences,
        c->loader.mask_share < 0 ? TR_MASKING_SHARE : c->loader.mask_share,
        c->rate.peak, c->rate.warmup, c->rate.total,
        c->rate.power, c->lamb.beta1, c->lamb.beta2, c->factor,
        c->lamb.decay, c->lamb.clip, c->seed,
        option_word_name(precisions, (uint64_t)c->precision));
    n = strlen(to);
    if (c->loader.input == TR_INPUT_SHARDS)
        (void)snprintf(to + n, bytes - n, " shards=%" PRIu32, c->loader.ranks);
}
