/*
 * host_device.h - functions that kernels of a GPU call, too.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_BOTH_H
#define BERT_BOTH_H

#ifdef __CUDACC__
#define BERT_BOTH __host__ __device__
#else
#define BERT_BOTH
#endif

#endif /* BERT_BOTH_H */
