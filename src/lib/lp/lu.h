/*
 * lu.h - solving with a sparse basis, of which one column at a time is
 * replaced.
 *
 * The matrix is factored as L U by Markowitz's rule; after that a
 * replacement costs two sparse vectors (the middle product form: B = L T1
 * T2 ... U, each T the identity and a product of two vectors), both of
 * which the solves of a simplex step leave behind.
 *
 * Rows of the matrix are called rows; its columns are called places, since
 * the column in a place changes.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_LU_H
#define LIB_LP_LU_H

#include "lp/sparse.h"

typedef enum ps_lu_result {
    PS_LU_OK,
    PS_LU_SINGULAR,
    PS_LU_MEMORY
} ps_lu_result;

/* What elimination works on (lu_factor.c). */
typedef struct ps_elimination ps_elimination;

ps_elimination *ps_elimination_open(uint32_t n); /* NULL without memory */
void ps_elimination_free(ps_elimination *a);

/* As ps_lu_limit. */
void ps_elimination_limit(ps_elimination *a, size_t entries);
bool ps_elimination_is_full(const ps_elimination *a);
uint64_t ps_elimination_bytes(uint32_t n, uint64_t entries);

/*
 * L and U in the order of the pivots: step k has pivot row row[k], place
 * place[k] and value pivot[k].  Column k of L, by rows; row k of U, by
 * places; the same by columns: that of place[k], by rows.
 */
typedef struct ps_factors {
    uint32_t n;
    uint32_t *row;
    uint32_t *place;
    double *pivot;
    size_t *l_start;
    ps_entries l;
    size_t *u_start;
    ps_entries u;
    size_t *v_start;
    ps_entries v;
    ps_elimination *rest;
} ps_factors;

bool ps_factors_open(ps_factors *f, uint32_t n);
void ps_factors_free(ps_factors *f);

/* Factors `b`.  Afterwards, unless PS_LU_OK, the factors are of no use. */
ps_lu_result ps_factor(ps_factors *f, const ps_matrix *b);

typedef struct ps_lu ps_lu;

ps_lu *ps_lu_open(uint32_t n); /* NULL without memory */
void ps_lu_free(ps_lu *lu);

/*
 * For matrices with at most so many entries: factors that have far more, as
 * those of packing problems never have, count as singular, so that all of
 * this takes no more than the second says.
 */
void ps_lu_limit(ps_lu *lu, size_t entries);
uint64_t ps_lu_bytes(uint32_t n, uint64_t entries);

/* Starts anew with the matrix `b`. */
ps_lu_result ps_lu_factor(ps_lu *lu, const ps_matrix *b);

/* What the factors hold. */
size_t ps_lu_entries(const ps_lu *lu);

/* Columns replaced, and what they hold, since ps_lu_factor. */
size_t ps_lu_updates(const ps_lu *lu);
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
