/*
 * bars.c - draw histogram bars as text.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/bars.h"

#include <langinfo.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_COLUMNS = 80, MIN_COLUMNS = 40, MAX_COLUMNS = 200 };

bar_style bars_style(FILE *out)
{
    bar_style style = {.columns = DEFAULT_COLUMNS};
    struct winsize window;
    const int fd = fileno(out);

    if (fd < 0 || !isatty(fd))
        return style;
    if (ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        style.columns = window.ws_col < MIN_COLUMNS   ? MIN_COLUMNS
                        : window.ws_col > MAX_COLUMNS ? MAX_COLUMNS
                                                      : window.ws_col;
    style.blocks = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    return style;
}

void bars_draw(FILE *out, const bar_style *style, double share, int width)
{
    static const char *const eighths[] = {
        "",             "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d",
        "\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89"};
    const int parts = style->blocks ? 8 : 1;
    int n = (int)(share * width * parts + 0.5);

    /* Even the smallest share is visible. */
    if (n <= 0 && share > 0)
        n = 1;
    for (int i = 0; i < n / parts; i++)
        (void)fputs(style->blocks ? "\xe2\x96\x88" : "#", out);
    if (style->blocks)
        (void)fputs(eighths[n % 8], out);
}
