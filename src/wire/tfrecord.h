/*
 * tfrecord.h - the framing of TFRecord files.
 *
 * Each record, in little-endian order:
 *
 *   u64 n, u32 checksum of n, n bytes, u32 checksum of the n bytes
 *
 * The checksum is a CRC-32C, rotated and with a constant added, since the plain
 * CRC of data that contain CRCs is weak.
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

/* Checksum of `n` bytes: those of a length or of a record. */
uint32_t tfrecord_checksum(const void *bytes, size_t n);

/*
 * Write and read the head of a record of `n` bytes.  tfrecord_take_head returns
 * false if the checksum is wrong.  It does not limit `n`.
 */
void tfrecord_make_head(uint64_t n, unsigned char head[TFRECORD_HEAD_BYTES]);
bool tfrecord_take_head(const unsigned char head[TFRECORD_HEAD_BYTES],
                        uint64_t *n);

#endif
