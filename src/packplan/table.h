/*
 * table.h - tables of text: columns that are as wide as their contents, or
 * tabs.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_TABLE_H
#define PACKPLAN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/message.h"

#define TABLE_CELL 32
#define TABLE_COLUMNS 16

typedef struct table {
    size_t n; /* cells so far, row after row */
    size_t room;
    unsigned columns; /* known when the first row ends */
    bool failed;      /* no memory */
    char (*cells)[TABLE_CELL];
} table;

/* Adds a cell to the row at hand; cut if it is too long. */
void table_put(table *t, const char *format, ...) MESSAGE_PRINTF(2, 3);

/* Ends the first row, which is the heading. */
void table_end_heading(table *t);

/* Prints all rows, aligned to the right, or with tabs between cells. */
void table_print(const table *t, FILE *out, bool tabs);

void table_free(table *t);

#endif
