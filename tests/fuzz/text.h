/*
 * text.h - tokcat in memory, for the targets that give it text, or other
 * programs' files.
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

/* Whether these bytes decompress to 64 KiB or more, which takes too long. */
bool is_too_much(const unsigned char *p, size_t n);

/*
 * Runs tokcat on `n` bytes of input; gives its exit status.  The messages are
 * lines that can be printed, and what was written, read again and given in
 * *yield, is whole records at least, and all of it with STATUS_OK.
 */
int run_tokcat(const conf *c, const unsigned char *p, size_t n,
               unsigned manner, token_yield *yield);

/*
 * From now on names that end in ".idx" and ".bin" are these regular files,
 * and not what is fed.
 */
void give_files(int idx, int bin);

/* Forgets the messages so far. */
void hear_messages(void);

/* They are printable lines, at least one for a status that is not OK. */
void check_messages(int status);

#endif
