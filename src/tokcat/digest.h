/*
 * digest.h - the digest by which a stream names its tokenizer.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_DIGEST_H
#define TOKCAT_DIGEST_H

/*
 * Puts XXH3-128 of the file's content, in its canonical big-endian form (as
 * `xxhsum -H2` prints it), into the first 16 bytes of `digest`, zeros into
 * the rest.  Returns an exit status, after a message if not STATUS_OK.
 */
int digest_file(const char *name, unsigned char digest[32]);

#endif
