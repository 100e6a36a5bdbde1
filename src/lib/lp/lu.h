/*
 * lu.h - solve with a sparse basis whose columns are replaced one at a time.
 *
 * SPDX-License-Identifier: MIT
 *
 * The matrix is factored as L U in Markowitz order.  Each replacement then adds
 * two sparse vectors (middle product form: B = L T1 T2 ... U, where each T is
 * the identity plus an outer product of two vectors).  Both vectors are
 * by-products of the solves in a simplex step.
 */

#ifndef LIB_LP_LU_H
#define LIB_LP_LU_H

#include "lp/lu_factor.h"

#define PS_LU_MAX_UPDATES 100

/*
 * T = I + d u', indexed by row; `scale` is 1 + u'd.  The vectors are entries d
 * to u - 1 and u to end - 1 of one list.
 */
typedef struct ps_lu_update {
    size_t d;
    size_t u;
    size_t end;
    double scale;
} ps_lu_update;

typedef struct ps_lu {
    ps_factors f;
    uint32_t *step;  /* [n], step of each place */
    double *work;    /* [n] by row, zero between calls */
    ps_entries kept; /* vectors of the updates */
    ps_lu_update updates[PS_LU_MAX_UPDATES];
    size_t n_updates; /* since ps_lu_factor */
    ps_entries spike; /* L^-1 a for the entering column a */
    ps_entries unit;  /* U'^-1 e for the leaving place */
} ps_lu;

/* Allocates, like ps_factors_init.  Sets mem->failed if out of memory. */
void ps_lu_init(ps_lu *lu, uint32_t n, uint64_t entries, ps_mem *mem);
void ps_lu_destroy(ps_lu *lu);

/* Factors a new matrix and discards all updates. */
ps_lu_result ps_lu_factor(ps_lu *lu, const ps_matrix *b);

/* True if there are so many updates that factoring again is better. */
bool ps_lu_is_full(const ps_lu *lu);

/*
 * Solves B x = v, with x indexed by place and v by row.  Overwrites v.  With
 * `keep`, the intermediate result is kept for ps_lu_replace.  False if out of
 * memory.
 */
bool ps_lu_solve(ps_lu *lu, double *v, double *x, bool keep);

/*
 * Solves B' y = c, with y indexed by row and c by place.  Overwrites c.  With
 * `keep`, c must be a unit vector; the intermediate result is kept as above.
 */
bool ps_lu_solve_transposed(ps_lu *lu, double *c, double *y, bool keep);

/*
 * Replaces the column at `place`, whose unit vector the last kept
 * ps_lu_solve_transposed solved, by the column of the last kept ps_lu_solve.
 */
ps_lu_result ps_lu_replace(ps_lu *lu, uint32_t place);

#endif
