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
    uint32_t n_parts;   /* INDEX blocks */
    uint64_t blocks;    /* digest of the entries since the last INDEX block */
    uint64_t parts;     /* digest of the entries of INDEX blocks */
    uint64_t first;     /* first pack of the first of these blocks */
    uint64_t watermark; /* watermark of the last of these blocks */
} ps_index_seen;

/* Reading started after the first block, so the index cannot be compared. */
#define PS_INDEX_UNSEEN UINT32_MAX

/* State of a reader at a position between two packs, or after the last one. */
typedef struct ps_pack_place {
    uint64_t first_header; /* checksum of the first stream's header */
    uint64_t header;       /* checksum of this stream's header */
    uint64_t last;         /* checksum of its last pack; 0: none */
    uint64_t digest;       /* of this stream so far */
    uint64_t newest;       /* greatest id in this stream so far */
    uint32_t stream;       /* number of streams before this one */
    uint32_t max_displacement; /* maximum of the streams so far */
    ps_index_seen index;   /* of this stream */
    ps_totals seen;        /* of this stream so far, from its packs */
    ps_totals before;      /* of the earlier streams */
} ps_pack_place;

void ps_pack_mark_encode(const ps_pack_place *place,
                         unsigned char mark[PS_PACK_MARK_BYTES]);

/*
 * Decodes an untrusted mark.  All numbers used to find the position are then in
 * range.
 * PS_OK, PS_ERR_MAGIC, _UNSUPPORTED, _CORRUPT.
 */
ps_result ps_pack_mark_decode(const unsigned char *mark,
                              ps_pack_place *place, ps_error *err);

#endif
