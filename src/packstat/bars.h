/*
 * bars.h - draw histogram bars as text.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_BARS_H
#define PACKSTAT_BARS_H

#include <stdbool.h>
#include <stdio.h>

/* Characters of a bar, and the width of a line, in columns. */
typedef struct bar_style {
    int columns; /* width of a line */
    bool blocks; /* Unicode blocks, with a resolution of 1/8; otherwise '#' */
} bar_style;

/*
 * Uses the width of the terminal `out`, and blocks if its locale supports them;
 * if `out` is not a terminal, 80 columns of ASCII.
 */
bar_style bars_style(FILE *out);

/* Draws `share` (0 to 1) of a bar of `width` columns. */
void bars_draw(FILE *out, const bar_style *style, double share, int width);

#endif
