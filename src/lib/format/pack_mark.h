/*
 * pack_mark.h - a place between two packs of a stream, and the mark
 * that is kept of it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_PACK_MARK_H
#define LIB_FORMAT_PACK_MARK_H

#include "packstream.h"

/* What a reader has seen of the blocks that the index lists. */
typedef struct ps_index_seen {
    uint32_t n_blocks; /* behind the last INDEX block; or PS_INDEX_UNSEEN */
    uint32_t n_parts;  /* INDEX blocks */
    uint64_t blocks;   /* digest of their entries, and of those of the parts */
    uint64_t parts;
    uint64_t first;     /* pack of the first of the blocks, */
    uint64_t watermark; /* and the last one's */
} ps_index_seen;

/* The stream was entered behind its first block: its index is not compared. */
#define PS_INDEX_UNSEEN UINT32_MAX

/* All that a reader knows at a place in a stream, or behind its packs. */
typedef struct ps_pack_place {
    uint64_t first_header; /* checksum of the header of the first stream, */
    uint64_t header;       /* of this one, */
    uint64_t last;         /* and of the last pack of it; 0: there is none */
    uint64_t digest;       /* of this stream, so far */
    uint64_t newest;       /* greatest id in its packs */
    uint32_t stream;       /* how many were before it */
    uint32_t window;       /* the largest so far */
    ps_index_seen index;   /* of this stream */
    ps_totals seen;        /* of this stream, as far as packs show */
    ps_totals before;      /* of the streams before */
} ps_pack_place;

void ps_pack_mark_encode(const ps_pack_place *place,
                         unsigned char mark[PS_PACK_MARK_BYTES]);

/*
 * Reads a mark, which may come from anywhere.  The numbers by which a reader
 * gets to the place are within bounds then.
 * PS_OK, PS_ERR_MAGIC, _UNSUPPORTED, _CORRUPT.
 */
ps_result ps_pack_mark_decode(const unsigned char *mark,
                              ps_pack_place *place, ps_error *err);

#endif
