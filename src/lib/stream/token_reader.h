/*
 * token_reader.h - the inside of a token reader, which token_reader.c and
 * token_reader_next.c share.
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

struct ps_token_reader {
    ps_input *input;
    ps_schema schema;
    ps_shape shape;
    uint64_t longest;    /* payload that is read whole, bytes */
    uint32_t vocab_size; /* declared by the stream or the caller, or 0 */
    uint64_t next_id;
    uint64_t earlier_bytes; /* of files before this one */
    ps_token_end seen;      /* since the last header, digest and all */
    XXH3_state_t *skipped; /* hash of a record that comes in pieces */
    ps_wait_hook *on_flush;
    void *flush_context;
    bool ended;         /* PS_END was given; again, until append */
    bool pending;       /* a sequence is to be held or skipped; of it */
    bool outside;       /* a token is known to be outside the vocabulary, */
    uint64_t passed;    /* and so many bytes were passed over */
    bool expects_overlong; /* these need no message */
    bool expects_outside;
    bool expects_empty;
    ps_sequence record; /* the record being read */
};

/* "record 7 at byte 512: ", the start of every message about a record. */
#define AT_RECORD "record %" PRIu64 " at byte %" PRIu64 ": "

/*
 * As ps_token_reader_open.  The source belongs to the reader from now on,
 * also after a failure.
 */
ps_result ps_token_reader_start(ps_token_reader **reader, ps_input *input,
                                ps_type raw_type, ps_error *err);

/* PS_ERR_TRUNCATED: `got` of the `of` bytes of r->record are there. */
ps_result ps_token_reader_cut(const ps_token_reader *r, uint64_t got,
                              uint64_t of, ps_error *err);

/*
 * Reads the control record at r->record.offset.  FLUSH is passed on, END is
 * checked; *more says whether records or another stream follow, whose header
 * is then read.
 */
ps_result ps_token_reader_control(ps_token_reader *r, bool *more,
                                  ps_error *err);

#endif
