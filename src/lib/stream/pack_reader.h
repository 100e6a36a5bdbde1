/*
 * pack_reader.h - internals of the pack reader.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_PACK_READER_H
#define LIB_STREAM_PACK_READER_H

#include "format/block.h"
#include "format/pack_mark.h"
#include "io/input.h"
#include "packstream.h"

struct ps_pack_reader {
    ps_input *input;
    ps_pack_info info;    /* header of the first stream */
    ps_pack_info current; /* header of the current stream; same geometry */
    bool at_end;          /* PS_END was returned */
    ps_pack_place place;  /* position after the last pack; max_displacement is
                             not set */
    ps_totals ended;      /* totals of the streams that have ended */
    uint32_t rank;        /* only packs whose number is `rank` modulo `ranks`
                             are returned */
    uint32_t ranks;       /* 1 unless shared */
    uint64_t header_at;   /* offset of the current stream's header in the
                             input */

    /* The current block.  It is consumed once all its packs are returned. */
    ps_block_head block;
    const unsigned char *bytes; /* start of the block; NULL: none */
    uint32_t next;              /* index of the next pack in the block */
    uint32_t next_seq;          /* index of its first sequence row */
};

/*
 * Number of packs read so far in all streams, including packs of other ranks.
 */
static inline uint64_t ps_pack_reader_packs(const ps_pack_reader *reader)
{
    return reader->place.before.packs + reader->place.seen.packs;
}

/* Reads the header of the next stream.  Results as ps_pack_header_read. */
ps_result ps_pack_reader_header(ps_pack_reader *reader, ps_error *err);

/*
 * Reads the next pack, of any rank, without counting it.  Its index must be
 * `index`.  If END follows instead, *is_pack is false, reader->block is the
 * head of END, and END is not consumed.
 * PS_OK, PS_ERR_CORRUPT, _TRUNCATED, and the results of ps_input_peek.
 */
ps_result ps_pack_reader_fetch(ps_pack_reader *reader, uint64_t index,
                               ps_pack *pack, bool *is_pack, ps_error *err);

/*
 * Reads and counts the next pack.  At the end of a stream, verifies END and
 * reads the header of the next stream.  Returns PS_END after the last stream.
 */
ps_result ps_pack_reader_step(ps_pack_reader *reader, ps_pack *pack,
                              bool *is_pack, ps_error *err);

/*
 * Decodes the head of the next block without consuming it.  Results as
 * ps_pack_reader_fetch.
 */
ps_result ps_pack_reader_peek_head(ps_pack_reader *reader,
                                   ps_block_head *head, ps_error *err);

#endif
