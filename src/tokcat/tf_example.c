/*
 * tf_example.c - parse TensorFlow's tf.train.Example.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/tf_example.h"

#include <string.h>

/* Field numbers. */
enum { FEATURES = 1, FEATURE = 1, KEY = 1, VALUE = 2, ELEMENT = 1 };

/*
 * Parses an entry of the map: a key and a feature.  Either can be missing if it
 * is empty.
 */
static bool read_entry(proto_in in, const char *const *names,
                       size_t n_names, example_list *lists)
{
    static const example_kind kinds[] = {EXAMPLE_ABSENT, EXAMPLE_BYTES,
                                         EXAMPLE_FLOATS, EXAMPLE_INTEGERS};
    static const unsigned char nothing[1] = {0};
    proto_in key = {.at = nothing};
    proto_in value = {.at = nothing};
    example_list *list = NULL;
    proto_result r;
    proto_field f;

    while ((r = proto_next(&in, &f)) == PROTO_OK) {
        if (f.number != KEY && f.number != VALUE)
            continue;
        if (f.wire != PROTO_BYTES)
            return false;
        *(f.number == KEY ? &key : &value) = f.bytes;
    }
    for (size_t i = 0; i < n_names && list == NULL; i++)
        if (key.left == strlen(names[i]) &&
            memcmp(key.at, names[i], key.left) == 0)
            list = &lists[i];
    if (r != PROTO_END || list == NULL)
        return r == PROTO_END;

    /* A name may occur only once, with at most one list. */
    if (list->kind != EXAMPLE_ABSENT)
        return false;
    *list = (example_list){.kind = EXAMPLE_EMPTY};
    while ((r = proto_next(&value, &f)) == PROTO_OK) {
        if (f.number >= sizeof kinds / sizeof kinds[0])
            continue;
        if (f.wire != PROTO_BYTES || list->kind != EXAMPLE_EMPTY)
            return false;
        list->kind = kinds[f.number];
        list->fields = f.bytes;
    }
    return r == PROTO_END;
}

bool example_find(const unsigned char *bytes, size_t n,
                  const char *const *names, size_t n_names,
                  example_list *lists)
{
    proto_in in = {bytes, n};
    proto_in features;
    proto_result r;
    proto_field f;

    for (size_t i = 0; i < n_names; i++)
        lists[i] = (example_list){.kind = EXAMPLE_ABSENT};
    while ((r = proto_next(&in, &f)) == PROTO_OK) {
        if (f.number != FEATURES)
            continue;
        if (f.wire != PROTO_BYTES)
            return false;
        features = f.bytes;
        while ((r = proto_next(&features, &f)) == PROTO_OK)
            if (f.number == FEATURE &&
                (f.wire != PROTO_BYTES ||
                 !read_entry(f.bytes, names, n_names, lists)))
                return false;
        if (r != PROTO_END)
            return false;
    }
    return r == PROTO_END;
}

proto_result example_next(example_list *list, uint64_t *value)
{
    const bool integers = list->kind == EXAMPLE_INTEGERS;
    const proto_wire single = integers ? PROTO_VARINT : PROTO_FIXED32;

    for (;;) {
        proto_result r = proto_next_element(&list->packed, single, value);
        proto_field f;

        if (r != PROTO_END)
            return r;
        r = proto_next(&list->fields, &f);
        if (r != PROTO_OK)
            return r;
        if (f.number != ELEMENT)
            continue;
        if (f.wire == single) {
            *value = f.value;
            return PROTO_OK;
        }
        if (f.wire != PROTO_BYTES)
            return PROTO_BAD;
        list->packed = f.bytes;
    }
}

bool example_count(const example_list *list, size_t *n)
{
    example_list rest = *list;
    uint64_t value;
    proto_result r;

    *n = 0;
    while ((r = example_next(&rest, &value)) == PROTO_OK)
        (*n)++;
    return r == PROTO_END;
}
