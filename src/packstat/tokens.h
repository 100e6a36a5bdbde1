/*
 * tokens.h - the statistics of token records.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_TOKENS_H
#define PACKSTAT_TOKENS_H

#include "conf.h"
#include "faults.h"
#include "packstream.h"

/*
 * Reads `reader` to its end, tells what is wrong with it and, if nothing
 * is, prints what `conf` asks for.  For a histogram the lengths go to `out`,
 * to be printed when all files have been read.
 */
void tokens_stat(const packstat_conf *conf, ps_token_reader *reader,
                 packstat_output *out, faults *f);

#endif
