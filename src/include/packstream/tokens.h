/*
 * tokens.h - token records in and out; part of <packstream.h>.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_TOKENS_H
#define PACKSTREAM_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------
 * Token records in
 */

/* One sequence as a reader hands it out. */
typedef struct ps_sequence {
    uint64_t id;                  /* ordinal in the input, from 0 */
    uint64_t offset;              /* of its record in its file */
    uint32_t n_tok;               /* at least 1: see PS_ERR_EMPTY */
    const unsigned char *payload; /* or NULL: see PS_ERR_OVERLONG */
    size_t payload_bytes;
    /*
     * A reader's own: the payload that it gave and where that lies, which
     * spares a packer a copy.  Whoever makes a sequence leaves them NULL.
     */
    const unsigned char *lent;
    struct ps_block *block;
} ps_sequence;

/*
 * What a reader calls, hook(context, err), when something happens.  A result
 * other than PS_OK ends the read with that result.
 */
typedef ps_result ps_wait_hook(void *context, ps_error *err);

/* Zero is the default of all members. */
typedef struct ps_token_reader_options {
    uint64_t window;     /* zstd frames that ask for a window of more than so
                            many bytes, at least 1024, are refused:
                            PS_ERR_LIMIT; 0: 128 MiB */
    uint32_t vocab_size; /* tokens are checked against a vocabulary of that
                            size; a smaller one that the stream declares
                            stays in force; 0: that of the stream, if any */
    /*
     * The caller means to deal with these results of ps_token_reader_next
     * rather than tell of them: PS_ERR_OVERLONG, PS_ERR_RANGE, PS_ERR_EMPTY.
     * They leave the ps_error as it is, which saves the time to write it.
     */
    bool expect_overlong;
    bool expect_outside;
    bool expect_empty;
    /*
     * Flush records, by which the writer of the stream asks that all before
     * them be packed.  Framed streams may always have them; of a raw stream
     * this says that a count of 0 is one, and not PS_ERR_EMPTY.
     */
    bool raw_flush;
    ps_wait_hook *on_flush; /* called where one stands; NULL: passed over */
    void *flush_context;
} ps_token_reader_options;

typedef struct ps_token_reader ps_token_reader;

/*
 * Starts to read token records from `fd`: framed, or raw with tokens of
 * `raw_type`, told apart by the magic; zstd frames are decompressed.  Empty
 * input is a raw stream without records.  The options are copied; NULL stands
 * for the defaults.
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY, _IO, _MAGIC (a pack stream), _UNSUPPORTED,
 * _CORRUPT, _TRUNCATED, _LIMIT.
 */
PS_MUST_CHECK ps_result
ps_token_reader_open(ps_token_reader **reader, int fd, ps_type raw_type,
                     const ps_token_reader_options *options, ps_error *err);

/*
 * From now on sequences with a payload of more than so many bytes, and no
 * more than PS_MAX_SEQUENCE_BYTES, are refused: PS_ERR_LIMIT.  They can be
 * passed over, though.
 */
void ps_token_reader_set_longest(ps_token_reader *reader, uint64_t bytes);

/*
 * The most memory in bytes that a reader with these two allocates, whatever
 * the input, and if it reads ahead; but for what a packer keeps of it.
 */
uint64_t ps_token_reader_memory(uint64_t longest, uint64_t window,
                                bool ahead);

/* The stream's schema; lives as long as the reader. */
const ps_schema *ps_token_reader_schema(const ps_token_reader *reader);

/*
 * The next sequence, if it has at most `max_tokens` tokens.
 *
 * PS_OK; PS_END after the last record (in a framed stream, after its END
 * has been checked against what was read).
 *
 * Three results are not final, and it is for the caller to say what becomes
 * of the sequence; `sequence` then holds id, offset and length, but no
 * payload.  After PS_ERR_OVERLONG and after PS_ERR_RANGE (its length is
 * right, a token is not) the next call must be ps_token_reader_hold or
 * ps_token_reader_skip.  After PS_ERR_EMPTY (a count of 0 in a raw stream)
 * there is nothing to hold or skip: reading goes on.
 *
 * Failures: PS_ERR_MEMORY, _IO, _CORRUPT (totals that do not agree),
 * _TRUNCATED, _LIMIT, _UNSUPPORTED.
 */
PS_MUST_CHECK ps_result ps_token_reader_next(ps_token_reader *reader,
                                             uint32_t max_tokens,
                                             ps_sequence *sequence,
                                             ps_error *err);

/*
 * Reads a sequence that was left whole (hold) or passes over it in bounded
 * memory (skip).  Memory grows with the bytes that really arrive.
 *
 * Tokens of an overlong one are checked as ever: PS_ERR_RANGE is not final
 * here either, and the same call again does without the check; after that of
 * skip, which may have passed over a part, hold would come too late.
 *
 * As ps_token_reader_next; hold gives PS_ERR_LIMIT for a payload above
 * PS_MAX_SEQUENCE_BYTES.
 */
PS_MUST_CHECK ps_result ps_token_reader_hold(ps_token_reader *reader,
                                             ps_sequence *sequence,
                                             ps_error *err);
PS_MUST_CHECK ps_result ps_token_reader_skip(ps_token_reader *reader,
                                             ps_error *err);

/*
 * After PS_END: goes on with another file of the same schema; ids go on.
 * As ps_token_reader_open; PS_ERR_CORRUPT if the schemas differ,
 * PS_ERR_TRUNCATED if the file is empty where a header is due.
 */
PS_MUST_CHECK ps_result ps_token_reader_append(ps_token_reader *reader,
                                               int fd, ps_error *err);

/*
 * `hook` is called whenever the reader is about to wait for input that has
 * not come yet, so that a filter can pass on what it has.
 */
void ps_token_reader_on_wait(ps_token_reader *reader, ps_wait_hook *hook,
                             void *context);

/*
 * Reads the input ahead of its use from now on, on a thread of its own where
 * the system has one for it; also that of ps_token_reader_append.  The
 * descriptor must not be closed before the reader is freed or has another.
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_token_reader_read_ahead(ps_token_reader *reader,
                                                   ps_error *err);

/*
 * A descriptor that can be read as soon as a wait before which the hook is
 * called would end; nothing is to be read from it.
 */
int ps_token_reader_descriptor(const ps_token_reader *reader);

/* Bytes taken from the input so far, after decompression. */
uint64_t ps_token_reader_offset(const ps_token_reader *reader);

/*
 * A place between two records of a file, or of several that are read one
 * after the other, from which another reader can go on.
 */
typedef struct ps_token_mark {
    uint64_t id;     /* of the next record */
    uint64_t offset; /* bytes before it in its file, after decompression */
    uint64_t earlier_bytes; /* bytes of the files before */
    uint64_t sequences; /* these three since the last header, as in END */
    uint64_t tokens;
    uint64_t digest;
} ps_token_mark;

/* The place behind the last record; none may be waiting to be held. */
ps_token_mark ps_token_reader_mark(const ps_token_reader *reader);

/*
 * Goes to a mark that lies in the file that was just opened, and of which no
 * record was read: a plain regular file is sought, any other is read up to
 * there.  That END agrees is checked as if all had been read.
 * PS_OK, PS_ERR_ARGUMENT (records were read), _TRUNCATED (the input ends
 * before), _CORRUPT (the mark lies in the header), and what reading gives.
 */
PS_MUST_CHECK ps_result ps_token_reader_seek(ps_token_reader *reader,
                                             const ps_token_mark *mark,
                                             ps_error *err);

void ps_token_reader_free(ps_token_reader *reader);

/* ---------------------------------------------------------------------
 * Token records out
 */

typedef struct ps_token_writer ps_token_writer;

/*
 * Starts a stream on `fd`: framed or raw as schema->framed says.
 * PS_OK, PS_ERR_ARGUMENT (a schema that does not hold, channels in a raw
 * stream), _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_token_writer_open(ps_token_writer **writer,
                                             int fd,
                                             const ps_schema *schema,
                                             ps_error *err);

/*
 * Where a writer is whose bytes are all written, as ps_token_writer_flush has
 * them; `offset` is how many there are.
 */
ps_token_mark ps_token_writer_mark(const ps_token_writer *writer);

/*
 * As ps_token_writer_open, but goes on at a mark, at which the output has to
 * be.
 */
PS_MUST_CHECK ps_result ps_token_writer_resume(ps_token_writer **writer,
                                               int fd,
                                               const ps_schema *schema,
                                               const ps_token_mark *mark,
                                               ps_error *err);

/*
 * Writes a record: `n_tok` >= 1 and a payload of ps_payload_bytes(schema,
 * n_tok) bytes.  Tokens are not checked.
 * PS_OK, PS_ERR_ARGUMENT, _IO, _LIMIT (above PS_MAX_SEQUENCE_BYTES).
 */
PS_MUST_CHECK ps_result ps_token_writer_put(ps_token_writer *writer,
                                            uint32_t n_tok,
                                            const void *payload,
                                            ps_error *err);

/*
 * Writes a flush record, which asks that all before it be packed, and passes
 * on what is buffered.  In a raw stream only a reader with `raw_flush` takes it
 * for one.
 * PS_OK, PS_ERR_ARGUMENT (after ps_token_writer_finish), _IO.
 */
PS_MUST_CHECK ps_result ps_token_writer_put_flush(ps_token_writer *writer,
                                                  ps_error *err);

/* Passes on what is buffered.  PS_OK, PS_ERR_IO. */
PS_MUST_CHECK ps_result ps_token_writer_flush(ps_token_writer *writer,
                                              ps_error *err);

/*
 * Ends the stream (a framed one with its END) and flushes; without it the
 * stream is cut, and a reader says so.  PS_OK, PS_ERR_IO.
 */
PS_MUST_CHECK ps_result ps_token_writer_finish(ps_token_writer *writer,
                                               ps_error *err);

void ps_token_writer_free(ps_token_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
