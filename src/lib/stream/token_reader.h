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
#include "base/prefetch.h"
#include "bytes.h"
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

/* ---- Sequences ---- */

/*
 * True if a sequence is next that has no more than so many tokens, has come as
 * a whole and is right: nearly always.
 */
static inline bool ps_token_reader_is_ready(const ps_token_reader *r,
                                            uint32_t max_tokens)
{
    const ps_input *in = r->input;
    uint32_t n_tok;
    uint64_t bytes;

    if (r->pending || r->ended || r->lengths_taken > 0 || in->left < 4)
        return false;
    n_tok = load_u32(in->at);
    bytes = ps_shape_bytes(&r->shape, n_tok);
    return n_tok > 0 && n_tok <= max_tokens && bytes <= r->max_bytes &&
           bytes <= in->left - 4 &&
           (r->vocab_size == 0 ||
            ps_tokens_check(in->at + 4, n_tok, r->schema.token_type,
                            r->vocab_size) == n_tok);
}

/* Counts a sequence as read. */
static inline void ps_token_reader_count(ps_token_reader *r, uint32_t n_tok)
{
    r->next_id++;
    r->seen.sequences++;
    r->seen.tokens += n_tok;
    r->pending = false;
}

/*
 * And for what END and LENGTHS of a framed stream say of it; its payload has
 * this hash.  PS_ERR_MEMORY.
 */
ps_result ps_token_reader_count_framed(ps_token_reader *r, uint32_t n_tok,
                                       uint64_t hash, ps_error *err);

/*
 * Takes a sequence that has come and was checked.  `before` bytes of the input
 * are before its payload: the count, or none.  PS_ERR_MEMORY.
 */
static inline ps_result ps_token_reader_take(ps_token_reader *r,
                                             uint64_t offset, uint32_t n_tok,
                                             size_t before, size_t bytes,
                                             ps_sequence *sequence,
                                             ps_error *err)
{
    const unsigned char *payload = r->input->at + before;

    ps_prefetch(payload + bytes); /* the next count */
    *sequence = (ps_sequence){.id = r->next_id,
                              .offset = offset,
                              .n_tok = n_tok,
                              .payload = payload,
                              .payload_bytes = bytes,
                              .lent = payload,
                              .block = ps_input_block(r->input)};
    ps_input_take(r->input, before + bytes);
    ps_token_reader_count(r, n_tok);
    return r->schema.framed ? ps_token_reader_count_framed(
                                  r, n_tok, ps_hash(payload, bytes), err)
                            : PS_OK;
}

/* Takes a sequence that is ready. */
static inline ps_result ps_token_reader_take_ready(ps_token_reader *r,
                                                   ps_sequence *sequence,
                                                   ps_error *err)
{
    const uint32_t n_tok = load_u32(r->input->at);

    return ps_token_reader_take(r, r->input->taken, n_tok, 4,
                                (size_t)ps_shape_bytes(&r->shape, n_tok),
                                sequence, err);
}

/* Reads a framed header, whose magic has been seen. */
ps_result ps_token_reader_header(ps_token_reader *reader, ps_schema *schema,
                                 ps_error *err);

#endif
