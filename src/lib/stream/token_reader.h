/*
 * token_reader.h - internals of the token reader.
 *
 * SPDX-License-Identifier: MIT
 *
 * This module, stream, reads and writes sequences and packs.  Module format
 * encodes and decodes headers and records, module io moves the bytes.  It
 * depends on the modules base, io and format.
 *
 *   token_reader_open.c   open a token reader, read headers, continue with
 *                         another file, seek
 *   token_reader.c        read records; hold or skip rejected sequences
 *   token_writer.c        write token records
 *   length_counter.h, .c  count sequences by length
 *   token_lengths.c       read these counts from the end of a file
 *   pack_reader.h, .c     read and verify packs in order; ps_open_any
 *   pack_reader_resume.c  resume a pack reader at a mark
 *   pack_file.c           random access to the packs of a regular file
 *   block_output.h, .c    collect packs in blocks, index and write them
 *   pack_writer.c         write existing packs, as a share or joined
 *   unpacker.c            restore the original sequences from packs
 *   reorder.c             heap of early sequences, for the unpacker
 *
 * Both readers peek at their input, check it, and only then consume it.
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
    uint64_t max_bytes;     /* maximum payload read at once, bytes */
    uint32_t vocab_size;    /* minimum of stream and options; 0: no check */
    uint64_t next_id;       /* id of the next record */
    uint64_t earlier_bytes; /* total size of the files before this file */
    ps_token_end seen;      /* since the last header; must match END */
    uint64_t stream_at;     /* offset of the last header in the file, bytes */
    bool stream_known;      /* stream_at is valid; false after a seek */
    bool ended;             /* PS_END was returned; cleared by append */
    ps_sequence record;     /* the current record */

    /* A sequence that must be held or skipped. */
    bool pending;
    bool outside;            /* a token outside the vocabulary was reported */
    uint64_t done;           /* bytes consumed, including the count */
    uint64_t lists;          /* bytes of its lists, once its values are read */
    XXH3_state_t *skip_hash; /* hash of skipped bytes, or of LENGTHS so far */

    ps_lengths lengths;        /* the part of LENGTHS that was read */
    uint64_t lengths_taken;    /* bytes of LENGTHS consumed; 0: outside it */
    bool check_lengths;        /* compare LENGTHS with the lengths read */
    ps_length_counter counter; /* lengths read in this stream */
};

/*
 * Like ps_token_reader_open, but the window is a setting of `input`.  Takes
 * ownership of `input`, even on failure.
 */
ps_result ps_token_reader_start(ps_token_reader **reader, ps_input *input,
                                ps_type raw_type,
                                const ps_token_reader_options *options,
                                ps_error *err);

/* ---- Sequences ---- */

/*
 * True if the next record is a sequence of at most `max_tokens` tokens that is
 * completely buffered and valid, which is almost always the case.
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
    if (r->shape.n_lists > 0 && bytes <= in->left - 4)
        bytes = ps_shape_all(&r->shape, n_tok, in->at + 4);
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
 * Adds a sequence to the digest and the length counts of a framed stream.
 * `hash` is the hash of its payload.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_token_reader_count_framed(ps_token_reader *r, uint32_t n_tok,
                                       uint64_t hash, ps_error *err);

/*
 * Consumes and returns a checked, buffered sequence.  `before` is the number of
 * bytes before its payload: 4 with the count, or 0.  PS_OK, PS_ERR_MEMORY.
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

/* Returns a sequence for which ps_token_reader_is_ready was true. */
static inline ps_result ps_token_reader_take_ready(ps_token_reader *r,
                                                   ps_sequence *sequence,
                                                   ps_error *err)
{
    const uint32_t n_tok = load_u32(r->input->at);

    return ps_token_reader_take(r, r->input->taken, n_tok, 4,
                                (size_t)ps_shape_all(&r->shape, n_tok,
                                                     r->input->at + 4),
                                sequence, err);
}

/* Reads the header of a framed stream whose magic has been recognized. */
ps_result ps_token_reader_header(ps_token_reader *reader, ps_schema *schema,
                                 ps_error *err);

#endif
