/*
 * blas.h - the BLAS for the type of numbers that the trainer computes with.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CPU_BLAS_H
#define BERT_CPU_BLAS_H

#include <cblas.h>

#include "model/scalar.h"

#ifdef BERT_DOUBLE
#define bert_gemm cblas_dgemm
#else
#define bert_gemm cblas_sgemm
#endif

#endif /* BERT_CPU_BLAS_H */
