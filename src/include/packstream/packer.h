/*
 * packer.h - from sequences to a pack stream; part of <packstream.h>.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_PACKER_H
#define PACKSTREAM_PACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packs.h"
#include "plan.h"
#include "tokens.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* How sequences are chosen for a pack; packstream-packing(7). */
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
 * Takes the next `n` bytes of a stream in place of a descriptor:
 * write(context, bytes, n, err).  A result other than PS_OK fails the stream
 * with that result, and nothing more is written.
 */
typedef ps_result ps_write_hook(void *context, const void *bytes, size_t n,
                                ps_error *err);

/*
 * Zero is the default of `depth`, `window` and all members from `overlong` on.
 * Times are counted in records of the input, rejected ones too; each piece of
 * a sequence that is split counts as a record.
 */
typedef struct ps_packer_options {
    uint32_t capacity; /* L, tokens, from 1 */
    uint32_t depth;    /* D, the most sequences of a pack; 0: no cap */
    uint32_t window;   /* W, sequences and pieces that are held.  0: at least
                          1,024 of them, and tokens for at least 64 packs.
                          PS_POLICY_NEXTFIT and _CONCAT hold as many as a pack
                          may have in any case */
    uint32_t pad_id;   /* must fit the token type */
    ps_overlong overlong; /* ERROR with PS_POLICY_CONCAT, which cuts all */
    ps_policy policy;
    ps_pack_order order;
    uint64_t seed;      /* from 1 with PS_PACKS_SHUFFLED, else unused */
    uint64_t max_delay; /* most records that come after a sequence before it
                           leaves; at most PS_MAX_WINDOW.  0: twice the most
                           that the window holds, with PS_PACKS_SHUFFLED four
                           times as many, capped at PS_MAX_WINDOW */
    uint64_t max_bytes; /* payload held, each sequence's rounded up to 256
                           bytes; room for at least one of L tokens.  0: no
                           bound */
    bool even_cost;     /* of equally full packs, those whose sum of squared
                           lengths is near the mean first */
    bool compressed;    /* zstd's seekable format: a block a frame */
    int level;          /* of zstd, with `compressed` */
    uint32_t threads;   /* that write and compress, or fewer if the system
                           gives no more; 0: the caller does */
    uint64_t first_pack; /* blocks with packs below this index alone are made,
                            but not written; 0 with `compressed` */
    uint32_t block_packs; /* a power of two up to 65536: packs of a block, which
                             is written when it is full.  0: so many that
                             it has 1 to 2 MiB */
    uint32_t max_frames; /* with `compressed`; more are PS_ERR_LIMIT.  0: no
                            bound */
    uint32_t align;      /* divides L; sequences and pieces begin at multiples
                            of it in a pack.  0: 1 */
    ps_write_hook *write; /* if not NULL, takes the stream in place of `fd`;
                             with threads, one of these calls it */
    void *write_context;
    uint32_t max_window; /* with `window` 0, the most sequences held, but never
                            below 1,024.  0: 1,048,576 */
    const ps_histogram *learn_from; /* lengths to expect, up to L, such as
                           those of the whole corpus.  PS_POLICY_AUTO learns
                           from them before the first pack.  The caller's;
                           read only during the call.  NULL: none */
} ps_packer_options;

/*
 * Whether ps_packer_open would accept schema and options.
 * PS_OK, PS_ERR_ARGUMENT, PS_ERR_LIMIT (a row above PS_MAX_ROW_BYTES).
 */
PS_MUST_CHECK ps_result ps_packer_check(const ps_schema *schema,
                                        const ps_packer_options *options,
                                        ps_error *err);

/*
 * The most bytes that a packer with these options takes, whatever the input:
 * what it allocates, payloads that stay in the blocks of a reader, and the
 * histogram to learn from.  The table of frames is counted only if max_frames
 * bounds it.
 * UINT64_MAX if ps_packer_check refuses the options, or if it would be more.
 */
uint64_t ps_packer_memory(const ps_schema *schema,
                          const ps_packer_options *options);

/* The most that ps_packer_save and _resume take besides, with the states. */
uint64_t ps_packer_save_memory(const ps_schema *schema,
                               const ps_packer_options *options,
                               size_t note_bytes);

typedef struct ps_packer ps_packer;

/*
 * Starts a pack stream on `fd` for sequences of `schema`, which is copied.
 * PS_OK, PS_ERR_ARGUMENT, _LIMIT (a row above PS_MAX_ROW_BYTES),
 * _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_packer_open(ps_packer **packer, int fd,
                                       const ps_schema *schema,
                                       const ps_packer_options *options,
                                       ps_error *err);

/*
 * Takes the next sequence of the input.  Its payload is copied, unless it lies
 * where a reader put it: the packer then holds that block of the reader.  Ids
 * count up from 0, dropped sequences included.  A sequence longer than the
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
 * Puts sequences that a reader has ready: each has come as a whole and fits the
 * capacity.  ps_token_reader_next and ps_packer_put do the same for one at a
 * time, which takes longer.  Puts at most `most`, and no more once there are so
 * many packs; *n says how many.  With less, ps_token_reader_next tells what
 * comes next.  After ps_packer_resume none is ready until the packer has got
 * back what it needs.
 * As ps_packer_put; of a failure, *n counts the sequence that it befell.
 */
PS_MUST_CHECK ps_result ps_packer_put_ready(ps_packer *packer,
                                            ps_token_reader *reader,
                                            uint64_t most, uint64_t packs,
                                            uint64_t *n, ps_error *err);

/*
 * Why a sequence of the input is in no pack.  If several reasons apply, the
 * first for which it was left out counts.
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
 * Takes the next sequence of the input, as ps_packer_put, but leaves it out: it
 * counts, also as a record that delays others.  Its payload is not read and may
 * be NULL, and it may have no tokens.  A resumed packer that gets it again
 * skips it.
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
 * How far ps_packer_flush goes.  Only whole blocks are written: where a block
 * ends must not depend on when it is asked for.
 */
typedef enum ps_flush {
    /*
     * A thread writes the blocks that are full; the call does not wait for
     * it, and a later call gives its failure.  Without threads, as
     * PS_FLUSH_DECIDED.
     */
    PS_FLUSH_NOWAIT,
    /* Writes the blocks that are full. */
    PS_FLUSH_DECIDED,
    /*
     * Packs all that is held, as at the end of the input, closes the block and
     * writes it; the stream goes on.  This costs efficiency, and the packs
     * depend on where it is done.
     */
    PS_FLUSH_DRAIN,
    /*
     * Packs all that is held, proves that nothing was lost, and writes END:
     * the stream is whole.
     */
    PS_FLUSH_FINISH,
    /*
     * Writes the packs that are decided, also those of a block that is not
     * full, but no END: what is held is lost, and readers see that the stream
     * is cut.  For a stream that cannot be finished after a failure.
     */
    PS_FLUSH_ABANDON
} ps_flush;

/*
 * Writes packs, as `flush` says.  After PS_FLUSH_FINISH and PS_FLUSH_ABANDON
 * nothing can be put, drained or finished.
 * PS_OK, PS_ERR_ARGUMENT (the stream has ended; or no such way to flush),
 * _MEMORY, _IO; _CORRUPT from PS_FLUSH_FINISH (the books do not balance), and
 * as ps_packer_resume and ps_packer_verify_replay say.
 */
PS_MUST_CHECK ps_result ps_packer_flush(ps_packer *packer, ps_flush flush,
                                        ps_error *err);

/* The totals so far, and the header; both live as long as the packer. */
const ps_totals *ps_packer_totals(const ps_packer *packer);
const ps_pack_info *ps_packer_info(const ps_packer *packer);

/*
 * The longest delay so far: how many records of the input, with the one being
 * put, had come after a sequence when it went to a pack.  Never above max_delay
 * of the options.
 */
uint64_t ps_packer_delay(const ps_packer *packer);

/*
 * Packs that were decided because no more could be held, while that was less
 * than eight packs of tokens: packs are then less full than with more to choose
 * from.  Since the packer was opened or resumed.
 */
typedef struct ps_scarce {
    uint64_t by_window; /* the window had as many sequences as it may */
    uint64_t by_bytes;  /* max_bytes were held */
} ps_scarce;
ps_scarce ps_packer_scarce(const ps_packer *packer);

void ps_packer_free(ps_packer *packer);

/* ---------------------------------------------------------------------
 * Packing by lengths alone
 */

/*
 * Which of `n` sequences share a pack, for a program that has the sequences
 * elsewhere: in a table, for example.  The packs are those
 * that a packer makes of sequences of these lengths.
 *
 * `lengths` has n lengths in tokens, from 1 to the capacity.  `order` gets the
 * n numbers of the sequences, from 0, pack after pack; ends[p] is where pack p
 * ends in it.  Both must have room for n; *n_packs gets the number of packs.
 *
 * `overlong` must be ERROR and the policy not CONCAT, since nothing is cut
 * here.  Options about payloads, blocks and threads are ignored.
 *
 * PS_OK, PS_ERR_ARGUMENT, _OVERLONG, _EMPTY, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_lengths(const uint32_t *lengths, uint64_t n,
                                        const ps_packer_options *options,
                                        uint64_t *order, uint64_t *ends,
                                        uint64_t *n_packs, ps_error *err);

/* ---------------------------------------------------------------------
 * Stopping and resuming
 *
 * A packer can be saved between two sequences, and another one, in another
 * process, resumed from that state.  Both together write the bytes that one
 * would have written.  A state holds no payloads: the sequences that were held
 * when it was made, and all between them, must be put again.
 */

/* What a state says of itself; the note is that of ps_packer_save. */
typedef struct ps_state {
    uint64_t packs;         /* made so far */
    uint64_t output_bytes;  /* written so far */
    uint64_t output_packs;  /* in these bytes; the state has the open block */
    uint64_t output_digest; /* of these packs, as ps_pack_reader_digest */
    uint64_t input_sequences;
    uint64_t resume_from_id; /* the id of the first to be put again */
    bool finished;
    bool blank; /* nothing was put; the others are 0 */
    const unsigned char *note; /* in the state */
    size_t note_bytes;
} ps_state;

/*
 * The id of the first sequence that must be put again if the packer is saved
 * now; if none must, that of the next one.
 */
uint64_t ps_packer_resume_from_id(const ps_packer *packer);

/*
 * Writes as PS_FLUSH_DECIDED, and gives the state of the packer, with a note of
 * the caller's in it and the packs of a block that is not full; the caller
 * frees it.
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
                                      size_t bytes, ps_state *summary,
                                      ps_error *err);

/*
 * Whether the state, of a finished stream or not, is of a packer with this
 * schema and these options; `threads` and first_pack may differ.
 * PS_OK, PS_ERR_ARGUMENT (it says what differs), _MEMORY and the failures of
 * ps_state_read.
 */
PS_MUST_CHECK ps_result ps_state_fits(const unsigned char *state,
                                      size_t bytes, const ps_schema *schema,
                                      const ps_packer_options *options,
                                      ps_error *err);

/*
 * Makes, from the last state of a stream that has ended, a packer that only
 * tells what it did: its header, totals, rejects and delay.  Schema and options
 * as in ps_state_fits.
 * PS_OK, PS_ERR_ARGUMENT (they differ, or the stream has not ended), _MEMORY
 * and the failures of ps_state_read.
 */
PS_MUST_CHECK ps_result ps_packer_open_ended(ps_packer **packer,
                                             const ps_schema *schema,
                                             const ps_packer_options *options,
                                             const unsigned char *state,
                                             size_t bytes, ps_error *err);

/*
 * Has a packer that starts anew, before anything is put, prove that it makes
 * the packs of the state again: when it has written as many packs, their digest
 * must be that of the state.  If it is not, or if it makes fewer packs,
 * PS_FLUSH_FINISH, ps_packer_save and ps_packer_replay_verified give
 * PS_ERR_CORRUPT.
 * PS_OK, PS_ERR_ARGUMENT and the failures of ps_state_read.
 */
PS_MUST_CHECK ps_result ps_packer_verify_replay(ps_packer *packer,
                                                const unsigned char *state,
                                                size_t bytes, ps_error *err);

/*
 * Writes all packs so far, and tells whether it is proved by now.
 * PS_OK, PS_ERR_CORRUPT and the failures of ps_packer_flush.
 */
PS_MUST_CHECK ps_result ps_packer_replay_verified(ps_packer *packer,
                                                  ps_error *err);

/*
 * As ps_packer_open, but goes on where a state was saved.  Schema and options,
 * except `threads`, must be the same.  With first_pack 0, the output must be
 * at byte output_bytes of the state.  Any other first_pack is at least the
 * output_packs of the state: the header is written again, then the blocks
 * from that of this pack on.  If the stream of the state has ended, first_pack
 * is its number of packs, and only PS_FLUSH_FINISH may be called.
 *
 * Then put the sequences again, or reject those that were left out: from
 * resume_from_id of the state, or any before it, on.  Until all that the state
 * needs has come, the packer packs nothing, and refuses PS_FLUSH_DRAIN,
 * PS_FLUSH_FINISH and ps_packer_save.  As ever, the payload of an overlong
 * sequence that is dropped may be NULL.
 *
 * PS_ERR_ARGUMENT (other options, schema or first_pack; a blank state) and
 * the failures of ps_packer_open and ps_state_read.  After it, ps_packer_put
 * gives PS_ERR_CORRUPT if what comes again is not what came before.
 */
PS_MUST_CHECK ps_result ps_packer_resume(ps_packer **packer, int fd,
                                         const ps_schema *schema,
                                         const ps_packer_options *options,
                                         const unsigned char *state,
                                         size_t bytes, ps_error *err);

#ifdef __cplusplus
}
#endif

#endif
