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
    ps_pack_info info;    /* of the first stream */
    ps_pack_info current; /* of the current stream; same geometry */
    bool at_end;          /* PS_END was returned */
    ps_pack_place place;  /* after the last pack, but max_displacement */
    ps_totals ended;      /* totals of the streams that have ended */
    uint32_t rank;        /* return packs whose number is `rank` modulo
                             `ranks` */
    uint32_t ranks;       /* 1 unless shared */
    uint64_t header_at;   /* offset of the current stream's header in the
                             input */

    /* The current block.  It is consumed once all its packs are returned. */
    ps_block_head block;
    const unsigned char *bytes; /* start of the block; NULL: none */
    uint32_t next;              /* next pack of the block */
    uint32_t next_seq;          /* its first sequence row in the block */
};

/*
 * Number of packs read so far in all streams, including those of other ranks.
 */
static inline uint64_t ps_pack_reader_packs(const ps_pack_reader *reader)
{
    return reader->place.before.packs + reader->place.seen.packs;
}

/* Reads the header of the next stream.  Results as ps_pack_header_read. */
ps_result ps_pack_reader_header(ps_pack_reader *reader, ps_error *err);

/*
 * Reads the next pack, of any rank, without counting it.  Its index must be
 * `index`.  *is_pack is false if END follows instead; then reader->block is its
 * head, and END is not consumed.
 * PS_OK, PS_ERR_CORRUPT, _TRUNCATED, and the results of ps_input_peek.
 */
ps_result ps_pack_reader_fetch(ps_pack_reader *reader, uint64_t index,
                               ps_pack *pack, bool *is_pack, ps_error *err);

/*
 * Reads and counts the next pack.  Verifies an END block and reads the header
 * of the next stream, if any.  PS_END after the last stream.
 */
ps_result ps_pack_reader_step(ps_pack_reader *reader, ps_pack *pack,
                              bool *is_pack, ps_error *err);

/*
 * Decodes the head of the next block without consuming it.  Results as _fetch.
 */
ps_result ps_pack_reader_peek_head(ps_pack_reader *reader,
                                   ps_block_head *head, ps_error *err);

#endif
