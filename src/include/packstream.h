/*
 * packstream.h - the public interface of libpackstream.
 *
 * SPDX-License-Identifier: MIT
 *
 * packstream turns a stream of tokenised sequences (token records) into a
 * stream of fixed-size packs (a pack stream) and back, losing nothing.  Both
 * formats are specified byte by byte in packstream(5); the words used here
 * (sequence, capacity, depth, pack, window, watermark) are defined there.
 *
 * The interface has three levels:
 *
 *   records   ps_token_reader, ps_token_writer: token records in and out
 *   packs     ps_packer (records in, packs out), ps_pack_reader (packs in),
 *             ps_pack_file (packs in, from any place of a file),
 *             ps_spans, ps_loader (packs as a trainer wants them)
 *   both      ps_unpacker: packs in, the original records out
 *
 * Conventions that hold for every call:
 *
 *  - A call that can fail returns a ps_result and is PS_MUST_CHECK.  When it
 *    fails it fills the caller's ps_error, if one was given, with the same
 *    code and a sentence for a human: what is wrong, at which record and
 *    which byte offset.  The library never prints and never exits.
 *  - After a failure a handle may only be freed.
 *  - A handle is made by ps_X_open and released by ps_X_free, which accepts
 *    NULL.  ps_X_open sets its out pointer to NULL when it fails.
 *  - The caller keeps its file descriptors: the library reads and writes
 *    them, waits on them if they are non-blocking, and never closes them.
 *    Several calls may be restarted after signals; the library does so.
 *  - Pointers inside a ps_sequence or ps_pack point into the handle that
 *    gave them and die with the next call on it.
 *  - Lengths are in tokens, sizes in bytes, offsets in bytes from the start
 *    of the decompressed input.  Everything on disk is little-endian.
 *  - A handle may be used by one thread at a time; different handles are
 *    independent, but for a reader and the packers that take its sequences:
 *    these are one in this respect.  There is no global state.
 */

#ifndef PACKSTREAM_H
#define PACKSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; ps_version() gives that of the library. */
#define PACKSTREAM_VERSION_MAJOR 0
#define PACKSTREAM_VERSION_MINOR 1
#define PACKSTREAM_VERSION_PATCH 0

#if defined(__GNUC__)
#define PS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define PS_MUST_CHECK
#endif

/* Limits of the formats.  A stream beyond them is refused, never cut. */
#define PS_MAX_CAPACITY (UINT32_C(1) << 24)       /* L, tokens in a pack */
#define PS_MAX_DEPTH (UINT32_C(1) << 16)          /* D, sequences in one */
#define PS_MAX_WINDOW (UINT32_C(1) << 24)         /* W, sequences held */
#define PS_MAX_RECORD_BYTES (UINT32_C(1) << 28)   /* one pack record */
#define PS_MAX_SEQUENCE_BYTES (UINT32_C(1) << 28) /* one token record */
#define PS_MAX_CHANNELS 23                        /* the user's channels */
#define PS_MAX_FIELDS 28                          /* with the built-in ones */
#define PS_NAME_BYTES 24                          /* with the final NUL */

/* "No such token id" and "unknown count" on disk and in these structures. */
#define PS_NO_ID UINT32_MAX
#define PS_UNKNOWN UINT64_MAX

/* ---------------------------------------------------------------------
 * Results
 */

/*
 * Every result of every call: enumerator, and the words for it.
 *
 *  PS_END              not a failure: the input ended, whole and checked
 *  PS_ERR_ARGUMENT     the caller asked for something impossible
 *  PS_ERR_MEMORY       out of memory
 *  PS_ERR_IO           a system call failed; ps_error.sys_errno says how
 *  PS_ERR_MAGIC        the input is not a stream of the expected kind
 *  PS_ERR_UNSUPPORTED  a newer format, or a feature this reader lacks
 *  PS_ERR_CORRUPT      a checksum or a rule of the format is broken
 *  PS_ERR_TRUNCATED    the input ends in the middle of something
 *  PS_ERR_LIMIT        beyond a limit of the format or of an option
 *  PS_ERR_RANGE        a token outside the declared vocabulary
 *  PS_ERR_OVERLONG     a sequence longer than the caller's maximum
 *  PS_ERR_EMPTY        a sequence without tokens
 */
#define PS_RESULTS(X)                                                   \
    X(PS_OK, "success")                                                 \
    X(PS_END, "end of stream")                                          \
    X(PS_ERR_ARGUMENT, "invalid argument")                              \
    X(PS_ERR_MEMORY, "out of memory")                                   \
    X(PS_ERR_IO, "input/output error")                                  \
    X(PS_ERR_MAGIC, "not a stream of this kind")                        \
    X(PS_ERR_UNSUPPORTED, "unsupported version or feature")             \
    X(PS_ERR_CORRUPT, "corrupt data")                                   \
    X(PS_ERR_TRUNCATED, "unexpected end of input")                      \
    X(PS_ERR_LIMIT, "limit exceeded")                                   \
    X(PS_ERR_RANGE, "token outside the vocabulary")                     \
    X(PS_ERR_OVERLONG, "sequence too long")                             \
    X(PS_ERR_EMPTY, "sequence without tokens")

typedef enum ps_result {
#define PS_RESULT_ENUM(code, text) code,
    PS_RESULTS(PS_RESULT_ENUM)
#undef PS_RESULT_ENUM
} ps_result;

/* What went wrong.  A failing call fills it; a succeeding one leaves it. */
typedef struct ps_error {
    ps_result code;
    int sys_errno;  /* for PS_ERR_IO the errno, else 0 */
    char text[256]; /* one sentence, no newline, printable ASCII */
} ps_error;

/* The words for a result: static, never NULL, for any value. */
const char *ps_result_text(ps_result code);

/* The library's version, "0.1.0". */
const char *ps_version(void);

/* ---------------------------------------------------------------------
 * Schemas: what a sequence is made of
 */

/* Element types.  The values are those stored on disk. */
typedef enum ps_type {
    PS_U8 = 1,
    PS_U16 = 2,
    PS_U32 = 3,
    PS_U64 = 4,
    PS_I32 = 5,
    PS_I64 = 6,
    PS_F32 = 7,
    PS_F64 = 8
} ps_type;

/* What a channel has one element for.  The values are those on disk. */
typedef enum ps_kind {
    PS_PER_TOKEN = 1,
    PS_PER_SEQUENCE = 2,
    PS_PER_BOUNDARY = 3 /* depth + 2 of them: only `cu`, only in packs */
} ps_kind;

/*
 * A named column of values.  The name is a letter, then letters, digits and
 * underscores, at most PS_NAME_BYTES - 1, and not a word that the formats
 * use themselves.  `fill` is the little-endian bit pattern of the element
 * that stands in unused places of a pack (in an i32 channel, 0xffffff9c
 * for -100); its bits above the element's width are zero.
 */
typedef struct ps_channel {
    char name[PS_NAME_BYTES];
    ps_type type;
    ps_kind kind;
    uint64_t fill;
} ps_channel;

/* Special token ids, each PS_NO_ID where there is none. */
typedef enum ps_special {
    PS_PAD,
    PS_BOS,
    PS_EOS,
    PS_CLS,
    PS_SEP,
    PS_MASK,
    PS_SPECIALS
} ps_special;

/* What a label at position t is the target for; only recorded. */
typedef enum ps_label_convention {
    PS_LABELS_UNSTATED = 0,
    PS_LABELS_ALIGNED = 1, /* for position t: the trainer shifts */
    PS_LABELS_SHIFTED = 2  /* for position t + 1: shifted already */
} ps_label_convention;

/*
 * What the records of a stream consist of.  A raw stream has no channels;
 * of itself it says no more than the token type, which a reader is told.
 */
typedef struct ps_schema {
    bool framed;         /* a header describes the stream; else raw */
    ps_type token_type;  /* PS_U16 or PS_U32 */
    uint32_t vocab_size; /* tokens are below it; 0 = not declared */
    uint32_t special[PS_SPECIALS];
    ps_label_convention labels;
    uint8_t tokenizer[32]; /* digest of the tokenizer; zeros = unknown */
    uint32_t n_channels;
    ps_channel channels[PS_MAX_CHANNELS]; /* PER_TOKEN and PER_SEQUENCE */
} ps_schema;

/* An empty schema for tokens of `token_type`, raw, nothing declared. */
ps_schema ps_schema_raw(ps_type token_type);

/*
 * Checks names, types, kinds, fills and counts; the other calls do so too.
 * PS_OK, PS_ERR_ARGUMENT.
 */
PS_MUST_CHECK ps_result ps_schema_check(const ps_schema *schema,
                                        ps_error *err);

/* True if streams of the two schemas may follow one another. */
bool ps_schema_equal(const ps_schema *a, const ps_schema *b);

/* Bytes of an element; "u16"; numpy's "<u2".  0 or "?" for no type. */
size_t ps_type_bytes(ps_type type);
const char *ps_type_name(ps_type type);
const char *ps_type_numpy(ps_type type);

/* The type of a name such as "u16"; false if there is none. */
bool ps_type_from_name(const char *name, ps_type *type);

/*
 * A sequence's payload is one run of bytes: its tokens, then each per-token
 * channel (as many elements as tokens), then one element of each
 * per-sequence channel; channels in table order, no padding.
 *
 * Its size, and the offset in it of channel `channel` (an index into
 * schema->channels; PS_TOKENS for the tokens).  Cannot overflow for
 * n_tok <= UINT32_MAX.
 */
#define PS_TOKENS UINT32_MAX
uint64_t ps_payload_bytes(const ps_schema *schema, uint32_t n_tok);
uint64_t ps_payload_offset(const ps_schema *schema, uint32_t channel,
                           uint32_t n_tok);

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

typedef struct ps_token_reader ps_token_reader;

/*
 * Starts to read token records from `fd`: framed, or raw with tokens of
 * `raw_type`, told apart by the magic; zstd frames are decompressed.  Empty
 * input is a raw stream without records.
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY, _IO, _MAGIC (a pack stream), _UNSUPPORTED,
 * _CORRUPT, _TRUNCATED, _LIMIT.
 */
PS_MUST_CHECK ps_result ps_token_reader_open(ps_token_reader **reader,
                                             int fd, ps_type raw_type,
                                             ps_error *err);

/*
 * The same, but zstd frames that ask for a window of more than so many bytes,
 * at least 1024, are refused: PS_ERR_LIMIT.  0: 128 MiB, as above.
 */
PS_MUST_CHECK ps_result ps_token_reader_open_within(ps_token_reader **reader,
                                                    int fd, ps_type raw_type,
                                                    uint64_t window,
                                                    ps_error *err);

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
 * Checks every token against a vocabulary of `vocab_size` as well; a smaller
 * one that the stream declares stays in force.  To be called before the
 * first record.
 */
void ps_token_reader_set_vocab(ps_token_reader *reader, uint32_t vocab_size);

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
 * The caller means to deal with `result`, PS_ERR_OVERLONG, PS_ERR_RANGE or
 * PS_ERR_EMPTY, rather than tell of it: from now on it leaves the ps_error
 * as it is, which saves the time to write it.
 */
void ps_token_reader_expect(ps_token_reader *reader, ps_result result);

/*
 * After PS_END: goes on with another file of the same schema; ids go on.
 * As ps_token_reader_open; PS_ERR_CORRUPT if the schemas differ,
 * PS_ERR_TRUNCATED if the file is empty where a header is due.
 */
PS_MUST_CHECK ps_result ps_token_reader_append(ps_token_reader *reader,
                                               int fd, ps_error *err);

/*
 * `hook(context, err)` is called whenever the reader is about to wait for
 * input that has not come yet, so that a filter can pass on what it has.
 * A result other than PS_OK ends the read with that result.
 */
typedef ps_result ps_wait_hook(void *context, ps_error *err);
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

/*
 * `hook(context, err)` is called where a flush record stands in the stream,
 * by which its writer asks that all before it be packed; a result other than
 * PS_OK ends the read with that result.  Without a hook flush records of a
 * framed stream are passed over.  Raw streams have them only with a hook:
 * then a count of 0 is one, and else PS_ERR_EMPTY.
 */
void ps_token_reader_on_flush(ps_token_reader *reader, ps_wait_hook *hook,
                              void *context);

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
 * on what is buffered.  In a raw stream only a reader that expects it, as
 * ps_token_reader_on_flush says, takes it for one.
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

/* ---------------------------------------------------------------------
 * Pack streams: what they say of themselves
 */

/* Not one of the user's channels (`tokens` is built in, too). */
#define PS_BUILT_IN UINT32_MAX

/* A channel of a pack record: where it lies and how many elements it has. */
typedef struct ps_field {
    ps_channel channel;
    uint32_t source; /* index in schema.channels, or PS_BUILT_IN */
    uint32_t offset; /* from the start of the record, bytes */
    uint32_t count;  /* depth + 2, depth, or capacity */
} ps_field;

/* The header of a pack stream. */
typedef struct ps_pack_info {
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t capacity; /* L */
    uint32_t depth;    /* D */
    uint32_t window;   /* at most that many sequences overtake one that is
                          still to come: what bounds the memory of a reader
                          that restores the order */
    bool split;        /* overlong sequences were split into pieces */
    uint32_t align;    /* sequences begin at multiples of it, which divides
                          the capacity; 1: one behind the other */
    uint32_t pad_id;   /* what stands in unused places of `tokens` */
    ps_schema schema;  /* of the token records, as they came */
    uint64_t seed;     /* of the order of packs; 0 = none */
    uint64_t options_digest;
    uint64_t n_records; /* these five PS_UNKNOWN when streamed */
    uint64_t n_sequences;
    uint64_t n_tokens;
    uint64_t max_seqlen;
    uint64_t min_fill;
    uint32_t record_bytes; /* the stride, a multiple of 64 */
    uint32_t n_fields;     /* built-in channels and the user's */
    ps_field fields[PS_MAX_FIELDS];
    uint32_t tokens_field; /* index of `tokens` among them */
    uint32_t seq_tok_field; /* that of `seq_tok`, or 0 if align is 1 */
    char dtype[2040];      /* a record as a numpy dtype literal */
} ps_pack_info;

/* Bytes of the header before the first record. */
#define PS_PACK_HEADER_BYTES 4096

/* Indices of the built-in fields that stand first in every stream. */
#define PS_FIELD_CU 0
#define PS_FIELD_SEQ_ID 1
#define PS_FIELD_SEQ_OFF 2 /* these two only if info->split */
#define PS_FIELD_SEQ_LEN 3

/* The field of that name, or NULL.  The pointer is into `info`. */
const ps_field *ps_pack_field(const ps_pack_info *info, const char *name);

/* What became of the input: kept in the END record, checked by readers. */
typedef struct ps_totals {
    uint64_t packs;
    uint64_t sequences; /* in packs; a piece of a split one counts */
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
 * Packing
 */

/* What to do with a sequence longer than the capacity. */
typedef enum ps_overlong {
    PS_OVERLONG_ERROR,
    PS_OVERLONG_DROP,
    PS_OVERLONG_TRUNCATE, /* keep the first L tokens */
    PS_OVERLONG_SPLIT     /* pieces of L tokens and one rest */
} ps_overlong;

/* How sequences are chosen for a pack; packstream(7) explains each. */
typedef enum ps_policy {
    PS_POLICY_AUTO,    /* exact fits, by what lengths will be worth */
    PS_POLICY_SPFHP,   /* a plan for each full window: shortest pack first */
    PS_POLICY_NNLSHP,  /* the same, by non-negative least squares */
    PS_POLICY_BESTFIT, /* oldest first, then the longest that fits */
    PS_POLICY_NEXTFIT, /* as they come, until one does not fit */
    PS_POLICY_NONE,    /* each sequence alone */
    PS_POLICY_CONCAT   /* as they come, cut where a pack is full */
} ps_policy;

/* The name that -a of packstream(1) takes; NULL if there is no such policy. */
const char *ps_policy_name(ps_policy policy);

/* In which order packs leave. */
typedef enum ps_pack_order {
    PS_PACKS_BY_WINDOW, /* as it suits the packing */
    PS_PACKS_BY_INPUT,  /* by the oldest sequence of each */
    PS_PACKS_SHUFFLED   /* at random among some hundreds */
} ps_pack_order;

/*
 * In place of a depth, and the default: one that costs the efficiency less
 * than 0.02% as far as the first sequences tell, with as many places as a
 * record of that size has.  With PS_POLICY_NONE it is 1, with
 * PS_POLICY_CONCAT a place for each 64 tokens, but 16 at least.
 */
#define PS_DEPTH_AUTO 0

/*
 * Zero is the default of `depth` and of all members from `overlong` on.
 * Times are counted in records of the input, rejected ones too; each piece of
 * a sequence that is split counts as a record.
 */
typedef struct ps_packer_options {
    uint32_t capacity; /* L, tokens, from 1 */
    uint32_t depth;    /* D, from 1, more than L is taken as L; or AUTO */
    uint32_t window;   /* W, sequences and pieces, from 1 */
    uint32_t pad_id;   /* must fit the token type */
    ps_overlong overlong; /* ERROR with PS_POLICY_CONCAT, which cuts all */
    ps_policy policy;
    ps_pack_order order;
    uint64_t seed;      /* from 1 with PS_PACKS_SHUFFLED, else no matter */
    uint64_t max_delay; /* when so many records came after a sequence, it
                           has left; at most PS_MAX_WINDOW, which is also
                           the most that 0 can stand for: twice W, with
                           PS_PACKS_SHUFFLED four times */
    uint64_t max_bytes; /* payload held, each sequence's rounded up to 256
                           bytes: at least one of L tokens; 0: no bound */
    bool even_cost;     /* of equally full packs, those whose sum of squared
                           lengths is near the mean first */
    bool compressed;    /* zstd's seekable format: some records a frame */
    int level;          /* of zstd, with `compressed` */
    uint32_t threads;   /* that write and compress, or fewer where the system
                           has no more; 0: the caller does */
    uint64_t first_record; /* the packs below this index are made, but not
                              written; 0 with `compressed` */
    uint32_t max_frames; /* with `compressed`: no more, PS_ERR_LIMIT */
    uint32_t align;      /* where sequences and pieces begin in a pack is a
                            multiple of it; it divides L.  At most L / align
                            of them fit, and a greater depth means that.  0
                            is 1 */
} ps_packer_options;

/*
 * Whether ps_packer_open would accept schema and options.
 * PS_OK, PS_ERR_ARGUMENT, PS_ERR_LIMIT (a record above PS_MAX_RECORD_BYTES).
 */
PS_MUST_CHECK ps_result ps_packer_check(const ps_schema *schema,
                                        const ps_packer_options *options,
                                        ps_error *err);

/*
 * The most memory in bytes that a packer with these options allocates,
 * whatever the input, with what of its payloads stays in the blocks of a
 * reader; but the table of frames is only counted if max_frames bounds it.
 * UINT64_MAX for what ps_packer_check refuses, and if it is more than that.
 */
uint64_t ps_packer_memory(const ps_schema *schema,
                          const ps_packer_options *options);

/* The same for what ps_packer_save and _resume take besides, states and all. */
uint64_t ps_packer_save_memory(const ps_schema *schema,
                               const ps_packer_options *options,
                               size_t note_bytes);

typedef struct ps_packer ps_packer;

/*
 * Starts a pack stream on `fd` for sequences of `schema`, which is copied.
 * With PS_DEPTH_AUTO the stream starts later: when the first W sequences
 * have come, when they have waited as long as they may or fill max_bytes, or
 * with ps_packer_drain or ps_packer_finish.
 * PS_OK, PS_ERR_ARGUMENT, _LIMIT (a record above PS_MAX_RECORD_BYTES),
 * _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_packer_open(ps_packer **packer, int fd,
                                       const ps_schema *schema,
                                       const ps_packer_options *options,
                                       ps_error *err);

/*
 * Takes the next sequence of the input; its payload is copied, unless it
 * still lies where a reader put it, which then keeps it for so long.  Ids count
 * up from 0, dropped sequences included.  A sequence longer than the
 * capacity is truncated or split as the options say; with ERROR it gives
 * PS_ERR_OVERLONG, with DROP it is counted, and its payload may be NULL.
 * PS_POLICY_CONCAT splits each sequence where a pack ends.
 * Packs that are decided go to the output buffer.
 * PS_OK, PS_ERR_ARGUMENT, _OVERLONG, _MEMORY, _IO, _LIMIT (a payload above
 * PS_MAX_SEQUENCE_BYTES).
 */
PS_MUST_CHECK ps_result ps_packer_put(ps_packer *packer,
                                      const ps_sequence *sequence,
                                      ps_error *err);

/*
 * Why a sequence of the input is in no pack.  One that is longer than the
 * capacity and has a token outside the vocabulary as well has one reason, the
 * first for which it was left out.
 */
typedef enum ps_reject {
    PS_REJECT_OVERLONG,     /* longer than the capacity */
    PS_REJECT_EMPTY,        /* without tokens */
    PS_REJECT_OUT_OF_VOCAB, /* a token outside the vocabulary */
    PS_REJECTS
} ps_reject;

/* "overlong", "empty", "out_of_vocab"; NULL if there is no such reason. */
const char *ps_reject_name(ps_reject reason);

/*
 * Takes the next sequence of the input, as ps_packer_put, but leaves it out:
 * it is counted, and time passes.  The payload is not looked at and may be
 * NULL, and there may be no tokens.  Where a packer that was resumed gets it
 * again it is passed over.
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY, _IO, and _CORRUPT as ps_packer_resume says.
 */
PS_MUST_CHECK ps_result ps_packer_reject(ps_packer *packer,
                                         const ps_sequence *sequence,
                                         ps_reject reason, ps_error *err);

/* What was left out for one reason. */
typedef struct ps_rejected {
    uint64_t sequences;
    uint64_t tokens;
} ps_rejected;

/*
 * The counts so far; over all reasons they add up to rejected_sequences and
 * rejected_tokens of the totals.  Zeros if there is no such reason.
 */
ps_rejected ps_packer_rejected(const ps_packer *packer, ps_reject reason);

/*
 * Writes the packs that are decided; of compressed ones, those of whole
 * frames.  PS_OK, PS_ERR_IO.
 */
PS_MUST_CHECK ps_result ps_packer_flush(ps_packer *packer, ps_error *err);

/*
 * As ps_packer_flush, but does not wait for it where threads write; a failure
 * is then given by a later call.
 */
PS_MUST_CHECK ps_result ps_packer_push(ps_packer *packer, ps_error *err);

/*
 * As ps_packer_flush, but also the packs of a frame that is not full; nothing
 * may follow.  For a stream that has to end without END, so that a reader
 * gets what was decided before.
 */
PS_MUST_CHECK ps_result ps_packer_abandon(ps_packer *packer, ps_error *err);

/*
 * Packs all that is held, as at the end of the input, and passes it on; the
 * stream goes on after it.  Where nothing came yet, nothing is written.
 * PS_OK, PS_ERR_ARGUMENT (after ps_packer_finish), _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_packer_drain(ps_packer *packer, ps_error *err);

/*
 * Packs what is still held, proves that nothing was lost, writes the END
 * record and flushes.  Nothing can be put after it.
 * PS_OK, PS_ERR_ARGUMENT (a second time), _MEMORY, _IO, _CORRUPT (the books
 * do not balance).
 */
PS_MUST_CHECK ps_result ps_packer_finish(ps_packer *packer, ps_error *err);

/*
 * The totals so far, and the header; both live as long as the packer.  Until
 * a stream with PS_DEPTH_AUTO starts, the header's depth is PS_DEPTH_AUTO,
 * and its fields, their offsets and record_bytes are not to be relied on.
 */
const ps_totals *ps_packer_totals(const ps_packer *packer);
const ps_pack_info *ps_packer_info(const ps_packer *packer);

/*
 * The longest delay so far: how many records of the input had come after a
 * sequence, the one that was being put included, when it went to a pack.
 * Never above max_delay of the options.
 */
uint64_t ps_packer_delay(const ps_packer *packer);

/*
 * What the cap on the depth costs a stream: how much higher the efficiency of
 * a plan without it is than that of any plan with it, for all that was packed;
 * and a depth that loses little.  Both are 0 if that is less than 0.005, or
 * some packs, if the window is no more than the depth, and with
 * PS_POLICY_NONE and PS_POLICY_CONCAT.
 */
typedef struct ps_depth_cost {
    double efficiency;
    uint32_t depth;
} ps_depth_cost;

/* That of the packs so far.  PS_OK, PS_ERR_MEMORY. */
PS_MUST_CHECK ps_result ps_packer_depth_cost(const ps_packer *packer,
                                             ps_depth_cost *cost,
                                             ps_error *err);

void ps_packer_free(ps_packer *packer);

/* ---------------------------------------------------------------------
 * A packer that stops and goes on
 *
 * Between two sequences a packer can be saved, and another one, in another
 * process, resumed from that: what both write is byte for byte what one
 * would have written.  A state holds no payload; the sequences that were
 * held when it was made, and all between them, have to be put again.
 */

/* What a state says of itself; the note is that of ps_packer_save. */
typedef struct ps_state {
    uint64_t packs;        /* that were made */
    uint64_t output_bytes; /* that were written */
    uint64_t input_sequences;
    uint64_t needs; /* the id of the first that has to be put again */
    bool finished;
    bool blank; /* nothing was put; the others are 0 */
    const unsigned char *note; /* in the state */
    size_t note_bytes;
} ps_state;

/*
 * The id of the first sequence that has to be put again if the packer were
 * saved now; that of the next one to come, if none has.
 */
uint64_t ps_packer_needs(const ps_packer *packer);

/*
 * Has all packs so far written, as ps_packer_flush, and gives the state of
 * the packer, which is the caller's to free, with a note of the caller's in
 * it.  Where frames are written, the packs of one that is not full are in
 * the state.
 * PS_OK, PS_ERR_ARGUMENT (no pack was made yet, and the stream has not ended;
 * or a packer that was resumed has not got back what it needs), _IO, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_packer_save(ps_packer *packer, const void *note,
                                       size_t note_bytes,
                                       unsigned char **state, size_t *bytes,
                                       ps_error *err);

/*
 * The state before anything is put: the note alone.  It fits any schema and
 * options, and no packer is resumed from it.
 * PS_OK, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_state_blank(const void *note, size_t note_bytes,
                                       unsigned char **state, size_t *bytes,
                                       ps_error *err);

/*
 * Checks a state for damage and reads what it says of itself.
 * PS_OK, PS_ERR_MAGIC (something else), _UNSUPPORTED, _CORRUPT, _TRUNCATED.
 */
PS_MUST_CHECK ps_result ps_state_read(const unsigned char *state,
                                      size_t bytes, ps_state *says,
                                      ps_error *err);

/*
 * Whether the state, also one of a finished stream, is of a packer with this
 * schema and these options; `threads` and first_record may be others.
 * PS_OK, PS_ERR_ARGUMENT (it says what differs), _MEMORY and the failures of
 * ps_state_read.
 */
PS_MUST_CHECK ps_result ps_state_fits(const unsigned char *state,
                                      size_t bytes, const ps_schema *schema,
                                      const ps_packer_options *options,
                                      ps_error *err);

/*
 * A packer of a stream that has ended, made from its last state, only to be
 * asked what it did: its header, totals, rejects and delay.  Schema and
 * options as in ps_state_fits.
 * PS_OK, PS_ERR_ARGUMENT (other ones, or the stream has not ended), _MEMORY
 * and the failures of ps_state_read.
 */
PS_MUST_CHECK ps_result ps_packer_ended(ps_packer **packer,
                                        const ps_schema *schema,
                                        const ps_packer_options *options,
                                        const unsigned char *state,
                                        size_t bytes, ps_error *err);

/*
 * Has a packer that begins anew, before anything is put, prove that it packs
 * again what was packed when the state was saved: when it has made as many
 * packs, their digest must be that of the state.  Else, or if it makes fewer,
 * ps_packer_save, _finish and _proved give PS_ERR_CORRUPT.
 * PS_OK, PS_ERR_ARGUMENT and the failures of ps_state_read.
 */
PS_MUST_CHECK ps_result ps_packer_prove(ps_packer *packer,
                                        const unsigned char *state,
                                        size_t bytes, ps_error *err);

/*
 * Whether it is proved by now; has all packs so far written.
 * PS_OK, PS_ERR_CORRUPT and the failures of ps_packer_flush.
 */
PS_MUST_CHECK ps_result ps_packer_proved(ps_packer *packer, ps_error *err);

/*
 * As ps_packer_open, but goes on where a state was saved.  Schema and
 * options, but for `threads`, must be the same.  With first_record 0 the
 * output is to be at the byte output_bytes of the state; else, from the
 * number of packs in the state on, the header is written again, and then
 * packs from that index on.  If the stream of the state has ended, that
 * number is the only one, and ps_packer_finish the only call to come.
 *
 * Then ps_packer_put, or ps_packer_reject for what was left out, wants any
 * sequence up to the one that the state needs, and all that follow it; until
 * all that is needed has come again it packs nothing, and drain, finish and
 * save are refused.
 * Of sequences that are longer than a pack and were dropped the payload may be
 * left out, as ever.
 *
 * PS_ERR_ARGUMENT (other options, schema or first record; blank) and the
 * failures of ps_packer_open and ps_state_read; of ps_packer_put besides
 * PS_ERR_CORRUPT: what comes again is not what came before.
 */
PS_MUST_CHECK ps_result ps_packer_resume(ps_packer **packer, int fd,
                                         const ps_schema *schema,
                                         const ps_packer_options *options,
                                         const unsigned char *state,
                                         size_t bytes, ps_error *err);

/* ---------------------------------------------------------------------
 * Packs in
 */

/* One record of a pack stream. */
typedef struct ps_pack {
    uint64_t index;     /* in its stream, from 0 */
    uint64_t watermark; /* ids below it are in this record or before */
    uint64_t sum_len_sq;
    uint32_t n_seq;
    uint32_t n_tok;
    uint32_t max_seqlen;
    uint32_t stream;             /* which of concatenated streams, from 0 */
    uint64_t offset;             /* of the record in the input, bytes */
    const unsigned char *record; /* info->record_bytes bytes */
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
 * The first header, but with the largest window of the streams so far;
 * lives as long as the reader.
 */
const ps_pack_info *ps_pack_reader_info(const ps_pack_reader *reader);

/*
 * The next pack.  Its checksum, its head and its boundaries have been
 * checked: cu rises from 0 to n_tok and n_seq is between 1 and the depth; of
 * aligned sequences, that cu and seq_tok fit each other and n_tok.
 * PS_END after the END record of the last stream, once totals and digest
 * agree with what was read and nothing follows; of a compressed stream the
 * seek table does, and must be that of its frames.  Streams of equal geometry
 * may follow one another.
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
 * From now on ps_pack_reader_next gives every `ranks`-th pack only: those
 * whose number, counted from 0 through all streams, is `rank` modulo `ranks`.
 * So ranks that read the same input get every pack once between them.  The
 * packs of the others are read and passed over, checked like one's own: each
 * rank sees index order, every checksum, and the totals and digest of END.
 * PS_OK, PS_ERR_ARGUMENT (`rank` is not below `ranks`).
 */
PS_MUST_CHECK ps_result ps_pack_reader_share(ps_pack_reader *reader,
                                             uint32_t rank, uint32_t ranks,
                                             ps_error *err);

/*
 * The place where a reader is, to be kept where a trainer keeps its own
 * state: so many bytes, the same on every machine, with a checksum.
 *
 * It is behind the last pack that was given; after PS_END, behind the last
 * pack of the input.  All packs before it are done with, whichever rank's
 * they were.  So with the same `rank` and `ranks` each rank resumes its own
 * mark.  To go on with other `ranks`, let all ranks take equally many packs
 * and resume the mark of the last one, `ranks` - 1, in every new rank: before
 * it are exactly the packs that were taken.
 */
#define PS_PACK_MARK_BYTES 320
void ps_pack_reader_save(const ps_pack_reader *reader,
                         unsigned char mark[PS_PACK_MARK_BYTES]);

/*
 * Goes on behind the place of a mark, of which every byte is checked; to be
 * called before anything was read.  Totals, numbers of packs and what END is
 * compared with are then as if all had been read.
 *
 * A plain regular file is moved on in: of what is before the place, only
 * headers, the first pack and the last are read, to see that they fit.  Any
 * other input is read from its start and checked.  If it starts later, with
 * the header and then a pack that is not behind the place, as a packstream
 * that was resumed writes it, what is before the place is passed over and
 * the mark's word is taken for the rest; until END the digest is not known
 * to be right.
 *
 * PS_OK, PS_ERR_ARGUMENT (the mark belongs to another stream, or the reader
 * has read), _MAGIC (no mark), _CORRUPT (a damaged mark, or what
 * ps_pack_reader_next finds; also if packs behind the place are missing),
 * _UNSUPPORTED (of a later version), _TRUNCATED, _MEMORY, _IO, _LIMIT.
 */
PS_MUST_CHECK ps_result ps_pack_reader_resume(ps_pack_reader *reader,
                                              const unsigned char *mark,
                                              ps_error *err);

void ps_pack_reader_free(ps_pack_reader *reader);

/*
 * Packs of a file, in any order.  The file is regular: plain, or compressed
 * in zstd's seekable format, as packstream writes it.  To get at a pack of
 * it costs the same wherever it lies; of a compressed file one frame is
 * unpacked, and kept for its neighbours.
 */
typedef struct ps_pack_file ps_pack_file;

/*
 * Opens the file behind `fd` from its first byte; the descriptor's own place
 * in it is neither used nor moved.  First header, END and, with several
 * streams in the file, every END and header are read and checked; for
 * compressed files the seek table, too.
 * PS_OK, PS_ERR_ARGUMENT (not a regular file), _MEMORY, _IO, _MAGIC,
 * _UNSUPPORTED (also: zstd frames without a seek table), _CORRUPT,
 * _TRUNCATED, _LIMIT (above 2^20 streams, or a frame above 256 MiB).
 */
PS_MUST_CHECK ps_result ps_pack_file_open(ps_pack_file **file, int fd,
                                          ps_error *err);

/* The first header, but with the largest window of all streams. */
const ps_pack_info *ps_pack_file_info(const ps_pack_file *file);

/* How many packs and streams there are, and the totals of all streams. */
uint64_t ps_pack_file_packs(const ps_pack_file *file);
uint32_t ps_pack_file_streams(const ps_pack_file *file);
const ps_totals *ps_pack_file_totals(const ps_pack_file *file);

/*
 * Pack `i` of the file; they are numbered from 0 through all streams, while
 * pack->index begins anew in each.  It has been checked as
 * ps_pack_reader_next does, but for what only a reader of all packs can see:
 * whether they are those of which END has the digest and the totals.
 * PS_OK; PS_ERR_ARGUMENT (there is no such pack), _CORRUPT, _IO, _MEMORY,
 * _TRUNCATED (the file has shrunk).  After any of these other packs can
 * still be read.
 */
PS_MUST_CHECK ps_result ps_pack_file_read(ps_pack_file *file, uint64_t i,
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
 * The rules that ps_pack_reader_next does not check, because breaking them
 * cannot mislead a reader of the sequences: sums in the head, empty slots,
 * the padding tail, gaps between channels, tokens within the vocabulary.
 * The message names no record: it is the caller's to say which.
 * PS_OK, PS_ERR_CORRUPT, PS_ERR_RANGE.
 */
PS_MUST_CHECK ps_result ps_pack_check(const ps_pack_info *info,
                                      const ps_pack *pack, ps_error *err);

/*
 * Opens whichever kind of stream `fd` holds: exactly one of *packs and
 * *tokens is set, both are NULL after a failure.  What is no pack stream is
 * taken as token records, raw ones with tokens of `raw_type`.
 * As the two open calls.
 */
PS_MUST_CHECK ps_result ps_open_any(int fd, ps_type raw_type,
                                    ps_pack_reader **packs,
                                    ps_token_reader **tokens, ps_error *err);

/* ---------------------------------------------------------------------
 * Packs for trainers: views
 *
 * What an attention kernel for sequences of various lengths wants is an
 * array of boundaries, `cu`: span i is the rows cu[i] up to, but without,
 * cu[i + 1], and no row sees one of another span.  A pack holds one, of
 * which the three views are beginnings; batches have theirs merged.
 *
 * All calls down to the loader are pure: no input, no memory of their own.
 */

typedef enum ps_view {
    /*
     * The sequences and no padding: n_seq spans of n_tok rows.  Of several
     * packs the rows follow one another without a gap.  Where sequences are
     * aligned, the gap behind each is in its span, and there are more rows.
     */
    PS_VIEW_RAGGED,
    /*
     * All `capacity` rows of a pack.  The padding behind the sequences is one
     * more span, the ghost, which is empty in a pack that is full; so a
     * kernel writes every row.  n_seq + 1 spans.
     */
    PS_VIEW_GHOST,
    /*
     * The same, and empty spans up to depth + 1: as many spans in each pack,
     * so that all shapes are fixed, as CUDA graphs want it.  For a longest
     * span that is fixed, too, there is the capacity, or, of a file whose
     * totals are known, the greater of max_seqlen and capacity - min_fill.
     */
    PS_VIEW_STATIC
} ps_view;

/*
 * A view of one pack or of several.  Each pack has its sequences first, then
 * its ghost and what empty spans the view has.  ps_pack_view and loaders fill
 * one in; so may a caller who puts packs together, with a `cu` of their own.
 */
typedef struct ps_spans {
    ps_view view;
    uint32_t n_packs;
    const uint32_t *n_seqs; /* of each pack */
    uint32_t n_seq;         /* of all packs */
    uint32_t n_spans;
    uint32_t n_rows; /* in all spans: n_tok, or n_packs * capacity */
    uint32_t max_seqlen; /* of the longest span, be it a ghost */
    const int32_t *cu; /* n_spans + 1 of them, from 0 to n_rows */
    /*
     * Tokens of each sequence, or place as ps_spans_gather counts them, if
     * sequences are aligned: the rows of its span behind these are a gap.
     * NULL: there are no gaps.
     */
    const int32_t *lengths;
} ps_spans;

/*
 * A pack seen in a view.  `cu` and `lengths` point into the record and
 * `n_seqs` to the n_seq of `pack`: they live as long as those.  max_seqlen is
 * worked out from the boundaries.
 *
 * The records that ps_pack_reader_next, ps_pack_file_read and loaders give lie
 * at multiples of 16 bytes, and so do all fields in them; but of a compressed
 * file that was cut into frames at other places than packstream does, those of
 * ps_pack_file_read may not.
 *
 * PS_OK; PS_ERR_ARGUMENT (a copy of a record that does not lie at a multiple
 * of 4), PS_ERR_UNSUPPORTED (this machine's numbers are not little-endian).
 */
PS_MUST_CHECK ps_result ps_pack_view(const ps_pack_info *info,
                                     const ps_pack *pack, ps_view view,
                                     ps_spans *spans, ps_error *err);

/* ---------------------------------------------------------------------
 * Packs for trainers: arrays that follow from the boundaries
 *
 * Each fills an array of the caller's, of one element for each row of
 * `spans`, or for each sequence where that is said.  The sequences of a view
 * count through all packs; in PS_VIEW_STATIC each pack has `depth` places for
 * them instead, and n_packs * depth is the number of places.
 *
 * The gap behind an aligned sequence is padding, as a ghost is: it has no
 * segment, label or weight.
 */

/* Which positions the rows of padding have. */
typedef enum ps_ghost {
    PS_GHOST_COUNTS, /* 0, 1, 2, ...: it is no run of one-token documents */
    PS_GHOST_ZERO    /* 0, as seqio and MaxText have it */
} ps_ghost;

/* 0, 1, 2, ... from the start of each span; in a gap as `ghost` says. */
void ps_spans_positions(const ps_spans *spans, ps_ghost ghost,
                        int32_t *positions);

/* Which sequence of its pack a row belongs to, from 1; 0 in padding. */
void ps_spans_segment_ids(const ps_spans *spans, int32_t *ids);

/*
 * For each sequence its first row, where a [CLS] stands.  In PS_VIEW_STATIC
 * empty places get `empty`.
 */
void ps_spans_first_rows(const ps_spans *spans, int32_t empty,
                         int32_t *rows);

/*
 * A field of packs, rearranged as the view has it: a per-token field has an
 * element for each row, a per-sequence field one for each sequence or place.
 * `records` are those of the view's packs, info->record_bytes apart.  Elements
 * stay little-endian; `to` may lie anywhere.
 * PS_OK, PS_ERR_ARGUMENT (the field is per boundary).
 */
PS_MUST_CHECK ps_result ps_spans_gather(const ps_spans *spans,
                                        const ps_pack_info *info,
                                        const unsigned char *records,
                                        const ps_field *field, void *to,
                                        ps_error *err);

/*
 * The same, each element as an int32: of u8, u16 and i32 the value, of u32 the
 * same 32 bits.
 * PS_OK, PS_ERR_ARGUMENT (also: a field of another type).
 */
PS_MUST_CHECK ps_result ps_spans_gather_i32(const ps_spans *spans,
                                            const ps_pack_info *info,
                                            const unsigned char *records,
                                            const ps_field *field,
                                            int32_t *to, ps_error *err);

/*
 * The same, each element as an int64: of all types of integers but u64 the
 * value, of u64 the same 64 bits.
 * PS_OK, PS_ERR_ARGUMENT (also: a field of floating point numbers).
 */
PS_MUST_CHECK ps_result ps_spans_gather_i64(const ps_spans *spans,
                                            const ps_pack_info *info,
                                            const unsigned char *records,
                                            const ps_field *field,
                                            int64_t *to, ps_error *err);

/* "There is nothing to be learnt here", among labels. */
#define PS_NO_LABEL (-100)

/*
 * Labels for the prediction of the next token.  PS_LABELS_ALIGNED: a row's
 * label is its own token, but for the first of each sequence, which nothing
 * predicts: PS_NO_LABEL; the trainer shifts.  PS_LABELS_SHIFTED: it is the
 * token of the next row, but for the last of each sequence.  Either way no
 * sequence learns from another, and padding has PS_NO_LABEL throughout.  Any
 * other convention is taken as ALIGNED.  The two arrays must not overlap.
 */
void ps_spans_next_labels(const ps_spans *spans,
                          ps_label_convention convention,
                          const int32_t *tokens, int32_t *labels);

/* What a loss is an average of. */
typedef struct ps_targets {
    uint64_t tokens;    /* with a label */
    uint64_t sequences; /* with at least one of these */
} ps_targets;

/*
 * Counts the labels that are not `ignore`: PS_NO_LABEL for labels, 0 for a
 * mask of ones.  What padding has does not count.
 */
ps_targets ps_spans_targets(const ps_spans *spans, const int32_t *labels,
                            int32_t ignore);

/* What counts the same in a loss. */
typedef enum ps_loss {
    PS_LOSS_PER_TOKEN,   /* all labelled tokens */
    PS_LOSS_PER_SEQUENCE /* all sequences, and so the tokens in each */
} ps_loss;

/*
 * Weights w for a loss that is the sum of w times the loss of each row.
 * PS_LOSS_PER_TOKEN: 1 / n.  PS_LOSS_PER_SEQUENCE: 1 / (m n), m being the
 * labels of the row's sequence.  Rows without a label have 0, and all have
 * if `n` is 0.
 *
 * `n` is the number of what counts, over the whole step: the targets of all
 * batches and ranks in it, added up, or, where sequences without a label are
 * to count as well, all sequences.
 */
void ps_spans_weights(const ps_spans *spans, const int32_t *labels,
                      int32_t ignore, ps_loss loss, uint64_t n,
                      float *weights);

/*
 * The rows that have a label, in order, and which sequence (not place) each
 * belongs to, from 0; `sequences` may be NULL.  Gives how many there are,
 * ps_spans_targets' tokens, for which there must be room.
 */
uint32_t ps_spans_target_rows(const ps_spans *spans, const int32_t *labels,
                              int32_t ignore, int32_t *rows,
                              int32_t *sequences);

/* ---------------------------------------------------------------------
 * Packs for trainers: batches
 *
 * A loader takes the packs of a reader, some at a time, into buffers, which
 * may be the caller's: pinned memory, say, so that one copy brings a batch to
 * a device.  Threads of its own fill them ahead; a plain file is read by two of
 * them, straight into the buffers, the fastest way there is to read packs.
 *
 * Ranks that read the same input share it without a word between them: of
 * every `ranks` x `packs` packs each gets those whose number, counted from 0
 * through all streams, is `rank` modulo `ranks`.
 */

/* What becomes of packs that do not fill the batches of all ranks. */
typedef enum ps_last {
    /*
     * They are given: the last batch is shorter.  Ranks that get none of them
     * have a batch less.
     */
    PS_LAST_SHORT,
    /* They are not given: ranks have equally many batches, all full. */
    PS_LAST_DROP,
    /*
     * They are given, and where packs are missing, packs of padding follow
     * them: ranks have equally many batches of the same size.  Only here a
     * batch may be without a sequence, and only in a rank that got none of
     * the last packs.  Not with PS_VIEW_RAGGED.
     */
    PS_LAST_PAD
} ps_last;

#define PS_LOADER_BUFFERS 4096

/* Zero is the default of all members but `packs`. */
typedef struct ps_loader_options {
    uint32_t packs; /* in a batch, from 1 */
    uint32_t rank;  /* below ranks */
    uint32_t ranks; /* 0: 1 */
    ps_view view;
    ps_last last;
    uint32_t keep;    /* batches that stay valid, with the last; 0: 1 */
    uint32_t buffers; /* more than `keep`, at most PS_LOADER_BUFFERS; 0: as many
                         as do well, if memory is NULL */
    void *const *memory; /* as many buffers, or NULL: the loader's own */
    bool no_thread; /* ps_loader_next reads, as where no thread is to be had */
} ps_loader_options;

/*
 * A batch.  All pointers are into its buffer, but for `heads`; all numbers
 * are known to the host, and none need be fetched from a device.
 *
 * In `spans` boundary b of pack p is p * capacity + b, so that row r of pack p
 * is row p * capacity + r of the batch; its ghost ends where pack p + 1
 * begins.  In PS_VIEW_STATIC its spans are those from p * (depth + 1) on.  In
 * PS_VIEW_RAGGED it is the tokens of all packs before, plus b: no padding lies
 * between packs then, and `cu` fits what ps_spans_gather makes, but not the
 * records as they lie.
 */
typedef struct ps_batch {
    uint64_t first;   /* number of its first pack, through all streams */
    uint32_t n_packs; /* without those of padding */
    uint32_t n_seq;   /* in them */
    uint32_t n_tok;
    uint64_t sum_len_sq;    /* of the sequences: what attention costs */
    ps_spans spans;         /* of all packs, those of padding too */
    const unsigned char *records; /* spans.n_packs of them */
    const ps_pack *heads;   /* what ps_pack_reader_next gave for n_packs */
    unsigned char *memory;  /* the buffer */
} ps_batch;

/*
 * What lies where in each buffer.  A buffer begins at a multiple of 16 bytes,
 * and all of it can be copied at once.
 */
typedef struct ps_loader_layout {
    size_t records; /* 0: packs, info->record_bytes apart */
    size_t cu;      /* int32, `packs` * (depth + 1) + 1 at most */
    size_t n_seqs;  /* uint32, `packs` of them */
    size_t lengths; /* int32, `packs` * depth at most; 0 if align is 1 */
    size_t bytes;   /* of the whole buffer, a multiple of 64 */
} ps_loader_layout;

/*
 * The layout for a stream and options, to be known before the buffers are
 * made.
 * PS_OK, PS_ERR_ARGUMENT, PS_ERR_LIMIT (a batch of more than 2^31 - 1 rows or
 * spans, or more memory than there are addresses).
 */
PS_MUST_CHECK ps_result ps_loader_plan(const ps_pack_info *info,
                                       const ps_loader_options *options,
                                       ps_loader_layout *layout,
                                       ps_error *err);

typedef struct ps_loader ps_loader;

/*
 * Starts to load from `reader`, in which a place may have been sought before
 * with ps_pack_reader_resume, and which must outlive the loader.  From now on
 * it is the loader's: nothing but ps_pack_reader_totals, and that only after
 * ps_loader_next gave PS_END, and ps_pack_reader_free may be asked of it.  Its
 * wait hook is taken away, but with no_thread.  The options are copied; the
 * buffers are used until the loader is freed.
 * PS_OK, PS_ERR_ARGUMENT (also: the reader is one that shares, a buffer is not
 * at a multiple of 16 bytes), _LIMIT, _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_loader_open(ps_loader **loader,
                                       ps_pack_reader *reader,
                                       const ps_loader_options *options,
                                       ps_error *err);

/* The first header, as it was when the loader was opened. */
const ps_pack_info *ps_loader_info(const ps_loader *loader);

/*
 * The next batch.  With the numbers of ps_loader_options, it is valid until
 * the keep-th call after this one; so with keep = 2, say, one can be copied
 * while the next is worked on.
 *
 * PS_OK; PS_END, which is given only after all of the input was checked, as
 * ps_pack_reader_next does it.  A failure comes in its place, behind the
 * batches that were whole before it, and as often as it is asked for.
 * As ps_pack_reader_next.
 */
PS_MUST_CHECK ps_result ps_loader_next(ps_loader *loader, ps_batch *batch,
                                       ps_error *err);

/*
 * As ps_pack_reader_save: the place behind the last batch that was given, not
 * those read ahead.  It is behind the packs that all ranks have got when each
 * was given as many batches: the marks of all ranks are then the same, and
 * any of them is good to resume with any number of ranks, and any `packs`.
 */
void ps_loader_save(const ps_loader *loader,
                    unsigned char mark[PS_PACK_MARK_BYTES]);

/*
 * Ends the threads, at once, also where one waits for input.  Batches are
 * gone with the buffers of the loader's own.
 */
void ps_loader_free(ps_loader *loader);

/* ---------------------------------------------------------------------
 * Unpacking: the original records
 */

typedef enum ps_order {
    PS_ORDER_INPUT, /* as they came; pieces joined again */
    PS_ORDER_PACK   /* as they lie in the packs; pieces as they are */
} ps_order;

typedef struct ps_unpacker ps_unpacker;

/*
 * Takes sequences out of the packs that `reader`, which must outlive it,
 * gives.  In input order it holds back what came early: at most window x
 * capacity tokens with their channels (with pieces, besides one sequence of
 * at most PS_MAX_SEQUENCE_BYTES), whatever the input.
 * PS_OK, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_unpacker_open(ps_unpacker **unpacker,
                                         ps_pack_reader *reader,
                                         ps_order order, ps_error *err);

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

/* ---------------------------------------------------------------------
 * Plans: packing on a histogram of lengths, no data moved
 */

/*
 * A histogram: distinct lengths in ascending order, each with the number of
 * sequences that have it, at least 1.
 */
typedef struct ps_histogram ps_histogram;

/* An empty histogram.  PS_OK, PS_ERR_MEMORY. */
PS_MUST_CHECK ps_result ps_histogram_open(ps_histogram **histogram,
                                          ps_error *err);

/*
 * Adds `count` >= 1 sequences of `length` >= 1 tokens.  Lengths may come in
 * any order; what is added to a length sums up.
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY, _LIMIT (sequences or tokens above
 * 2^63 - 1).
 */
PS_MUST_CHECK ps_result ps_histogram_add(ps_histogram *histogram,
                                         uint32_t length, uint64_t count,
                                         ps_error *err);

/* How many distinct lengths; length and count of the i-th of them. */
size_t ps_histogram_size(const ps_histogram *histogram);
uint32_t ps_histogram_length(const ps_histogram *histogram, size_t i);
uint64_t ps_histogram_count(const ps_histogram *histogram, size_t i);

/* Sequences and tokens in all. */
uint64_t ps_histogram_sequences(const ps_histogram *histogram);
uint64_t ps_histogram_tokens(const ps_histogram *histogram);

void ps_histogram_free(ps_histogram *histogram);

/*
 * The algorithms, which packstream(7) explains.  SPFHP, LPFHP and NNLSHP
 * are those of Krell, Kosec, Perez and Fitzgibbon (arXiv 2107.02027),
 * section 3.1.
 */
typedef enum ps_algorithm {
    PS_PLAN_NONE,   /* a sequence a pack */
    PS_PLAN_GREEDY, /* next-fit in a fixed, well-mixed order */
    PS_PLAN_SORTED, /* batches of like lengths, padded to the longest */
    PS_PLAN_FFD,    /* first fit decreasing */
    PS_PLAN_BFD,    /* best fit decreasing */
    PS_PLAN_SPFHP,  /* shortest pack first */
    PS_PLAN_LPFHP,  /* longest pack first */
    PS_PLAN_NNLSHP, /* non-negative least squares, packs full exactly */
    PS_PLAN_ENNLSHP /* the same, with packs that are not full */
} ps_algorithm;

/* Lengths that weigh less in nnlshp, and how much, as in the paper. */
#define PS_SHORT_LENGTH 8
#define PS_SHORT_WEIGHT 0.09

typedef struct ps_plan_options {
    uint32_t capacity;   /* L, from 1 */
    uint32_t depth;      /* D, from 1; UINT32_MAX: no cap */
    bool distribute;     /* lpfhp: add a length several times at once */
    double short_weight; /* nnlshp: weight of the residual of lengths... */
    uint32_t short_length; /* ...up to this */
    uint32_t batch;        /* sorted: sequences in a batch, from 1 */
} ps_plan_options;

typedef struct ps_plan ps_plan;

/*
 * Makes a plan: strategies, each a multiset of lengths that fits a pack,
 * with how often it is to be used.
 * PS_OK, PS_ERR_ARGUMENT (a length above the capacity, options out of
 * range), _MEMORY, _LIMIT.
 */
PS_MUST_CHECK ps_result ps_plan_make(ps_plan **plan,
                                     const ps_histogram *histogram,
                                     ps_algorithm algorithm,
                                     const ps_plan_options *options,
                                     ps_error *err);

/* How many strategies there are. */
size_t ps_plan_strategies(const ps_plan *plan);

/*
 * How often strategy `i` is used; its `*n` lengths, ascending, are at
 * *lengths and belong to the plan.
 */
uint64_t ps_plan_strategy(const ps_plan *plan, size_t i,
                          const uint32_t **lengths, uint32_t *n);

/* Packs in all, and the most sequences in one. */
uint64_t ps_plan_packs(const ps_plan *plan);
uint32_t ps_plan_max_depth(const ps_plan *plan);

/*
 * Whether the plan uses every sequence of the histogram once and keeps to
 * capacity and depth.  PS_OK, PS_ERR_CORRUPT, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_plan_check(const ps_plan *plan,
                                      const ps_histogram *histogram,
                                      const ps_plan_options *options,
                                      ps_error *err);

void ps_plan_free(ps_plan *plan);

/*
 * A bound: no plan of that capacity and depth uses fewer packs.  It is the
 * optimum of the linear relaxation (Gilmore and Gomory, 1961), or, where
 * the search for that had to stop early, what is known to lie below it
 * (Farley, 1990).
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_plan_bound(const ps_histogram *histogram,
                                      uint32_t capacity, uint32_t depth,
                                      double *packs, ps_error *err);

#ifdef __cplusplus
}
#endif

#endif /* PACKSTREAM_H */
