/*
 * packer.h - pack sequences into a pack stream; part of <packstream.h>.
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

/* Handling of sequences longer than the capacity. */
typedef enum ps_overlong {
    PS_OVERLONG_ERROR,    /* fail with PS_ERR_OVERLONG */
    PS_OVERLONG_DROP,     /* reject and count the sequence */
    PS_OVERLONG_TRUNCATE, /* keep the first L tokens */
    PS_OVERLONG_SPLIT     /* cut into pieces of L tokens and a remainder */
} ps_overlong;

/* Packing algorithm; see packstream-packing(7). */
typedef enum ps_policy {
    PS_POLICY_AUTO,    /* highest total of LP dual prices of the lengths */
    PS_POLICY_SPFHP,   /* plan each full window: shortest pack first */
    PS_POLICY_NNLSHP,  /* plan each full window: non-negative least squares */
    PS_POLICY_BESTFIT, /* oldest sequence first, then the longest that fits */
    PS_POLICY_NEXTFIT, /* input order, until the next sequence does not fit */
    PS_POLICY_NONE,    /* one sequence per pack */
    PS_POLICY_CONCAT   /* input order, split where a pack is full */
} ps_policy;

/* Name of a policy, as for packstream -a; NULL if the policy is unknown. */
const char *ps_policy_name(ps_policy policy);

/* Order of packs in the output. */
typedef enum ps_pack_order {
    PS_PACKS_BY_WINDOW, /* as the packs are made, which packs best */
    PS_PACKS_BY_INPUT,  /* by the oldest sequence of each pack */
    PS_PACKS_SHUFFLED   /* random, within several hundred packs */
} ps_pack_order;

/*
 * Consumes the next `n` bytes of a stream instead of a descriptor.  A result
 * other than PS_OK fails the stream with that result, and the hook is not
 * called again.
 */
typedef ps_result ps_write_hook(void *context, const void *bytes, size_t n,
                                ps_error *err);

/*
 * Consumes a sequence that the packer drops, or keeps only in part, because the
 * sequence exceeds a budget or its group does not fit a pack.  The payload
 * covers the whole sequence, and is valid only during the call.  A result other
 * than PS_OK makes the call to the packer fail with that result.
 */
typedef ps_result ps_reject_hook(void *context, const ps_sequence *sequence,
                                 bool truncated, ps_error *err);

/* A limit on a sum over the sequences of a pack; see ps_budget. */
typedef struct ps_budget_option {
    const char *name; /* an integer per-sequence channel, or PS_ATTENTION */
    uint64_t limit;   /* 1 to PS_MAX_BUDGET */
} ps_budget_option;

/*
 * Zero selects the default of `depth`, `window` and all members from `overlong`
 * on.  Delays are counted in input records, including rejected records and each
 * piece of a split sequence.
 */
typedef struct ps_packer_options {
    uint32_t capacity; /* L, tokens per pack, at least 1 */
    uint32_t depth;    /* D, maximum number of sequences per pack; 0: no
                          limit */
    uint32_t window;   /* W, maximum number of sequences and pieces held.  0: at
                          least 1,024, and tokens for at least 64 packs.
                          PS_POLICY_NEXTFIT and _CONCAT hold at least `depth` */
    uint32_t pad_id;   /* token id of padding; must fit the token type */
    ps_overlong overlong; /* must be PS_OVERLONG_ERROR with PS_POLICY_CONCAT,
                             which always splits */
    ps_policy policy;
    ps_pack_order order;
    uint64_t seed;      /* nonzero with PS_PACKS_SHUFFLED, otherwise unused */
    /*
     * Maximum number of records that arrive after a sequence before it is
     * packed, at most PS_MAX_WINDOW.  0: twice the maximum number of sequences
     * held, or four times with PS_PACKS_SHUFFLED, capped at PS_MAX_WINDOW.
     */
    uint64_t max_delay;
    uint64_t max_bytes; /* maximum payload held, in bytes, each sequence rounded
                           up to 256; at least ps_packer_least_bytes.  0:
                           unlimited */
    bool even_cost;     /* among equally full packs, prefer packs whose sum of
                           squared lengths is near the mean */
    bool compressed;    /* zstd seekable format, one block per frame */
    int level;          /* zstd level, if compressed */
    uint32_t threads;   /* threads that compress and write; fewer if the system
                           provides fewer.  0: the caller's thread does both */
    uint64_t first_pack; /* index of a pack; blocks that contain only earlier
                            packs are built, but not written.  Must be 0 if
                            compressed */
    uint32_t block_packs; /* packs per block, a power of two up to 65,536; a
                             block is written when full.  0: as many as make
                             1 to 2 MiB */
    uint32_t max_frames; /* maximum number of frames if compressed; PS_ERR_LIMIT
                            if exceeded.  0: unlimited */
    uint32_t align;      /* sequences and pieces start at multiples of this
                            offset in a pack; must divide L.  0: 1 */
    ps_write_hook *write; /* if not NULL, consumes the stream instead of `fd`;
                             called from one of the threads, if any */
    void *write_context;
    uint32_t max_window; /* if `window` is 0, the maximum number of sequences
                            held, but never below 1,024.  0: 1,048,576 */
    /*
     * Expected lengths up to L, for example those of the whole corpus.
     * PS_POLICY_AUTO learns from them before the first pack.  Owned by the
     * caller; not accessed after the call.  NULL: none.
     */
    const ps_histogram *learn_from;
    /*
     * Name of a per-sequence channel.  Consecutive sequences with the same
     * value in it are a group.  A group is packed as a unit: its sequences are
     * adjacent and in input order.  `overlong` applies to groups whose lengths,
     * each rounded up to `align`, exceed L in total: _DROP drops all sequences
     * of the group, _TRUNCATE keeps its first L tokens, _SPLIT cuts it between
     * sequences.  `window` counts groups, `learn_from` has the lengths of
     * groups, and `depth` must be 0.  A flush that packs everything held ends a
     * group.  A group is packed only once it is complete, even if max_delay is
     * exceeded.  L / align is at most PS_MAX_DEPTH.  PS_POLICY_CONCAT is not
     * available; PS_POLICY_NONE makes a pack of each group.
     * Not accessed after the call.  NULL: no groups.
     */
    const char *group;
    /* Consumes sequences that exceed a budget, and those of overlong groups;
     * NULL: none. */
    ps_reject_hook *rejects;
    void *rejects_context;
    /*
     * Limits on packs besides the capacity, read only during the call.  A
     * sequence that exceeds a budget is overlong.  _DROP drops the sequence;
     * _TRUNCATE and _SPLIT cut it if it has too many tokens for a budget of
     * attention.  If a channel's value is negative or exceeds its budget, the
     * sequence is refused unless it is dropped.  The values in a group are
     * summed.  Budgets need PS_POLICY_AUTO without even_cost and learn_from.
     * If `window` is 0, at least 1,024 sequences are held, and enough to fill
     * 16 packs.
     */
    const ps_budget_option *budgets; /* [n_budgets] */
    uint32_t n_budgets;              /* at most PS_MAX_BUDGETS */
    /*
     * Name of a per-sequence channel.  Among sequences of equal length, those
     * with the value of the first sequence of a pack are preferred, so the
     * lengths in packs hardly change.  Needs PS_POLICY_AUTO without `group` and
     * `budgets`.  Read only during the call.  NULL: none.
     */
    const char *by;
} ps_packer_options;

/*
 * Smallest max_bytes that is accepted with these options, or UINT64_MAX if
 * ps_packer_check rejects them.
 */
uint64_t ps_packer_least_bytes(const ps_schema *schema,
                               const ps_packer_options *options);

/*
 * Checks whether ps_packer_open would accept schema and options.
 * PS_OK, PS_ERR_ARGUMENT, PS_ERR_LIMIT (a row larger than PS_MAX_ROW_BYTES).
 */
PS_MUST_CHECK ps_result ps_packer_check(const ps_schema *schema,
                                        const ps_packer_options *options,
                                        ps_error *err);

/*
 * Upper bound, in bytes, on the memory of a packer with these options for any
 * input.  Includes its allocations, payloads that stay in a reader's blocks,
 * and the histogram learn_from.  The table of zstd frames is included only if
 * max_frames limits it.  Returns UINT64_MAX if ps_packer_check rejects the
 * options or the bound overflows.
 */
uint64_t ps_packer_memory(const ps_schema *schema,
                          const ps_packer_options *options);

/*
 * Upper bound, in bytes, on the additional memory that ps_packer_save and
 * ps_packer_resume need, including the states.
 */
uint64_t ps_packer_save_memory(const ps_schema *schema,
                               const ps_packer_options *options,
                               size_t note_bytes);

typedef struct ps_packer ps_packer;

/*
 * Creates a packer that writes a pack stream to `fd`.  `schema` is copied.
 * PS_OK, PS_ERR_ARGUMENT, _LIMIT (a row above PS_MAX_ROW_BYTES), _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_packer_open(ps_packer **packer, int fd,
                                       const ps_schema *schema,
                                       const ps_packer_options *options,
                                       ps_error *err);

/*
 * Adds the next sequence of the input.  Its payload is copied unless it is in a
 * block of a token reader; the packer then keeps a reference to the block.
 * Ids count up from 0 and include dropped sequences.  The option `overlong`
 * determines the handling of a sequence longer than the capacity; with
 * PS_OVERLONG_DROP its payload may be NULL, unless `rejects` and budgets or a
 * group are set.  PS_POLICY_CONCAT splits sequences at pack boundaries.
 * Completed packs are added to the output buffer.
 * PS_OK, PS_ERR_ARGUMENT, _OVERLONG, _RANGE (a channel exceeds its budget),
 * _MEMORY, _IO, _LIMIT (a payload above PS_MAX_SEQUENCE_BYTES).  After
 * PS_ERR_OVERLONG the sequence is not counted, and can be put or rejected
 * again; with a group, the group before it may have ended.
 */
PS_MUST_CHECK ps_result ps_packer_put(ps_packer *packer,
                                      const ps_sequence *sequence,
                                      ps_error *err);

/*
 * Adds sequences that `reader` has already buffered completely and that fit the
 * capacity.  Equivalent to ps_token_reader_next and ps_packer_put for each
 * sequence, but faster.  Stops after `most` sequences, or once the packer has
 * made `packs` packs.  *n is set to the number of sequences added.  If *n is
 * less than `most`, call ps_token_reader_next for the next sequence.  After
 * ps_packer_resume, nothing is added until the packer has received the
 * sequences it needs again.
 * Results as ps_packer_put.  On failure *n includes the sequence that failed.
 */
PS_MUST_CHECK ps_result ps_packer_put_ready(ps_packer *packer,
                                            ps_token_reader *reader,
                                            uint64_t most, uint64_t packs,
                                            uint64_t *n, ps_error *err);

/*
 * Reasons for rejecting an input sequence.  If several reasons apply, only one
 * is counted: the reason passed to ps_packer_reject.
 */
typedef enum ps_reject {
    PS_REJECT_OVERLONG,     /* longer than the capacity */
    PS_REJECT_EMPTY,        /* no tokens */
    PS_REJECT_OUT_OF_VOCAB, /* has a token outside the vocabulary */
    PS_REJECTS
} ps_reject;

/* "overlong", "empty" or "out_of_vocab"; NULL for an unknown reason. */
const char *ps_reject_name(ps_reject reason);

/*
 * Consumes the next sequence of the input, like ps_packer_put, but does not
 * pack it.  The sequence is counted, and adds to the delay of the sequences
 * held.  Its payload is not read and may be NULL, and n_tok may be 0.  After
 * ps_packer_resume, a sequence that was rejected before is skipped.
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY, _IO, and _CORRUPT as for ps_packer_resume.
 */
PS_MUST_CHECK ps_result ps_packer_reject(ps_packer *packer,
                                         const ps_sequence *sequence,
                                         ps_reject reason, ps_error *err);

/* Sequences and tokens rejected for one reason. */
typedef struct ps_rejected {
    uint64_t sequences;
    uint64_t tokens;
} ps_rejected;

/*
 * Counts so far.  Summed over all reasons they equal rejected_sequences and
 * rejected_tokens of ps_packer_totals.  Zeros for an unknown reason.
 */
ps_rejected ps_packer_rejected(const ps_packer *packer, ps_reject reason);

/* Counts of groups so far.  Zeros without groups. */
typedef struct ps_groups {
    uint64_t groups;
    uint64_t overlong; /* groups that do not fit a pack: dropped, truncated or
                          split */
} ps_groups;

ps_groups ps_packer_groups(const ps_packer *packer);

/*
 * Modes of ps_packer_flush.  PS_FLUSH_NOWAIT and _DECIDED write only full
 * blocks, because block boundaries must not depend on when the caller flushes.
 */
typedef enum ps_flush {
    /*
     * Start writing full blocks on a thread and return without waiting.  If the
     * thread fails, a later call returns the failure.  Without threads, the
     * same as PS_FLUSH_DECIDED.
     */
    PS_FLUSH_NOWAIT,
    /* Write full blocks. */
    PS_FLUSH_DECIDED,
    /*
     * Pack everything held, as at the end of the input, then close and write
     * the block.  More sequences can be added afterwards.  Draining lowers
     * efficiency, and the packs depend on the point at which it is done.
     */
    PS_FLUSH_DRAIN,
    /*
     * Pack everything held, verify that nothing was lost, and write END.  The
     * stream is then complete.
     */
    PS_FLUSH_FINISH,
    /*
     * Write all completed packs, including those of a partial block, but not
     * END.  Sequences still held are lost, and readers report a truncated
     * stream.  Use it after a failure that prevents finishing the stream.
     */
    PS_FLUSH_ABANDON
} ps_flush;

/*
 * Writes packs in mode `flush`.  After PS_FLUSH_FINISH and PS_FLUSH_ABANDON the
 * packer accepts no more sequences and cannot be drained or finished.
 * PS_OK, PS_ERR_ARGUMENT (the stream has ended, or `flush` is invalid),
 * _MEMORY, _IO; with PS_FLUSH_FINISH also _CORRUPT (totals do not balance), and
 * the failures described for ps_packer_resume and ps_packer_verify_replay.
 */
PS_MUST_CHECK ps_result ps_packer_flush(ps_packer *packer, ps_flush flush,
                                        ps_error *err);

/* The totals so far, and the header.  Valid until the packer is freed. */
const ps_totals *ps_packer_totals(const ps_packer *packer);
const ps_pack_info *ps_packer_info(const ps_packer *packer);

/*
 * Maximum delay of a sequence so far: the number of input records, including
 * the current one, that arrived after the sequence and before it was packed.
 * Never exceeds max_delay of the options.
 */
uint64_t ps_packer_delay(const ps_packer *packer);

/*
 * Number of packs that had to be built, because a limit was reached, while the
 * sequences held had fewer tokens than fit eight packs.  Such packs are less
 * full.  Counted since the packer was opened or resumed.
 */
typedef struct ps_scarce {
    uint64_t by_window; /* the window was at its maximum number of sequences */
    uint64_t by_bytes;  /* the payloads held were at max_bytes */
} ps_scarce;
ps_scarce ps_packer_scarce(const ps_packer *packer);

void ps_packer_free(ps_packer *packer);

/* ---------------------------------------------------------------------
 * Packing by lengths alone
 */

/*
 * Computes which of `n` sequences share a pack, for a program that stores the
 * sequences elsewhere, for example in a table.  The result is the same as a
 * packer's for sequences of these lengths.
 *
 * lengths[i] is from 1 to the capacity, in tokens.  `order` receives the n
 * sequence numbers, from 0, pack by pack; pack p ends before index ends[p].
 * Both arrays must have room for n elements.  *n_packs receives the number of
 * packs.
 *
 * With budgets, sequence i uses uses[i * n_budgets + b] of budget b; the names
 * of budgets are arbitrary, except "attention".  Without budgets, `uses` is
 * NULL.
 *
 * Since sequences cannot be cut, `overlong` must be PS_OVERLONG_ERROR, and the
 * policy must not be PS_POLICY_CONCAT.  Options about payloads, blocks and
 * threads are ignored.
 *
 * PS_OK, PS_ERR_ARGUMENT, _OVERLONG, _EMPTY, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_pack_lengths(const uint32_t *lengths,
                                        const uint64_t *uses, uint64_t n,
                                        const ps_packer_options *options,
                                        uint64_t *order, uint64_t *ends,
                                        uint64_t *n_packs, ps_error *err);

/* ---------------------------------------------------------------------
 * Saving and resuming
 *
 * A packer can be saved between two sequences, and another packer, even in
 * another process, can resume from that state.  Together they write the same
 * bytes as one uninterrupted packer.  A state contains no payloads, so the
 * caller must add sequences again, starting with the oldest sequence held when
 * the state was saved.
 */

/* Summary of a state. */
typedef struct ps_state {
    uint64_t packs;           /* packs made so far */
    uint64_t output_bytes;    /* bytes written so far */
    uint64_t output_packs;    /* packs in these bytes; the state contains the
                                 other packs */
    uint64_t output_digest;   /* digest of these packs, as
                                 ps_pack_reader_digest */
    uint64_t input_sequences; /* sequences put or rejected so far */
    uint64_t resume_from_id;  /* id of the first sequence to add again */
    bool finished;
    bool blank;                /* nothing had been added; all counts are 0 */
    const unsigned char *note; /* points into the state */
    size_t note_bytes;
} ps_state;

/*
 * Id of the first sequence that must be added again if the packer is saved now,
 * or the id of the next sequence if none must be added again.
 */
uint64_t ps_packer_resume_from_id(const ps_packer *packer);

/*
 * Writes full blocks, as PS_FLUSH_DECIDED, and returns a state of the packer.
 * The state includes the caller's note and the packs of the partial block.  The
 * caller must free the state.
 * PS_OK, PS_ERR_ARGUMENT (no pack has been made yet and the stream has not
 * ended, or a resumed packer has not yet received all sequences it needs
 * again), _IO, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_packer_save(ps_packer *packer, const void *note,
                                       size_t note_bytes,
                                       unsigned char **state, size_t *bytes,
                                       ps_error *err);

/*
 * Returns the state before any sequence is added, which contains only the note.
 * It matches any schema and options, but a packer cannot be resumed from it.
 * The caller must free it.
 * PS_OK, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_state_blank(const void *note, size_t note_bytes,
                                       unsigned char **state, size_t *bytes,
                                       ps_error *err);

/*
 * Checks a state for damage and reads its summary.
 * PS_OK, PS_ERR_MAGIC (not a state), _UNSUPPORTED, _CORRUPT, _TRUNCATED.
 */
PS_MUST_CHECK ps_result ps_state_read(const unsigned char *state,
                                      size_t bytes, ps_state *summary,
                                      ps_error *err);

/*
 * Checks whether a state is from a packer with this schema and these options.
 * `threads` and `first_pack` may differ, and the stream may have ended.
 * PS_OK, PS_ERR_ARGUMENT (the text names the difference), _MEMORY and the
 * failures of ps_state_read.
 */
PS_MUST_CHECK ps_result ps_state_fits(const unsigned char *state,
                                      size_t bytes, const ps_schema *schema,
                                      const ps_packer_options *options,
                                      ps_error *err);

/*
 * Creates a packer from the last state of a stream that has ended.  The packer
 * can only report the header, totals, rejects and delay.  Schema and options
 * must match as for ps_state_fits.
 * PS_OK, PS_ERR_ARGUMENT (a mismatch, or the stream has not ended), _MEMORY and
 * the failures of ps_state_read.
 */
PS_MUST_CHECK ps_result ps_packer_open_ended(ps_packer **packer,
                                             const ps_schema *schema,
                                             const ps_packer_options *options,
                                             const unsigned char *state,
                                             size_t bytes, ps_error *err);

/*
 * Makes a packer that starts from the beginning verify that its first packs are
 * the packs of `state`.  Call it before any sequence is added.  Once the packer
 * has written as many packs as the state has, the digests must be equal.  On a
 * mismatch, or if the packer makes fewer packs, PS_FLUSH_FINISH, ps_packer_save
 * and ps_packer_replay_verified fail with PS_ERR_CORRUPT.
 * PS_OK, PS_ERR_ARGUMENT and the failures of ps_state_read.
 */
PS_MUST_CHECK ps_result ps_packer_verify_replay(ps_packer *packer,
                                                const unsigned char *state,
                                                size_t bytes, ps_error *err);

/*
 * Writes all packs made so far and checks that the replay has been verified.
 * PS_OK, PS_ERR_CORRUPT and the failures of ps_packer_flush.
 */
PS_MUST_CHECK ps_result ps_packer_replay_verified(ps_packer *packer,
                                                  ps_error *err);

/*
 * Like ps_packer_open, but resumes from a saved state.  Schema and options must
 * be the same, except `threads` and first_pack.  If first_pack is 0, `fd` must
 * be positioned at byte output_bytes of the state.  Otherwise first_pack is at
 * least output_packs of the state, and the packer writes the header again, then
 * all blocks starting with the block that contains this pack.  If the saved
 * stream has ended, first_pack is its number of packs, and the only
 * valid operation is PS_FLUSH_FINISH.
 *
 * Then add the sequences again, starting at resume_from_id of the state or
 * earlier, and again reject the sequences that were rejected before.  Until all
 * sequences before the saved position have been added, the packer makes no
 * packs and refuses PS_FLUSH_DRAIN, PS_FLUSH_FINISH and ps_packer_save.  The
 * payload of an overlong sequence that is dropped may be NULL.
 *
 * PS_ERR_ARGUMENT (different options or schema, an invalid first_pack, or a
 * blank state) and the failures of ps_packer_open and ps_state_read.
 * Afterwards ps_packer_put returns PS_ERR_CORRUPT if a sequence differs from
 * the original one.
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
