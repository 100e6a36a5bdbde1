/*
 * packs.h - read the packs of one input from any position, by seeking if
 * possible and otherwise by reading everything before it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_PACKS_H
#define FILES_PACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"

/*
 * At most one of the two pointers is not NULL.  Zero-initialise before the
 * first call.
 */
typedef struct packs {
    ps_pack_reader *reader; /* for a stream; owned */
    ps_pack_file *file;     /* with random access; owned */
    uint64_t next;          /* with `file`: number of the next pack, from 0 */
} packs;

/*
 * Opens an input.  If `seek` is set, random access is used if possible: the
 * input must be a regular file at offset 0 and, if it is compressed, have a
 * zstd seek table.  Otherwise it is read as a stream.
 */
ps_result packs_open(packs *p, int fd, bool seek, ps_error *err);

/*
 * Like packs_open, but fails with PS_ERR_UNSUPPORTED if the input can only be
 * read as a stream.
 */
ps_result packs_open_file(packs *p, int fd, ps_error *err);

const ps_pack_info *packs_info(const packs *p);

/*
 * Returns the first header as stored.  Call it before reading any pack.  See
 * ps_pack_file_stream.
 */
ps_result packs_header(const packs *p, ps_pack_info *header, ps_error *err);

/*
 * Skips up to `n` packs and sets *passed to the number skipped.  Returns PS_OK,
 * PS_END if there are fewer than `n`, or an error.
 */
ps_result packs_skip(packs *p, uint64_t n, uint64_t *passed, ps_error *err);

/* Reads the next pack.  See ps_pack_reader_next and ps_pack_file_read. */
ps_result packs_next(packs *p, ps_pack *pack, ps_error *err);

/*
 * Bytes read or skipped so far, after decompression.  With random access,
 * counts only the rows.
 */
uint64_t packs_offset(const packs *p);

/*
 * Values of `field` for sequence `i` of a pack.  `begin` is the offset of its
 * first token in the row.
 */
const unsigned char *packs_values(const ps_pack_info *info,
                                  const ps_pack *pack, const ps_field *field,
                                  uint32_t i, uint32_t begin);

/*
 * Elements of `field` in a row, or in a sequence row: those of a list are its
 * budget.
 */
uint64_t packs_places(const ps_pack_info *info, const ps_field *field);

/* Frees everything; does not close the descriptor. */
void packs_close(packs *p);

#endif
