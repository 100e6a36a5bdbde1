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

/*
 * Every sequence must leave once, in time, and by the order of the options;
 * no pack may exceed capacity or depth.  All is flushed after each
 * `flush_every` records, if not 0, and at the end.  False with a fault.
 */
bool drive(const ps_engine_options *options, const uint32_t *lengths,
           size_t n, size_t flush_every, drive_figures *figures);

#endif
