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
    bert_config model; /* vocabulary and positions 0: as the stream has them */
    tr_lamb_options lamb;
    tr_schedule rate;
    double factor; /* sequences of a pack, for the betas; 0: measured */
    int attention; /* a bert_attention */
    const char *attention_why; /* auto's reason for it on a GPU; or NULL */
    int rows;      /* a tr_rows */
    int device;    /* a conf_device */
    int precision; /* a tr_precision */
    int graphs;    /* a bert_graph_mode */
    bool stats;    /* JSON, not text */
    uint64_t seed;
    uint64_t steps; /* to make in all; 0: as many as there are */
    uint64_t report;
    const char *save; /* NULL: nowhere */
    uint64_t save_every;
    bool resume;
} conf;

/* -1, or the exit status: a message or the help was printed. */
int conf_parse(conf *c, int argc, char **argv);

/* Of all options, which ranks have to agree on; names of files may differ. */
uint64_t conf_digest(const conf *c);

/*
 * What has to be the same in a run that goes on; `model` is whole.  Not the
 * device, and not which rows of padding are computed, or whether steps are
 * graphs, but its precision: numbers that are rounded otherwise make another
 * run.
 */
void conf_settings(const conf *c, const bert_config *model, char *to,
                   size_t bytes);

#endif /* TR_RUN_CONF_H */
