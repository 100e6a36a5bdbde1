/*
 * verify.h - read back everything that an earlier job wrote before resuming
 * from its state; packstream(1), --verify.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_VERIFY_H
#define PACKSTREAM_VERIFY_H

#include "packstream/rejects.h"
#include "packstream/resume.h"

/*
 * Reads the packs and rejects counted by the state.  Every checksum must match,
 * and the digests must equal the digests in the state.  The outputs must be
 * open and not truncated yet.  Does nothing without --verify or a state.
 * Returns an exit status; prints a message on failure.
 */
int verify_outputs(const resume *r, const rejects *left_out);

#endif
