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
 * Takes the next `n` bytes of a stream, write(context, bytes, n, err), in place
 * of a descriptor.  A result other than PS_OK fails the stream with it; nothing
 * is written after that.
 */
typedef ps_result ps_write_hook(void *context, const void *bytes, size_t n,
                                ps_error *err);

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
    ps_write_hook *write; /* takes the stream, if not NULL; `fd` is not used
                             then.  With threads, one of these calls it */
    void *write_context;
    const ps_histogram *learn_from; /* the lengths to expect, up to L, such as
                           those of the corpus that the input is a part of.
                           PS_POLICY_AUTO learns from them before the first
                           pack, and PS_DEPTH_AUTO chooses by them, not by the
                           first sequences.  The caller's; read only during
                           the call.  NULL: none */
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
 * reader, and with the histogram to learn from; but the table of frames is only
 * counted if max_frames bounds it.
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
 * With PS_DEPTH_AUTO and nothing to learn from the stream starts later: when
 * the first W sequences have come, when they have waited as long as they may
 * or fill max_bytes, or with PS_FLUSH_DRAIN or PS_FLUSH_FINISH.
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

/* How far ps_packer_flush goes. */
typedef enum ps_flush {
    /*
     * The packs that are decided are written soon: by a thread, for which the
     * call does not wait, and a failure is given by a later call; without
     * threads as PS_FLUSH_DECIDED.
     */
    PS_FLUSH_NOWAIT,
    /*
     * The packs that are decided have been written when the call returns; of
     * compressed ones those of whole frames, the others stay for later.
     */
    PS_FLUSH_DECIDED,
    /*
     * All that is held is packed, as at the end of the input, and written; the
     * stream goes on after it.  This costs efficiency, and what is packed
     * depends on where it is done.  Where nothing came yet, nothing is
     * written.
     */
    PS_FLUSH_DRAIN,
    /*
     * All that is held is packed, it is proved that nothing was lost, and the
     * END record is written: the stream is whole.
     */
    PS_FLUSH_FINISH,
    /*
     * The packs that are decided are written, those of a frame that is not
     * full as well, but no END: what is held is lost, and readers see that
     * the stream is cut.  For a stream that cannot be finished after a
     * failure.
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
 * Packing by lengths alone
 */

/*
 * Which of `n` sequences share a pack, for a program that has the sequences
 * themselves elsewhere: in a table, or behind an index.  With the same depth,
 * the packs are those that a packer makes of sequences of these lengths.
 *
 * `lengths` has n lengths in tokens, from 1 to the capacity.  `order` gets the
 * n numbers of the sequences, from 0, pack after pack; ends[p] is where in it
 * pack p ends.  There must be room for n of either; *n_packs says how many
 * packs there are.
 *
 * Of the options, `overlong` must be ERROR and the policy not CONCAT, since
 * nothing is cut here.  PS_DEPTH_AUTO allows as many sequences in a pack as
 * fit, for no record has to have places for them.  What is said of payloads,
 * records and threads does not matter.
 *
 * PS_OK, PS_ERR_ARGUMENT, _OVERLONG, _EMPTY, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_lengths(const uint32_t *lengths, uint64_t n,
                                        const ps_packer_options *options,
                                        uint64_t *order, uint64_t *ends,
                                        uint64_t *n_packs, ps_error *err);

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
    uint64_t packs;         /* that were made */
    uint64_t output_bytes;  /* that were written */
    uint64_t output_packs;  /* in these bytes; the state has the others */
    uint64_t output_digest; /* of these packs, as ps_pack_reader_digest */
    uint64_t input_sequences;
    uint64_t resume_from_id; /* the id of the first that has to be put again */
    bool finished;
    bool blank; /* nothing was put; the others are 0 */
    const unsigned char *note; /* in the state */
    size_t note_bytes;
} ps_state;

/*
 * The id of the first sequence that has to be put again if the packer were
 * saved now; that of the next one to come, if none has.
 */
uint64_t ps_packer_resume_from_id(const ps_packer *packer);

/*
 * Has all packs so far written, as PS_FLUSH_DECIDED, and gives the state of
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
                                      size_t bytes, ps_state *summary,
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
PS_MUST_CHECK ps_result ps_packer_open_ended(ps_packer **packer,
                                             const ps_schema *schema,
                                             const ps_packer_options *options,
                                             const unsigned char *state,
                                             size_t bytes, ps_error *err);

/*
 * Has a packer that begins anew, before anything is put, prove that it packs
 * again what was packed when the state was saved: when it has made as many
 * packs, their digest must be that of the state.  Else, or if it makes fewer,
 * PS_FLUSH_FINISH, ps_packer_save and ps_packer_replay_verified give
 * PS_ERR_CORRUPT.
 * PS_OK, PS_ERR_ARGUMENT and the failures of ps_state_read.
 */
PS_MUST_CHECK ps_result ps_packer_verify_replay(ps_packer *packer,
                                                const unsigned char *state,
                                                size_t bytes, ps_error *err);

/*
 * Whether it is proved by now; has all packs so far written.
 * PS_OK, PS_ERR_CORRUPT and the failures of ps_packer_flush.
 */
PS_MUST_CHECK ps_result ps_packer_replay_verified(ps_packer *packer,
                                                  ps_error *err);

/*
 * As ps_packer_open, but goes on where a state was saved.  Schema and
 * options, but for `threads`, must be the same.  With first_record 0 the
 * output is to be at the byte output_bytes of the state; else, from the
 * number of packs in the state on, the header is written again, and then
 * packs from that index on.  If the stream of the state has ended, that
 * number is the only one, and PS_FLUSH_FINISH the only call to come.
 *
 * Then ps_packer_put, or ps_packer_reject for what was left out, wants any
 * sequence up to the one that the state needs, and all that follow it; until
 * all that is needed has come again it packs nothing, and PS_FLUSH_DRAIN,
 * PS_FLUSH_FINISH and ps_packer_save are refused.
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

#ifdef __cplusplus
}
#endif

#endif
