/*
 * lu.h - solving with a sparse basis, of which one column at a time is
 * replaced.
 *
 * The matrix is factored as L U by Markowitz's rule; after that a
 * replacement costs two sparse vectors (the middle product form: B = L T1
 * T2 ... U, each T the identity and a product of two vectors), both of
 * which the solves of a simplex step leave behind.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_LU_H
#define LIB_LP_LU_H

#include "lp/lu_factor.h"

#define PS_LU_MAX_UPDATES 100

/*
 * T = I + d u', the identity and a product of two vectors by rows; `scale`
 * is 1 + u'd.  Both vectors lie in one list, from `d` and `u` to `end`.
 */
typedef struct ps_lu_update {
    size_t d;
    size_t u;
    size_t end;
    double scale;
} ps_lu_update;

typedef struct ps_lu {
    ps_factors f;
    uint32_t *step;  /* of each place */
    double *work;    /* by rows, zero between calls */
    ps_entries kept; /* the vectors of the updates */
    ps_lu_update updates[PS_LU_MAX_UPDATES];
    size_t n_updates; /* since ps_lu_factor */
    ps_entries spike; /* L^-1 a, of the column to come */
    ps_entries unit;  /* U'^-1 e, of the place to go */
} ps_lu;

/* As ps_factors_init.  Sets mem->failed without memory. */
void ps_lu_init(ps_lu *lu, uint32_t n, uint64_t entries, ps_mem *mem);
void ps_lu_destroy(ps_lu *lu);

/* Starts anew with the matrix `b`. */
ps_lu_result ps_lu_factor(ps_lu *lu, const ps_matrix *b);

/* Whether so much was replaced that it is better to factor anew. */
bool ps_lu_is_full(const ps_lu *lu);

/*
 * Solves B x = v: x by places, v by rows.  v is used up.  With `keep` the
 * half-way result is kept for ps_lu_replace.
 */
bool ps_lu_solve(ps_lu *lu, double *v, double *x, bool keep);

/*
 * Solves B' y = c: y by rows, c by places.  c is used up.  With `keep` (c is
 * one unit) likewise.
 */
bool ps_lu_solve_transposed(ps_lu *lu, double *c, double *y, bool keep);

/*
 * Puts the column that ps_lu_solve kept in the place whose unit
 * ps_lu_solve_transposed kept.
 */
ps_lu_result ps_lu_replace(ps_lu *lu, uint32_t place);

#endif
