/*
 * state.h - the state of a shuffle, to resume it; see tokshuf(1), --state.
 *
 * The runs are in FILE.0 and FILE.1, next to the state FILE.
 *
 * Functions returning int return an exit status and print a message on failure.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_STATE_H
#define TOKSHUF_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "files/checkpoint.h"
#include "tokshuf/conf.h"
#include "tokshuf/input.h"
#include "tokshuf/outputs.h"
#include "tokshuf/sorter.h"

typedef enum state_phase {
    STATE_READING,
    STATE_SORTED, /* all input has been read */
    STATE_ENDED   /* nothing is left to do */
} state_phase;

typedef struct state {
    const conf *conf;
    checkpoint saved;
    char *names[2]; /* names of the runs' files; owned */
    runs_name runs[2];
    bool is_there; /* the state exists, and refers to the runs */
    state_phase phase;
    input_position position; /* position at which the input resumes */
    /* size of all inputs in bytes once they are read, or PS_UNKNOWN */
    uint64_t all_bytes;
} state;

/* Reads the state if it exists and --resume is given. */
int state_open(state *s, const conf *c);

/* Sets the outputs' positions and fingerprints from the state. */
void state_mark_outputs(const state *s, outputs *o);

/* Schema of the records, for a job that does not need any more input. */
int state_schema(const state *s, const outputs *o, ps_schema *schema);

/*
 * Checks that the outputs and schema match the state, and that the sizes of the
 * inputs already read have not changed.
 */
int state_compare(const state *s, const outputs *o, const ps_schema *schema);

/* Opens the runs' files and restores the sorter. */
int state_open_sorter(state *s, sorter *shuffled);

/*
 * Resumes the runs and outputs, or saves a state with their positions and
 * starts them.
 */
int state_start(state *s, const input *in, sorter *shuffled, outputs *o);

/* Records that all input has been read. */
void state_sorted(state *s);

/* Syncs the runs and outputs and saves the state. */
int state_save(state *s, const input *in, sorter *shuffled, outputs *o);

/* Removes the runs of a completed shuffle. */
int state_remove_runs(const state *s);

/* Frees everything, and removes runs that no state refers to. */
void state_close(state *s);

#endif
