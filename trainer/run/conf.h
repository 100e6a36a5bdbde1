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
    bert_config model; /* vocabulary and positions 0: from the stream */
    tr_lamb_options lamb;
    tr_schedule rate;
    double factor; /* sequences per pack, for the betas; 0: measured */
    int attention; /* a bert_attention */
    const char *attention_why; /* why auto chose it on a GPU; or NULL */
    int rows;      /* a tr_rows */
    int device;    /* a conf_device */
    int precision; /* a tr_precision */
    int graphs;    /* a bert_graph_mode */
    bool stats;    /* print JSON */
    uint64_t seed;
    uint64_t steps; /* total; 0: to the end of the input */
    uint64_t report;
    const char *save; /* checkpoint file; NULL: none */
    uint64_t save_every;
    bool resume;
} conf;

/* Returns -1, or the exit status after printing a message or the help. */
int conf_parse(conf *c, int argc, char **argv);

/* Digest of the options that ranks must agree on; file names may differ. */
uint64_t conf_digest(const conf *c);

/*
 * The settings that must be equal to resume a run; `model` is complete.  They
 * include the precision, which changes results, but not the device, which
 * padding rows are computed, or whether steps are graphs.
 */
void conf_settings(const conf *c, const bert_config *model, char *to,
                   size_t bytes);

#endif /* TR_RUN_CONF_H */
