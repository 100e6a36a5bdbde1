/*
 * activations.h - numbers that live from a forward to its backward.
 *
 * All of them lie in one arena, which grows to the largest batch.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_ACTIVATIONS_H
#define BERT_ACTIVATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "layernorm.h"
#include "model.h"

/* What a layer keeps; a row each, unless said otherwise. */
typedef struct bert_layer_kept {
    real *qkv;                /* 3 hidden */
    real *softmax;            /* see attention.h */
    real *context;            /* hidden: what attention found */
    bert_norm_kept attention; /* the norm behind attention */
    real *middle;             /* hidden: its output */
    real *up;                 /* intermediate: before GELU */
    bert_norm_kept output;    /* the norm behind the feed-forward network */
    real *out;                /* hidden */
} bert_layer_kept;

/* A row for each masked token. */
typedef struct bert_mlm_kept {
    real *in;            /* hidden */
    real *dense;         /* hidden: before GELU */
    bert_norm_kept norm;
    real *out;           /* hidden: the norm's output */
    real *logits;        /* vocab_size; forward leaves their gradient */
    real *scratch;       /* hidden */
    double *loss;        /* 1 */
} bert_mlm_kept;

/* A row for each sequence. */
typedef struct bert_nsp_kept {
    real *in;      /* hidden */
    real *pooled;  /* hidden */
    real *logits;  /* 2; forward leaves their gradient */
    real *scratch; /* hidden */
    double *loss;  /* 1 */
} bert_nsp_kept;

/* Numbers that only one layer or one call needs at a time; a row each. */
typedef struct bert_scratch {
    real *d_x;       /* hidden: the gradient on its way down */
    real *d_sum;     /* hidden */
    real *d_branch;  /* hidden */
    real *wide;      /* intermediate */
    real *d_wide;    /* intermediate */
    real *d_qkv;     /* 3 hidden */
    real *attention; /* attention_size for each thread */
    size_t attention_size;
    int threads;
} bert_scratch;

typedef struct bert_activations {
    bert_norm_kept embedding_norm;
    real *embedded; /* n_rows x hidden */
    bert_layer_kept *layer;
    bert_mlm_kept mlm;
    bert_nsp_kept nsp;
    bert_scratch scratch;
    size_t *kept_at; /* see attention.h */

    void *block; /* as it was allocated */
    size_t block_size;
    real *arena;          /* in the block, at the start of a cache line */
    size_t arena_used;
    size_t scratch_start; /* from here on, nothing is kept */
    size_t n_spans;       /* kept_at has room for */
    double *loss;
    size_t n_loss; /* mlm.loss and nsp.loss have room for, together */
} bert_activations;

bool bert_activations_open(bert_activations *a, const bert_config *config);
void bert_activations_free(bert_activations *a);

/* Makes room for a batch; false if there is no memory. */
bool bert_activations_fit(bert_activations *a, const bert_config *config,
                          const bert_batch *batch, bert_attention attention);

/*
 * For tests: what nobody has written is NaN, in all of the arena or in its
 * scratch part.
 */
void bert_activations_poison(bert_activations *a, bool all);

#endif /* BERT_ACTIVATIONS_H */
