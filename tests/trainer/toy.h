/*
 * toy.h - small batches for tests of the model.
 *
 * The contents of a sequence depend only on its name, a number: they are the
 * same wherever it is placed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_BERT_TOY_H
#define TESTS_BERT_TOY_H

#include "tap.h"

#include <tgmath.h>

#include "model/model.h"

/* The largest number of sequences in a pack; packs end with 0. */
#define TOY_DEPTH 4

typedef struct toy_sequence {
    uint32_t name; /* from 1; 0: none */
    uint32_t length;
} toy_sequence;

typedef struct toy_plan {
    uint32_t capacity;
    uint32_t vocab_size;
    uint32_t n_packs;
    const toy_sequence (*packs)[TOY_DEPTH];
    uint32_t spare_spans; /* empty ones at the end of each pack */
    uint32_t noise;       /* seed for the tokens of dummy sequences */
    uint32_t altered;     /* the sequence whose tokens differ, or 0 */
} toy_plan;

/* The device under test, shared by all tests of a program. */
tr_device *toy_device(void);

/* True if the device supports it; TOY_VARLEN: only that attention. */
static inline bool toy_can(const tr_step *step)
{
#ifdef TOY_VARLEN
    return step->attention == TR_VARLEN;
#else
    return step != NULL;
#endif
}

typedef struct toy_batch {
    tr_batch batch;
    toy_sequence *sequences; /* [n_seq] in their order */
    void *arrays;            /* all arrays of the batch */
} toy_batch;

toy_batch toy_open(const toy_plan *plan);
void toy_free(toy_batch *toy);

/* The index of a sequence in a batch that contains it. */
uint32_t toy_find(const toy_batch *toy, uint32_t name);

/* 2 layers, 4 heads of 6; this many words and positions. */
tr_config toy_config(uint32_t vocab_size, uint32_t positions);

/* The same for any family: a Llama with the biases of Qwen2 and two heads of
 * queries for each of keys, or a ModernBERT with a window in its last layer. */
tr_config toy_config_of(tr_family family);
#define TOY_FAMILIES 3

/* A model with large random weights, biases and gains. */
tr_model *toy_model(const tr_config *config, uint64_t seed);
tr_model *toy_model_on(tr_device *device, const tr_config *config,
                       uint64_t seed);

/* The seven sequences of most tests: packed, and one in each pack. */
extern const toy_sequence toy_packed[3][TOY_DEPTH];
extern const toy_sequence toy_alone[7][TOY_DEPTH];
toy_plan toy_packed_plan(void);
toy_plan toy_alone_plan(void);

typedef struct toy_losses {
    double total, mlm, nsp;
} toy_losses;

/* Forward only. */
toy_losses toy_forward(tr_model *model, const toy_batch *toy,
                       const tr_step *step);

/* Forward and backward; per-sequence losses are in the batch's order. */
typedef struct toy_result {
    toy_losses losses;
    double seq_mlm[16]; /* means over the sequence's masked tokens */
    double seq_nsp[16];
} toy_result;

toy_result toy_run(tr_model *model, const toy_batch *toy,
                   const tr_step *step);

/* Waits for all work of the device, which must succeed. */
tr_results toy_finish(void);
tr_results toy_finish_on(tr_device *device);

/* The encoder's output of the last run; the caller frees it. */
real *toy_hidden(const tr_model *model, const toy_batch *toy);

/* The norms of x - y and of x. */
double toy_distance(size_t n, const real *x, const real *y);
double toy_length(size_t n, const real *x);

/* Random numbers for inputs of small functions, from -1 to 1. */
real toy_number(uint64_t seed, uint64_t place);
real *toy_numbers(uint64_t seed, size_t n);

/* Opens the device before a test counts anything. */
int toy_setup(void **state);

#endif /* TESTS_BERT_TOY_H */
