/*
 * packs.h - read pack streams and restore the original records; part of
 * <packstream.h>.
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
 * Pack streams: header and totals
 */

/* ps_field.source of a built-in field, such as `tokens`. */
#define PS_BUILT_IN UINT32_MAX

/* A column of pack rows or of sequence rows. */
typedef struct ps_field {
    ps_channel channel; /* per token: in rows; per sequence: in sequence rows */
    uint32_t source;    /* index in schema.channels, or PS_BUILT_IN */
    uint32_t offset;    /* bytes from the start of the row */
} ps_field;

/*
 * A limit on packs besides the capacity: the sum of a per-sequence channel over
 * the sequences of a pack, the total length of their lists, or the sum of their
 * squared lengths, is at most `limit`.  Every list channel has one, which is
 * the number of its elements in a row.
 */
typedef struct ps_budget {
    uint32_t channel; /* index in schema.channels, or PS_BUDGET_ATTENTION */
    uint64_t limit;   /* 1 to PS_MAX_BUDGET */
} ps_budget;

#define PS_MAX_BUDGETS 4
#define PS_MAX_BUDGET (UINT64_C(1) << 43)
#define PS_BUDGET_ATTENTION UINT32_MAX /* squared lengths, in tokens */
#define PS_ATTENTION "attention"       /* its name */

/* The header of a pack stream. */
typedef struct ps_pack_info {
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t capacity; /* L, tokens */
    uint32_t depth;    /* maximum number of sequences per pack; 0: unknown */
    uint32_t max_displacement; /* maximum number of sequences that precede a
                          sequence with a smaller id; bounds the memory of a
                          reader that restores input order */
    bool split;        /* overlong sequences were split into pieces */
    bool share;        /* the stream is a share: it contains only some packs
                          of another stream */
    uint32_t align;    /* sequences start at multiples of this offset; divides
                          the capacity; 1: no gaps */
    uint32_t group;    /* 1 + index of the channel whose groups share packs; 0:
                          no groups */
    uint32_t n_budgets; /* at most PS_MAX_BUDGETS */
    ps_budget budgets[PS_MAX_BUDGETS];
    uint32_t pad_id;   /* value of `tokens` in padding */
    ps_schema schema;  /* of the original token records */
    uint64_t seed;     /* of the pack order; 0: not shuffled */
    uint64_t options_digest; /* hash of the packer's options; 0: unknown */
    uint64_t n_packs; /* this and the next four are as in END, or PS_UNKNOWN if
                         the writer did not know them in advance */
    uint64_t n_sequences;
    uint64_t n_tokens;
    uint64_t max_seqlen;
    uint64_t min_fill;
    uint32_t row_bytes;   /* bytes of a pack row: tokens, per-token channels */
    uint32_t seq_bytes;   /* bytes of a sequence row */
    uint32_t block_packs; /* packs in a block that is not closed early */
    uint64_t block_bytes; /* maximum size of a block in bytes */
    uint32_t n_fields;    /* built-in fields and user channels */
    ps_field fields[PS_MAX_FIELDS];
    char dtype[2040]; /* numpy dtype literals of a pack row and a sequence row,
                         each followed by a line feed */
} ps_pack_info;

/* Sizes of the header, which precedes the first block, and of a pack head. */
#define PS_PACK_HEADER_BYTES 4096
#define PS_PACK_HEAD_BYTES 40

/* Index of `tokens`, the first field of every stream. */
#define PS_FIELD_TOKENS 0

/* Returns the field of that name, or NULL.  The pointer is into `info`. */
const ps_field *ps_pack_field(const ps_pack_info *info, const char *name);

/*
 * Maximum number of sequences per pack: the depth if known, otherwise the
 * number of one-token sequences that fit the capacity.
 */
uint32_t ps_max_sequences(const ps_pack_info *info);

/*
 * Checks whether a stream with header `a` may follow a stream with header `b`,
 * that is, whether their geometry is equal; see packstream(5), "Concatenation".
 * The text of the error is like that of ps_schema_compare.
 * PS_OK, PS_ERR_ARGUMENT.
 */
PS_MUST_CHECK ps_result ps_pack_info_compare(const ps_pack_info *a,
                                             const ps_pack_info *b,
                                             ps_error *err);

/* Totals of a stream, stored in END and verified by readers. */
typedef struct ps_totals {
    uint64_t packs;
    uint64_t sequences;       /* in packs; each piece counts as one */
    uint64_t tokens;          /* in packs */
    uint64_t input_sequences; /* read from the input */
    uint64_t input_tokens;
    uint64_t rejected_sequences; /* for any reason */
    uint64_t rejected_tokens;
    uint64_t truncated_sequences; /* sequences cut to the capacity */
    uint64_t truncated_tokens;    /* tokens cut off */
    uint64_t split_sequences;     /* input sequences cut into pieces */
    uint64_t extra_pieces;        /* pieces, less one per split sequence */
    uint64_t max_displacement;    /* maximum, over packs, of the greatest id so
                                     far minus the lowest id in the pack */
    uint32_t max_seqlen;          /* 0 without packs */
    uint32_t max_depth;           /* 0 without packs */
    uint32_t min_fill;            /* tokens in the emptiest pack; 0 without
                                     packs */
} ps_totals;

/*
 * True if the totals account for every input sequence and token: input
 * sequences = packed + rejected, with each split sequence counted once, and
 * input tokens = packed + rejected + truncated.
 */
bool ps_totals_balance(const ps_totals *totals);

/* ceil(tokens / capacity), a lower bound on the number of packs. */
uint64_t ps_lower_bound(uint64_t tokens, uint32_t capacity);

/* ---------------------------------------------------------------------
 * Reading packs
 */

/* One pack of a stream. */
typedef struct ps_pack {
    uint64_t index;     /* in its stream, from 0 */
    uint64_t checksum;  /* XXH3 of index, row, sequence rows and head */
    uint64_t watermark; /* lower bound on the ids in later packs */
    uint64_t sum_len_sq;         /* sum of squared sequence lengths */
    uint32_t n_seq;              /* number of sequences, at least 1 */
    uint32_t n_tok;              /* number of tokens, at most the capacity */
    uint32_t max_seqlen;         /* longest sequence, tokens */
    uint32_t stream;             /* number of its stream in a concatenation,
                                    from 0 */
    uint64_t offset;          /* offset of its block in the input, bytes */
    const unsigned char *row; /* info->row_bytes bytes */
    const unsigned char *sequences; /* n_seq rows, info->seq_bytes apart */
} ps_pack;

typedef struct ps_pack_reader ps_pack_reader;

/*
 * Starts reading a pack stream from `fd`.  zstd frames are decompressed.
 * PS_OK, PS_ERR_MEMORY, _IO, _MAGIC, _UNSUPPORTED, _CORRUPT, _TRUNCATED,
 * _LIMIT.
 */
PS_MUST_CHECK ps_result ps_pack_reader_open(ps_pack_reader **reader, int fd,
                                            ps_error *err);

/*
 * The first header, with the maximum `max_displacement` of the streams so far.
 * If it does not state the depth and the input is a complete regular file,
 * `depth` is the depth of the deepest pack in the file.  Valid until the reader
 * is freed.
 */
const ps_pack_info *ps_pack_reader_info(const ps_pack_reader *reader);

/*
 * The unmodified header of the stream that contains the most recently returned
 * pack.
 */
const ps_pack_info *ps_pack_reader_stream(const ps_pack_reader *reader);

/*
 * Returns the next pack, which is valid until the next call.  Its checksum,
 * head and sequence rows have been verified: every sequence has tokens, and
 * starts where the previous sequence ends or at the next multiple of the
 * alignment.
 *
 * Returns PS_END after the END record of the last stream.  The totals and
 * digest in END then agree with the packs read, and nothing follows END.  If a
 * compressed stream has a seek table, the table then matches the frames.
 * Streams of equal geometry may follow one another.
 *
 * PS_OK, PS_END, PS_ERR_IO, _CORRUPT, _TRUNCATED, _UNSUPPORTED, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_reader_next(ps_pack_reader *reader,
                                            ps_pack *pack, ps_error *err);

/*
 * Totals of the streams that have ended so far, combined by sum, maximum or
 * minimum.  Complete after PS_END.
 */
const ps_totals *ps_pack_reader_totals(const ps_pack_reader *reader);

/* Like ps_token_reader_on_wait. */
void ps_pack_reader_on_wait(ps_pack_reader *reader, ps_wait_hook *hook,
                            void *context);

/* Bytes consumed so far, after decompression. */
uint64_t ps_pack_reader_offset(const ps_pack_reader *reader);

/*
 * Digest of the packs read so far in this stream, computed like the digest in
 * END.  Equal digests mean the same packs in the same order.
 */
uint64_t ps_pack_reader_digest(const ps_pack_reader *reader);

/*
 * Restricts ps_pack_reader_next to packs whose number, counted from 0 over all
 * streams, is `rank` modulo `ranks`, so that ranks reading the same input get
 * every pack once.  Packs of other ranks are still read and verified.
 * PS_OK, PS_ERR_ARGUMENT (`rank` >= `ranks`).
 */
PS_MUST_CHECK ps_result ps_pack_reader_share(ps_pack_reader *reader,
                                             uint32_t rank, uint32_t ranks,
                                             ps_error *err);

/*
 * Saves the position of a reader, for a trainer's checkpoint.  A mark has a
 * checksum and is the same on every machine.
 *
 * The position is after the last pack returned, or after the last pack of the
 * input once PS_END has been returned.  All packs before the position count as
 * processed, including those of other ranks.  With unchanged `ranks` each rank
 * resumes from its own mark.  To change `ranks`, let all ranks read equally
 * many packs, then resume every new rank from the mark of the last old rank,
 * `ranks` - 1, since exactly the packs read so far precede its position.
 */
#define PS_PACK_MARK_BYTES 384
void ps_pack_reader_save(const ps_pack_reader *reader,
                         unsigned char mark[PS_PACK_MARK_BYTES]);

/*
 * Resumes reading at a mark.  All bytes of the mark are verified.  Call it
 * before any pack is read.  Totals, pack numbers and the check of END are as if
 * all packs had been read.
 *
 * In a plain regular file that is complete and starts with the stream, the
 * reader seeks: it reads only headers and the pack before the position, to
 * check that they match the mark.  Any other input is read and verified from
 * the start.  An input may also start later, as the output of a resumed
 * packstream does: with the header, then a block that starts no later than the
 * position.  The reader then skips packs before the position.  It trusts the
 * mark about the missing packs until the digest in END confirms it.
 *
 * PS_OK, PS_ERR_ARGUMENT (the mark belongs to another stream, or packs have
 * been read), _MAGIC (not a mark), _CORRUPT (a damaged mark, failures of
 * ps_pack_reader_next, or packs missing after the position), _UNSUPPORTED (a
 * mark of a later version), _TRUNCATED, _MEMORY, _IO, _LIMIT.
 */
PS_MUST_CHECK ps_result ps_pack_reader_resume(ps_pack_reader *reader,
                                              const unsigned char *mark,
                                              ps_error *err);

void ps_pack_reader_free(ps_pack_reader *reader);

/*
 * Random access to the packs of a regular file, either plain or compressed in
 * zstd's seekable format, as packstream writes it.  The time to read a pack
 * does not depend on its position.  In a compressed file the whole frame is
 * decompressed and cached for neighbouring packs.
 */
typedef struct ps_pack_file ps_pack_file;

/*
 * Opens the file from its first byte.  The file offset of `fd` is neither used
 * nor changed.  Reads and verifies the header and END of every stream, and the
 * seek table of a compressed file.
 * PS_OK, PS_ERR_ARGUMENT (not a regular file), _MEMORY, _IO, _MAGIC,
 * _UNSUPPORTED (also: zstd frames without a seek table), _CORRUPT, _TRUNCATED,
 * _LIMIT (more than 2^20 streams, or a frame larger than 256 MiB).
 */
PS_MUST_CHECK ps_result ps_pack_file_open(ps_pack_file **file, int fd,
                                          ps_error *err);

/*
 * The first header, with the maximum `max_displacement` of all streams.  If no
 * header states the depth, `depth` is the depth of the deepest pack.
 */
const ps_pack_info *ps_pack_file_info(const ps_pack_file *file);

/* Number of packs, number of streams, and the totals of all streams. */
uint64_t ps_pack_file_packs(const ps_pack_file *file);
uint32_t ps_pack_file_streams(const ps_pack_file *file);
const ps_totals *ps_pack_file_totals(const ps_pack_file *file);

/*
 * Returns the header and totals of stream `i`, counted from 0.
 * PS_OK, PS_ERR_ARGUMENT (no such stream), and the failures of
 * ps_pack_file_open if the file has changed.
 */
PS_MUST_CHECK ps_result ps_pack_file_stream(ps_pack_file *file, uint32_t i,
                                            ps_pack_info *info,
                                            ps_totals *totals, ps_error *err);

/*
 * Reads pack `i`, counted from 0 over all streams; pack->index restarts in each
 * stream.  The pack is verified as by ps_pack_reader_next.  The digest and
 * totals in END are not verified, because that would require reading all packs.
 * PS_OK, PS_ERR_ARGUMENT (no such pack), _CORRUPT, _IO, _MEMORY, _TRUNCATED
 * (the file has shrunk).  After a failure, other packs can still be read.
 */
PS_MUST_CHECK ps_result ps_pack_file_read(ps_pack_file *file, uint64_t i,
                                          ps_pack *pack, ps_error *err);

/*
 * Reads only the head of pack `i`; pack->row and pack->sequences are NULL.  The
 * heads of a block are stored together and read at once.  The checksum covers
 * the row as well, so it is not verified: damage is detected only if n_seq or
 * n_tok is out of range, and other values can be wrong.
 * Results as ps_pack_file_read.
 */
PS_MUST_CHECK ps_result ps_pack_file_head(ps_pack_file *file, uint64_t i,
                                          ps_pack *pack, ps_error *err);

void ps_pack_file_free(ps_pack_file *file);

/* A sequence, or a piece of a split sequence, inside a pack. */
typedef struct ps_piece {
    uint64_t id;       /* id of the sequence in the input */
    uint32_t begin;    /* offset of the first token in the pack, in tokens */
    uint32_t n_tok;    /* tokens of the piece */
    uint32_t seq_off;  /* offset of the piece in its sequence, in tokens */
    uint32_t seq_len;  /* tokens of the whole sequence */
} ps_piece;

/* Location of a sequence, or of a piece of a split sequence, in a file. */
typedef struct ps_location {
    uint64_t pack; /* number of the pack, as in ps_pack_file_read */
    uint32_t slot; /* number of the sequence within the pack, from 0 */
    ps_piece piece;
} ps_location;

/*
 * Finds sequence `id` of stream `stream`, counted from 0, or all of its pieces.
 * Sets *locations to an array of *n locations in ascending order, which the
 * caller frees with free(), or to NULL and 0 if no pack of this stream contains
 * the sequence.  The packs found are verified.
 *
 * The index limits the search to a few blocks.  If the sequence or one of its
 * pieces is missing there, these blocks are verified, except in a share, and
 * all earlier packs are searched, without their rows or checksums.  Shuffled
 * shares have no watermarks, so all their packs are searched.
 * PS_OK, PS_ERR_ARGUMENT (no such stream), and the failures of
 * ps_pack_file_read.
 */
PS_MUST_CHECK ps_result ps_pack_file_locate(
    ps_pack_file *file, uint32_t stream, uint64_t id, ps_location **locations,
    uint32_t *n, ps_error *err);

/*
 * Returns sequence `i` (0 to n_seq - 1) of a pack returned by a reader or file.
 */
ps_piece ps_pack_piece(const ps_pack_info *info, const ps_pack *pack,
                       uint32_t i);

/* A list of a sequence in a pack. */
typedef struct ps_list {
    uint32_t start; /* first element in the field of the row */
    uint32_t n;     /* number of elements */
    const unsigned char *elements; /* in the row */
} ps_list;

/* Returns the list of sequence `i`.  The kind of `channel` is PS_LIST. */
ps_list ps_pack_list(const ps_pack_info *info, const ps_pack *pack,
                     uint32_t channel, uint32_t i);

/*
 * Copies the payload of sequence `i` to `payload`, which has as many bytes as
 * ps_pack_payload_bytes returns.
 */
uint64_t ps_pack_payload_bytes(const ps_pack_info *info, const ps_pack *pack,
                               uint32_t i);
void ps_pack_payload(const ps_pack_info *info, const ps_pack *pack,
                     uint32_t i, void *payload);

/*
 * Computes how much of each budget in the header a pack uses.  The result is
 * UINT64_MAX if a single value exceeds the budget, as in a damaged pack.
 */
void ps_pack_uses(const ps_pack_info *info, const ps_pack *pack,
                  uint64_t uses[PS_MAX_BUDGETS]);

/*
 * Checks the rules that ps_pack_reader_next does not check because a violation
 * cannot mislead a reader of the sequences: sum_len_sq, unused elements,
 * padding, zeros between fields, budgets, tokens within the vocabulary.  The
 * message does not name the pack; callers add its number.
 * PS_OK, PS_ERR_CORRUPT, PS_ERR_RANGE.
 */
PS_MUST_CHECK ps_result ps_pack_check(const ps_pack_info *info,
                                      const ps_pack *pack, ps_error *err);

/* ---------------------------------------------------------------------
 * Writing packs: a share of a stream, or several streams joined
 *
 * A share contains some packs of another stream, in the same order unless
 * shuffled; see packstream(5), "Shares".  ps_packer makes new packs; a pack
 * writer writes existing packs.
 */

/*
 * The first three members are as in ps_packer_options.  With zeros the output
 * is not compressed, and the caller's thread writes it.
 */
typedef struct ps_pack_writer_options {
    bool compressed;
    int level;
    uint32_t threads;
    bool shuffled; /* packs are in any order, possibly from several streams;
                      watermarks are 0, and max_displacement is PS_MAX_WINDOW */
    bool joined;   /* all packs are written, stream after stream; the output
                      is a whole stream, not a share */
} ps_pack_writer_options;

typedef struct ps_pack_writer ps_pack_writer;

/*
 * Starts a share of the stream with header `info`, as returned by
 * ps_pack_reader_stream or ps_pack_file_stream.
 * PS_OK, PS_ERR_UNSUPPORTED (a stream of a later version, whose fields may be
 * unknown, or a share that is to be joined), _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_pack_writer_open(
    ps_pack_writer **writer, int fd, const ps_pack_info *info,
    const ps_pack_writer_options *options, ps_error *err);

/*
 * Writes the next pack of that stream, as returned by a reader or file.  The
 * pack is copied, and its index becomes its number in the share.
 * PS_OK, PS_ERR_ARGUMENT (a head without its row, or the stream has ended),
 * _IO, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_writer_put(ps_pack_writer *writer,
                                           const ps_pack *pack,
                                           ps_error *err);

/*
 * Like ps_pack_writer_put, but writes the pack without each sequence `i` for
 * which omitted[i] is true; the others follow each other, with padding after
 * them.  A pack has at least one sequence: if all are omitted, only the first
 * token of the first sequence remains.  Its per-token channels have their fill
 * values, and its lists are empty.
 */
PS_MUST_CHECK ps_result ps_pack_writer_put_without(ps_pack_writer *writer,
                                                   const ps_pack *pack,
                                                   const bool *omitted,
                                                   ps_error *err);

/*
 * Adds `by` to the ids of all packs put after this call.  `by` is the number of
 * input sequences in the streams before the current stream, initially 0.  This
 * is needed for shuffled shares of several streams, and for joined streams.
 */
void ps_pack_writer_raise_ids(ps_pack_writer *writer, uint64_t by);

/*
 * Closes the block and starts writing all packs so far, without waiting.
 * Without threads, returns after writing them.
 * PS_OK, PS_ERR_IO, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_writer_push(ps_pack_writer *writer,
                                            ps_error *err);

/*
 * Writes END, with the input counts of `totals`, the totals of the whole
 * original stream.  `next` is the header of the next stream, which must have
 * equal geometry and whose packs follow, or NULL after the last stream.  For
 * joined streams, call this function only once, with the sums of their totals
 * and NULL.  Starts writing like ps_pack_writer_push, and waits only if the
 * output is compressed.
 * PS_OK, PS_ERR_CORRUPT (`totals` has fewer sequences or tokens than the
 * packs), _ARGUMENT (called again after NULL, or the geometry differs), _IO,
 * _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_writer_end(ps_pack_writer *writer,
                                           const ps_totals *totals,
                                           const ps_pack_info *next,
                                           ps_error *err);

/*
 * Waits until everything is written.  Call it after the last stream has ended.
 * PS_OK, PS_ERR_ARGUMENT (the stream has not ended), _IO, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_writer_finish(ps_pack_writer *writer,
                                              ps_error *err);

/* Packs that have not been pushed or finished can be lost. */
void ps_pack_writer_free(ps_pack_writer *writer);

/*
 * Opens either type of stream.  On success exactly one of *packs and *tokens is
 * set; after a failure both are NULL.  Anything except a pack stream is read as
 * token records with default options.
 * Results as the two open functions.
 */
PS_MUST_CHECK ps_result ps_open_any(int fd, ps_type raw_type,
                                    ps_pack_reader **packs,
                                    ps_token_reader **tokens, ps_error *err);

/* ---------------------------------------------------------------------
 * Unpacking: restoring the original records
 */

typedef enum ps_order {
    PS_ORDER_INPUT, /* input order; pieces are joined */
    PS_ORDER_PACK   /* order of the packs; pieces stay separate */
} ps_order;

typedef struct ps_unpacker ps_unpacker;

/* Default of ps_unpacker_set_max_bytes: 4 GiB. */
#define PS_UNPACKER_BYTES (UINT64_C(4) << 30)

/*
 * Extracts the sequences from the packs of `reader`, which must outlive the
 * unpacker.  In input order, sequences that arrive early are held back: at most
 * PS_UNPACKER_BYTES in total, plus one sequence of at most
 * PS_MAX_SEQUENCE_BYTES if sequences were split.
 * PS_OK, PS_ERR_MEMORY; in input order PS_ERR_UNSUPPORTED for a share of a
 * stream with split sequences, whose pieces may be elsewhere.
 */
PS_MUST_CHECK ps_result ps_unpacker_open(ps_unpacker **unpacker,
                                         ps_pack_reader *reader,
                                         ps_order order, ps_error *err);

/*
 * Sets the limit, in bytes, on the sequences held back, including about 50
 * bytes of overhead for each sequence.
 */
void ps_unpacker_set_max_bytes(ps_unpacker *unpacker, uint64_t bytes);

/*
 * Returns the next sequence; `id` counts within its stream, and `offset` is 0.
 * In input order ids ascend, with gaps where sequences were rejected.  A
 * truncated sequence is returned as it was packed.
 * Results as ps_pack_reader_next; in input order also PS_ERR_CORRUPT (a
 * duplicate id, an id below the watermark, or pieces that do not join) and
 * PS_ERR_LIMIT (more sequences to hold back than max_displacement or the
 * byte limit allows).
 */
PS_MUST_CHECK ps_result ps_unpacker_next(ps_unpacker *unpacker,
                                         ps_sequence *sequence,
                                         ps_error *err);

void ps_unpacker_free(ps_unpacker *unpacker);

#ifdef __cplusplus
}
#endif

#endif
