/*
 * graphs.h - repeated steps as CUDA graphs.
 *
 * The launches of a step depend only on the shape of its staged batch, which is
 * therefore the key of a graph.  The shape consists of the counts of the batch
 * and the addresses of its arrays, so each of the two slots (stage.cu) has its
 * own graphs.
 *
 *   first step of a shape  launched without a graph: it allocates what cannot
 *                          be allocated in a capture, such as scratch and plans
 *                          of cuBLASLt
 *   second step            captured and launched
 *   later steps            launch the same graph; their requests are only
 *                          compared with the capture
 *
 * Dropout's seed and LAMB's numbers, which change with every step, are in
 * device memory.  A kernel before the graph writes them: an asynchronous copy
 * could read host memory after the host has written a later step's numbers.
 *
 * Graphs contain addresses, so all are discarded when device memory is freed;
 * the next step of a shape is captured again.  At most TR_SHAPES shapes are
 * kept; the least recently used is evicted.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_GRAPHS_H
#define TR_CUDA_GRAPHS_H

#include "cuda/device.h"

#define TR_SHAPES 64 /* half of them for each slot */

/* The arguments of a LAMB step, in the type that kernels compute with. */
struct tr_lamb_numbers {
    int trust;
    real beta1, rest1; /* 1 - beta1 */
    real beta2, rest2;
    real correct1, correct2; /* bias corrections, as factors */
    real epsilon;
    real decay;
    double clip;
    double rate;
};

/* Returns false after a failure, which tr_cuda_good() has recorded. */
bool tr_graphs_open(tr_cuda *c);
void tr_graphs_close(tr_cuda *c);

/* Returns the device address of LAMB's numbers, or NULL outside of graphs. */
const tr_lamb_numbers *tr_graphs_lamb(tr_cuda *c,
                                      const tr_lamb_numbers *numbers);

#endif /* TR_CUDA_GRAPHS_H */
