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
#ifndef BERT_FEED_H
#define BERT_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "model/batch.h"
#include "packstream.h"
#include "ranks/workers.h"

/* How masked tokens are weighed: Krell et al. (2021), section 3.3. */
typedef enum feed_loss {
    FEED_PER_SEQUENCE, /* each sequence of the batch the same */
    FEED_PER_TOKEN     /* each masked token of the batch the same */
} feed_loss;

/* Who reads what, where there are several ranks. */
typedef enum feed_input {
    FEED_SHARED, /* each rank all files, and it learns from its share */
    FEED_SHARDS, /* each rank files of its own, and packs are exchanged */
    FEED_FIRST   /* the first rank all of it, and packs are exchanged */
} feed_input;

typedef struct feed_options {
    const char *const *names; /* files; "-": standard input */
    uint32_t n_names;
    uint32_t epochs;     /* how often all is read, from 1 */
    uint32_t packs;      /* of a batch; 0: as many as there are... */
    uint32_t sequences;  /* ...in this number of sequences */
    uint32_t vocab_size; /* 0: what the first stream declares */
    uint32_t types;      /* token types are below it */
    feed_loss loss;
    double mask_share;   /* only for streams without labels; below 0: 0.15
                            in these, and others are fine, too */
    uint64_t seed;       /* of masks */
    uint32_t rank;       /* which learns from its share of each batch... */
    uint32_t ranks;      /* ...among so many, from 1 */
    uint32_t hidden;     /* width of the model, by which work is shared; */
    bool pads;           /* padding is work, too */
    feed_input input;
    bool ahead;          /* a thread of ours reads, and source_stop may come */
} feed_options;

/* What the batch of all ranks holds. */
typedef struct feed_counts {
    uint64_t tokens; /* without padding */
    uint32_t packs;
    uint32_t sequences;
    uint32_t rows;
    uint32_t targets; /* masked tokens, and sequences with a label */
    uint64_t digest;  /* of all that is learnt from */
} feed_counts;

/* Where a feed is: behind the last batch that it gave. */
typedef struct feed_place {
    uint32_t epoch;
    uint32_t file;
    unsigned char mark[PS_PACK_MARK_BYTES];
} feed_place;

typedef struct feed feed;

/*
 * Opens the first file.  PS_OK, PS_ERR_ARGUMENT (what the stream and the
 * options say does not go together), and those of ps_pack_reader_open; after
 * a failure *f is to be freed, too, and feed_name tells where it was.
 */
PS_MUST_CHECK ps_result feed_open(feed **f, const feed_options *options,
                                  ps_error *err);

/*
 * Ranks that exchange packs: tells each what it does not read itself.  All have
 * to call it once feed_open did well in all of them, and before all below.
 * PS_OK, PS_ERR_ARGUMENT (ours does not go together with the first rank's),
 * PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result feed_join(feed *f, const workers *w, ps_error *err);

/* The file that is being read. */
const char *feed_name(const feed *f);

/* What the batches of all ranks have in common. */
typedef struct feed_form {
    uint32_t capacity;
    uint32_t pad_id;
    uint32_t vocab_size; /* that holds */
    uint32_t types;
} feed_form;

const feed_form *feed_shape(const feed *f);

/*
 * The next batch; the last one of an epoch may be smaller.  PS_OK; PS_END, also
 * where another rank has failed, which tells why;
 * PS_ERR_ARGUMENT (a pack goes beyond the sequences of a batch, or another
 * file does not fit), PS_ERR_RANGE (a number that a model cannot take), and
 * those of ps_pack_reader_next.
 */
PS_MUST_CHECK ps_result feed_next(feed *f, ps_error *err);

/*
 * What of the batch that feed_next made is this rank's, which may be no pack;
 * it is there until the next one.  Weights are those in the batch of all.
 */
const bert_batch *feed_batch(const feed *f);
feed_counts feed_count(const feed *f);

/* What an exchange took, in the batch that feed_next made; zeros without. */
typedef struct feed_times {
    double exchange;  /* seconds, reading included */
    double waited;    /* of these, those in which feed_next waited */
    double imbalance; /* the greatest cost of a rank, by their mean */
} feed_times;

feed_times feed_time(const feed *f);

/*
 * To be kept, and to go on from.  The first is of use before feed_next or
 * after it gave PS_OK, the second before the first batch.
 */
feed_place feed_save(const feed *f);
/* Of ranks with shards of their own: the places of those behind the first. */
const feed_place *feed_places(const feed *f, uint32_t *n);
PS_MUST_CHECK ps_result feed_resume(feed *f, const feed_place *place,
                                    ps_error *err);

/*
 * Before the first batch, and the same in all ranks: no more than so many will
 * be asked for.  A feed that reads ahead opens and reads nothing beyond them.
 */
void feed_limit(feed *f, uint64_t batches);

void feed_free(feed *f);

#endif /* BERT_FEED_H */
