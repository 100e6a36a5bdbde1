/*
 * text.h - tokcat in memory, for targets that feed it text or files of other
 * programs.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_FUZZ_TEXT_H
#define TESTS_FUZZ_TEXT_H

#include "fuzz.h"
#include "tokcat/conf.h"
#include "tokens.h"

/* As conf_settle, once all options are set. */
int settle(conf *c);

/* True if these bytes decompress to 64 KiB or more, which is too slow. */
bool is_too_much(const unsigned char *p, size_t n);

/*
 * Runs tokcat on `n` bytes of input; returns its exit status.  Checks that
 * messages are printable lines.  The output, read back into *yield, consists of
 * whole records, and is complete if the status is STATUS_OK.
 */
int run_tokcat(const conf *c, const unsigned char *p, size_t n,
               unsigned manner, token_yield *yield);

/*
 * From now on names that end in ".idx" and ".bin" refer to these regular files,
 * not to the input.
 */
void give_files(int idx, int bin);

/* Discards all messages so far. */
void hear_messages(void);

/* They are printable lines, at least one for a status that is not OK. */
void check_messages(int status);

#endif
