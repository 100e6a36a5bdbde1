/*
 * real.h - the type of numbers that the trainer computes with.
 *
 * float as a rule; double in a build for tests (-DBERT_DOUBLE), where what
 * should be equal has to be so to ten digits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_REAL_H
#define BERT_REAL_H

#include <cblas.h>
#include <tgmath.h>

#ifdef BERT_DOUBLE
typedef double real;
#define bert_gemm cblas_dgemm
#else
typedef float real;
#define bert_gemm cblas_sgemm
#endif

#endif /* BERT_REAL_H */
