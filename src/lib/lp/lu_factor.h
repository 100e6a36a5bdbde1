/*
 * lu_factor.h - a sparse matrix as the product of two triangular ones.
 *
 * Rows of the matrix are called rows; its columns are called places, since
 * the column in a place changes (lu.h).
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_LU_FACTOR_H
#define LIB_LP_LU_FACTOR_H

#include "lp/sparse.h"

typedef enum ps_lu_result {
    PS_LU_OK,
    PS_LU_SINGULAR,
    PS_LU_MEMORY
} ps_lu_result;

/* Lines (rows or columns) of changing length in one pool. */
typedef struct ps_lines {
    size_t *start;
    uint32_t *n;
    uint32_t *capacity;
    ps_entries pool;
} ps_lines;

/* The part of the matrix that is not eliminated yet. */
typedef struct ps_elimination {
    uint32_t n;
    ps_lines rows; /* which columns; values are not kept there */
    ps_lines columns;
    uint32_t *head; /* columns by length: doubly linked lists */
    uint32_t *next;
    uint32_t *prev;
    uint32_t *single; /* rows that may have one entry left */
    uint32_t n_single;
    uint32_t shortest; /* no column is shorter */
    bool *row_done;
    double *factor; /* by rows: of the pivot column, else 0 */
} ps_elimination;

/*
 * L and U in the order of the pivots: step k has pivot row row[k], place
 * place[k] and value pivot[k].  Column k of L, by rows; row k of U, by
 * places; and V, which is U by columns: that of place[k], by rows.
 */
typedef struct ps_factors {
    uint32_t n;
    uint32_t *row;
    uint32_t *place;
    double *pivot;
    size_t *l_start;
    size_t *u_start;
    size_t *v_start;
    ps_entries l;
    ps_entries u;
    ps_entries v;
    ps_elimination rest;
} ps_factors;

/*
 * For matrices with at most so many entries.  Those whose factors have far
 * more, as packing problems never have, count as singular; so what all this
 * takes is bounded.
 */
void ps_factors_init(ps_factors *f, uint32_t n, uint64_t entries, ps_mem *mem);
void ps_factors_destroy(ps_factors *f);

/* Factors `b`.  Afterwards, unless PS_LU_OK, the factors are of no use. */
ps_lu_result ps_factor(ps_factors *f, const ps_matrix *b);

#endif
