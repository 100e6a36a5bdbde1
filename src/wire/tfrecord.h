/*
 * tfrecord.h - the framing of TFRecord files.
 *
 * Each record, in little-endian order:
 *
 *   u64 n, u32 checksum of these 8 bytes, n bytes, u32 checksum of these
 *
 * The checksum is a CRC-32C, rotated and with a constant added, so that it
 * stays useful for data that contain CRCs.
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

/* The checksum that follows `n` bytes, of a length or of a record. */
uint32_t tfrecord_checksum(const void *bytes, size_t n);

/*
 * Write and read the head of a record of `n` bytes.  Reading returns false if
 * its checksum is wrong.  The length can be any number.
 */
void tfrecord_make_head(uint64_t n, unsigned char head[TFRECORD_HEAD_BYTES]);
bool tfrecord_take_head(const unsigned char head[TFRECORD_HEAD_BYTES],
                        uint64_t *n);

#endif
