/*
 * blas.h - BLAS functions for the type `real`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_BLAS_H
#define TR_CPU_BLAS_H

#include <cblas.h>

#include "model/scalar.h"

#ifdef TR_DOUBLE
#define tr_gemm cblas_dgemm
#else
#define tr_gemm cblas_sgemm
#endif

#endif /* TR_CPU_BLAS_H */
