/*
 * data_loader.h - read batches from pack streams.
 *
 * Reads files, or standard input, one after another, and makes of their
 * packs what a training step wants: so many packs, or the packs of so many
 * sequences.  Channels of these names are used where a stream has them:
 *
 *   token_type_ids       per token; 0 without
 *   labels               per token, i32 or i64: what was there before it was
 *                        masked, or -100.  Without, tokens are masked here,
 *                        each sequence in its own way wherever it is packed.
 *   next_sentence_label  per sequence: 0, 1, or -1 for none; -1 without
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_DATA_DATA_LOADER_H
#define TR_DATA_DATA_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/batch.h"
#include "packstream.h"
#include "ranks/workers.h"

/* Weights of masked tokens: Krell et al. (2021), section 3.3. */
typedef enum tr_loss_weighting {
    TR_LOSS_PER_SEQUENCE, /* each sequence of the batch the same */
    TR_LOSS_PER_TOKEN     /* each masked token of the batch the same */
} tr_loss_weighting;

/* How several ranks read the input. */
typedef enum tr_input_kind {
    TR_INPUT_SHARED, /* each rank reads all files and selects its packs */
    TR_INPUT_SHARDS, /* each rank reads its own files; packs are exchanged */
    TR_INPUT_RANK0   /* rank 0 reads all; packs are exchanged */
} tr_input_kind;

typedef struct tr_loader_options {
    const char *const *names; /* files; "-": standard input */
    uint32_t n_names;
    uint32_t epochs;     /* at least 1 */
    uint32_t packs;      /* of a batch; 0: set by `sequences` */
    uint32_t sequences;  /* of a batch; 0: set by `packs` */
    uint32_t vocab_size; /* 0: what the first stream declares */
    uint32_t types;      /* number of token types */
    tr_loss_weighting loss;
    double mask_share;   /* refuses streams with labels; below 0: not given,
                            0.15 for streams without labels */
    uint64_t seed;       /* of masks */
    uint32_t rank;       /* below... */
    uint32_t ranks;      /* ...this number, at least 1 */
    uint32_t hidden;     /* width of the model, for the cost of packs */
    bool pads;           /* padding is computed, and so has a cost */
    tr_input_kind input;
    bool ahead; /* set by the loader if a thread of its own reads */
} tr_loader_options;

/* Contents of the batch of all ranks. */
typedef struct tr_batch_counts {
    uint64_t tokens; /* without padding */
    uint32_t packs;
    uint32_t sequences;
    uint32_t rows;
    uint32_t targets; /* masked tokens, and sequences with a label */
    uint64_t digest;  /* of all arrays */
} tr_batch_counts;

/* A resume point: the input position after a batch. */
typedef struct tr_input_position {
    uint32_t epoch;
    uint32_t file;
    unsigned char mark[PS_PACK_MARK_BYTES];
} tr_input_position;

typedef struct tr_loader tr_loader;

/*
 * Opens the first file.  PS_OK, PS_ERR_ARGUMENT (the stream does not fit the
 * options), and the results of ps_pack_reader_open.  After a failure
 * tr_loader_name names the file; free *l, too.
 */
PS_MUST_CHECK ps_result tr_loader_open(tr_loader **l,
                                       const tr_loader_options *options,
                                       ps_error *err);

/*
 * Connects ranks that exchange packs.  All ranks call it after tr_loader_open
 * succeeded in all of them, and before the functions below.  PS_OK,
 * PS_ERR_ARGUMENT (our packs do not fit rank 0's), PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result tr_loader_join(tr_loader *l, const tr_workers *w,
                                       ps_error *err);

/* The file that is being read. */
const char *tr_loader_name(const tr_loader *l);

/* Properties of the batches of all ranks. */
typedef struct tr_batch_shape {
    uint32_t capacity;
    uint32_t pad_id;
    uint32_t vocab_size;
    uint32_t types;
} tr_batch_shape;

const tr_batch_shape *tr_loader_shape(const tr_loader *l);

/*
 * Reads the next batch; the last one of an epoch may be smaller.  PS_OK;
 * PS_END, also if another rank has failed, which reports the reason;
 * PS_ERR_ARGUMENT (a pack crosses the end of a batch, or another file does not
 * fit), PS_ERR_RANGE (a number that a model cannot take), and the results of
 * ps_pack_reader_next.
 */
PS_MUST_CHECK ps_result tr_loader_next(tr_loader *l, ps_error *err);

/*
 * This rank's part of the batch that tr_loader_next made, valid until the next
 * call; it may be empty.  Weights are those in the batch of all ranks.
 */
const tr_batch *tr_loader_batch(const tr_loader *l);
tr_batch_counts tr_loader_counts(const tr_loader *l);

/* Times of the last exchange; zeros without exchange. */
typedef struct tr_exchange_times {
    double exchange;  /* seconds, reading included */
    double waited;    /* seconds that tr_loader_next waited for it */
    double imbalance; /* max/mean cost of ranks */
} tr_exchange_times;

tr_exchange_times tr_loader_times(const tr_loader *l);

/*
 * The resume point, valid before tr_loader_next or after it returned PS_OK.
 * Resume before the first batch.
 */
tr_input_position tr_loader_position(const tr_loader *l);
/* With shards: the positions of the n ranks after rank 0. */
const tr_input_position *tr_loader_positions(const tr_loader *l, uint32_t *n);
PS_MUST_CHECK ps_result tr_loader_resume(tr_loader *l,
                                         const tr_input_position *position,
                                         ps_error *err);

/*
 * Limits the number of batches, before the first one and the same in all ranks.
 * A loader that reads ahead then opens and reads nothing beyond them.
 */
void tr_loader_limit(tr_loader *l, uint64_t batches);

void tr_loader_free(tr_loader *l);

#endif /* TR_DATA_DATA_LOADER_H */
