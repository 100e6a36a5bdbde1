/*
 * lu_factor.h - factor a sparse matrix into two triangular ones.
 *
 * SPDX-License-Identifier: MIT
 *
 * Columns of the matrix are called places, because the column at a place can be
 * replaced (lu.h).
 */

#ifndef LIB_LP_LU_FACTOR_H
#define LIB_LP_LU_FACTOR_H

#include "lp/sparse.h"

typedef enum ps_lu_result {
    PS_LU_OK,
    PS_LU_SINGULAR,
    PS_LU_MEMORY
} ps_lu_result;

/* Rows or columns of varying length in one pool. */
typedef struct ps_lines {
    size_t *start;      /* [n] by line, index in the pool */
    uint32_t *n;        /* [n] by line, entries in use */
    uint32_t *capacity; /* [n] by line, entries allocated */
    ps_entries pool;
} ps_lines;

/* The part of the matrix not eliminated yet. */
typedef struct ps_elimination {
    uint32_t n;    /* number of rows and of columns */
    ps_lines rows; /* column indexes; values are not stored */
    ps_lines columns;
    uint32_t *head; /* doubly linked lists of columns by length */
    uint32_t *next;
    uint32_t *prev;
    uint32_t *single;  /* rows that may have one entry left */
    uint32_t n_single; /* entries of `single` */
    uint32_t shortest; /* lower bound on the length of columns */
    bool *row_done;
    double *factor; /* [n] by row: factors of the pivot column, otherwise 0 */
} ps_elimination;

/*
 * L and U in pivot order: step k has pivot row row[k], place place[k] and value
 * pivot[k].  l is L by columns, indexed by row.  u is U by rows, indexed by
 * place.  v is U by columns, indexed by row.  Column or row k is at entries
 * start[k] to start[k + 1] - 1.
 */
typedef struct ps_factors {
    uint32_t n;      /* number of rows and of columns */
    uint32_t *row;   /* [n] by step */
    uint32_t *place; /* [n] by step */
    double *pivot;   /* [n] by step */
    size_t *l_start; /* [n + 1] */
    size_t *u_start; /* [n + 1] */
    size_t *v_start; /* [n + 1] */
    ps_entries l;
    ps_entries u;
    ps_entries v;
    ps_elimination rest;
} ps_factors;

/*
 * Allocates for n x n matrices with at most `entries` entries.  To bound the
 * memory, a matrix whose factors need far more than packing problems do is
 * reported as singular.  Sets mem->failed if out of memory.
 */
void ps_factors_init(ps_factors *f, uint32_t n, uint64_t entries, ps_mem *mem);
void ps_factors_destroy(ps_factors *f);

/* Factors `b`.  After any result except PS_LU_OK the factors are invalid. */
ps_lu_result ps_factor(ps_factors *f, const ps_matrix *b);

#endif
