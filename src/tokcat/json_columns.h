/*
 * json_columns.h - an object of numbers in a line of JSON, read without a
 * tree of it.
 *
 * Lines from tokenizers hold little but lists of numbers.  Such a line is
 * read here many times faster than by a JSON library, straight into columns.
 * Any other line is left to the library: a line with a fault as well, which
 * the library then tells of.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_JSON_COLUMNS_H
#define TOKCAT_JSON_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum column_shape {
    COLUMN_LIST,    /* of numbers; those of a line have one length */
    COLUMN_NUMBER,  /* one number */
    COLUMN_LEFT_OUT /* whatever it is; the key may be missing */
} column_shape;

/* A key and what stands for it in the line that was read. */
typedef struct json_column {
    const char *key;
    size_t key_bytes;
    column_shape shape;
    size_t width; /* of an element: 1, 2, 4 or 8 bytes, little-endian */
    bool is_float; /* of 4 or 8 bytes; else numbers are integers */
    int64_t min;   /* of integers, in columns of floats as well */
    int64_t max;
    unsigned char *values; /* of the last line */
    bool seen;
} json_column;

typedef struct json_columns {
    json_column *column;
    uint32_t n;
    uint32_t expected; /* that of the next key, if the order stays the same */
    unsigned char *values; /* of all columns, in the order of the line */
    size_t size;           /* bytes that `values` has room for */
} json_columns;

/*
 * True for a key that stands between quotation marks as it is.  Other keys
 * must not be columns.
 */
bool json_is_plain_key(const char *key);

/*
 * Reads a line of `n` bytes; line[n] must be a newline.  Returns the length of
 * its lists if the line is an object that has each key once, no other keys,
 * and values as the columns describe them.  Returns 0 for all other lines,
 * which may be good or bad, for empty lists, and without memory.
 */
size_t json_columns_read(json_columns *columns, const unsigned char *line,
                         size_t n);

/* Frees what the columns have, but not the struct. */
void json_columns_free(json_columns *columns);

#endif
