/*
 * token_reader.h - the inside of a token reader; and the room it is in.
 *
 * The room `stream` turns bytes from io into sequences and packs, and
 * sequences into bytes; what headers and records mean, it asks format.  It
 * may use base, io and format.
 *
 * token_reader_open.c   opens a token reader, reads headers, goes on with
 *                       another file, seeks.
 * token_reader.c        reads the records: ps_token_reader_next, and what
 *                       holds or skips a sequence that cannot be packed.
 * token_writer.c        writes token records.
 * length_counter.h, .c  counts the lengths of sequences.
 * token_lengths.c       reads them from the end of a file.
 * pack_reader.h, .c     reads packs in order, of any input, and checks each;
 *                       ps_open_any, which opens either kind of reader.
 * pack_reader_resume.c  goes on where another pack reader was.
 * pack_file.c           reads packs of a regular file, in any order.
 * pack_writer.c         writes some of these packs again, as a share.
 * unpacker.c            takes the original sequences out of the packs that a
 *                       pack reader gives.
 * reorder.c             a heap of sequences that came early, for the unpacker.
 *
 * Both readers peek at their input, check what they see, and only then take
 * it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_TOKEN_READER_H
#define LIB_STREAM_TOKEN_READER_H

#include "base/hash.h"
#include "format/schema.h"
#include "format/token_header.h"
#include "io/input.h"
#include "packstream.h"
#include "stream/length_counter.h"

struct ps_token_reader {
    ps_input *input;
    ps_token_reader_options options;
    ps_schema schema;
    ps_shape shape;
    uint64_t max_bytes;     /* of a payload that is read as a whole */
    uint32_t vocab_size;    /* of the stream or the options; 0: no check */
    uint64_t next_id;
    uint64_t earlier_bytes; /* of files before this one */
    ps_token_end seen;      /* since the last header: END must agree */
    uint64_t stream_at;     /* bytes of the file before that header... */
    bool stream_known;      /* ...unless the reader was moved to a mark */
    bool ended;         /* PS_END was given, and is again, until append */
    ps_sequence record; /* the record being read */

    /* A sequence that must be held or skipped, and what is known of it. */
    bool pending;
    bool outside;  /* a token is known to be outside the vocabulary */
    uint64_t done; /* bytes of it taken so far, with the count */
    XXH3_state_t *skip_hash; /* of what was skipped, or of LENGTHS so far */

    ps_lengths lengths;        /* LENGTHS as far as it was read */
    uint64_t lengths_taken;    /* bytes of it; 0: none was begun */
    bool check_lengths;        /* LENGTHS must be of the lengths read */
    ps_length_counter counter; /* these, in this stream */
};

/*
 * As ps_token_reader_open, but for the window, which is the input's.  The
 * reader owns the input from now on, also after a failure.
 */
ps_result ps_token_reader_start(ps_token_reader **reader, ps_input *input,
                                ps_type raw_type,
                                const ps_token_reader_options *options,
                                ps_error *err);

/* Reads a framed header, whose magic has been seen. */
ps_result ps_token_reader_header(ps_token_reader *reader, ps_schema *schema,
                                 ps_error *err);

#endif
