/*
 * tf_example.h - TensorFlow's tf.train.Example: lists of numbers by name.
 *
 * As the wire format of Protocol Buffers has it:
 *
 *   Example { Features features = 1; }
 *   Features { map<string, Feature> feature = 1; }
 *   Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }
 *   each list { repeated ... value = 1; }
 *
 * Nothing is copied or allocated.
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
    EXAMPLE_EMPTY, /* a feature without any list */
    EXAMPLE_BYTES,
    EXAMPLE_FLOATS,
    EXAMPLE_INTEGERS
} example_kind;

/* A feature and what of its list is still to be read. */
typedef struct example_list {
    example_kind kind;
    proto_in fields;
    proto_in packed; /* of the field being read */
} example_list;

/*
 * Finds the features of these names, each of which may be absent; others are
 * passed over.  False if the bytes are no Example.
 */
bool example_find(const unsigned char *bytes, size_t n,
                  const char *const *names, size_t n_names,
                  example_list *lists);

/*
 * The next value of a list of that kind; one of floats by its bits.  Single
 * values and packed ones may be mixed, as the format allows.
 */
proto_result example_next(example_list *list, uint64_t *value);

/* How many a list has from here on; false if it is broken. */
bool example_count(const example_list *list, size_t *n);

#endif
