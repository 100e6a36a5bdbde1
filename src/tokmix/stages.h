/*
 * stages.h - the stages of a mix: what each has taken from each source, and
 * when it ends.
 *
 * Each stage is a mix of its own, whose amounts start at 0.  A stage ends with
 * the sequence that reaches its length.  The sources continue where the stages
 * before have left them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKMIX_STAGES_H
#define TOKMIX_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "tokmix/conf.h"
#include "tokmix/mix.h"

typedef struct stage_count {
    uint64_t sequences;
    uint64_t tokens;
} stage_count;

/* Members can be read; `lengths` can be set until the stage ends. */
typedef struct stages {
    const conf *conf;
    /* lengths in the unit of --by, CONF_NOW resolved; owned */
    uint64_t *lengths;
    stage_count *counts; /* [n_stages][n sources], of sequences taken; owned */
    stage_count *totals; /* [n_stages], sums of `counts`; owned */
    uint32_t current;    /* n_stages: the mix is complete */
} stages;

/* Returns false if out of memory. */
bool stages_open(stages *s, const conf *c);

/* Counts of a stage, one for each source. */
stage_count *stages_counts(const stages *s, uint32_t stage);

/* Amount that a stage has taken, in the unit of --by. */
uint64_t stages_amount(const stages *s, uint32_t stage);

/* True if all stages have ended. */
bool stages_are_over(const stages *s);

/* Starts the mix of the current stage, or of the next one that has a length. */
void stages_begin(stages *s, mix *m);

/* Ends the current stage and starts the mix of the next one. */
void stages_advance(stages *s, mix *m);

/*
 * Counts a sequence of `n_tok` tokens that was taken from source `i` in the
 * current stage.  Returns true if the stage has reached its length.
 */
bool stages_take(stages *s, uint32_t i, uint64_t n_tok);

void stages_close(stages *s);

#endif
