/*
 * conf.h - the options of packtrain.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_CONF_H
#define TR_RUN_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/data_loader.h"
#include "model/config.h"
#include "model/model.h"
#include "optim/lamb.h"
#include "optim/schedule.h"

typedef enum conf_device { CONF_CPU, CONF_CUDA } conf_device;
typedef enum conf_optimizer { CONF_LAMB, CONF_ADAMW } conf_optimizer;

#define CONF_AUTO (TR_CUDNN + 1) /* --attention=auto, before conf_complete */

typedef struct conf {
    tr_loader_options loader;
    tr_config model; /* vocab_size, positions: 0 means the stream's */
    const char *init;   /* folder of the model to start from, or NULL */
    const char *config; /* folder with a config.json, or NULL */
    const char *export; /* folder to write the model to, or NULL */
    int optimizer; /* a conf_optimizer */
    int loss;      /* a tr_loss_weighting */
    int decay;     /* a tr_decay */
    tr_lamb_options lamb;
    tr_schedule rate;
    double factor; /* exponent of the betas; 0: sequences per pack */
    int attention; /* a tr_attention */
    const char *attention_why; /* why auto chose it on a GPU, or NULL */
    int rows;      /* a tr_rows */
    int device;    /* a conf_device */
    int precision; /* a tr_precision */
    int graphs;    /* a tr_graph_mode */
    uint32_t micro_batch; /* packs at a time on each rank; 0: default */
    bool recompute;
    bool stats;    /* true to print JSON */
    uint64_t seed;
    uint64_t steps; /* total steps; 0: to the end of the input */
    const char *eval;   /* packs to evaluate the model on, or NULL */
    uint64_t every;     /* steps between evaluations; 0: only at the end */
    const char *metrics; /* file for JSON Lines, or NULL */
    uint64_t report;
    const char *save; /* checkpoint file, or NULL */
    uint64_t save_every;
    bool resume;
} conf;

/* Returns -1 to continue, or the exit status after the help or an error. */
int conf_parse(conf *c, int argc, char **argv);

/*
 * Completes the options from each other and from the model's config.json.
 * Returns -1, or the exit status after a message.
 */
int conf_complete(conf *c);

/* Digest of the options that must be equal on all ranks. */
uint64_t conf_digest(const conf *c);

/*
 * Writes the settings that must be equal to resume a run; `model` must be
 * complete.  They include the precision, which changes results, but not
 * --device, --rows or --graphs.
 */
void conf_settings(const conf *c, const tr_config *model, char *to,
                   size_t bytes);

#endif /* TR_RUN_CONF_H */
