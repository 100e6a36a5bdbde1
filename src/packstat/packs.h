/*
 * packs.h - the statistics of a pack stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_PACKS_H
#define PACKSTAT_PACKS_H

#include "cli/packs.h"
#include "conf.h"
#include "faults.h"
#include "packstream.h"

/*
 * Reads `input` to its end, or what is asked for of it, tells what is wrong
 * with it and, if nothing is, prints what `conf` asks for.  For a histogram
 * the lengths go to `out`, to be printed when all files have been read.
 */
void packs_stat(const packstat_conf *conf, packs *input,
                packstat_output *out, faults *f);

#endif
