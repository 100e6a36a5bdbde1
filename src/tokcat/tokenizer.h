/*
 * tokenizer.h - the digest and vocabulary size of a tokenizer file.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_TOKENIZER_H
#define TOKCAT_TOKENIZER_H

#include <stdint.h>

/*
 * Stores the XXH3-128 of the file's contents, in canonical big-endian form (as
 * `xxhsum -H2` prints it), in the first 16 bytes of `digest`, and zeros in the
 * rest.  Returns an exit status; prints a message on failure.
 */
int tokenizer_digest(const char *name, unsigned char digest[32]);

/*
 * Sets *size to the vocabulary size, which is the largest id plus one, if the
 * file is a Hugging Face tokenizer.json; otherwise to 0.  Returns an exit
 * status; prints a message on failure.
 */
int tokenizer_vocabulary(const char *name, uint32_t *size);

#endif
