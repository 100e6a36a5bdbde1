/*
 * progress.h - a live line on stderr while long work runs, if stderr is a
 * terminal.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool active;
    unsigned countdown;  /* calls left until the clock is looked at */
    uint64_t started_ns; /* monotonic */
    uint64_t shown_ns;
    const char *const *names; /* of the inputs */
    uint64_t all;    /* bytes of them; 0: not known */
    uint64_t first;  /* of them, read when the first line was shown, */
    uint64_t first_ns; /* and when that was; 0: not yet */
    uint64_t passed; /* bytes of inputs that have been read to their end, */
    int n_passed;    /* and how many these are */
} progress;

/* What the line tells; zeros are left out. */
typedef struct progress_figures {
    uint64_t bytes; /* read so far */
    uint64_t sequences;
    uint64_t tokens;
    uint64_t packs;
    uint32_t capacity; /* with packs: shows the efficiency */
    int input;         /* after progress_inputs: which one is read, from 0, */
    int fd;            /* and where it is open */
} progress_figures;

/* `wanted` is false after --quiet. */
void progress_start(progress *p, bool wanted);

/*
 * The line is to tell how much of these inputs has been read, and how long the
 * rest will take, if all are regular files.  The names stay there.  What is
 * compressed counts as it lies in the file.
 */
void progress_inputs(progress *p, const char *const *names, int n);

/* The inputs are read once more, from their beginning. */
void progress_again(progress *p);

/*
 * True about ten times a second, when it is time to show a line again;
 * cheap enough to be called for every sequence.
 */
bool progress_due(progress *p);

/*
 * "12.3 M sequences  4.1 G tokens  99.93% full  1.21 GB/s  42%  0:08 left",
 * redrawn.  A message that comes meanwhile wipes the line.
 */
void progress_show(progress *p, const progress_figures *figures);

/* Wipes the line. */
void progress_end(progress *p);

#endif
