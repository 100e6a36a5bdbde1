/*
 * pack_reader.h - a pack reader from inside the library.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_PACK_READER_H
#define LIB_STREAM_PACK_READER_H

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
};

/* Packs read so far, through all streams and whichever rank's they are. */
static inline uint64_t ps_pack_reader_packs(const ps_pack_reader *reader)
{
    return reader->place.before.packs + reader->place.seen.packs;
}

/* Reads the header of the next stream.  As ps_pack_header_read. */
ps_result ps_pack_reader_header(ps_pack_reader *reader, ps_error *err);

/*
 * The bytes of the next record, which is number `index` of its stream, not
 * taken yet; its checksum has been checked.
 * PS_OK, PS_ERR_CORRUPT, _TRUNCATED, or what ps_input_peek gives.
 */
ps_result ps_pack_reader_peek(ps_pack_reader *reader, uint64_t index,
                              const unsigned char **bytes, bool *is_end,
                              ps_error *err);

/*
 * Reads the next record, whichever rank's it is: a pack, or END and the
 * header that may follow it.  PS_END behind the last.
 */
ps_result ps_pack_reader_step(ps_pack_reader *reader, ps_pack *pack,
                              bool *is_pack, ps_error *err);

/*
 * Counts a pack, the next one of its stream, to compare with what END will
 * say: the place is behind it then.
 */
void ps_pack_reader_count(ps_pack_reader *reader, const ps_pack *pack);

#endif
