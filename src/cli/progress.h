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
} progress;

/* What the line tells; zeros are left out. */
typedef struct progress_figures {
    uint64_t bytes; /* read so far */
    uint64_t sequences;
    uint64_t tokens;
    uint64_t packs;
    uint32_t capacity; /* with packs: shows the efficiency */
} progress_figures;

/* `wanted` is false after --quiet. */
void progress_start(progress *p, bool wanted);

/*
 * True about ten times a second, when it is time to show a line again;
 * cheap enough to be called for every sequence.
 */
bool progress_due(progress *p);

/*
 * "12.3 M sequences  4.1 G tokens  99.93% full  1.21 GB/s", redrawn.  A
 * message that comes meanwhile wipes the line.
 */
void progress_show(progress *p, const progress_figures *figures);

/* Wipes the line. */
void progress_end(progress *p);

#endif
