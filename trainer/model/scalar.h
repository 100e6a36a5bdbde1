/*
 * scalar.h - the type of numbers that the trainer computes with.
 *
 * float as a rule; double in a build for tests (-DBERT_DOUBLE), where what
 * should be equal has to be so to ten digits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_REAL_H
#define BERT_REAL_H

#ifdef BERT_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#endif /* BERT_REAL_H */
