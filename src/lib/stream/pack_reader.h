/*
 * pack_reader.h - a pack reader from inside the library.
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
    ps_pack_info current; /* of this stream: equal but for counts */
    bool at_end;         /* PS_END was given, and is given again */
    ps_pack_place place; /* behind the last pack; the window is in `info` */
    ps_totals ended;     /* of the streams that have ended */
    uint32_t rank;       /* of every `ranks` packs this one is given out */
    uint32_t ranks;
    uint64_t header_at;  /* where the header of this stream was */

    /* The block that was read last; not taken while packs are in it. */
    ps_block_head block;
    const unsigned char *bytes; /* NULL: there is none */
    uint32_t next;              /* pack of the block, */
    uint32_t next_seq;          /* and where its sequences begin */
};

/* Packs read so far, through all streams and whichever rank's they are. */
static inline uint64_t ps_pack_reader_packs(const ps_pack_reader *reader)
{
    return reader->place.before.packs + reader->place.seen.packs;
}

/* Reads the header of the next stream.  As ps_pack_header_read. */
ps_result ps_pack_reader_header(ps_pack_reader *reader, ps_error *err);

/*
 * The next pack, whichever rank's it is, which must have this index in its
 * stream; it is not counted.  *is_pack is false if END stands there, which
 * reader->block is of then, and which is not taken.
 * PS_OK, PS_ERR_CORRUPT, _TRUNCATED, or what ps_input_peek gives.
 */
ps_result ps_pack_reader_fetch(ps_pack_reader *reader, uint64_t index,
                               ps_pack *pack, bool *is_pack, ps_error *err);

/*
 * The same, counted; behind END come its checks, and the header that may follow
 * it.  PS_END behind the last.
 */
ps_result ps_pack_reader_step(ps_pack_reader *reader, ps_pack *pack,
                              bool *is_pack, ps_error *err);

/* Reads the head of the next block, without taking it.  As _fetch. */
ps_result ps_pack_reader_peek_head(ps_pack_reader *reader,
                                   ps_block_head *head, ps_error *err);

#endif
