/*
 * verify.h - reads all that an earlier job wrote, before this one goes on
 * from its state; packstream(1), --verify.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_VERIFY_H
#define PACKSTREAM_VERIFY_H

#include "packstream/rejects.h"
#include "packstream/resume.h"

/*
 * Reads the packs and the rejects that the state counts: each checksum must
 * hold, and the digests must be those of the state.  The outputs are open and
 * not cut yet.  Does nothing where no state was read.
 * An exit status after a message.
 */
int verify_outputs(const resume *r, const rejects *left_out);

#endif
