/*
 * feed-fixture.h - pack streams for the trainer's feed, in files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_BERT_FEED_FIXTURE_H
#define TESTS_BERT_FEED_FIXTURE_H

#include "lib-fixture.h"

#include "feed.h"

#define VOCAB 100
#define PAD 0
#define CLS 1
#define SEP 2
#define MASK 3
#define CAPACITY 8

/* Which channels a stream has. */
enum {
    WITH_TYPES = 1,
    WITH_LABELS = 2,
    WITH_NSP = 4,
    WITH_ALL = 7
};

/* A sequence: as many of each as it has tokens. */
typedef struct sentence {
    uint32_t n;
    uint16_t token[CAPACITY];
    uint8_t type[CAPACITY];
    int32_t label[CAPACITY];
    int32_t nsp;
} sentence;

/* In packs of depth 3 the first two are one, and the third is another. */
extern const sentence three[3];

/* The schema of such sequences. */
ps_schema sentence_schema(int with);

/* Packed as they come, at most `depth` in a pack. */
ps_packer_options plain_options(uint32_t depth);

/*
 * Packs in a new file, whose name is to be given to remove_packs.  The
 * schema has the channels of WITH_ALL, in that order, those that it has.
 */
char *write_packs(const ps_schema *schema, const ps_packer_options *options,
                  const sentence *sentences, uint32_t n);
char *write_file(const void *data, size_t n);
void remove_packs(char *name);

/* Options for one file, all of it packed in batches of so many packs. */
feed_options options_for(const char *const *name, uint32_t packs);

/* A feed and its next batch, which are to be had. */
feed *open_ok(const feed_options *options);
void next_ok(feed *f);

/* `n` sequences of 1 to CAPACITY tokens of no special meaning. */
sentence *random_sentences(uint32_t n, uint64_t seed);

#endif
