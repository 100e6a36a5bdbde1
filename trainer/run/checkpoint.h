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

/* What of a run is a number. */
typedef struct checkpoint_run {
    uint64_t steps; /* that were made */
    uint64_t sequences;
    uint64_t tokens;
    tr_lamb_state lamb;
    tr_input_position position;
} checkpoint_run;

/* Whose all of it is: the weights and both moments, `numbers` of each. */
typedef struct checkpoint {
    /* Words with spaces between them: what must be the same to go on. */
    const char *settings;
    size_t numbers;
    real *weights;
    real *mean;
    real *square;
    tr_input_position
        *positions; /* besides that of the run; the settings say of whom */
    uint32_t n_positions;
} checkpoint;

/* As atomic_file_open, for checkpoints. */
bool checkpoint_open(atomic_file *f, const char *name);

/*
 * Replaces the file.  On failure prints a message and returns false: the old
 * file stays, and `f` is only to be closed.
 */
bool checkpoint_write(atomic_file *f, const checkpoint *c,
                      const checkpoint_run *run);

/*
 * Fills in `run` and the numbers; after a failure they are of no use.
 * PS_OK; PS_END: there is no such file; PS_ERR_ARGUMENT: it was saved with
 * other settings; PS_ERR_MAGIC, _UNSUPPORTED, _TRUNCATED, _CORRUPT, _IO,
 * _MEMORY.
 */
PS_MUST_CHECK ps_result checkpoint_read(const char *name,
                                        const checkpoint *c,
                                        checkpoint_run *run, ps_error *err);

#endif /* TR_RUN_CHECKPOINT_H */
