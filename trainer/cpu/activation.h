/*
 * activation.h - activations of single numbers, for loops that vectorise.
 *
 * Every activation is act(x) = x s(x), where s rises from 0 to 1:
 *
 *   TR_GELU_TANH  s = (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)), with
 *                 u = sqrt(2 / pi) (x + 0.044715 x^3)
 *   TR_GELU       s is the normal distribution function, (1 + erf(x / sqrt 2))
 *                 / 2
 *   TR_SILU       s = 1 / (1 + exp(-x))
 *
 * The forms of GELU are those of Hendrycks and Gimpel, "Gaussian Error Linear
 * Units" (2016), section 2.  The original BERT uses the first one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_ACTIVATION_H
#define TR_CPU_ACTIVATION_H

#include "cpu/vector.h"
#include "model/config.h"

#define TR_GELU_CUBIC ((real)0.044715)
/* 2 sqrt(2 / pi) */
#define TR_GELU_ROOT ((real)1.5957691216057307117597842397375)
#define TR_NORMAL_DENSITY ((real)0.39894228040143267793994605993438)

static inline real tr_gelu_tanh_share(real x)
{
    return 1
           / (1
              + tr_exp(-TR_GELU_ROOT * (x + TR_GELU_CUBIC * x * x * x)));
}

/*
 * Returns the normal distribution function of x, where bell is
 * exp(-x^2 / 2).  In float, the part outside |x| is the bell times a polynomial
 * in 1 / (1 + p |x|), a form of Hastings (1955), fitted to a relative error of
 * 8e-8.  The absolute error is below 3e-7.
 */
static inline real tr_normal_share(real x, real bell)
{
#ifdef TR_DOUBLE
    (void)bell;
    return erfc(x * -0.70710678118654752440084436210485) / 2;
#else
    const real t = 1 / (1 + 0.233345238f * fabsf(x));
    real p = -0.0679650574f;
    real outside;

    p = p * t + 0.231346895f;
    p = p * t - 0.177724311f;
    p = p * t + 0.206275289f;
    p = p * t + 0.0225029467f;
    p = p * t + 0.100962625f;
    p = p * t + 0.0914185097f;
    p = p * t + 0.0931830618f;
    outside = p * t * bell;
    return x < 0 ? outside : 1 - outside;
#endif
}

static inline real tr_silu_share(real x)
{
    return 1 / (1 + tr_exp(-x));
}

static inline real tr_activation_share(tr_activation act, real x)
{
    return act == TR_GELU_TANH ? tr_gelu_tanh_share(x)
           : act == TR_GELU    ? tr_normal_share(x, tr_exp(-x * x / 2))
                               : tr_silu_share(x);
}

/* Returns act'(x), and s(x) in *share. */
static inline real tr_activation_slope(tr_activation act, real x, real *share)
{
    real s;

    if (act == TR_GELU) {
        const real bell = tr_exp(-x * x / 2);

        *share = s = tr_normal_share(x, bell);
        return s + x * TR_NORMAL_DENSITY * bell;
    }
    *share = s = tr_activation_share(act, x);
    if (act == TR_SILU)
        return s + x * s * (1 - s);
    return s
           + x * s * (1 - s)
                 * (TR_GELU_ROOT * (1 + 3 * TR_GELU_CUBIC * x * x));
}

#endif /* TR_CPU_ACTIVATION_H */
