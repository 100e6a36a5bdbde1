/*
 * simplex.h - the basis of a linear program, and the step that changes
 * it: the simplex method with columns that come one at a time.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_SIMPLEX_H
#define LIB_LP_SIMPLEX_H

#include "lp/lu.h"

/* n columns, how often each is used to meet the demand, and the prices. */
typedef struct ps_basis {
    uint32_t n;
    ps_entries list; /* of all columns, those of the basis and others */
    ps_column *column;
    double *demand; /* by rows */
    double *price;  /* by rows: the dual prices */
    double *used;   /* by columns */
    uint64_t steps;
    double factor_work; /* additions, about, where the factors are dense */
    ps_entries spare;
    ps_matrix matrix;
    ps_lu lu;
    double *change; /* of `used`, by columns */
    double *row;    /* of the inverse */
    double *work;
} ps_basis;

/*
 * For n rows, and columns of at most so many entries; the list may have twice
 * as many columns as the basis.  Sets mem->failed without memory.
 */
void ps_basis_init(ps_basis *b, uint32_t n, uint32_t entries, ps_mem *mem);
void ps_basis_destroy(ps_basis *b);

/* Factors the columns anew; computes what is used, and the prices. */
ps_lu_result ps_basis_factor(ps_basis *b);

/* Drops from the list what is not in the basis. */
bool ps_basis_tidy(ps_basis *b);

/* What one use of a column of some list saves at the prices, in packs. */
double ps_basis_gain(const ps_basis *b, const ps_entries *list,
                     const ps_column *column);

/* The sum of what is used, in packs. */
double ps_basis_packs(const ps_basis *b);

/* Lets a column of b->list enter that has that gain, above 0. */
ps_lu_result ps_basis_enter(ps_basis *b, const ps_column *column,
                            double gain);

/* How often the columns are used for another demand; negative, perhaps. */
bool ps_basis_respond(ps_basis *b, const double *demand, double *used);

#endif
