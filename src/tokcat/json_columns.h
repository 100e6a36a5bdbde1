/*
 * json_columns.h - an object of numbers in a line of JSON, read into columns.
 *
 * Lines from tokenizers hold little but lists of numbers, and keys that are
 * ignored.  They are read straight into columns, without a tree of the
 * object.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_JSON_COLUMNS_H
#define TOKCAT_JSON_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packstream.h"
#include "tokcat/channel.h"

/* Kinds of values: bits of json_column.kinds. */
enum {
    KIND_INTEGER = 1,
    KIND_REAL = 2, /* written with a point or an exponent */
    KIND_BOOLEAN = 4,
    KIND_NULL = 8,
    KIND_OTHER = 16 /* a string, an object, or a list in a list */
};

/* A key and, after json_columns_read, its value in the line. */
typedef struct json_column {
    const char *key;
    size_t key_bytes;
    ps_type type;
    bool is_float;   /* as the type says */
    bool is_ids;     /* true, false and null are refused */
    bool is_ignored; /* the value may be anything whose end can be found */
    bool is_open;    /* the type is not known yet: nothing is a misfit */
    size_t width;    /* of an element, in bytes */
    int64_t min;     /* of integers that are stored without further checks */
    int64_t max;

    const unsigned char *at; /* the value in the line; NULL: none */
    bool is_list;
    size_t length;         /* of the list; 1 of a single value */
    unsigned char *values; /* little-endian elements */
    unsigned kinds;        /* of values other than small integers */
} json_column;

/* Keys of a line besides those of the caller that are kept apart. */
#define JSON_STRAYS (PS_MAX_CHANNELS + 65)

typedef struct json_columns {
    json_column *column; /* the caller's, then room for JSON_STRAYS */
    uint32_t n;          /* the caller's */
    uint32_t expected;   /* index of the next key if the order stays */

    /* After json_columns_read: */
    uint32_t n_strays;
    /* The first value that its column cannot hold; `misfit_at` NULL: none. */
    const json_column *misfit;
    const unsigned char *misfit_at;
    size_t misfit_index;
    element_result misfit_why;
    /* Why it returned false; `broken` NULL: memory ran out. */
    const unsigned char *broken_at;
    const char *broken;

    const unsigned char *end; /* of the line */
    unsigned char *values;    /* of all columns, in the order of the line */
    size_t size;              /* bytes that `values` has room for */
} json_columns;

/* Makes room for `n` columns, all zero; false without memory. */
bool json_columns_open(json_columns *t, uint32_t n);

/* A column of elements of `type`; the key must stay. */
json_column json_column_of(const char *key, ps_type type);

/*
 * Reads a line of `n` bytes; line[n] must be a newline.  Returns false if the
 * line is not an object in JSON, or has a key twice, or a number beyond the
 * range of int64_t or double.
 *
 * All else is for the caller to judge: missing keys, strays, lengths, kinds,
 * and the misfit.  Values of KIND_OTHER, and ignored ones, were skipped by
 * their brackets and quotation marks alone.
 */
bool json_columns_read(json_columns *t, const unsigned char *line, size_t n);

/* Frees what the columns have, but not the struct. */
void json_columns_free(json_columns *t);

/* Reads a number, true, false or null as the bits of an element. */
bool json_element(ps_type type, const char *text, uint64_t *bits);

#endif
