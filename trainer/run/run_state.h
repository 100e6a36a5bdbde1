/*
 * run_state.h - the state of a run, saved to its checkpoint and resumed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_KEEP_H
#define BERT_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/atomic_file.h"
#include "model/bert/model.h"
#include "optim/lamb.h"
#include "ranks/workers.h"
#include "run/checkpoint.h"
#include "run/conf.h"

typedef struct keep {
    const char *name; /* NULL: nothing is kept */
    atomic_file file; /* of that name */
    char settings[CHECKPOINT_SETTINGS];
    checkpoint_run run; /* as it was after the last whole step */
    feed_place *places; /* then, of ranks behind the first with own shards */
    uint32_t n_places;
    uint64_t saved;     /* the steps that are in the file */
    bool failed;        /* the file or the device, and that was told */
} keep;

/*
 * Opens the file of --save, if it is given, before anything is read.  These
 * functions print a message on failure and return an exit status.
 */
int keep_open(keep *k, const conf *c);
void keep_close(keep *k);

/* Makes room for all places; false: no memory. */
bool keep_room(keep *k, const feed *f);

/* Notes where other ranks are behind the feed's batch. */
void keep_places(keep *k, const feed *f);

/* Goes on from the file, if there is one. */
int keep_read(keep *k, bert_model *model, lamb *l);

/* All ranks go on from what the first one has read. */
void keep_copy(keep *k, const workers *w, bert_model *model, lamb *l);

/* Keeps the steps that are not in the file; the device has made them. */
int keep_save(keep *k, bert_device *device, bert_model *model, lamb *l);

#endif /* BERT_KEEP_H */
