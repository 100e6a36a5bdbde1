/*
 * batch.h - packs as arrays and batches for trainers; part of <packstream.h>.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_BATCH_H
#define PACKSTREAM_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------
 * Packs for trainers: views
 *
 * Attention kernels for sequences of different lengths take an array of
 * boundaries, `cu`: span i consists of rows cu[i] to cu[i + 1] - 1, and rows
 * attend only within their span.  The boundaries of a pack are the starts of
 * its sequences.  A batch concatenates the boundaries of its packs.
 *
 * The functions before the loader read no input and allocate no memory.
 */

typedef enum ps_view {
    /*
     * Sequences without padding: n_seq spans, n_tok rows.  The rows of
     * consecutive packs are adjacent.  If sequences are aligned, a span
     * includes the gap after its sequence, and n_rows can exceed n_tok.
     */
    PS_VIEW_RAGGED,
    /*
     * All `capacity` rows of each pack, in n_seq + 1 spans.  The last span,
     * called the ghost, covers the padding after the sequences, so that a
     * kernel writes every row.  In a full pack the ghost is empty.
     */
    PS_VIEW_GHOST,
    /*
     * Like PS_VIEW_GHOST, but each pack is filled up with empty spans to
     * ps_max_sequences(info) + 1 spans.  All shapes are then constant, as CUDA
     * graphs require.  No span is longer than the capacity.  If the stream's
     * totals are known, max(max_seqlen, capacity - min_fill) is a tighter
     * bound.
     */
    PS_VIEW_STATIC
} ps_view;

/*
 * A view of one or several packs.  The spans of each pack are its sequences,
 * then its ghost and its empty spans if the view has them.  ps_pack_view and
 * ps_loader_next fill it in.  A caller who concatenates packs and builds `cu`
 * can also fill it in.
 */
typedef struct ps_spans {
    ps_view view;
    uint32_t n_packs;
    const uint32_t *n_seqs; /* [n_packs], sequences of each pack */
    uint32_t n_seq;         /* sum over all packs */
    uint32_t n_spans;       /* including ghosts and empty spans */
    uint32_t n_rows; /* rows of all spans: n_tok, or n_packs * capacity */
    uint32_t max_seqlen; /* longest span in rows, ghosts included */
    const int32_t *cu; /* [n_spans + 1], ascending from 0 to n_rows */
    /*
     * Number of tokens of each sequence if sequences are aligned, indexed like
     * per-sequence elements in ps_spans_gather.  The rest of the span is a gap.
     * NULL if there are no gaps.
     */
    const int32_t *lengths;
} ps_spans;

/*
 * Fills `spans` for one pack.  The caller provides two arrays: `cu` with room
 * for n_seq + 2 elements, or ps_max_sequences(info) + 2 in PS_VIEW_STATIC, and
 * `lengths` with room for one fewer element.  `lengths` may be NULL if
 * sequences are not aligned.  spans->n_seqs is set to point to pack->n_seq.
 * PS_OK, PS_ERR_ARGUMENT (unknown view), PS_ERR_LIMIT (PS_VIEW_STATIC: more
 * sequences than ps_max_sequences).
 */
PS_MUST_CHECK ps_result ps_pack_view(const ps_pack_info *info,
                                     const ps_pack *pack, ps_view view,
                                     int32_t *cu, int32_t *lengths,
                                     ps_spans *spans, ps_error *err);

/* ---------------------------------------------------------------------
 * Packs for trainers: arrays derived from the boundaries
 *
 * Each function fills an array provided by the caller, with one element per row
 * of `spans` unless stated otherwise.  Per-sequence arrays number sequences
 * consecutively over all packs.  In PS_VIEW_STATIC each pack has
 * ps_max_sequences() slots instead, and the slots beyond its sequences are
 * empty.
 *
 * Gaps after aligned sequences are padding, like ghosts: they have no segment,
 * label or weight.
 */

/* Position ids of padding rows. */
typedef enum ps_ghost {
    PS_GHOST_COUNTS, /* 0, 1, 2, ...; a run of zeros would look like
                        documents of one token */
    PS_GHOST_ZERO    /* 0, as in seqio and MaxText */
} ps_ghost;

/*
 * Position ids: 0, 1, 2, ... from the start of each span.  `ghost` selects the
 * position ids of padding.
 */
void ps_spans_positions(const ps_spans *spans, ps_ghost ghost,
                        int32_t *positions);

/* Number of each row's sequence within its pack, from 1; 0 for padding. */
void ps_spans_segment_ids(const ps_spans *spans, int32_t *ids);

/*
 * First row of each sequence, where its [CLS] is.  Empty slots are set to
 * `empty`.
 */
void ps_spans_first_rows(const ps_spans *spans, int32_t empty,
                         int32_t *rows);

/* Pseudo-type: elements keep the type of the field. */
#define PS_AS_STORED ((ps_type)0)

/*
 * Gathers one field of the packs in the order of the view: one element per row
 * for a per-token field, one per sequence or slot for a per-sequence field.
 * Empty slots are set to the field's fill value.  `rows` are the rows of the
 * view's packs, info->row_bytes apart; `sequences` are the sequence rows of all
 * packs, info->seq_bytes apart.
 *
 * `type` is the element type of `to`:
 *
 *   PS_AS_STORED  the field's own type; elements stay little-endian, and `to`
 *                 needs no alignment
 *   PS_I32        int32_t: u8, u16 and i32 by value, u32 as the same 32 bits
 *   PS_I64        int64_t: any integer type by value, except u64 as the same
 *                 64 bits
 *
 * PS_OK, PS_ERR_ARGUMENT (the field's type cannot be converted to `type`).
 */
PS_MUST_CHECK ps_result ps_spans_gather(const ps_spans *spans,
                                        const ps_pack_info *info,
                                        const unsigned char *rows,
                                        const unsigned char *sequences,
                                        const ps_field *field, ps_type type,
                                        void *to, ps_error *err);

/* Label of a row without a target. */
#define PS_NO_LABEL (-100)

/*
 * Labels for next-token prediction.  With PS_LABELS_ALIGNED the label of a row
 * is its own token, the trainer shifts, and the first row of each sequence gets
 * PS_NO_LABEL.  With PS_LABELS_SHIFTED it is the token of the next row, and the
 * last row of each sequence gets PS_NO_LABEL.  No label crosses a sequence
 * boundary, and padding gets PS_NO_LABEL.  Other conventions are treated as
 * PS_LABELS_ALIGNED.  The two arrays must not overlap.
 */
void ps_spans_next_labels(const ps_spans *spans,
                          ps_label_convention convention,
                          const int32_t *tokens, int32_t *labels);

/* Denominators of a mean loss. */
typedef struct ps_targets {
    uint64_t tokens;    /* tokens with a label */
    uint64_t sequences; /* sequences with at least one labelled token */
} ps_targets;

/*
 * Counts the labels that differ from `ignore`: PS_NO_LABEL for labels, 0 for a
 * loss mask.  Padding is not counted.
 */
ps_targets ps_spans_targets(const ps_spans *spans, const int32_t *labels,
                            int32_t ignore);

/* Units that have equal weight in the loss. */
typedef enum ps_loss {
    PS_LOSS_PER_TOKEN,   /* labelled tokens */
    PS_LOSS_PER_SEQUENCE /* sequences; the labelled tokens of a sequence share
                            its weight */
} ps_loss;

/*
 * Weights w such that the loss of a step is the sum of w times each row's loss:
 * 1 / n with PS_LOSS_PER_TOKEN, and 1 / (m n) with PS_LOSS_PER_SEQUENCE, where
 * m is the number of labels in the row's sequence.  Rows without a label have
 * weight 0.  If n is 0, all weights are 0.
 *
 * `n` is the number of tokens or sequences in the whole step: the ps_targets of
 * all its batches and ranks, summed.  To count sequences without a label as
 * well, pass the number of all sequences.
 */
void ps_spans_weights(const ps_spans *spans, const int32_t *labels,
                      int32_t ignore, ps_loss loss, uint64_t n,
                      float *weights);

/*
 * Lists the rows that have a label, in ascending order, and the number of the
 * sequence of each row (from 0; empty slots are not counted).  `sequences` may
 * be NULL.  Returns the number of rows, which equals the `tokens` of
 * ps_spans_targets.  The arrays must have room for that many elements.
 */
uint32_t ps_spans_target_rows(const ps_spans *spans, const int32_t *labels,
                              int32_t ignore, int32_t *rows,
                              int32_t *sequences);

/* ---------------------------------------------------------------------
 * Packs for trainers: batches
 *
 * A loader reads packs from a ps_pack_reader into a ring of buffers, one batch
 * at a time.  A thread fills the buffers in advance.  The caller can provide
 * them, for example in pinned memory, so that a single copy moves a batch to a
 * device.
 *
 * Ranks that read the same input share it without communication: each group of
 * `ranks` x `packs` packs is divided among them.  By default a rank gets the
 * packs whose number, counted from 0 over all streams, is `rank` modulo
 * `ranks`.  If a cost is given, ps_deal assigns the group so that the maximum
 * cost of a rank is small.  Each rank then gets the same batches as with
 * packdeal(1) --rank, and holds the whole group in memory.
 */

/* Handling of packs at the end that do not fill a batch for every rank. */
typedef enum ps_last {
    /*
     * Return them in a shorter last batch.  A rank that gets none of these
     * packs has one fewer batch than the other ranks.
     */
    PS_LAST_SHORT,
    /* Discard them.  All ranks have the same number of batches, all full. */
    PS_LAST_DROP,
    /*
     * Return them, and fill up the batch with packs of padding.  All ranks have
     * the same number of batches, all of the same size.  On a rank that gets
     * none of the last packs, the last batch has no sequences; this cannot
     * happen in the other modes.  Not available with PS_VIEW_RAGGED.
     */
    PS_LAST_PAD
} ps_last;

#define PS_LOADER_BUFFERS 4096 /* upper limit of ps_loader_options.buffers */

/* Zero selects the default of every member except `packs`. */
typedef struct ps_loader_options {
    uint32_t packs; /* packs per batch, at least 1 */
    uint32_t rank;  /* 0 to ranks - 1 */
    uint32_t ranks; /* number of ranks; 0: 1 */
    ps_view view;
    ps_last last;
    ps_cost cost;  /* cost model for the assignment; zeros: packs go to ranks in
                      turn */
    uint32_t keep;    /* number of batches that stay valid, including the last
                         one; 0: 1 */
    uint32_t buffers; /* number of buffers, keep + 1 to PS_LOADER_BUFFERS.  0:
                         enough to read ahead; only if memory is NULL */
    void *const *memory; /* [buffers], provided by the caller; NULL: the loader
                            allocates them */
    bool no_thread; /* read in ps_loader_next instead of a thread */
} ps_loader_options;

/*
 * A batch.  All pointers except `heads` point into its buffer.  The counts are
 * not part of the buffer, so they need not be copied back from a device.
 *
 * In PS_VIEW_GHOST and PS_VIEW_STATIC, row r of pack p is row p * capacity + r
 * of the batch, boundaries in `cu` are shifted likewise, and a pack's ghost
 * ends where the next pack starts.  In PS_VIEW_STATIC the spans of pack p start
 * at index p * (ps_max_sequences() + 1).  In PS_VIEW_RAGGED there is no padding
 * between packs: boundary b of a pack is b plus the number of rows in earlier
 * packs.  In that view `cu` indexes the output of ps_spans_gather, not `rows`.
 */
typedef struct ps_batch {
    uint64_t first;   /* number of the first pack over all streams; in a batch
                         without packs, the number that pack would have */
    uint32_t n_packs; /* not counting packs of padding */
    uint32_t n_seq;   /* sequences in these packs */
    uint32_t n_tok;   /* tokens in these packs */
    uint64_t sum_len_sq;    /* sum of squared sequence lengths, for attention
                               cost */
    ps_spans spans;         /* of all packs, including packs of padding */
    const unsigned char *rows; /* spans.n_packs rows, info->row_bytes apart */
    const unsigned char *sequences; /* n_seq rows, info->seq_bytes apart */
    const ps_pack *heads;   /* [n_packs], as ps_pack_reader_next returned
                               them */
    unsigned char *memory;  /* start of the buffer */
} ps_batch;

/*
 * Offsets in bytes of the arrays in each buffer.  A buffer is aligned to 16
 * bytes.  M is ps_max_sequences() in PS_VIEW_STATIC.  In the other views M is
 * the maximum number of sequences that fit the capacity, because later streams
 * can have deeper packs.  Parts that a batch does not use are not written.
 */
typedef struct ps_loader_layout {
    size_t rows;      /* always 0; `packs` rows, info->row_bytes apart */
    size_t cu;        /* int32, at most `packs` * (M + 1) + 1 */
    size_t n_seqs;    /* uint32, `packs` */
    size_t lengths;   /* int32, at most `packs` * M; 0 if align is 1 */
    size_t sequences; /* at most `packs` * M rows, info->seq_bytes apart */
    size_t bytes;     /* size of a buffer, a multiple of 64 */
} ps_loader_layout;

/*
 * Computes the layout for a stream and options, for a caller who allocates the
 * buffers.
 * PS_OK, PS_ERR_ARGUMENT, PS_ERR_LIMIT (more than 2^31 - 1 rows or spans per
 * batch, or sizes above SIZE_MAX).
 */
PS_MUST_CHECK ps_result ps_loader_plan(const ps_pack_info *info,
                                       const ps_loader_options *options,
                                       ps_loader_layout *layout,
                                       ps_error *err);

typedef struct ps_loader ps_loader;

/*
 * Creates a loader that reads from `reader`.  The reader may have been resumed
 * with ps_pack_reader_resume, and must outlive the loader.  Until the loader is
 * freed, the only call allowed on the reader is ps_pack_reader_totals after
 * ps_loader_next has returned PS_END.  The reader's wait hook is removed unless
 * no_thread is set.  `options` is copied.  The caller's buffers are in use
 * until the loader is freed.
 * PS_OK, PS_ERR_ARGUMENT (also: the reader has a rank, a buffer is not aligned
 * to 16 bytes, more than PS_MAX_DEAL packs to assign), _LIMIT, _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_loader_open(ps_loader **loader,
                                       ps_pack_reader *reader,
                                       const ps_loader_options *options,
                                       ps_error *err);

/* The first header, as it was when the loader was opened. */
const ps_pack_info *ps_loader_info(const ps_loader *loader);

/*
 * Returns the next batch.  It stays valid until the keep-th call after this
 * one: with keep = 2, one batch can be copied while the next is processed.
 *
 * Returns PS_END once the whole input has been verified, as ps_pack_reader_next
 * does.  If reading fails, the batches completed before the failure are
 * returned first; then this call and every later one return the failure.
 * PS_OK, PS_END, and the failures of ps_pack_reader_next.  With a cost, also
 * PS_ERR_LIMIT as ps_pack_cost and ps_deal_make.  In PS_VIEW_STATIC, also
 * PS_ERR_LIMIT if a pack has more sequences than ps_max_sequences().
 */
PS_MUST_CHECK ps_result ps_loader_next(ps_loader *loader, ps_batch *batch,
                                       ps_error *err);

/*
 * Like ps_pack_reader_save, but saves the position after the last batch
 * returned; packs that were read ahead do not count.  Ranks that have returned
 * equally many batches have identical marks, positioned after the packs of all
 * ranks.  A loader can resume from such a mark with any number of ranks and any
 * `packs`.
 */
void ps_loader_save(const ps_loader *loader,
                    unsigned char mark[PS_PACK_MARK_BYTES]);

/*
 * Stops the thread at once, even if it is waiting for input, and frees the
 * loader's own buffers together with the batches in them.
 */
void ps_loader_free(ps_loader *loader);

#ifdef __cplusplus
}
#endif

#endif
