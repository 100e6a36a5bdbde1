/*
 * data_loader.h - batches out of pack streams.
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

/* How masked tokens are weighed: Krell et al. (2021), section 3.3. */
typedef enum tr_loss_weighting {
    TR_LOSS_PER_SEQUENCE, /* each sequence of the batch the same */
    TR_LOSS_PER_TOKEN     /* each masked token of the batch the same */
} tr_loss_weighting;

/* Who reads what, where there are several ranks. */
typedef enum tr_input_kind {
    TR_INPUT_SHARED, /* each rank all files, and it learns from its share */
    TR_INPUT_SHARDS, /* each rank files of its own, and packs are exchanged */
    TR_INPUT_RANK0   /* the first rank all of it, and packs are exchanged */
} tr_input_kind;

typedef struct tr_loader_options {
    const char *const *names; /* files; "-": standard input */
    uint32_t n_names;
    uint32_t epochs;     /* how often all is read, from 1 */
    uint32_t packs;      /* of a batch; 0: as many as there are... */
    uint32_t sequences;  /* ...in this number of sequences */
    uint32_t vocab_size; /* 0: what the first stream declares */
    uint32_t types;      /* token types are below it */
    tr_loss_weighting loss;
    double mask_share;   /* only for streams without labels; below 0: 0.15
                            in these, and others are fine, too */
    uint64_t seed;       /* of masks */
    uint32_t rank;       /* which learns from its share of each batch... */
    uint32_t ranks;      /* ...among so many, from 1 */
    uint32_t hidden;     /* width of the model, by which work is shared; */
    bool pads;           /* padding is work, too */
    tr_input_kind input;
    bool ahead; /* a thread of ours reads, and tr_source_stop may come */
} tr_loader_options;

/* What the batch of all ranks holds. */
typedef struct tr_batch_counts {
    uint64_t tokens; /* without padding */
    uint32_t packs;
    uint32_t sequences;
    uint32_t rows;
    uint32_t targets; /* masked tokens, and sequences with a label */
    uint64_t digest;  /* of all that is learnt from */
} tr_batch_counts;

/* A resume point: the input position after a batch. */
typedef struct tr_input_position {
    uint32_t epoch;
    uint32_t file;
    unsigned char mark[PS_PACK_MARK_BYTES];
} tr_input_position;

typedef struct tr_loader tr_loader;

/*
 * Opens the first file.  PS_OK, PS_ERR_ARGUMENT (what the stream and the
 * options say does not go together), and those of ps_pack_reader_open; after
 * a failure *l is to be freed, too, and tr_loader_name tells where it was.
 */
PS_MUST_CHECK ps_result tr_loader_open(tr_loader **l,
                                       const tr_loader_options *options,
                                       ps_error *err);

/*
 * Ranks that exchange packs: tells each what it does not read itself.  All have
 * to call it once tr_loader_open did well in all of them, and before all below.
 * PS_OK, PS_ERR_ARGUMENT (ours does not go together with the first rank's),
 * PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result tr_loader_join(tr_loader *l, const tr_workers *w,
                                       ps_error *err);

/* The file that is being read. */
const char *tr_loader_name(const tr_loader *l);

/* What the batches of all ranks have in common. */
typedef struct tr_batch_shape {
    uint32_t capacity;
    uint32_t pad_id;
    uint32_t vocab_size; /* that holds */
    uint32_t types;
} tr_batch_shape;

const tr_batch_shape *tr_loader_shape(const tr_loader *l);

/*
 * The next batch; the last one of an epoch may be smaller.  PS_OK; PS_END, also
 * where another rank has failed, which tells why;
 * PS_ERR_ARGUMENT (a pack goes beyond the sequences of a batch, or another
 * file does not fit), PS_ERR_RANGE (a number that a model cannot take), and
 * those of ps_pack_reader_next.
 */
PS_MUST_CHECK ps_result tr_loader_next(tr_loader *l, ps_error *err);

/*
 * This rank's part of the batch that tr_loader_next made, valid until the next
 * call; it may be empty.  Weights are those in the batch of all ranks.
 */
const tr_batch *tr_loader_batch(const tr_loader *l);
tr_batch_counts tr_loader_counts(const tr_loader *l);

/* What exchanging took in the last tr_loader_next; zeros without. */
typedef struct tr_exchange_times {
    double exchange;  /* seconds, reading included */
    double waited;    /* of these, those in which tr_loader_next waited */
    double imbalance; /* the greatest cost of a rank, by their mean */
} tr_exchange_times;

tr_exchange_times tr_loader_times(const tr_loader *l);

/*
 * To be kept, and to go on from.  The first is of use before tr_loader_next or
 * after it gave PS_OK, the second before the first batch.
 */
tr_input_position tr_loader_position(const tr_loader *l);
/* Of ranks with shards of their own: the places of those behind the first. */
const tr_input_position *tr_loader_positions(const tr_loader *l, uint32_t *n);
PS_MUST_CHECK ps_result tr_loader_resume(tr_loader *l,
                                         const tr_input_position *position,
                                         ps_error *err);

/*
 * Before the first batch, and the same in all ranks: no more than so many will
 * be asked for.  A loader that reads ahead opens and reads nothing beyond them.
 */
void tr_loader_limit(tr_loader *l, uint64_t batches);

void tr_loader_free(tr_loader *l);

#endif /* TR_DATA_DATA_LOADER_H */
