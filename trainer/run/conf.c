/*
 * conf.c - the options of bert-train.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/conf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cuda/open.h"
#include "data/input_files.h"
#include "data/masking.h"
#include "data/rng.h"
#include "run/fail.h"
#include "run/options.h"

#define ROWS_MAX 65536     /* packs or sequences of a batch */
#define WIDTH_MAX 65536
#define LAYERS_MAX 1024
#define EPOCHS_MAX 1000000
#define COUNT_MAX 9e15     /* whole numbers that a double can hold */

#define WORD_OF(x) #x
#define WORD(x) WORD_OF(x)

#define AT(member) offsetof(conf, member)

#define AUTO (BERT_CUDNN + 1) /* the last word of --attention */

static const option_entry entries[] = {
    {"packs", OPTION_U32, 1, ROWS_MAX, AT(feed.packs),
     "packs of a step (16)"},
    {"sequences", OPTION_U32, 1, ROWS_MAX, AT(feed.sequences),
     "sequences of a step, instead: see --flush-every of packstream"},
    {"epochs", OPTION_U32, 1, EPOCHS_MAX, AT(feed.epochs),
     "read the files N times (1)"},
    {"steps", OPTION_U64, 1, COUNT_MAX, AT(steps),
     "end after N steps, those before --resume counted"},
    {"vocab", OPTION_U32, 1, INT32_MAX, AT(feed.vocab_size),
     "tokens are below N (what the stream declares)"},
    {"hidden", OPTION_U32, 1, WIDTH_MAX, AT(model.hidden),
     "width of the model (128)"},
    {"layers", OPTION_U32, 1, LAYERS_MAX, AT(model.layers),
     "its layers (2)"},
    {"heads", OPTION_U32, 1, WIDTH_MAX, AT(model.heads),
     "heads of attention (2)"},
    {"intermediate", OPTION_U32, 1, 4 * WIDTH_MAX,
     AT(model.intermediate),
     "width of the feed-forward network (4 x hidden)"},
    {"positions", OPTION_U32, 1, WIDTH_MAX, AT(model.positions),
     "longest sequence (what a pack holds)"},
    {"dropout", OPTION_DOUBLE, 0, 0.99, AT(model.dropout), "(0.1)"},
    {"attention", OPTION_CHOICE, 0, 0, AT(attention),
     "varlen, dense, cudnn or auto; each sequence by itself, a mask, each by "
     "itself with cuDNN, or cudnn on a GPU that has it, unless the run is "
     "saved, and varlen otherwise (auto)"},
    {"rows", OPTION_CHOICE, 0, 0, AT(rows),
     "padded, stripped or unpadded; padding to compute: all, up to a step's "
     "longest row, none (unpadded; padded if dense)"},
    {"device", OPTION_CHOICE, 0, 0, AT(device),
     "cpu or cuda; what computes; each of several processes has "
     "a GPU, and NCCL or MPI sums: untried on several GPUs (cpu)"},
    {"precision", OPTION_CHOICE, 0, 0, AT(precision),
     "float, tf32 or bf16; of products and activations (float on the CPU, "
     "bf16 on a GPU)"},
    {"graphs", OPTION_CHOICE, 0, 0, AT(graphs),
     "off, rounded or on; whether steps whose shapes repeat are CUDA graphs, "
     "for which counts are rounded up; rounded: that alone, to compare with "
     "(off)"},
    {"exchange", OPTION_CHOICE, 0, 0, AT(exchange),
     "balance, padded or none; how ranks exchange packs that not all of them "
     "read (balance)"},
    {"loss", OPTION_CHOICE, 0, 0, AT(loss),
     "sequence or token; what counts the same (sequence)"},
    {"mask", OPTION_DOUBLE, 0, 1, AT(feed.mask_share),
     "share of tokens to mask, for streams without labels only (0.15)"},
    {"rate", OPTION_DOUBLE, 0, 1e3, AT(rate.peak),
     "highest learning rate (0.004)"},
    {"warmup", OPTION_U64, 0, COUNT_MAX, AT(rate.warmup),
     "sequences until it is reached (0)"},
    {"total", OPTION_U64, 0, COUNT_MAX, AT(rate.total),
     "sequences until it is 0; 0: never (0)"},
    {"power", OPTION_DOUBLE, 0, 100, AT(rate.power),
     "of its fall: 1 is a line (1)"},
    {"beta1", OPTION_DOUBLE, 0, 0.999999, AT(lamb.beta1), "(0.9)"},
    {"beta2", OPTION_DOUBLE, 0, 0.999999, AT(lamb.beta2), "(0.999)"},
    {"factor", OPTION_DOUBLE, 0, 1e6, AT(factor),
     "their power; 0: sequences per pack of each step (0; 1 with "
     "--sequences)"},
    {"decay", OPTION_DOUBLE, 0, 1, AT(lamb.decay),
     "of weights (0.01)"},
    {"clip", OPTION_DOUBLE, 0, 1e30, AT(lamb.clip),
     "longest gradient; 0: any (1)"},
    {"seed", OPTION_U64, 0, COUNT_MAX, AT(seed),
     "of weights, dropout and masks (1)"},
    {"save", OPTION_TEXT, 0, 0, AT(save),
     "keep a checkpoint there, to go on from"},
    {"save-every", OPTION_U64, 1, COUNT_MAX, AT(save_every),
     "write it after every N steps, besides at the end"},
    {"resume", OPTION_FLAG, 0, 0, AT(resume),
     "go on from the checkpoint, if there is one"},
    {"report", OPTION_U64, 1, COUNT_MAX, AT(report),
     "print a line after every N steps (10)"},
    {"stats", OPTION_CHOICE, 0, 0, AT(stats),
     "text or json; how lines are printed (text)"},
};

static const char *const standard_input[] = {"-"};

/* A share that is not given is below 0. */
static conf defaults(void)
{
    return (conf){.feed = {.epochs = 1, .types = 2, .mask_share = -1},
                  .model = {.hidden = 128,
                            .layers = 2,
                            .heads = 2,
                            .types = 2,
                            .dropout = 0.1},
                  .lamb = {.beta1 = 0.9,
                           .beta2 = 0.999,
                           .epsilon = 1e-6,
                           .decay = 0.01,
                           .clip = 1},
                  .rate = {.peak = 0.004, .power = 1},
                  .attention = AUTO,
                  .rows = -1,
                  .precision = -1,
                  .exchange = -1,
                  .factor = -1,
                  .seed = 1,
                  .report = 10};
}

/* What cuDNN's attention cannot do. */
static const char *check_cudnn(const conf *c)
{
    if (c->device != CONF_CUDA)
        return "--attention=cudnn wants --device=cuda";
    if (c->precision != BERT_BF16)
        return "--attention=cudnn has --precision=bf16 only";
    if (c->graphs == BERT_GRAPHS)
        return "--attention=cudnn does without --graphs=on";
    if (c->model.hidden / c->model.heads % BERT_CUDNN_HEAD != 0)
        return "--attention=cudnn has heads of a width that "
               WORD(BERT_CUDNN_HEAD) " divides";
    return NULL;
}

/* Why auto does not choose cuDNN; NULL: it does. */
static const char *avoid_cudnn(const conf *c)
{
    const char *const wrong = check_cudnn(c);

    if (!bert_cudnn_is_built)
        return "this build has no cuDNN";
    if (wrong != NULL)
        return wrong;
    if (c->graphs != BERT_EXACT)
        return "--graphs=rounded has the bits of --graphs=on";
    if (c->save != NULL)
        return "a run with --save resumes bit for bit; --attention=cudnn is "
               "faster, but may not";
    return NULL;
}

static void choose_attention(conf *c)
{
    const char *const why = avoid_cudnn(c);

    c->attention = why == NULL ? BERT_CUDNN : BERT_VARLEN;
    if (c->device == CONF_CUDA)
        c->attention_why = why != NULL
                               ? why
                               : "the fastest; --attention=varlen repeats a "
                                 "run bit for bit";
}

/* What a device cannot do. */
static const char *check_device(conf *c)
{
    const bool cuda = c->device == CONF_CUDA;

    if (c->precision < 0)
        c->precision = cuda ? BERT_BF16 : BERT_FLOAT;
    if (!cuda && c->graphs != BERT_EXACT)
        return "--graphs is for --device=cuda";
    if (!cuda)
        return c->precision == BERT_FLOAT
                   ? NULL : "--precision of the CPU is float";
    if (c->attention == BERT_DENSE)
        return "--device=cuda has no --attention=dense";
    if (c->model.hidden > BERT_CUDA_HIDDEN_MAX)
        return "--device=cuda has --hidden up to "
               WORD(BERT_CUDA_HIDDEN_MAX);
    if (c->model.hidden / c->model.heads > BERT_CUDA_HEAD_MAX)
        return "--device=cuda has heads of a width up to "
               WORD(BERT_CUDA_HEAD_MAX);
    return NULL;
}

/* What the options say together. */
static const char *check(conf *c)
{
    const char *wrong;

    if (c->feed.packs > 0 && c->feed.sequences > 0)
        return "--packs and --sequences exclude one another";
    if (c->feed.packs == 0 && c->feed.sequences == 0)
        c->feed.packs = 16;
    if (c->model.hidden % c->model.heads != 0)
        return "--heads does not divide --hidden";
    if (c->rate.total > 0 && c->rate.total <= c->rate.warmup)
        return "--total is not above --warmup";
    if (c->save == NULL && (c->resume || c->save_every > 0))
        return "--resume and --save-every want --save";
    if (c->model.intermediate == 0)
        c->model.intermediate = 4 * c->model.hidden;
    c->feed.loss = c->loss == 0 ? FEED_PER_SEQUENCE : FEED_PER_TOKEN;
    c->feed.seed = c->seed;
    c->feed.exchange = c->exchange < 0 ? FEED_BALANCE
                                       : (feed_exchange)c->exchange;
    if (c->rows < 0)
        c->rows = c->attention == BERT_DENSE ? BERT_PADDED : BERT_UNPADDED;
    if (c->rows == BERT_UNPADDED && c->attention == BERT_DENSE)
        return "--attention=dense has no --rows=unpadded";
    c->feed.pads = c->rows != BERT_UNPADDED;
    /* Batches of so many sequences are the same, packed or not. */
    if (c->factor < 0)
        c->factor = c->feed.sequences > 0 ? 1 : 0;
    wrong = check_device(c);
    if (wrong == NULL && c->attention == AUTO)
        choose_attention(c);
    return wrong == NULL && c->attention == BERT_CUDNN ? check_cudnn(c)
                                                       : wrong;
}

static int finish(conf *c, int argc, char **argv, int first)
{
    const char *wrong = check(c);
    const char *odd;

    if (wrong != NULL) {
        say(CONF_PROGRAM, "%s", wrong);
        return STATUS_USAGE;
    }
    c->feed.names = standard_input;
    c->feed.n_names = 1;
    if (first < argc) {
        c->feed.names = (const char *const *)argv + first;
        c->feed.n_names = (uint32_t)(argc - first);
    }
    odd = inputs_tell(c->feed.names, c->feed.n_names, &c->feed.input);
    if (odd == NULL)
        return -1;
    say(CONF_PROGRAM, "%s: has no %%d for the rank in its name, as others "
        "have", odd);
    return STATUS_USAGE;
}

static const option_program program = {
    .name = CONF_PROGRAM,
    .usage = "[OPTION]... [FILE]...",
    .summary = "Trains a BERT on packs, from files or standard input.  "
               "Of several processes\neach reads its own where a %d in a "
               "name stands for its rank.",
    .entries = entries,
    .n_entries = sizeof entries / sizeof *entries};

int conf_help(void)
{
    return option_help(&program);
}

int conf_parse(conf *c, int argc, char **argv)
{
    int first, status;

    *c = defaults();
    status = option_parse(&program, argc, argv, c, &first);
    return status < 0 ? finish(c, argc, argv, first) : status;
}

uint64_t conf_digest(const conf *c)
{
    static const size_t sizes[] = {[OPTION_FLAG] = sizeof(bool),
                                   [OPTION_U32] = sizeof(uint32_t),
                                   [OPTION_U64] = sizeof(uint64_t),
                                   [OPTION_DOUBLE] = sizeof(double),
                                   [OPTION_CHOICE] = sizeof(int)};
    uint64_t digest = c->feed.n_names;

    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const option_entry *const e = &entries[i];
        const unsigned char *const at = (const unsigned char *)c + e->at;
        uint64_t value = 0;

        if (e->kind == OPTION_TEXT)
            value = *(const char *const *)(const void *)at != NULL;
        else
            memcpy(&value, at, sizes[e->kind]);
        digest = draw_mix(digest, value);
    }
    return digest;
}

void conf_settings(const conf *c, const bert_config *model, char *to,
                   size_t bytes)
{
    static const char *const precisions[] = {"float", "tf32", "bf16"};
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
        c->attention, c->loss, c->feed.packs, c->feed.sequences,
        c->feed.mask_share < 0 ? MASKING_SHARE : c->feed.mask_share,
        c->rate.peak, c->rate.warmup, c->rate.total,
        c->rate.power, c->lamb.beta1, c->lamb.beta2, c->factor,
        c->lamb.decay, c->lamb.clip, c->seed, precisions[c->precision]);
    n = strlen(to);
    if (c->feed.input == FEED_SHARDS)
        (void)snprintf(to + n, bytes - n, " shards=%" PRIu32, c->feed.ranks);
}
