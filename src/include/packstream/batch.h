/*
 * batch.h - packs as a trainer wants them; part of <packstream.h>.
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
 * An attention kernel for sequences of various lengths takes an array of
 * boundaries, `cu`: span i is the rows from cu[i] up to, but not including,
 * cu[i + 1], and no row sees one of another span.  It follows from where the
 * sequences of a pack start; a batch has those of its packs merged.
 *
 * All calls before the loader's are pure: they read no input and allocate no
 * memory.
 */

typedef enum ps_view {
    /*
     * The sequences and no padding: n_seq spans of n_tok rows.  The rows of
     * several packs follow one another without a gap.  If sequences are
     * aligned, a span includes the gap after its sequence, and there are more
     * rows.
     */
    PS_VIEW_RAGGED,
    /*
     * All `capacity` rows of a pack in n_seq + 1 spans: the padding after the
     * sequences is one more span, the ghost, so that a kernel writes every row.
     * The ghost is empty in a full pack.
     */
    PS_VIEW_GHOST,
    /*
     * The same, and empty spans up to ps_max_sequences(info) + 1: every pack
     * has as many spans, so that all shapes are fixed, as CUDA graphs need it.  A fixed bound of
     * the longest span is the capacity or, if the totals are known, the greater
     * of max_seqlen and capacity - min_fill.
     */
    PS_VIEW_STATIC
} ps_view;

/*
 * A view of one pack or of several.  Each pack has its sequences first, then
 * its ghost and empty spans, if the view has them.  ps_pack_view and loaders
 * fill one in; so may a caller who joins packs and makes a `cu`.
 */
typedef struct ps_spans {
    ps_view view;
    uint32_t n_packs;
    const uint32_t *n_seqs; /* of each pack */
    uint32_t n_seq;         /* of all packs */
    uint32_t n_spans;
    uint32_t n_rows; /* in all spans: n_tok, or n_packs * capacity */
    uint32_t max_seqlen; /* of the longest span, perhaps a ghost */
    const int32_t *cu; /* n_spans + 1 of them, from 0 to n_rows */
    /*
     * If sequences are aligned, the tokens of each sequence, or of each place
     * as ps_spans_gather counts them: the rest of its span is a gap.  NULL if
     * there are no gaps.
     */
    const int32_t *lengths;
} ps_spans;

/*
 * A pack seen in a view.  `cu` is the caller's, with room for n_seq + 2, and in
 * PS_VIEW_STATIC for ps_max_sequences(info) + 2; so is `lengths`, with room for
 * one less, which may be NULL if sequences are not aligned.  spans->n_seqs
 * points to the n_seq of `pack`.
 * PS_OK; PS_ERR_ARGUMENT (there is no such view), PS_ERR_LIMIT (in
 * PS_VIEW_STATIC: more sequences than places).
 */
PS_MUST_CHECK ps_result ps_pack_view(const ps_pack_info *info,
                                     const ps_pack *pack, ps_view view,
                                     int32_t *cu, int32_t *lengths,
                                     ps_spans *spans, ps_error *err);

/* ---------------------------------------------------------------------
 * Packs for trainers: arrays that follow from the boundaries
 *
 * Each fills an array of the caller's, of one element for each row of
 * `spans`, or for each sequence where that is said.  The sequences of a view
 * count through all packs; in PS_VIEW_STATIC each pack has ps_max_sequences()
 * places for them instead.
 *
 * The gap after an aligned sequence is padding, as a ghost is: it has no
 * segment, label or weight.
 */

/* Which positions the rows of padding have. */
typedef enum ps_ghost {
    PS_GHOST_COUNTS, /* 0, 1, 2, ...: not a run of one-token documents */
    PS_GHOST_ZERO    /* 0, as seqio and MaxText have it */
} ps_ghost;

/* 0, 1, 2, ... from the start of each span; in a gap as `ghost` says. */
void ps_spans_positions(const ps_spans *spans, ps_ghost ghost,
                        int32_t *positions);

/* Which sequence of its pack a row belongs to, from 1; 0 in padding. */
void ps_spans_segment_ids(const ps_spans *spans, int32_t *ids);

/*
 * The first row of each sequence, where a [CLS] is.  In PS_VIEW_STATIC empty
 * places get `empty`.
 */
void ps_spans_first_rows(const ps_spans *spans, int32_t empty,
                         int32_t *rows);

/* Elements of whatever type the field has. */
#define PS_AS_STORED ((ps_type)0)

/*
 * A field of packs, rearranged as the view has it: a per-token field has an
 * element for each row, a per-sequence field one for each sequence or place;
 * empty places get the field's fill.  `rows` are those of the view's packs,
 * info->row_bytes apart, `sequences` the rows of all their sequences,
 * info->seq_bytes apart.
 *
 * `type` is that of the elements of the array `to`:
 * PS_AS_STORED  the field's own; they stay little-endian, and `to` may lie
 *               anywhere;
 * PS_I32        int32_t: of u8, u16 and i32 the value, of u32 the same 32
 *               bits;
 * PS_I64        int64_t: of all types of integers but u64 the value, of u64
 *               the same 64 bits.
 *
 * PS_OK, PS_ERR_ARGUMENT (the field is of a type that does not become one of
 * `type`).
 */
PS_MUST_CHECK ps_result ps_spans_gather(const ps_spans *spans,
                                        const ps_pack_info *info,
                                        const unsigned char *rows,
                                        const unsigned char *sequences,
                                        const ps_field *field, ps_type type,
                                        void *to, ps_error *err);

/* The label of a row that has nothing to predict. */
#define PS_NO_LABEL (-100)

/*
 * Labels for the prediction of the next token.  PS_LABELS_ALIGNED: a row's
 * label is its own token, and the trainer shifts; the first row of a sequence,
 * which nothing predicts, has PS_NO_LABEL.  PS_LABELS_SHIFTED: it is the token
 * of the next row; the last row of a sequence has PS_NO_LABEL.  Either way no
 * sequence learns from another, and padding has PS_NO_LABEL.  Any other
 * convention is taken as ALIGNED.  The two arrays must not overlap.
 */
void ps_spans_next_labels(const ps_spans *spans,
                          ps_label_convention convention,
                          const int32_t *tokens, int32_t *labels);

/* What a loss is an average of. */
typedef struct ps_targets {
    uint64_t tokens;    /* with a label */
    uint64_t sequences; /* with at least one such token */
} ps_targets;

/*
 * Counts the labels that are not `ignore` (PS_NO_LABEL for labels, 0 for a mask
 * of ones), without those of padding.
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
 * PS_LOSS_PER_TOKEN: 1 / n.  PS_LOSS_PER_SEQUENCE: 1 / (m n), where m is the
 * number of labels in the row's sequence.  Rows without a label have 0; so have
 * all rows if `n` is 0.
 *
 * `n` counts tokens or sequences over the whole step: the targets of all its
 * batches and ranks, added up, or, if sequences without a label are to count as
 * well, all sequences.
 */
void ps_spans_weights(const ps_spans *spans, const int32_t *labels,
                      int32_t ignore, ps_loss loss, uint64_t n,
                      float *weights);

/*
 * The rows that have a label, in order, and the sequence (not place) of each,
 * from 0; `sequences` may be NULL.  Returns their number, the tokens of
 * ps_spans_targets; the arrays must have room for them.
 */
uint32_t ps_spans_target_rows(const ps_spans *spans, const int32_t *labels,
                              int32_t ignore, int32_t *rows,
                              int32_t *sequences);

/* ---------------------------------------------------------------------
 * Packs for trainers: batches
 *
 * A loader takes the packs of a reader, some at a time, into buffers, which
 * may be the caller's: pinned memory, for example, so that one copy brings a
 * batch to a device.  A thread fills them ahead.
 *
 * Ranks that read the same input share it without communication: of every
 * `ranks` x `packs` packs each gets those whose number, counted from 0 through
 * all streams, is `rank` modulo `ranks`.  With a cost, the same packs are dealt
 * so that the greatest cost of a rank is small: each rank has the batches that
 * packdeal(1) --rank gives it, and holds the packs of all ranks in memory,
 * `ranks` x `packs` of them.
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
     * They are given, and packs of padding take the place of missing ones:
     * ranks have equally many batches of the same size.  Only here may a batch
     * have no sequence, in a rank that got none of the last packs.  Not with
     * PS_VIEW_RAGGED.
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
    ps_cost cost;  /* zeros: packs are not dealt, but go to ranks in turn */
    uint32_t keep;    /* batches that stay valid, with the last; 0: 1 */
    uint32_t buffers; /* more than `keep`, at most PS_LOADER_BUFFERS; 0: enough
                         to read ahead, if memory is NULL */
    void *const *memory; /* as many buffers, or NULL: the loader's own */
    bool no_thread; /* ps_loader_next reads, as if no thread could start */
} ps_loader_options;

/*
 * A batch.  All pointers but `heads` are into its buffer.  The host knows all
 * numbers here, and need not fetch any from a device.
 *
 * In `spans`, boundary b of pack p is p * capacity + b, so that row r of pack p
 * is row p * capacity + r of the batch, and its ghost ends where pack p + 1
 * begins.  In PS_VIEW_STATIC the spans of pack p begin with p * (ps_max_sequences() + 1).
 * In PS_VIEW_RAGGED boundary b is b plus the rows of all packs before: no
 * padding lies between packs, and `cu` fits what ps_spans_gather makes, but not
 * the rows as they lie.
 */
typedef struct ps_batch {
    uint64_t first;   /* number of its first pack, through all streams; if it
                         has none, that of a pack it might have had */
    uint32_t n_packs; /* without those of padding */
    uint32_t n_seq;   /* in them */
    uint32_t n_tok;
    uint64_t sum_len_sq;    /* of the sequences: what attention costs */
    ps_spans spans;         /* of all packs, those of padding too */
    const unsigned char *rows; /* spans.n_packs of them */
    const unsigned char *sequences; /* n_seq sequence rows */
    const ps_pack *heads;   /* what ps_pack_reader_next gave for n_packs */
    unsigned char *memory;  /* the buffer */
} ps_batch;

/*
 * What lies where in each buffer.  A buffer begins at a multiple of 16 bytes.
 * M is ps_max_sequences() in PS_VIEW_STATIC; in other views as many sequences
 * as fit, since deeper packs may follow.  What a batch does not use is not
 * touched.
 */
typedef struct ps_loader_layout {
    size_t rows;      /* 0: packs, info->row_bytes apart */
    size_t cu;        /* int32, `packs` * (M + 1) + 1 at most */
    size_t n_seqs;    /* uint32, `packs` of them */
    size_t lengths;   /* int32, `packs` * M at most; 0 if align is 1 */
    size_t sequences; /* `packs` * M at most, info->seq_bytes apart */
    size_t bytes;     /* of the whole buffer, a multiple of 64 */
} ps_loader_layout;

/*
 * The layout for a stream and options, for a caller who makes the buffers.
 * PS_OK, PS_ERR_ARGUMENT, PS_ERR_LIMIT (a batch of more than 2^31 - 1 rows or
 * spans, or more memory than there are addresses).
 */
PS_MUST_CHECK ps_result ps_loader_plan(const ps_pack_info *info,
                                       const ps_loader_options *options,
                                       ps_loader_layout *layout,
                                       ps_error *err);

typedef struct ps_loader ps_loader;

/*
 * Starts to load from `reader`, which may have been resumed with
 * ps_pack_reader_resume, and must outlive the loader.  From now on only the
 * loader uses it: the caller may only ask for ps_pack_reader_totals, after
 * ps_loader_next gave PS_END, and free the reader after the loader.  The
 * reader's wait hook is removed, except with no_thread.  The options are
 * copied; the buffers are used until the loader is freed.
 * PS_OK, PS_ERR_ARGUMENT (also: the reader has a rank, a buffer is not at a
 * multiple of 16 bytes, more than PS_MAX_DEAL packs are to be dealt), _LIMIT,
 * _MEMORY, _IO.
 */
PS_MUST_CHECK ps_result ps_loader_open(ps_loader **loader,
                                       ps_pack_reader *reader,
                                       const ps_loader_options *options,
                                       ps_error *err);

/* The first header, as it was when the loader was opened. */
const ps_pack_info *ps_loader_info(const ps_loader *loader);

/*
 * The next batch.  It stays valid until the keep-th call after this one: with
 * keep = 2, one batch can be copied while the next is worked on.
 *
 * PS_OK; PS_END, once all of the input has been checked, as by
 * ps_pack_reader_next.  A failure comes after the batches that were whole
 * before it, and again with every further call.  As ps_pack_reader_next; PS_ERR_LIMIT
 * if packs are dealt, as ps_pack_cost and ps_deal_make, and in PS_VIEW_STATIC
 * if a pack has more sequences than places.
 */
PS_MUST_CHECK ps_result ps_loader_next(ps_loader *loader, ps_batch *batch,
                                       ps_error *err);

/*
 * As ps_pack_reader_save: the place after the last batch that was given,
 * whatever was read ahead.  Ranks that were given equally many batches have the
 * same mark, after the packs of all of them; it can be resumed with any number
 * of ranks, and any `packs`.
 */
void ps_loader_save(const ps_loader *loader,
                    unsigned char mark[PS_PACK_MARK_BYTES]);

/*
 * Stops the thread at once, even if it waits for input, and frees buffers of
 * the loader's own, with the batches in them.
 */
void ps_loader_free(ps_loader *loader);

#ifdef __cplusplus
}
#endif

#endif
