/*
 * conf.c - the options of packtrain.
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

static const option_word attentions[] = {{"varlen", TR_VARLEN},
                                         {"dense", TR_DENSE},
                                         {"cudnn", TR_CUDNN},
                                         {"auto", CONF_AUTO},
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
static const option_word graphs[] = {{"off", TR_EXACT},
                                     {"rounded", TR_ROUNDED},
                                     {"on", TR_GRAPHS},
                                     {NULL, 0}};
static const option_word optimizers[] = {
    {"lamb", CONF_LAMB}, {"adamw", CONF_ADAMW}, {NULL, 0}};
static const option_word decays[] = {{"power", TR_DECAY_POWER},
                                     {"cosine", TR_DECAY_COSINE},
                                     {"wsd", TR_DECAY_STABLE},
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
     "target token (default: token; sequence for BERT)",
     WORDS(loss, losses)},

    /* The model. */
    {0, "init", "DIR",
     "start from the model in this folder, as saved by\n"
     "transformers: BERT, ModernBERT, Llama, Qwen, Mistral",
     OPTION_TEXT(conf, init)},
    {0, "config", "DIR",
     "start a new model, described by this folder's\n"
     "config.json",
     OPTION_TEXT(conf, config)},
    {0, "export", "DIR",
     "write the model to this folder at the end, for\n"
     "transformers",
     OPTION_TEXT(conf, export)},
    {0, "hidden", "N", "width of a new BERT (default: 128)",
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
    {0, "micro-batch", "N",
     "compute N packs of a step at a time and add up their\n"
     "gradients, to save memory (default: packs of 8192 tokens\n"
     "on the CPU, all on a GPU)",
     NUMBER(micro_batch, 1, ROWS_MAX)},
    {0, "recompute", NULL,
     "compute activations again in the backward pass, to save\n"
     "memory; takes about a quarter longer",
     OPTION_FLAG(conf, recompute)},

    /* The optimiser. */
    {0, "optimizer", "WORD",
     "lamb, or adamw (default: adamw with --init or --config,\n"
     "otherwise lamb)",
     WORDS(optimizer, optimizers)},
    {0, "rate", "X",
     "peak learning rate (default: 2e-5 with --init, 3e-4\n"
     "with --config, otherwise 0.004)",
     POSITIVE(rate.peak)},
    {0, "warmup", "N", "sequences until the rate peaks (default: 0)",
     COUNT(rate.warmup, 0)},
    {0, "schedule", "WORD",
     "how the rate decays: power, cosine, or wsd, only in\n"
     "the --cooldown (default: power)",
     WORDS(decay, decays)},
    {0, "total", "N", "sequences until the rate is 0 (default: 0, never)",
     COUNT(rate.total, 0)},
    {0, "power", "X", "exponent of the decay to 0; 1: linear (default: 1)",
     POSITIVE(rate.power)},
    {0, "cooldown", "N",
     "sequences before --total in which --schedule=wsd decays",
     COUNT(rate.cooldown, 1)},
    {0, "beta1", "X", "decay of the mean of gradients (default: 0.9)",
     BELOW_1(lamb.beta1)},
    {0, "beta2", "X", "decay of the mean of squares (default: 0.999)",
     BELOW_1(lamb.beta2)},
    {0, "factor", "X",
     "exponent of the betas; 0: sequences per pack in a step\n"
     "(default: 0; 1 with --sequences or adamw)",
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
    {0, "eval", "FILE", "evaluate the model on these packs at the end",
     OPTION_TEXT(conf, eval)},
    {0, "every", "N", "also evaluate every N steps", COUNT(every, 1)},
    {0, "metrics", "FILE",
     "append losses and evaluations to FILE, as JSON Lines",
     OPTION_TEXT(conf, metrics)},
    {0, "report", "N", "print a line every N steps (default: 10)",
     COUNT(report, 1)},
    {0, "stats", "WORD", "format of these lines: text or json (default: text)",
     WORDS(stats, stats)},
    {0},
};

/* Negative numbers, and sizes of 0, mean that the option is not set. */
static conf defaults(void)
{
    return (conf){.loader = {.epochs = 1, .mask_share = -1},
                  .model = {.dropout = -1},
                  .lamb = {.beta1 = 0.9,
                           .beta2 = 0.999,
                           .decay = 0.01,
                           .clip = 1},
                  .rate = {.peak = -1, .power = 1},
                  .optimizer = -1,
                  .loss = -1,
                  .attention = CONF_AUTO,
                  .rows = -1,
                  .precision = -1,
                  .factor = -1,
                  .seed = 1,
                  .report = 10};
}

static int finish(conf *c, int argc, char **argv, int first)
{
    const char *wrong;
    int n, status = conf_complete(c);

    if (status >= 0)
        return status;
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
        .summary = "Train BERT, ModernBERT, Llama, Qwen or Mistral on packs "
                   "from files or standard\ninput.  If names contain %d, each "
                   "of several processes reads the files of its\nrank.",
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

static uint64_t mix_rope(uint64_t digest, const tr_rope *rope)
{
    const double numbers[] = {rope->theta, rope->factor, rope->low_factor,
                              rope->high_factor, rope->old_positions};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t bits;

        memcpy(&bits, numbers + i, sizeof bits);
        digest = tr_rng_mix(digest, bits);
    }
    return digest;
}

/* Digest of the rotary positions and windows of all layers. */
static uint64_t digest_layers(const tr_config *m)
{
    uint64_t digest = mix_rope(mix_rope(0, &m->rope), &m->local_rope);

    for (uint32_t i = 0; i < m->layers; i++)
        digest = tr_rng_mix(digest, m->windowed[i]);
    return digest;
}

/* Settings of the model that its config.json has, and options do not. */
static void add_model(const tr_config *m, char *to, size_t bytes)
{
    const size_t n = strlen(to);

    (void)snprintf(to + n, bytes - n, " family=%d activation=%d kv_heads=%"
                   PRIu32 " head_width=%" PRIu32 " window=%" PRIu32
                   " theta=%.15g epsilon=%.15g rope_and_windows=%016" PRIx64,
                   (int)m->family, (int)m->activation, m->kv_heads,
                   m->head_width, m->window, m->rope.theta, m->epsilon,
                   digest_layers(m));
}

void conf_settings(const conf *c, const tr_config *model, char *to,
                   size_t bytes)
{
    size_t n;

    (void)snprintf(
        to, bytes,
        "vocab=%" PRIu32 " hidden=%" PRIu32 " layers=%" PRIu32
        " heads=%" PRIu32 " intermediate=%" PRIu32 " positions=%" PRIu32
        " types=%" PRIu32 " dropout=%.15g attention=%d loss=%s packs=%" PRIu32
        " sequences=%" PRIu32 " mask=%.15g optimizer=%s schedule=%s"
        " rate=%.15g warmup=%" PRIu64 " total=%" PRIu64 " cooldown=%" PRIu64
        " power=%.15g beta1=%.15g beta2=%.15g "
        "factor=%.15g decay=%.15g clip=%.15g seed=%" PRIu64 " precision=%s",
        model->vocab_size, model->hidden, model->layers, model->heads,
        model->intermediate, model->positions, model->types, model->dropout,
        c->attention, option_word_name(losses, (uint64_t)c->loader.loss),
        c->loader.packs, c->loader.sequences,
        c->loader.mask_share < 0 ? TR_MASKING_SHARE : c->loader.mask_share,
        option_word_name(optimizers, (uint64_t)c->optimizer),
        option_word_name(decays, (uint64_t)c->rate.decay), c->rate.peak,
        c->rate.warmup, c->rate.total, c->rate.cooldown, c->rate.power,
        c->lamb.beta1, c->lamb.beta2, c->factor, c->lamb.decay, c->lamb.clip,
        c->seed,
        option_word_name(precisions, (uint64_t)c->precision));
    if (c->init != NULL || c->config != NULL)
        add_model(model, to, bytes);
    n = strlen(to);
    if (c->micro_batch > 0)
        (void)snprintf(to + n, bytes - n, " micro_batch=%" PRIu32,
                       c->micro_batch);
    n = strlen(to);
    if (c->loader.input == TR_INPUT_SHARDS)
        (void)snprintf(to + n, bytes - n, " shards=%" PRIu32, c->loader.ranks);
}
