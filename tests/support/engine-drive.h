/*
 * engine-drive.h - sends lengths through an engine, as the packer does, and
 * checks whatever comes out of it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_ENGINE_DRIVE_H
#define TESTS_ENGINE_DRIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"

typedef struct drive_figures {
    uint64_t packs;
    uint64_t delay;  /* the most records between a sequence and its leaving */
    uint64_t burst;  /* the most packs that left at once, not flushed */
    uint64_t digest; /* of all that was decided and when */
    char fault[160]; /* what went wrong */
} drive_figures;

/* A piece in a slot; number 0: the slot is free. */
typedef struct drive_held {
    uint64_t number;
    uint64_t tick; /* of the record that it came with */
    uint32_t length;
} drive_held;

/* An engine, and all that it should know of what it holds. */
typedef struct driver {
    const ps_engine_options *options;
    drive_figures figures;
    ps_engine *engine;
    drive_held *slots;
    uint32_t *waiting; /* by tick: pieces that have not left */
    uint64_t now;
    uint64_t oldest;   /* tick of the oldest that waits; now + 1: none */
    uint64_t tokens;   /* that wait */
    uint64_t admitted; /* pieces, and those of them that left */
    uint64_t left;
    uint64_t last;     /* the oldest piece of the last pack */
} driver;

/*
 * Steps with an engine: every sequence must leave once, in time, and by the
 * order of the options; no pack may exceed capacity or depth.  False with a
 * fault in the figures.
 *
 * A record comes in pieces if packs are to be full; with a tick alone one
 * comes that is not admitted.  `records` of both must be enough.
 */
bool drive_open(driver *d, const ps_engine_options *options, size_t records);
bool drive_tick(driver *d);
bool drive_record(driver *d, uint32_t length);
bool drive_packs(driver *d, ps_emit_mode mode);
void drive_close(driver *d);

/*
 * All records of these lengths.  All is flushed after each `flush_every`
 * records, if not 0, and at the end.
 */
bool drive(const ps_engine_options *options, const uint32_t *lengths,
           size_t n, size_t flush_every, drive_figures *figures);

#endif
