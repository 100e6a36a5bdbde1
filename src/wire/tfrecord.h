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

/*
 * The CRC-32C (Castagnoli) of `n` bytes that follow others whose CRC is
 * `crc`; 0 at the start.
 */
uint32_t tfrecord_crc32c(uint32_t crc, const void *bytes, size_t n);

/* What goes before and behind the `n` bytes of a record. */
void tfrecord_make_head(uint64_t n, unsigned char head[TFRECORD_HEAD_BYTES]);
void tfrecord_make_tail(const void *bytes, size_t n,
                        unsigned char tail[TFRECORD_TAIL_BYTES]);

/*
 * The length in a head, any number at all; false if its checksum is wrong.
 * Whether the checksum behind a record is right.
 */
bool tfrecord_take_head(const unsigned char head[TFRECORD_HEAD_BYTES],
                        uint64_t *n);
bool tfrecord_check_tail(const void *bytes, size_t n,
                         const unsigned char tail[TFRECORD_TAIL_BYTES]);

#endif
