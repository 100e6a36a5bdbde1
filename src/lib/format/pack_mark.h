/*
 * pack_mark.h - saved positions between two packs of a stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_PACK_MARK_H
#define LIB_FORMAT_PACK_MARK_H

#include "packstream.h"

/*
 * Blocks of the current stream that a reader has seen, to compare with the
 * index.
 */
typedef struct ps_index_seen {
    uint32_t n_blocks;  /* since the last INDEX block, or PS_INDEX_UNSEEN */
    uint32_t n_parts;   /* number of INDEX blocks */
    uint64_t blocks;    /* digest of the entries since the last INDEX block */
    uint64_t parts;     /* digest of the entries of INDEX blocks */
    uint64_t first;     /* index of the first pack since the last INDEX */
    uint64_t watermark; /* watermark of the last block */
} ps_index_seen;

/*
 * Value of n_blocks if reading started after the first block, so that the index
 * cannot be compared.
 */
#define PS_INDEX_UNSEEN UINT32_MAX

/* State of a reader at a position between two packs or after the last pack. */
typedef struct ps_pack_place {
    uint64_t first_header; /* checksum of the first stream's header */
    uint64_t header;       /* checksum of this stream's header */
    uint64_t last;         /* checksum of the last pack read; 0: none */
    uint64_t digest;       /* digest of this stream so far */
    uint64_t newest;       /* greatest id in this stream so far */
    uint32_t stream;       /* number of streams before this one */
    uint32_t max_displacement; /* maximum of the streams so far */
    ps_index_seen index;   /* blocks of this stream */
    ps_totals seen;        /* totals of the packs read in this stream */
    ps_totals before;      /* totals of the earlier streams */
} ps_pack_place;

void ps_pack_mark_encode(const ps_pack_place *place,
                         unsigned char mark[PS_PACK_MARK_BYTES]);

/*
 * Decodes an untrusted mark.  On success, all numbers that determine the
 * position are in range.
 * PS_OK, PS_ERR_MAGIC, _UNSUPPORTED, _CORRUPT.
 */
ps_result ps_pack_mark_decode(const unsigned char *mark,
                              ps_pack_place *place, ps_error *err);

#endif
