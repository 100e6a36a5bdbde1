/*
 * scalar.h - the type of numbers that the trainer computes with.
 *
 * float as a rule; double in a build for tests (-DBERT_DOUBLE), where what
 * should be equal has to be so to ten digits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_SCALAR_H
#define TR_MODEL_SCALAR_H

#ifdef TR_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#endif /* TR_MODEL_SCALAR_H */
