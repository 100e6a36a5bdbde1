/*
 * tokens.h - read and write token records; part of <packstream.h>.
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
 * Reading token records
 */

/* A sequence as returned by a reader. */
typedef struct ps_sequence {
    uint64_t id;                  /* ordinal in the input, from 0 */
    uint64_t offset;              /* offset of its record in its file, bytes */
    uint32_t n_tok;               /* 0 only with PS_ERR_EMPTY */
    const unsigned char *payload; /* or NULL: see PS_ERR_OVERLONG */
    size_t payload_bytes;
    /*
     * Private to readers and packers: the payload as returned by the reader,
     * and the reference-counted block that contains it.  A packer can keep the
     * block instead of copying the payload.  Both are NULL in a sequence made
     * by the caller.
     */
    const unsigned char *lent;
    struct ps_block *block;
} ps_sequence;

/*
 * Called by a reader.  A result other than PS_OK ends the read with that
 * result.
 */
typedef ps_result ps_wait_hook(void *context, ps_error *err);

/* Zero selects the default of every member. */
typedef struct ps_token_reader_options {
    uint64_t window;     /* maximum window of zstd frames, in bytes, at least
                            1,024; PS_ERR_LIMIT if a frame needs more.  0: 128
                            MiB */
    uint32_t vocab_size; /* exclusive upper limit of token ids, in addition to
                            the limit that the stream declares, if any.  0: no
                            additional limit */
    /*
     * True if the caller handles PS_ERR_OVERLONG, PS_ERR_RANGE or PS_ERR_EMPTY
     * without a message.  The reader then does not change the ps_error, which
     * saves the time to format a message.
     */
    bool expect_overlong;
    bool expect_outside;
    bool expect_empty;
    /*
     * A flush record asks the reader to pack everything before it.  In a raw
     * stream a count of 0 is a flush record if raw_flush is set; otherwise it
     * causes PS_ERR_EMPTY.  Flush records are skipped if on_flush is NULL.
     */
    bool raw_flush;
    ps_wait_hook *on_flush;
    void *flush_context;
} ps_token_reader_options;

typedef struct ps_token_reader ps_token_reader;

/*
 * Starts reading token records from `fd`.  The magic distinguishes framed
 * streams from raw streams, whose tokens have type `raw_type`.  zstd frames are
 * decompressed.  Empty input is a raw stream without records.  `options` is
 * copied; NULL selects the defaults.
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY, _IO, _MAGIC (a pack stream), _UNSUPPORTED,
 * _CORRUPT, _TRUNCATED, _LIMIT.
 */
PS_MUST_CHECK ps_result
ps_token_reader_open(ps_token_reader **reader, int fd, ps_type raw_type,
                     const ps_token_reader_options *options, ps_error *err);

/*
 * Sets the maximum payload size in bytes.  A larger payload causes
 * PS_ERR_LIMIT, but can be skipped.  The default is PS_MAX_SEQUENCE_BYTES,
 * which is also the upper limit.
 */
void ps_token_reader_set_longest(ps_token_reader *reader, uint64_t bytes);

/*
 * Upper bound, in bytes, on what a reader allocates for any input, given the
 * maximum payload size and zstd window in bytes (0: 128 MiB).  Blocks kept by a
 * packer are not included.
 */
uint64_t ps_token_reader_memory(uint64_t longest, uint64_t window,
                                bool read_ahead);

/*
 * Makes the reader count sequence lengths and compare the counts with the
 * LENGTHS record of each framed stream that has one.  Otherwise only the sums
 * of LENGTHS are checked.  Call it before the first record is read.  The
 * check needs up to 4 MiB more memory, and has no effect on a stream that is
 * not read from its start.
 */
void ps_token_reader_check_lengths(ps_token_reader *reader);

/* The stream's schema.  Valid until the reader is freed. */
const ps_schema *ps_token_reader_schema(const ps_token_reader *reader);

/*
 * Returns the next sequence if it has at most `max_tokens` tokens.
 *
 * Returns PS_END after the last record.  In a framed stream, END has then been
 * verified against the records read.
 *
 * Three failures can be recovered from.  `sequence` then has its id, offset and
 * length, but no payload.  After PS_ERR_OVERLONG and PS_ERR_RANGE (a token
 * outside the vocabulary) the next call must be ps_token_reader_hold or
 * ps_token_reader_skip.  After PS_ERR_EMPTY (a count of 0 in a raw stream)
 * there is nothing to hold or skip.
 *
 * Other failures: PS_ERR_MEMORY, _IO, _CORRUPT (totals that do not match),
 * _TRUNCATED, _LIMIT, _UNSUPPORTED.
 */
PS_MUST_CHECK ps_result ps_token_reader_next(ps_token_reader *reader,
                                             uint32_t max_tokens,
                                             ps_sequence *sequence,
                                             ps_error *err);

/*
 * Reads the pending sequence completely (hold), or skips it in bounded memory.
 * Memory grows only as bytes arrive.
 *
 * The tokens of an overlong sequence are checked as well.  After PS_ERR_RANGE,
 * call the same function again to continue without the check.  If skip returned
 * PS_ERR_RANGE, part of the sequence may already have been skipped, and hold
 * fails with PS_ERR_ARGUMENT.
 *
 * Results as ps_token_reader_next; hold also returns PS_ERR_LIMIT for a payload
 * above PS_MAX_SEQUENCE_BYTES.
 */
PS_MUST_CHECK ps_result ps_token_reader_hold(ps_token_reader *reader,
                                             ps_sequence *sequence,
                                             ps_error *err);
PS_MUST_CHECK ps_result ps_token_reader_skip(ps_token_reader *reader,
                                             ps_error *err);

/*
 * After PS_END: continues with another file of the same schema.  Ids keep
 * counting.
 * Results as ps_token_reader_open; also PS_ERR_CORRUPT (the schemas differ) and
 * PS_ERR_TRUNCATED (the file is empty where a header is required).
 */
PS_MUST_CHECK ps_result ps_token_reader_append(ps_token_reader *reader,
                                               int fd, ps_error *err);

/*
 * Sets a hook that is called whenever the reader is about to wait for input, so
 * that a filter can write its pending output first.
 */
void ps_token_reader_on_wait(ps_token_reader *reader, ps_wait_hook *hook,
                             void *context);

/*
 * Starts a thread that reads the input ahead, including files added with
 * ps_token_reader_append.  If no thread can be started, the reader works
 * without one.  The descriptor must stay open until the reader is freed or
 * another descriptor is added.
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_token_reader_read_ahead(ps_token_reader *reader,
                                                   ps_error *err);

/*
 * A descriptor for the wait hook to poll(2) for POLLIN: it becomes readable
 * once the reader can continue.  Do not read from it.
 */
int ps_token_reader_descriptor(const ps_token_reader *reader);

/* Bytes consumed so far, after decompression. */
uint64_t ps_token_reader_offset(const ps_token_reader *reader);

/*
 * A position between two records of one file, or of several files read in
 * sequence, at which another reader can resume.
 */
typedef struct ps_token_mark {
    uint64_t id;     /* id of the next record */
    uint64_t offset; /* bytes before it in this file, after decompression */
    uint64_t earlier_bytes; /* total size of the files before this file */
    uint64_t sequences; /* this and the next two: since the last header, as in
                           END */
    uint64_t tokens;
    uint64_t digest;
} ps_token_mark;

/* The position after the last record.  There must be no pending sequence. */
ps_token_mark ps_token_reader_mark(const ps_token_reader *reader);

/*
 * Moves to a mark in the file that was just opened, before any record is read.
 * In a plain regular file the reader seeks; any other input is read up to the
 * mark.  END is verified as if all records had been read.
 * PS_OK, PS_ERR_ARGUMENT (records have been read), _TRUNCATED (the input ends
 * before the mark), _CORRUPT (the mark is inside the header), and the failures
 * of ps_token_reader_next.
 */
PS_MUST_CHECK ps_result ps_token_reader_seek(ps_token_reader *reader,
                                             const ps_token_mark *mark,
                                             ps_error *err);

void ps_token_reader_free(ps_token_reader *reader);

/* ---------------------------------------------------------------------
 * Writing token records
 */

typedef struct ps_token_writer ps_token_writer;

/*
 * Starts a stream on `fd`, framed or raw according to schema->framed.
 * PS_OK, PS_ERR_ARGUMENT (an invalid schema, or channels in a raw stream),
 * _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_token_writer_open(ps_token_writer **writer,
                                             int fd,
                                             const ps_schema *schema,
                                             ps_error *err);

/*
 * The position after all records put.  Call it after ps_token_writer_flush.
 * `offset` is the number of bytes written.
 */
ps_token_mark ps_token_writer_mark(const ps_token_writer *writer);

/*
 * Like ps_token_writer_open, but resumes at a mark; `fd` must be positioned
 * there.  The stream gets no LENGTHS record, since the lengths before the mark
 * are unknown, unless ps_token_writer_set_lengths is called next.
 */
PS_MUST_CHECK ps_result ps_token_writer_resume(ps_token_writer **writer,
                                               int fd,
                                               const ps_schema *schema,
                                               const ps_token_mark *mark,
                                               ps_error *err);

/*
 * Returns the LENGTHS record that the stream would get if it ended here: `*n`
 * bytes, valid until the next call on the writer.  *n is 0 if the stream would
 * not get a LENGTHS record.  Store the record together with a mark.
 * PS_OK, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result
ps_token_writer_lengths(ps_token_writer *writer, const unsigned char **record,
                        size_t *n, ps_error *err);

/*
 * Restores the lengths before the mark in a resumed writer, from the `n` bytes
 * that ps_token_writer_lengths returned at the mark.  The stream is then the
 * same as without the interruption.  If `n` is 0, the stream gets no LENGTHS
 * record.
 * PS_OK, PS_ERR_MEMORY, PS_ERR_CORRUPT (the bytes do not match the mark).
 */
PS_MUST_CHECK ps_result ps_token_writer_set_lengths(ps_token_writer *writer,
                                                    const void *record,
                                                    size_t n, ps_error *err);

/*
 * Writes a record of `n_tok` >= 1 tokens and a payload of
 * ps_payload_bytes(schema, n_tok) bytes.  Tokens are not checked.
 * PS_OK, PS_ERR_ARGUMENT, _IO, _MEMORY, _LIMIT (a payload above
 * PS_MAX_SEQUENCE_BYTES).
 */
PS_MUST_CHECK ps_result ps_token_writer_put(ps_token_writer *writer,
                                            uint32_t n_tok,
                                            const void *payload,
                                            ps_error *err);

/*
 * Writes a flush record, which asks the reader to pack everything before it,
 * and flushes the buffer.  In a raw stream only readers with `raw_flush`
 * understand it.
 * PS_OK, PS_ERR_ARGUMENT (after ps_token_writer_finish), _IO.
 */
PS_MUST_CHECK ps_result ps_token_writer_put_flush(ps_token_writer *writer,
                                                  ps_error *err);

/*
 * Writes the buffered bytes.
 * PS_OK, PS_ERR_IO.
 */
PS_MUST_CHECK ps_result ps_token_writer_flush(ps_token_writer *writer,
                                              ps_error *err);

/*
 * Ends the stream and flushes.  A framed stream gets a LENGTHS record, with the
 * number of sequences of each length, unless there are more than 65,536
 * distinct lengths.  END follows; without it, readers report truncation.
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_token_writer_finish(ps_token_writer *writer,
                                               ps_error *err);

void ps_token_writer_free(ps_token_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
