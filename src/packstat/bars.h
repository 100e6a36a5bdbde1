/*
 * bars.h - bars of a histogram as text.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_BARS_H
#define PACKSTAT_BARS_H

#include <stdbool.h>
#include <stdio.h>

/* What bars are made of, and how wide a line with one may be. */
typedef struct bar_style {
    int columns;
    bool blocks; /* of Unicode, which are cut at eighths; else '#' */
} bar_style;

/*
 * As wide as the terminal that `out` is, with blocks if its locale has them;
 * else 80 columns of ASCII.
 */
bar_style bars_style(FILE *out);

/* Draws `share` of a bar of `width` columns. */
void bars_draw(FILE *out, const bar_style *style, double share, int width);

#endif
