/*
 * state.h - the state of a shuffle, kept in a file, and what follows from it
 * when the shuffle is begun again; tokshuf(1), --state.
 *
 * Beside the state FILE are its runs, FILE.0 and FILE.1.
 *
 * Calls that return an int give an exit status, after a message if it is not
 * STATUS_OK.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_STATE_H
#define TOKSHUF_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/atomic_file.h"
#include "tokshuf/conf.h"
#include "tokshuf/input.h"
#include "tokshuf/outputs.h"
#include "tokshuf/sorter.h"

typedef enum state_phase {
    STATE_READING,
    STATE_SORTED, /* all was read */
    STATE_ENDED   /* nothing is left to do */
} state_phase;

typedef struct state {
    const conf *conf;
    atomic_file file;
    unsigned char *bytes; /* that were read, or NULL */
    size_t n_bytes;
    char *names[2]; /* of the runs */
    runs_name runs[2];
    bool is_there; /* the file: runs belong to it */
    state_phase phase;
    input_place place; /* where the input is gone on with */
    uint64_t all_bytes; /* of the input, when all was read; or PS_UNKNOWN */
    uint64_t written;  /* bytes or sequences since the last was saved */
} state;

/*
 * Reads the state, if there is one and the command line wants to go on from
 * it.
 */
int state_open(state *s, const conf *c);

/* What the outputs were when it was saved. */
void state_mark_outputs(const state *s, outputs *o);

/* The schema of the records, after all of the input was read. */
int state_schema(const state *s, const outputs *o, ps_schema *schema);

/* Whether they are those of the state, and the files read what they were. */
int state_compare(const state *s, const outputs *o, const ps_schema *schema);

/* Opens the runs, and takes the sorter to where it was. */
int state_open_sorter(state *s, sorter *shuffled);

/*
 * Goes on with runs and outputs, or begins them, but first saves a state that
 * says where they will be.
 */
int state_start(state *s, const input *in, sorter *shuffled, outputs *o);

/* All of the input was read. */
void state_sorted(state *s);

/* Counts a sequence that was read or written; whether it is time to save. */
bool state_is_due(state *s, uint64_t bytes);

/* Brings runs and outputs to the disk, and saves the state. */
int state_save(state *s, const input *in, sorter *shuffled, outputs *o);

/* Removes the runs of a shuffle that has ended. */
int state_remove_runs(const state *s);

/* Runs that no state speaks of are removed. */
void state_close(state *s);

#endif
