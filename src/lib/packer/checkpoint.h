/*
 * checkpoint.h - what the state of a packer begins and ends with.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PACKER_CHECKPOINT_H
#define LIB_PACKER_CHECKPOINT_H

#include "packer/packer.h"

#define STATE_MAGIC "\x89PKT\r\n\x1a\n"
#define STATE_MAGIC_BYTES 8
#define STATE_VERSION 6
#define STATE_CHECKSUM_BYTES 8

/* What a state is of; a number in it. */
enum { STATE_GOES_ON, STATE_FINISHED, STATE_BLANK };

/* Depth, compression and level, and then the header. */
#define STATE_HEADER_BYTES (4 + 4 + 4 + PS_PACK_HEADER_BYTES)

#endif
