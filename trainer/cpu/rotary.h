/*
 * rotary.h - a table of the angles of rotary positions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_ROTARY_H
#define TR_CPU_ROTARY_H

#include <stddef.h>

#include "model/scalar.h"

/* A device keeps this many tables: a model has one, or two if layers with a
 * window have other frequencies. */
#define TR_CPU_TURNS 2

typedef struct tr_turns {
    size_t positions;
    size_t pairs;
    real *frequency; /* [pairs] */
    real *table;     /* [positions][2][pairs] cosines, then sines */
} tr_turns;

/* Frees a table's arrays and zeroes it. */
void tr_turns_free(tr_turns *turns);

#endif /* TR_CPU_ROTARY_H */
