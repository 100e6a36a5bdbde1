/*
 * data_loader.h - read batches from pack streams.
 *
 * Reads files or standard input in turn, and groups packs into batches by the
 * number of packs or sequences.  These channels are used if present:
 *
 *   token_type_ids       per token; default 0
 *   labels               per token, i32 or i64: the original token if it was
 *                        masked, otherwise -100.  If absent, tokens are masked
 *                        here; a sequence's mask does not depend on where it is
 *                        packed.  For causal models: the token to predict, for
 *                        itself or, if the header says so, for the token before
 *                        it; if absent, every token
 *   loss_mask, assistant_masks, completion_mask
 *                        per token, for causal models without labels: 0
 *                        excludes the token from the loss
 *   source               per sequence: a number of at least 0, for evaluation
 *   next_sentence_label  per sequence: 0, 1, or -1 for none; default -1
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

#define TR_SOURCES_MAX 1024 /* the channel `source` is below this */

/* Loss weights of masked tokens, as in Krell et al. (2021), section 3.3. */
typedef enum tr_loss_weighting {
    TR_LOSS_PER_SEQUENCE, /* each sequence of the batch has the same weight */
    TR_LOSS_PER_TOKEN     /* each masked token has the same weight */
} tr_loss_weighting;

/* Ways in which several ranks read the input. */
typedef enum tr_input_kind {
    TR_INPUT_SHARED, /* each rank reads all files and selects its packs */
    TR_INPUT_SHARDS, /* each rank reads its own files; packs are exchanged */
    TR_INPUT_RANK0   /* rank 0 reads all; packs are exchanged */
} tr_input_kind;

typedef struct tr_loader_options {
    const char *const *names; /* file names; "-" is standard input */
    uint32_t n_names;
    uint32_t epochs;     /* at least 1 */
    uint32_t packs;      /* packs per batch; 0: use `sequences` */
    uint32_t sequences;  /* sequences per batch; 0: use `packs` */
    uint32_t vocab_size; /* 0: as declared by the first stream */
    uint32_t types;      /* number of token types; 0: neither token_type_ids
                            nor next_sentence_label are used */
    bool causal;         /* predict the next token */
    bool sources;        /* read the channel `source` */
    tr_loss_weighting loss;
    double mask_share;   /* share of tokens to mask; below 0: 0.15.  A stream
                            with labels is an error unless this is below 0 */
    uint64_t seed;       /* seed of masks */
    uint32_t rank;       /* this rank, below `ranks` */
    uint32_t ranks;      /* at least 1 */
    uint32_t hidden;     /* width of the model, for computing costs */
    bool pads;           /* padding is computed and counts as cost */
    tr_input_kind input;
    bool ahead; /* set by the loader if a separate thread reads */
} tr_loader_options;

/* Counts of the batch of all ranks. */
typedef struct tr_batch_counts {
    uint64_t tokens; /* excluding padding */
    uint32_t packs;
    uint32_t sequences;
    uint32_t rows;
    uint32_t targets; /* masked tokens and labelled sequences */
    uint64_t digest;  /* digest of all arrays */
} tr_batch_counts;

/* A resume point: the input position after a batch. */
typedef struct tr_input_position {
    uint32_t epoch;
    uint32_t file;
    unsigned char mark[PS_PACK_MARK_BYTES];
} tr_input_position;

typedef struct tr_loader tr_loader;

/*
 * Opens the first file.  Returns PS_OK, PS_ERR_ARGUMENT if the stream does not
 * match the options, or an error of ps_pack_reader_open.  After a failure,
 * tr_loader_name returns the file, and *l must be freed.
 */
PS_MUST_CHECK ps_result tr_loader_open(tr_loader **l,
                                       const tr_loader_options *options,
                                       ps_error *err);

/*
 * Connects ranks that exchange packs.  All ranks must call it after
 * tr_loader_open has succeeded on all of them, and before the functions below.
 * Returns PS_OK, PS_ERR_MEMORY, or PS_ERR_ARGUMENT if this rank's packs do not
 * match rank 0's.
 */
PS_MUST_CHECK ps_result tr_loader_join(tr_loader *l, const tr_workers *w,
                                       ps_error *err);

/* Name of the file that is being read. */
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
 * Reads the next batch; the last batch of an epoch may be smaller.  Returns
 * PS_OK; PS_END, also if another rank has failed, which then reports the
 * reason; PS_ERR_ARGUMENT if a pack crosses the end of a batch or a file does
 * not match the first; PS_ERR_RANGE if a value exceeds the model's limits; or
 * an error of ps_pack_reader_next.
 */
PS_MUST_CHECK ps_result tr_loader_next(tr_loader *l, ps_error *err);

/*
 * Returns this rank's part of the batch, which may be empty and is valid until
 * the next call of tr_loader_next.  Its loss weights are relative to the batch
 * of all ranks.
 */
const tr_batch *tr_loader_batch(const tr_loader *l);
tr_batch_counts tr_loader_counts(const tr_loader *l);

/* Times of the last exchange, or zero if packs are not exchanged. */
typedef struct tr_exchange_times {
    double exchange;  /* duration, including reading, in seconds */
    double waited;    /* time tr_loader_next waited, in seconds */
    double imbalance; /* highest cost of a rank / mean cost */
} tr_exchange_times;

tr_exchange_times tr_loader_times(const tr_loader *l);

/*
 * The resume point, valid before the first tr_loader_next and after each
 * success.  tr_loader_resume must be called before the first batch.
 */
tr_input_position tr_loader_position(const tr_loader *l);
/* The positions of the n ranks after rank 0, if each rank reads shards. */
const tr_input_position *tr_loader_positions(const tr_loader *l, uint32_t *n);
PS_MUST_CHECK ps_result tr_loader_resume(tr_loader *l,
                                         const tr_input_position *position,
                                         ps_error *err);

/*
 * Limits the number of batches.  Must be called before the first batch, with
 * the same number on all ranks.  A loader that reads ahead does not read beyond
 * the limit.
 */
void tr_loader_limit(tr_loader *l, uint64_t batches);

void tr_loader_free(tr_loader *l);

#endif /* TR_DATA_DATA_LOADER_H */
