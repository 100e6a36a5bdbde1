/*
 * bars.h - draw histogram bars as text.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_BARS_H
#define PACKSTAT_BARS_H

#include <stdbool.h>
#include <stdio.h>

/* Appearance of bars. */
typedef struct bar_style {
    int columns; /* width of a line, in columns */
    bool blocks; /* Unicode blocks, with a resolution of 1/8; otherwise '#' */
} bar_style;

/*
 * Style for `out`.  On a terminal, uses its width, and blocks if the locale
 * supports them; otherwise uses 80 columns and ASCII.
 */
bar_style bars_style(FILE *out);

/* Draws `share` (0 to 1) of a bar of `width` columns. */
void bars_draw(FILE *out, const bar_style *style, double share, int width);

#endif
