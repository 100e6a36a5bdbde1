/*
 * tfrecord.h - the frame of TFRecord files: a length, a record's bytes, and
 * a checksum of each.
 *
 *   u64 n, u32 checksum of these 8 bytes, n bytes, u32 checksum of these
 *
 * All is little-endian; the checksum is a CRC-32C, rotated and with a
 * constant added, so that the CRC of data that hold CRCs stays useful.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef WIRE_TFRECORD_H
#define WIRE_TFRECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TFRECORD_HEAD_BYTES 12
#define TFRECORD_TAIL_BYTES 4

/* The checksum that follows `n` bytes: those of a length, or of a record. */
uint32_t tfrecord_checksum(const void *bytes, size_t n);

/*
 * The head that comes before a record of `n` bytes: made, and read.  False if
 * its checksum is wrong; the length may still be any number.
 */
void tfrecord_make_head(uint64_t n, unsigned char head[TFRECORD_HEAD_BYTES]);
bool tfrecord_take_head(const unsigned char head[TFRECORD_HEAD_BYTES],
                        uint64_t *n);

#endif
