/*
 * tensor.h - a parameter of a model: its name, shape and place in the arenas.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_TENSOR_H
#define TR_MODEL_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Buffer size for names, in bytes, including the NUL. */
#define TR_TENSOR_NAME 96

/* A matrix is stored by rows: y = W x has a row for each number of y. */
typedef struct tr_tensor {
    char name[TR_TENSOR_NAME]; /* as in the transformers package */
    uint32_t rows;             /* 1 if `vector` */
    uint32_t columns;
    size_t offset;             /* of the first number, in numbers */
    double deviation;          /* of initial weights, if it decays */
    bool decays;               /* weight decay applies */
    bool vector;               /* has one dimension in files: [columns] */
    bool optional;             /* may be missing in files */
} tr_tensor;

#endif /* TR_MODEL_TENSOR_H */
