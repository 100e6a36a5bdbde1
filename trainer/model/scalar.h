/*
 * scalar.h - the floating-point type of the trainer.
 *
 * It is float, or double in test builds (-DTR_DOUBLE), whose results have to
 * agree to ten digits.
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
