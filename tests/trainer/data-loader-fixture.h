/*
 * data-loader-fixture.h - pack streams for the trainer's data loader, in files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_BERT_DATA_LOADER_FIXTURE_H
#define TESTS_BERT_DATA_LOADER_FIXTURE_H

#include "lib-fixture.h"

#include "data/data_loader.h"

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

/* In packs of depth 3, the first two form one pack and the third another. */
extern const sentence three[3];

/* The schema of such sequences. */
ps_schema sentence_schema(int with);

/* A new file; pass its name to remove_file. */
char *write_file(const void *data, size_t n);
void remove_file(char *name);

/* Sequences in a file of packs, and a loader that reads it. */
typedef struct stand {
    const sentence *sentences;
    uint32_t n;
    ps_schema schema; /* channels of WITH_ALL, in that order */
    ps_packer_options packing;
    char *name; /* of the file, once it is written */
    tr_loader_options options;
    tr_loader *loader;
} stand;

/*
 * The three sequences in order, at most `depth` in a pack, and batches of this
 * many packs.  All of that may be changed before the packs are written.
 */
stand make_stand(int with, uint32_t depth, uint32_t packs);
void write_packs(stand *s);
void close_stand(stand *s);

/* Writes the packs unless that was done; opens the loader. */
void open_stand(stand *s);
const tr_batch *next_ok(tr_loader *f);
tr_loader *open_ok(const tr_loader_options *options);

/* `n` sequences of 1 to CAPACITY arbitrary tokens. */
sentence *random_sentences(uint32_t n, uint64_t seed);

#endif
