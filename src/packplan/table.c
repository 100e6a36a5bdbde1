/*
 * table.c - tables of text.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(table *t)
{
    size_t room = t->room == 0 ? 128 : 2 * t->room;
    char(*cells)[TABLE_CELL];

    if (t->n < t->room)
        return true;
    cells = realloc(t->cells, room * sizeof *cells);
    if (cells == NULL)
        return false;
    t->cells = cells;
    t->room = room;
    return true;
}

void table_put(table *t, const char *format, ...)
{
    va_list args;

    if (t->failed || !make_room(t)) {
        t->failed = true;
        return;
    }
    va_start(args, format);
    (void)vsnprintf(t->cells[t->n++], TABLE_CELL, format, args);
    va_end(args);
}

void table_end_heading(table *t)
{
    t->columns = (unsigned)t->n;
}

static int width_of(const table *t, unsigned column)
{
    size_t width = 0;

    for (size_t i = column; i < t->n; i += t->columns) {
        size_t n = strlen(t->cells[i]);

        width = n > width ? n : width;
    }
    return (int)width;
}

void table_print(const table *t, FILE *out, bool tabs)
{
    int widths[TABLE_COLUMNS] = {0};

    for (unsigned c = 0; !tabs && c < t->columns; c++)
        widths[c] = width_of(t, c);
    for (size_t i = 0; i < t->n; i++) {
        unsigned column = (unsigned)(i % t->columns);

        if (column > 0)
            (void)fputs(tabs ? "\t" : "  ", out);
        (void)fprintf(out, "%*s", widths[column], t->cells[i]);
        if (column + 1 == t->columns)
            (void)putc('\n', out);
    }
}

void table_free(table *t)
{
    free(t->cells);
    *t = (table){0};
}
