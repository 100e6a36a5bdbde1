/*
 * checkpoint.h - the state of a training run in a file.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_CHECKPOINT_H
#define TR_RUN_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "files/atomic_file.h"
#include "data/data_loader.h"
#include "model/scalar.h"
#include "optim/lamb.h"

#define CHECKPOINT_SETTINGS 1024

/* Counters of a run and its position in the input. */
typedef struct checkpoint_run {
    uint64_t steps; /* completed steps */
    uint64_t sequences;
    uint64_t tokens;
    tr_lamb_state lamb;
    tr_input_position position;
} checkpoint_run;

/* The arrays of a run: weights and both moments, `numbers` each. */
typedef struct checkpoint {
    /* Space-separated words, which must be equal to resume. */
    const char *settings;
    size_t numbers;
    real *weights;
    real *mean;
    real *square;
    tr_input_position
        *positions; /* positions of other ranks, if they read shards */
    uint32_t n_positions;
} checkpoint;

/* Opens a checkpoint for writing, like atomic_file_open. */
bool checkpoint_open(atomic_file *f, const char *name);

/*
 * Replaces the file.  On failure, prints a message and returns false; the old
 * file is then unchanged, and `f` can only be closed.
 */
bool checkpoint_write(atomic_file *f, const checkpoint *c,
                      const checkpoint_run *run);

/*
 * Fills in `run` and the arrays, which are undefined after a failure.  Returns
 * PS_OK, PS_END if the file does not exist, PS_ERR_ARGUMENT if it was saved
 * with other settings, or PS_ERR_MAGIC, _UNSUPPORTED, _TRUNCATED, _CORRUPT, _IO
 * or _MEMORY.
 */
PS_MUST_CHECK ps_result checkpoint_read(const char *name,
                                        const checkpoint *c,
                                        checkpoint_run *run, ps_error *err);

#endif /* TR_RUN_CHECKPOINT_H */
