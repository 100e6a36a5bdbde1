/*
 * checkpoint.h - a training run, kept in a file to go on from.
 *
 * Written beside the old one and then put in its place, so that there is a
 * whole one whenever the power fails.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CHECKPOINT_H
#define BERT_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "data/data_loader.h"
#include "model/scalar.h"
#include "optim/lamb.h"

#define CHECKPOINT_SETTINGS 1024

/* What of a run is a number. */
typedef struct checkpoint_run {
    uint64_t steps; /* that were made */
    uint64_t sequences;
    uint64_t tokens;
    lamb_state lamb;
    feed_place place;
} checkpoint_run;

/* Whose all of it is: the weights and both moments, `numbers` of each. */
typedef struct checkpoint {
    /* Words with spaces between them: what must be the same to go on. */
    const char *settings;
    size_t numbers;
    real *weights;
    real *mean;
    real *square;
    feed_place *places; /* besides that of the run; the settings say of whom */
    uint32_t n_places;
} checkpoint;

/*
 * Whether checkpoint_write could do its work, as far as can be seen before:
 * the one beside is made and removed, and with it what a killed run left.
 * PS_OK: there is a file of that name; PS_END: there is none yet;
 * PS_ERR_ARGUMENT: it is not a regular one; PS_ERR_IO, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result checkpoint_try(const char *name, ps_error *err);

/* After a failure the old one is there.  PS_OK, PS_ERR_IO, PS_ERR_MEMORY. */
PS_MUST_CHECK ps_result checkpoint_write(const char *name,
                                         const checkpoint *c,
                                         const checkpoint_run *run,
                                         ps_error *err);

/*
 * Fills in `run` and the numbers; after a failure they are of no use.
 * PS_OK; PS_END: there is no such file; PS_ERR_ARGUMENT: it was saved with
 * other settings; PS_ERR_MAGIC, _UNSUPPORTED, _TRUNCATED, _CORRUPT, _IO,
 * _MEMORY.
 */
PS_MUST_CHECK ps_result checkpoint_read(const char *name,
                                        const checkpoint *c,
                                        checkpoint_run *run, ps_error *err);

#endif /* BERT_CHECKPOINT_H */
