/*
 * simplex.h - the basis of a linear program, and the pivot step: the simplex
 * method with columns supplied one at a time.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_SIMPLEX_H
#define LIB_LP_SIMPLEX_H

#include "lp/lu.h"

/* A basis of n columns, their repeat counts for the demand, and the prices. */
typedef struct ps_basis {
    uint32_t n;         /* number of rows and of columns */
    ps_entries list;    /* entries of all columns, in the basis or not */
    ps_column *column;  /* [n], columns in the basis */
    double *demand;     /* [n] by row, sequences */
    double *price;      /* [n] by row, dual prices in packs */
    double *used;       /* [n] by column, repeat counts */
    uint64_t steps;     /* since the start */
    double factor_work; /* additions due to dense factors */
    ps_entries spare;
    ps_matrix matrix;
    ps_lu lu;
    double *change; /* [n] by column, of `used` */
    double *row;    /* [n], of the inverse */
    double *work;   /* [n], temporary */
} ps_basis;

/*
 * Allocates for n rows and columns of at most `entries` entries.  The list may
 * have twice as many columns as the basis.  Sets mem->failed if out of memory.
 */
void ps_basis_init(ps_basis *b, uint32_t n, uint32_t entries, ps_mem *mem);
void ps_basis_destroy(ps_basis *b);

/* Factors the basis matrix again and recomputes `used` and the prices. */
ps_lu_result ps_basis_factor(ps_basis *b);

/* Removes columns outside the basis from the list.  False if out of memory. */
bool ps_basis_tidy(ps_basis *b);

/* Packs saved by one use of a column at the current prices. */
double ps_basis_gain(const ps_basis *b, const ps_entries *list,
                     const ps_column *column);

/* Sum of the repeat counts, in packs. */
double ps_basis_packs(const ps_basis *b);

/* Lets a column of b->list with gain > 0 enter the basis. */
ps_lu_result ps_basis_enter(ps_basis *b, const ps_column *column,
                            double gain);

/*
 * Computes the repeat counts for another demand.  They can be negative.  False
 * if out of memory.
 */
bool ps_basis_respond(ps_basis *b, const double *demand, double *used);

#endif
