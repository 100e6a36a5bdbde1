/*
 * tf_example.h - parse TensorFlow's tf.train.Example: lists of numbers by name.
 *
 * In the Protocol Buffers wire format:
 *
 *   Example { Features features = 1; }
 *   Features { map<string, Feature> feature = 1; }
 *   Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }
 *   each list { repeated ... value = 1; }
 *
 * These functions copy and allocate nothing; results point into the caller's
 * bytes.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_TF_EXAMPLE_H
#define TOKCAT_TF_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/protobuf.h"

typedef enum example_kind {
    EXAMPLE_ABSENT,
    EXAMPLE_EMPTY, /* a feature without a list */
    EXAMPLE_BYTES,
    EXAMPLE_FLOATS,
    EXAMPLE_INTEGERS
} example_kind;

/* A feature and the unread part of its list. */
typedef struct example_list {
    example_kind kind;
    proto_in fields;
    proto_in packed; /* unread part of the current packed field */
} example_list;

/*
 * Finds the features with these names, each of which may be absent, and skips
 * all other features.  Returns false if the bytes are not an Example.
 */
bool example_find(const unsigned char *bytes, size_t n,
                  const char *const *names, size_t n_names,
                  example_list *lists);

/*
 * Reads the next value of a list; a float is returned as its bits.  A list may
 * mix single and packed values.
 */
proto_result example_next(example_list *list, uint64_t *value);

/* Counts the unread values of a list.  Returns false if it is malformed. */
bool example_count(const example_list *list, size_t *n);

#endif
