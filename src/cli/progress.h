/*
 * progress.h - a progress line on stderr during long operations, if stderr is a
 * terminal.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool active;        /* the line is shown */
    unsigned countdown; /* calls until the clock is read again */
    /* monotonic clock, in nanoseconds, as for all *_ns */
    uint64_t started_ns;
    uint64_t shown_ns;        /* time of the last line */
    const char *const *names; /* names of the inputs; owned by the caller */
    /* total size of the inputs, in bytes; 0: unknown */
    uint64_t all;
    uint64_t first;    /* bytes read when the first line was shown */
    uint64_t first_ns; /* time of the first line; 0: not shown yet */
    uint64_t passed;   /* size of the inputs already read, in bytes */
    int n_passed;      /* number of inputs already read */
} progress;

/* Values shown; zeros are omitted. */
typedef struct progress_figures {
    uint64_t bytes; /* bytes read so far */
    uint64_t sequences;
    uint64_t tokens;
    uint64_t packs;
    uint32_t capacity; /* in tokens; if set, efficiency is shown with `packs` */
    /* after progress_inputs: index of the current input, from 0 */
    int input;
    int fd; /* descriptor of the current input */
} progress_figures;

/* `wanted` is false with --quiet. */
void progress_start(progress *p, bool wanted);

/*
 * Adds the percentage read and the remaining time to the line, if all inputs
 * are regular files.  `names` must stay valid.  Compressed inputs count by
 * their compressed size.
 */
void progress_inputs(progress *p, const char *const *names, int n);

/* The inputs are read a second time, from the beginning. */
void progress_again(progress *p);

/*
 * True about ten times a second, when the line should be redrawn.  Fast enough
 * to be called for every sequence.
 */
bool progress_due(progress *p);

/*
 * Redraws the line, which looks like this:
 *
 *     12.3 M sequences  4.1 G tokens  99.93% full  1.21 GB/s  42%  0:08 left
 *
 * Any message erases it.
 */
void progress_show(progress *p, const progress_figures *figures);

/* Erases the line. */
void progress_end(progress *p);

#endif
