/*
 * packs.h - packs of one input from any place on: found by seeking where the
 * input lets us, else by reading what comes before them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_PACKS_H
#define CLI_PACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"

/* One of the two is open.  All zero: none. */
typedef struct packs {
    ps_pack_reader *reader;
    ps_pack_file *file;
    uint64_t next; /* of a file: number of the next pack */
} packs;

/*
 * Opens an input; with `seek`, so that it can be read at any place, if that is
 * possible: it has to be a file that stands at its beginning, and zstd frames
 * need a seek table.  Anything else is read as a stream.
 */
ps_result packs_open(packs *p, int fd, bool seek, ps_error *err);

/* As packs_open, but PS_ERR_UNSUPPORTED for what is a stream. */
ps_result packs_open_file(packs *p, int fd, ps_error *err);

const ps_pack_info *packs_info(const packs *p);

/*
 * The first header as it is, before any pack was read.  As
 * ps_pack_file_stream.
 */
ps_result packs_header(const packs *p, ps_pack_info *header, ps_error *err);

/*
 * Passes over up to `n` packs; *passed says how many there were.  PS_OK,
 * PS_END if there were fewer, or a failure.
 */
ps_result packs_skip(packs *p, uint64_t n, uint64_t *passed, ps_error *err);

/* The next pack.  As ps_pack_reader_next and ps_pack_file_read. */
ps_result packs_next(packs *p, ps_pack *pack, ps_error *err);

/*
 * Bytes read or passed over so far, after decompression; of a file, those of
 * rows alone.
 */
uint64_t packs_offset(const packs *p);

/*
 * The values that a field has for sequence `i` of a pack, whose first token is
 * at `begin`.
 */
const unsigned char *packs_values(const ps_pack_info *info,
                                  const ps_pack *pack, const ps_field *field,
                                  uint32_t i, uint32_t begin);

/* Releases everything but the descriptor. */
void packs_close(packs *p);

#endif
