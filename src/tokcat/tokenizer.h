/*
 * tokenizer.h - what a tokenizer's file tells of a stream: a digest that
 * names it, and how many ids it has.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_TOKENIZER_H
#define TOKCAT_TOKENIZER_H

#include <stdint.h>

/*
 * Puts XXH3-128 of the file's content, in its canonical big-endian form (as
 * `xxhsum -H2` prints it), into the first 16 bytes of `digest`, zeros into
 * the rest.  Returns an exit status, after a message if not STATUS_OK.
 */
int tokenizer_digest(const char *name, unsigned char digest[32]);

/*
 * The size of the vocabulary, one more than the greatest id, if the file is
 * a tokenizer.json of Hugging Face; else *size is 0.  Returns an exit status,
 * after a message if not STATUS_OK.
 */
int tokenizer_vocabulary(const char *name, uint32_t *size);

#endif
