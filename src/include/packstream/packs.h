/*
 * packs.h - pack streams in, and back to the original records;
 * part of <packstream.h>.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_PACKS_H
#define PACKSTREAM_PACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokens.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------
 * Pack streams: what they say of themselves
 */

/* The source of a field of the format's own, such as `tokens`. */
#define PS_BUILT_IN UINT32_MAX

/* A column: of the rows of packs, or of the sequence rows. */
typedef struct ps_field {
    ps_channel channel; /* per token: of rows; else of sequence rows */
    uint32_t source; /* index in schema.channels, or PS_BUILT_IN */
    uint32_t offset; /* from the start of the row, bytes */
} ps_field;

/* The header of a pack stream. */
typedef struct ps_pack_info {
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t capacity; /* L */
    uint32_t depth;    /* no pack has more sequences; 0: not known */
    uint32_t window;   /* most sequences that come before one with a smaller
                          id: it bounds the memory of a reader that restores
                          the order */
    bool split;        /* overlong sequences were split into pieces */
    bool share;        /* other packs of the stream are elsewhere */
    uint32_t align;    /* sequences begin at multiples of it, which divides
                          the capacity; 1: without gaps */
    uint32_t pad_id;   /* in unused places of `tokens` */
    ps_schema schema;  /* of the token records, as they came */
    uint64_t seed;     /* of the order of packs; 0 = none */
    uint64_t options_digest;
    uint64_t n_packs; /* these five PS_UNKNOWN when streamed */
    uint64_t n_sequences;
    uint64_t n_tokens;
    uint64_t max_seqlen;
    uint64_t min_fill;
    uint32_t row_bytes;   /* of a pack: tokens and per-token channels */
    uint32_t seq_bytes;   /* of a sequence row */
    uint32_t block_packs; /* in a block that is not closed earlier */
    uint64_t block_bytes; /* no block is longer */
    uint32_t n_fields;    /* built-in ones and the user's channels */
    ps_field fields[PS_MAX_FIELDS];
    char dtype[2040]; /* a row, then a sequence row, as numpy dtype literals,
                         each with a line feed behind it */
} ps_pack_info;

/* Bytes of the header before the first block, and of a pack's head. */
#define PS_PACK_HEADER_BYTES 4096
#define PS_PACK_HEAD_BYTES 40

/* The index of the field that stands first in every stream. */
#define PS_FIELD_TOKENS 0

/* The field of that name, or NULL.  The pointer is into `info`. */
const ps_field *ps_pack_field(const ps_pack_info *info, const char *name);

/*
 * The most sequences that a pack of the stream may have: the depth if it is
 * known, else as many as fit.
 */
uint32_t ps_max_sequences(const ps_pack_info *info);

/*
 * Whether packs of a stream with the header `a` may follow those of one with
 * `b`: if their geometry is the same (packstream(5), "Concatenation").  The
 * error's text is like that of ps_schema_compare.
 * PS_OK, PS_ERR_ARGUMENT.
 */
PS_MUST_CHECK ps_result ps_pack_info_compare(const ps_pack_info *a,
                                             const ps_pack_info *b,
                                             ps_error *err);

/* What became of the input; the END record has it, and readers check it. */
typedef struct ps_totals {
    uint64_t packs;
    uint64_t sequences; /* in packs; each piece counts */
    uint64_t tokens;    /* in packs */
    uint64_t input_sequences;
    uint64_t input_tokens;
    uint64_t rejected_sequences; /* dropped whole, whatever the reason */
    uint64_t rejected_tokens;
    uint64_t truncated_sequences; /* cut, the rest kept */
    uint64_t truncated_tokens;    /* cut away */
    uint64_t split_sequences;     /* of the input, cut into pieces */
    uint64_t extra_pieces;        /* pieces beyond one per sequence */
    uint64_t max_displacement;    /* see packstream(5) */
    uint32_t max_seqlen;          /* 0 without packs */
    uint32_t max_depth;           /* 0 without packs */
    uint32_t min_fill;            /* tokens in the emptiest pack, or 0 */
} ps_totals;

/*
 * True if every input sequence and token is accounted for: in = packed +
 * rejected, and for tokens + truncated.
 */
bool ps_totals_balance(const ps_totals *totals);

/* ceil(tokens / capacity): no packing needs fewer packs. */
uint64_t ps_lower_bound(uint64_t tokens, uint32_t capacity);

/* ---------------------------------------------------------------------
 * Packs in
 */

/* One pack of a stream. */
typedef struct ps_pack {
    uint64_t index;     /* in its stream, from 0 */
    uint64_t checksum;
    uint64_t watermark; /* ids below it are in this pack or before */
    uint64_t sum_len_sq;
    uint32_t n_seq;
    uint32_t n_tok;
    uint32_t max_seqlen;
    uint32_t stream;             /* which of joined streams, from 0 */
    uint64_t offset;          /* of its block in the input, bytes */
    const unsigned char *row; /* info->row_bytes bytes */
    const unsigned char *sequences; /* n_seq rows, info->seq_bytes apart */
} ps_pack;

typedef struct ps_pack_reader ps_pack_reader;

/*
 * Starts to read a pack stream from `fd`; zstd frames are decompressed.
 * PS_OK, PS_ERR_MEMORY, _IO, _MAGIC, _UNSUPPORTED, _CORRUPT, _TRUNCATED,
 * _LIMIT.
 */
PS_MUST_CHECK ps_result ps_pack_reader_open(ps_pack_reader **reader, int fd,
                                            ps_error *err);

/*
 * The first header, but with the largest window of the streams so far; lives
 * as long as the reader.  If it does not say the depth, and the input is a
 * whole regular file, that is the greatest in any of its packs.
 */
const ps_pack_info *ps_pack_reader_info(const ps_pack_reader *reader);

/* The header of the stream that the last pack was in, unchanged. */
const ps_pack_info *ps_pack_reader_stream(const ps_pack_reader *reader);

/*
 * The next pack, valid until the next call.  Its checksum, its head and its
 * sequence rows have been checked: each sequence has tokens, and begins where
 * the one before it ends, or at the next multiple of the alignment.
 * PS_END after the END record of the last stream, once totals and digest
 * agree with what was read and nothing follows but, in a compressed stream,
 * the seek table, which must be that of its frames.  Streams of equal
 * geometry may follow one another.
 * Failures: PS_ERR_IO, _CORRUPT, _TRUNCATED, _UNSUPPORTED, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_reader_next(ps_pack_reader *reader,
                                            ps_pack *pack, ps_error *err);

/*
 * The totals of the streams that have ended so far, added up (maxima and
 * minima over them).  Complete after PS_END.
 */
const ps_totals *ps_pack_reader_totals(const ps_pack_reader *reader);

/* As ps_token_reader_on_wait. */
void ps_pack_reader_on_wait(ps_pack_reader *reader, ps_wait_hook *hook,
                            void *context);

/* Bytes taken from the input so far, after decompression. */
uint64_t ps_pack_reader_offset(const ps_pack_reader *reader);

/*
 * The digest of the packs of this stream so far, as END has it of all: it
 * proves that they are those that were written, in this order.
 */
uint64_t ps_pack_reader_digest(const ps_pack_reader *reader);

/*
 * From now on ps_pack_reader_next gives only the packs whose number, counted
 * from 0 through all streams, is `rank` modulo `ranks`.  Ranks that read the
 * same input thus get every pack once.  The reader still reads and checks the
 * packs of other ranks.
 * PS_OK, PS_ERR_ARGUMENT (`rank` is not below `ranks`).
 */
PS_MUST_CHECK ps_result ps_pack_reader_share(ps_pack_reader *reader,
                                             uint32_t rank, uint32_t ranks,
                                             ps_error *err);

/*
 * The place where a reader is, for a trainer to keep with its own state: bytes
 * with a checksum, the same on every machine.
 *
 * It is after the last pack that was given; after PS_END, after the last pack
 * of the input.  All packs before it count as done, whichever rank they went
 * to.  With the same `rank` and `ranks`, each rank resumes its own mark.  To
 * go on with other `ranks`, let all ranks take equally many packs, and resume
 * the mark of the last rank, `ranks` - 1, in every new rank: before it are
 * exactly the packs that were taken.
 */
#define PS_PACK_MARK_BYTES 384
void ps_pack_reader_save(const ps_pack_reader *reader,
                         unsigned char mark[PS_PACK_MARK_BYTES]);

/*
 * Goes on at the place of a mark, of which every byte is checked.  Call it
 * before any pack is read.  Totals, numbers of packs and the check of END are
 * then as if all had been read.
 *
 * In a plain regular file that begins with the stream and is whole, the reader
 * goes to the place by the index: before it, it reads only headers and the pack
 * before the place, to see that they fit.  Any other input it reads from the
 * start and checks.  An input may also start later, as a resumed packstream
 * writes it: with the header, then a block that does not begin after the place.
 * The reader then skips what is before the place, and trusts the mark for what
 * is missing, until END proves the digest.
 *
 * PS_OK, PS_ERR_ARGUMENT (the mark is of another stream, or packs were read),
 * _MAGIC (no mark), _CORRUPT (a damaged mark, the failures of
 * ps_pack_reader_next, or packs after the place are missing), _UNSUPPORTED (a
 * mark of a later version), _TRUNCATED, _MEMORY, _IO, _LIMIT.
 */
PS_MUST_CHECK ps_result ps_pack_reader_resume(ps_pack_reader *reader,
                                              const unsigned char *mark,
                                              ps_error *err);

void ps_pack_reader_free(ps_pack_reader *reader);

/*
 * Packs of a file, in any order.  The file is regular: plain, or compressed
 * in zstd's seekable format, as packstream writes it.  Every pack costs the
 * same to read, wherever it lies.  In a compressed file a whole frame is
 * decompressed, and kept for the packs beside it.
 */
typedef struct ps_pack_file ps_pack_file;

/*
 * Opens the file of `fd` from its first byte; the descriptor's offset is
 * neither used nor moved.  Reads and checks the header and END of every stream
 * in the file, and the seek table of a compressed file.
 * PS_OK, PS_ERR_ARGUMENT (not a regular file), _MEMORY, _IO, _MAGIC,
 * _UNSUPPORTED (also: zstd frames without a seek table), _CORRUPT,
 * _TRUNCATED, _LIMIT (above 2^20 streams, or a frame above 256 MiB).
 */
PS_MUST_CHECK ps_result ps_pack_file_open(ps_pack_file **file, int fd,
                                          ps_error *err);

/*
 * The first header, but with the largest window of all streams, and the depth
 * of the deepest pack if no header says one.
 */
const ps_pack_info *ps_pack_file_info(const ps_pack_file *file);

/* How many packs and streams there are, and the totals of all streams. */
uint64_t ps_pack_file_packs(const ps_pack_file *file);
uint32_t ps_pack_file_streams(const ps_pack_file *file);
const ps_totals *ps_pack_file_totals(const ps_pack_file *file);

/*
 * Stream `i` of the file, from 0 on: its own header and totals.
 * PS_OK; PS_ERR_ARGUMENT (there is no such stream), and if the file has
 * changed, as ps_pack_file_open.
 */
PS_MUST_CHECK ps_result ps_pack_file_stream(ps_pack_file *file, uint32_t i,
                                            ps_pack_info *info,
                                            ps_totals *totals, ps_error *err);

/*
 * Pack `i` of the file; they are numbered from 0 through all streams, while
 * pack->index starts again in each.  It is checked as by ps_pack_reader_next.
 * Only a reader of all packs can check the digest and the totals of END.
 * PS_OK; PS_ERR_ARGUMENT (there is no such pack), _CORRUPT, _IO, _MEMORY,
 * _TRUNCATED (the file has shrunk).  After any of these other packs can
 * still be read.
 */
PS_MUST_CHECK ps_result ps_pack_file_read(ps_pack_file *file, uint64_t i,
                                          ps_pack *pack, ps_error *err);

/*
 * The head of pack `i` alone: its numbers; pack->row and pack->sequences are
 * NULL.  The heads of a block lie together and are read at once.  The checksum
 * covers the row, too, and is not checked: a damaged head shows only in more
 * sequences or tokens than a pack can have; other numbers may be wrong.
 * As ps_pack_file_read.
 */
PS_MUST_CHECK ps_result ps_pack_file_head(ps_pack_file *file, uint64_t i,
                                          ps_pack *pack, ps_error *err);

void ps_pack_file_free(ps_pack_file *file);

/* One sequence, or one piece of a split sequence, inside a pack. */
typedef struct ps_piece {
    uint64_t id;       /* of the sequence in the input */
    uint32_t begin;    /* its first token's place in the pack */
    uint32_t n_tok;    /* of the piece */
    uint32_t seq_off;  /* the piece's place in the sequence */
    uint32_t seq_len;  /* tokens of the whole sequence */
} ps_piece;

/* Sequence `i` < pack->n_seq of a pack that a reader or a file gave. */
ps_piece ps_pack_piece(const ps_pack_info *info, const ps_pack *pack,
                       uint32_t i);

/*
 * Copies the payload of sequence `i` (ps_payload_bytes(&info->schema,
 * its n_tok) bytes) to `payload`.
 */
void ps_pack_payload(const ps_pack_info *info, const ps_pack *pack,
                     uint32_t i, void *payload);

/*
 * Checks the rules that ps_pack_reader_next does not, since breaking them
 * cannot mislead a reader of the sequences: sum_len_sq, unused places, padding,
 * zeros between fields, tokens within the vocabulary.
 * The message does not name the pack; the caller does.
 * PS_OK, PS_ERR_CORRUPT, PS_ERR_RANGE.
 */
PS_MUST_CHECK ps_result ps_pack_check(const ps_pack_info *info,
                                      const ps_pack *pack, ps_error *err);

/* ---------------------------------------------------------------------
 * Packs out: a share of a stream, or several streams as one
 *
 * A share is a stream of some packs of another one, in their order unless it is
 * shuffled; packstream(5), "Shares".  ps_packer makes packs; a pack writer
 * writes those of a reader again.
 */

/* As in ps_packer_options.  Zeros: plain, written by the caller. */
typedef struct ps_pack_writer_options {
    bool compressed;
    int level;
    uint32_t threads;
    bool shuffled; /* packs come in any order, perhaps of several streams:
                      watermarks are 0, the window is PS_MAX_WINDOW */
    bool joined;   /* all packs come, those of one stream behind those of
                      another: they become one stream, and no share of it */
} ps_pack_writer_options;

typedef struct ps_pack_writer ps_pack_writer;

/*
 * Starts a share of the stream whose header is `info`, as
 * ps_pack_reader_stream and ps_pack_file_stream give it.
 * PS_OK, PS_ERR_UNSUPPORTED (a stream of a later version may have what this
 * one cannot hand on, and a share is not joined), _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_pack_writer_open(
    ps_pack_writer **writer, int fd, const ps_pack_info *info,
    const ps_pack_writer_options *options, ps_error *err);

/*
 * Writes the next pack of that stream, as a reader or a file gave it.  It is
 * copied, and gets the index that it has in the share.
 * PS_OK, PS_ERR_ARGUMENT (a head without its row, or the stream has ended), _IO,
 * _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_writer_put(ps_pack_writer *writer,
                                           const ps_pack *pack,
                                           ps_error *err);

/*
 * From now on adds `by`, at first 0, to the ids in packs: the input sequences
 * of the streams before the one that the packs are of.  For a shuffled share
 * of several streams, and for streams that are joined.
 */
void ps_pack_writer_raise_ids(ps_pack_writer *writer, uint64_t by);

/*
 * Closes the block and has all packs so far written soon, without waiting;
 * without threads, writes them.
 * PS_OK, PS_ERR_IO, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_writer_push(ps_pack_writer *writer,
                                            ps_error *err);

/*
 * Ends the stream with END, whose input is that of `totals`, the totals of the
 * whole stream.  If streams follow one another, `next` is the header of the
 * next one, of equal geometry, whose packs follow; else NULL.  Those that become
 * one end once, with the sums of their totals and NULL.  Pushes, and waits only
 * if compressed.
 * PS_OK, PS_ERR_CORRUPT (`totals` have fewer sequences or tokens than the
 * packs), _ARGUMENT (called again after NULL, or another geometry), _IO,
 * _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_writer_end(ps_pack_writer *writer,
                                           const ps_totals *totals,
                                           const ps_pack_info *next,
                                           ps_error *err);

/*
 * Waits until all is written, after the last stream has ended.
 * PS_OK, PS_ERR_ARGUMENT (it has not), _IO, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_writer_finish(ps_pack_writer *writer,
                                              ps_error *err);

/* What was not pushed or finished may be lost. */
void ps_pack_writer_free(ps_pack_writer *writer);

/*
 * Opens whichever kind of stream `fd` holds: exactly one of *packs and
 * *tokens is set, both are NULL after a failure.  Anything but a pack stream
 * is read as token records, with default options.  As the two open calls.
 */
PS_MUST_CHECK ps_result ps_open_any(int fd, ps_type raw_type,
                                    ps_pack_reader **packs,
                                    ps_token_reader **tokens, ps_error *err);

/* ---------------------------------------------------------------------
 * Unpacking: the original records
 */

typedef enum ps_order {
    PS_ORDER_INPUT, /* as they came; pieces joined again */
    PS_ORDER_PACK   /* as they lie in the packs; pieces as they are */
} ps_order;

typedef struct ps_unpacker ps_unpacker;

/* What an unpacker holds at most unless it is told otherwise. */
#define PS_UNPACKER_BYTES (UINT64_C(4) << 30)

/*
 * Takes sequences out of the packs of `reader`, which must outlive the
 * unpacker.  In input order it holds back what came early: at most
 * PS_UNPACKER_BYTES and, if sequences were split, one more of at most
 * PS_MAX_SEQUENCE_BYTES.
 * PS_OK, PS_ERR_MEMORY; in input order PS_ERR_UNSUPPORTED for a share of a
 * stream with split sequences, whose pieces may be elsewhere.
 */
PS_MUST_CHECK ps_result ps_unpacker_open(ps_unpacker **unpacker,
                                         ps_pack_reader *reader,
                                         ps_order order, ps_error *err);

/* Bounds the sequences that are held back, with some 50 bytes for each. */
void ps_unpacker_set_max_bytes(ps_unpacker *unpacker, uint64_t bytes);

/*
 * The next sequence; `id` counts within its stream, `offset` is 0.  In
 * input order ids rise, with gaps where sequences were rejected; a truncated
 * sequence comes as it was kept.
 * As ps_pack_reader_next; in input order PS_ERR_CORRUPT also for an id given
 * twice or below the watermark, and for pieces that do not join, and
 * PS_ERR_LIMIT when more must be held back than the header's window allows.
 */
PS_MUST_CHECK ps_result ps_unpacker_next(ps_unpacker *unpacker,
                                         ps_sequence *sequence,
                                         ps_error *err);

void ps_unpacker_free(ps_unpacker *unpacker);

#ifdef __cplusplus
}
#endif

#endif
