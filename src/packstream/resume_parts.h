/*
 * resume_parts.h - what the parts of resume.h share.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_RESUME_PARTS_H
#define PACKSTREAM_RESUME_PARTS_H

#include "packstream/resume.h"

/* Makes the note: the options that only the job knows, and the place. */
void resume_store_note(const conf *c, const resume_place *place,
                       unsigned char note[RESUME_NOTE_BYTES]);

/*
 * Reads the place from the state's note, if its options are ours.  An exit
 * status after a message.
 */
int resume_read_note(resume *r);

/* Whether the output is that of the state. */
bool resume_has_output(const resume *r);

#endif
