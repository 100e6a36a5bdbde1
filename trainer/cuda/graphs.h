/*
 * graphs.h - steps that are launched again as CUDA graphs.
 *
 * What a step asks for hangs on the shape of its staged batch, which is the
 * key of a graph: all that the host knows of a batch, where its arrays lie
 * included, so that each of the two slots has graphs of its own.
 *
 *   the first step of a shape  is launched as if there were no graphs: it
 *                              makes what must not be made in a capture, such
 *                              as scratch and plans of cuBLASLt
 *   the second                 is captured, and launched
 *   those behind it            launch the same graph: what they ask for is only
 *                              compared with what was captured
 *
 * The seed of dropout and LAMB's numbers, which differ from step to step, lie
 * in the device's memory.  A kernel in front of the graph writes them there: a
 * copy would read the host's memory after the host has written what comes
 * later.
 *
 * A graph has addresses in it, so all graphs are thrown away when any of the
 * device's memory is freed; the next step of a shape is captured anew.
 * TR_SHAPES are known at most: the one that was not used for the longest time
 * goes first.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_GRAPHS_H
#define TR_CUDA_GRAPHS_H

#include "cuda/device.h"

#define TR_SHAPES 64 /* that are known, half of them in each slot */

/* A step of LAMB, in the numbers that kernels compute with. */
struct tr_lamb_numbers {
    real beta1, rest1; /* 1 - beta1 */
    real beta2, rest2;
    real correct1, correct2; /* to multiply by */
    real epsilon;
    real decay;
    double clip;
    double rate;
};

/* False: it failed, as tr_cuda_good() has kept. */
bool tr_graphs_open(tr_cuda *c);
void tr_graphs_close(tr_cuda *c);

/* Where LAMB's numbers will lie in a step that is a graph; else NULL. */
const tr_lamb_numbers *tr_graphs_lamb(tr_cuda *c,
                                      const tr_lamb_numbers *numbers);

#endif /* TR_CUDA_GRAPHS_H */
