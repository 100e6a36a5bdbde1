/*
 * json_columns.h - parse a JSON object of numbers into columns.
 *
 * Lines written by tokenizers contain mostly lists of numbers, and keys to be
 * ignored.  They are parsed directly into columns, without building a tree.
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
    KIND_REAL = 2, /* with a decimal point or an exponent */
    KIND_BOOLEAN = 4,
    KIND_NULL = 8,
    KIND_OTHER = 16, /* a string, an object, or a list that is not a vector */
    KIND_WIDE = 32,  /* in an open column: an integer that does not fit i32 */
    KIND_NUMBERS = KIND_INTEGER | KIND_REAL | KIND_BOOLEAN
};

/* A key and, after json_columns_read, its value in the line. */
typedef struct json_column {
    const char *key;
    size_t key_bytes; /* length of `key` */
    ps_type type;
    bool is_float;   /* `type` is a float type */
    bool is_ids;     /* token ids: true, false and null are refused */
    bool is_ignored; /* the value may be anything and is skipped */
    bool is_open;    /* `type` is not known yet, so every number fits */
    bool is_own;     /* a list of its own length, not one element per token */
    uint32_t count;  /* values of a vector; 0: no vectors, unless is_open */
    size_t width;    /* bytes per value */
    int64_t min;     /* range of integers stored without further checks */
    int64_t max;

    const unsigned char *at; /* start of the value in the line; NULL: absent */
    bool is_list;            /* the value is a list */
    bool is_nested;          /* the value is a list of vectors */
    size_t length;           /* elements in the list; 1 for a single value */
    size_t vector;           /* if is_nested: values of the first vector */
    /*
     * if is_nested: the first vector whose length is neither `count` nor, if
     * that is 0, `vector`; NULL: none
     */
    const unsigned char *ragged_at;
    size_t ragged_index;  /* index in the list */
    size_t ragged_length; /* values of the vector */
    /* values, little-endian; in json_columns.values */
    unsigned char *values;
    unsigned char *first; /* those of the list or vector being read */
    size_t n_vectors;     /* number of vectors before it */
    unsigned kinds; /* kinds of all values except small integers */
} json_column;

/* Maximum number of unknown keys stored per line. */
#define JSON_STRAYS (PS_MAX_CHANNELS + 65)

typedef struct json_columns {
    /* the caller's columns, then JSON_STRAYS for unknown keys; owned */
    json_column *column;
    uint32_t n; /* number of the caller's columns */
    /* index of the next key if keys have the same order as in the last line */
    uint32_t expected;

    /* The members below are set by json_columns_read. */
    uint32_t n_strays; /* number of unknown keys, at most JSON_STRAYS */
    /* The first value that does not fit its column; `misfit_at` NULL: none. */
    const json_column *misfit;
    const unsigned char *misfit_at;
    size_t misfit_index;  /* index in the list, or in the vector */
    size_t misfit_vector; /* index of the vector, if is_nested */
    element_result misfit_why;
    /* The reason for returning false; `broken` NULL: out of memory. */
    const unsigned char *broken_at;
    const char *broken;

    const unsigned char *line;
    const unsigned char *end; /* end of the line, at its newline */
    /* elements of all columns, in the order of the line; owned */
    unsigned char *values;
    size_t size; /* allocated size of `values`, in bytes */
} json_columns;

/* Allocates `n` columns, all zero.  Returns false if out of memory. */
bool json_columns_open(json_columns *t, uint32_t n);

/* Creates a column of values of `type`.  The key is not copied. */
json_column json_column_of(const char *key, ps_type type);

/*
 * Parses a line of `n` bytes; line[n] must be a newline.  Returns false if the
 * line is not a JSON object, has a duplicate key, or has a number beyond the
 * range of int64_t or double.
 *
 * A list whose first element is a list is read as a list of vectors if the
 * column is open or has a `count`.
 *
 * The caller checks everything else: missing and unknown keys, lengths, kinds,
 * ragged vectors, and the misfit.  In ignored values and values of KIND_OTHER,
 * only brackets and quotation marks are checked.
 */
bool json_columns_read(json_columns *t, const unsigned char *line, size_t n);

/* Frees the columns, but not the struct. */
void json_columns_free(json_columns *t);

/* Parses a number, true, false or null to the bits of an element. */
bool json_element(ps_type type, const char *text, uint64_t *bits);

#endif
