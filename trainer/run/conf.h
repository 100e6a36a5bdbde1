/*
 * conf.h - the options of bert-train.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_CONF_H
#define TR_RUN_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/data_loader.h"
#include "model/bert/config.h"
#include "model/bert/model.h"
#include "optim/lamb.h"
#include "optim/schedule.h"

typedef enum conf_device { CONF_CPU, CONF_CUDA } conf_device;

typedef struct conf {
    tr_loader_options loader;
    bert_config model; /* vocab_size, positions: 0 means the stream's */
    tr_lamb_options lamb;
    tr_schedule rate;
    double factor; /* exponent of the betas; 0: sequences per pack */
    int attention; /* a bert_attention */
    const char *attention_why; /* why auto chose it on a GPU, or NULL */
    int rows;      /* a tr_rows */
    int device;    /* a conf_device */
    int precision; /* a tr_precision */
    int graphs;    /* a bert_graph_mode */
    bool stats;    /* true to print JSON */
    uint64_t seed;
    uint64_t steps; /* total steps; 0: to the end of the input */
    uint64_t report;
    const char *save; /* checkpoint file, or NULL */
    uint64_t save_every;
    bool resume;
} conf;

/* Returns -1 to continue, or the exit status after the help or an error. */
int conf_parse(conf *c, int argc, char **argv);

/* Digest of the options that must be equal on all ranks. */
uint64_t conf_digest(const conf *c);

/*
 * Writes the settings that must be equal to resume a run; `model` must be
 * complete.  They include the precision, which changes results, but not
 * --device, --rows or --graphs.
 */
void conf_settings(const conf *c, const bert_config *model, char *to,
                   size_t bytes);

#endif /* TR_RUN_CONF_H */
