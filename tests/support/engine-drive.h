/*
 * engine-drive.h - sends lengths through an engine, as the packer does, and
 * checks the packs.
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
    uint64_t delay;  /* the most records between a sequence and its pack */
    uint64_t burst;  /* the most packs at a time, except in a flush */
    uint64_t digest; /* of all decisions and their times */
    char fault[160]; /* description of the first fault */
} drive_figures;

/* A piece in a slot; number 0: the slot is free. */
typedef struct drive_held {
    uint64_t number;
    uint64_t tick; /* of its record */
    uint32_t length;
} drive_held;

/* An engine, and the expected contents of its window. */
typedef struct driver {
    const ps_engine_options *options;
    drive_figures figures;
    ps_engine *engine;
    drive_held *slots;
    uint32_t *waiting; /* by tick: pieces that wait */
    uint64_t now;
    uint64_t oldest;   /* tick of the oldest waiting piece, or now + 1 */
    uint64_t tokens;   /* waiting */
    uint64_t admitted; /* pieces so far */
    uint64_t left;
    uint64_t last;     /* the oldest piece of the last pack */
} driver;

/*
 * Steps of an engine.  Every sequence must leave once, in time, and in the
 * order that the options require; no pack may exceed capacity or depth.  False
 * after a fault, which is in the figures.
 *
 * A record has several pieces if packs must be full; a lone tick is a record
 * that is not admitted.  `records` must cover both.
 */
bool drive_open(driver *d, const ps_engine_options *options, size_t records);
bool drive_tick(driver *d);
bool drive_record(driver *d, uint32_t length);
bool drive_packs(driver *d, ps_emit_mode mode);
void drive_close(driver *d);

/*
 * Sends records of these lengths; flushes after each `flush_every` records, if
 * not 0, and at the end.
 */
bool drive(const ps_engine_options *options, const uint32_t *lengths,
           size_t n, size_t flush_every, drive_figures *figures);

#endif
