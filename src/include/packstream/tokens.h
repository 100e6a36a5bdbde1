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
     * Private to readers and packers: the payload as a reader gave it, and
     * the block it lies in, which a packer can keep instead of copying.  NULL
     * in a sequence that the caller makes.
     */
    const unsigned char *lent;
    struct ps_block *block;
} ps_sequence;

/*
 * A reader calls hook(context, err).  A result other than PS_OK ends the read
 * with that result.
 */
typedef ps_result ps_wait_hook(void *context, ps_error *err);

/* Zero is the default of all members. */
typedef struct ps_token_reader_options {
    uint64_t window;     /* largest window of zstd frames, in bytes, at least
                            1024; a frame that needs more is PS_ERR_LIMIT.
                            0: 128 MiB */
    uint32_t vocab_size; /* every token must be below it and below the size
                            that the stream declares.  0: only below the
                            latter, if there is one */
    /*
     * The caller handles these results without a message: PS_ERR_OVERLONG,
     * PS_ERR_RANGE, PS_ERR_EMPTY.  They leave the ps_error untouched, which
     * saves the time to write it.
     */
    bool expect_overlong;
    bool expect_outside;
    bool expect_empty;
    /*
     * The writer of a stream can ask with a flush record that all before it
     * be packed.  In a raw stream a count of 0 is one if raw_flush is set, and
     * PS_ERR_EMPTY if not.  Without a hook flush records are skipped.
     */
    bool raw_flush;
    ps_wait_hook *on_flush;
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
 * From now on a payload above `bytes` is PS_ERR_LIMIT, but can be skipped.
 * The limit is at first, and at most, PS_MAX_SEQUENCE_BYTES.
 */
void ps_token_reader_set_longest(ps_token_reader *reader, uint64_t bytes);

/*
 * The most bytes that a reader allocates, whatever the input, with this longest
 * payload and window (0: 128 MiB), reading ahead or not.  Blocks that a packer
 * keeps are not counted.
 */
uint64_t ps_token_reader_memory(uint64_t longest, uint64_t window,
                                bool read_ahead);

/*
 * From now on, before the first record is read, the lengths of sequences are
 * counted, and compared with LENGTHS where a framed stream has it: otherwise
 * only its sums are.  It takes up to 4 MiB more, and does nothing for a stream
 * that is not read from its beginning.
 */
void ps_token_reader_check_lengths(ps_token_reader *reader);

/* The stream's schema; lives as long as the reader. */
const ps_schema *ps_token_reader_schema(const ps_token_reader *reader);

/*
 * The next sequence, if it has at most `max_tokens` tokens.
 *
 * PS_OK; PS_END after the last record (in a framed stream, after its END
 * has been checked against what was read).
 *
 * After three results reading can go on.  `sequence` then has id, offset and
 * length, but no payload.  After PS_ERR_OVERLONG and PS_ERR_RANGE (a token is
 * outside the vocabulary) the next call must be ps_token_reader_hold or
 * ps_token_reader_skip.  After PS_ERR_EMPTY (a count of 0 in a raw stream)
 * there is nothing to hold or skip.
 *
 * Failures: PS_ERR_MEMORY, _IO, _CORRUPT (totals that do not agree),
 * _TRUNCATED, _LIMIT, _UNSUPPORTED.
 */
PS_MUST_CHECK ps_result ps_token_reader_next(ps_token_reader *reader,
                                             uint32_t max_tokens,
                                             ps_sequence *sequence,
                                             ps_error *err);

/*
 * Reads the pending sequence whole (hold), or skips it in bounded memory.
 * Memory grows only with the bytes that arrive.
 *
 * The tokens of an overlong sequence are checked, too.  After PS_ERR_RANGE,
 * call again to go on without the check.  If skip gave it, part of the sequence
 * may be gone, and hold is PS_ERR_ARGUMENT.
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
 * Calls `hook` whenever the reader is about to wait for input, so that a filter
 * can pass on what it has.
 */
void ps_token_reader_on_wait(ps_token_reader *reader, ps_wait_hook *hook,
                             void *context);

/*
 * From now on a thread, if the system gives one, reads the input ahead, also
 * that of ps_token_reader_append.  The descriptor must stay open until the
 * reader is freed or has another.
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_token_reader_read_ahead(ps_token_reader *reader,
                                                   ps_error *err);

/*
 * A descriptor for the hook to poll(2) for POLLIN: it is readable once the
 * reader can go on.  Do not read from it.
 */
int ps_token_reader_descriptor(const ps_token_reader *reader);

/* Bytes taken from the input so far, after decompression. */
uint64_t ps_token_reader_offset(const ps_token_reader *reader);

/*
 * A place between two records of one file or of several in a row, from which
 * another reader can go on.
 */
typedef struct ps_token_mark {
    uint64_t id;     /* of the next record */
    uint64_t offset; /* bytes before it in its file, after decompression */
    uint64_t earlier_bytes; /* bytes of the files before */
    uint64_t sequences; /* these three since the last header, as in END */
    uint64_t tokens;
    uint64_t digest;
} ps_token_mark;

/* The place after the last record; no sequence may be pending. */
ps_token_mark ps_token_reader_mark(const ps_token_reader *reader);

/*
 * Goes to a mark in the file that was just opened, before any record is read.
 * The reader seeks in a plain regular file, and reads any other input up to the
 * mark.  END is checked as if all had been read.
 * PS_OK, PS_ERR_ARGUMENT (records were read), _TRUNCATED (the input ends
 * before the mark), _CORRUPT (the mark lies in the header), and the failures
 * of ps_token_reader_next.
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
 * The place after all that was put; call it after ps_token_writer_flush.
 * `offset` is the number of bytes written.
 */
ps_token_mark ps_token_writer_mark(const ps_token_writer *writer);

/*
 * As ps_token_writer_open, but goes on at a mark; the descriptor must stand
 * there.  The stream gets no LENGTHS record, since the lengths before the mark
 * are not known, unless ps_token_writer_set_lengths is called next.
 */
PS_MUST_CHECK ps_result ps_token_writer_resume(ps_token_writer **writer,
                                               int fd,
                                               const ps_schema *schema,
                                               const ps_token_mark *mark,
                                               ps_error *err);

/*
 * The LENGTHS record that the stream would get if it ended here, `*n` bytes
 * that stay valid until the next call with the writer.  *n is 0 if it would get
 * none.  Keep it with a mark.
 * PS_OK, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result
ps_token_writer_lengths(ps_token_writer *writer, const unsigned char **record,
                        size_t *n, ps_error *err);

/*
 * Gives a resumed writer the lengths before the mark, `n` bytes as
 * ps_token_writer_lengths gave them there, so that the stream becomes the same
 * as without a stop.  With n = 0 it gets no LENGTHS record.
 * PS_OK, PS_ERR_MEMORY, PS_ERR_CORRUPT (not those of the mark).
 */
PS_MUST_CHECK ps_result ps_token_writer_set_lengths(ps_token_writer *writer,
                                                    const void *record,
                                                    size_t n, ps_error *err);

/*
 * Writes a record: `n_tok` >= 1 and a payload of ps_payload_bytes(schema,
 * n_tok) bytes.  Tokens are not checked.
 * PS_OK, PS_ERR_ARGUMENT, _IO, _MEMORY, _LIMIT (above PS_MAX_SEQUENCE_BYTES).
 */
PS_MUST_CHECK ps_result ps_token_writer_put(ps_token_writer *writer,
                                            uint32_t n_tok,
                                            const void *payload,
                                            ps_error *err);

/*
 * Writes a flush record, which asks that all before it be packed, and all
 * that is buffered.  In a raw stream only readers with `raw_flush` know it.
 * PS_OK, PS_ERR_ARGUMENT (after ps_token_writer_finish), _IO.
 */
PS_MUST_CHECK ps_result ps_token_writer_put_flush(ps_token_writer *writer,
                                                  ps_error *err);

/* Writes what is buffered.  PS_OK, PS_ERR_IO. */
PS_MUST_CHECK ps_result ps_token_writer_flush(ps_token_writer *writer,
                                              ps_error *err);

/*
 * Ends the stream and flushes.  A framed stream gets its END, without which
 * readers report it as cut, and before it LENGTHS, which repeats how many
 * sequences of each length there are, unless there were more than 65536
 * lengths.
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_token_writer_finish(ps_token_writer *writer,
                                               ps_error *err);

void ps_token_writer_free(ps_token_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
