/*
 * safetensors.h - read and write a file of named tensors.
 *
 * This folder reads and writes model folders as the transformers package does.
 *
 *     folder          the weights and the other files of a model
 *     weights         the safetensors files of a folder, and their index
 *     model_config    config.json
 *     config_reader   its values, by type
 *     safetensors     one file of tensors
 *     json_file       a JSON object in a file
 *     in_file         a file that is read at any offset
 *     new_file        a file that is replaced once it is complete
 *     named_error     an error with the name of a file
 *
 * A safetensors file consists of the size of its header as a little-endian
 * 64-bit integer, the header, and the tensors' numbers: little-endian, by rows.
 * The header is a JSON object that maps a tensor's name to its type, its shape
 * and its place; see https://github.com/huggingface/safetensors.
 *
 * These functions print nothing.  Messages name the tensor or the byte of the
 * file; the caller adds the file's name.  Names of tensors in messages are made
 * printable.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_FOLDER_SAFETENSORS_H
#define TR_FOLDER_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/scalar.h"
#include "packstream.h"

/* Largest header that is read, in bytes, as in the safetensors package. */
#define SAFETENSORS_HEADER_MAX 100000000

/* ---- Reading ---- */

/* A file that is open for reading. */
typedef struct safetensors safetensors;

/* The file owns all members, which are valid until it is closed. */
typedef struct safetensors_tensor {
    const char *name;      /* UTF-8, as in the file */
    const char *type;      /* "F32", "BF16" ... */
    size_t rank;           /* number of dimensions; 0: one number */
    const uint64_t *shape; /* `rank` sizes, the outermost first */
    uint64_t numbers;      /* product of the shape */
    uint64_t begin, end;   /* bytes, from the end of the header */
} safetensors_tensor;

/*
 * Opens the regular file `name` in the directory `folder` (a descriptor, or
 * AT_FDCWD) and checks the whole header: an object with unique keys, known
 * types, sizes that match the shapes, and tensors that cover the rest of the
 * file without holes and overlaps.  The file may come from anywhere.  It must
 * not be written until it is closed; if it shrinks, reads fail.
 *
 * On success, the caller closes *file.  On failure, *file is NULL.
 *
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY, PS_ERR_TRUNCATED (the file ends inside its
 * header or a tensor), PS_ERR_LIMIT (the header is too large), PS_ERR_CORRUPT
 * (anything else), PS_ERR_UNSUPPORTED (an unknown type).
 */
ps_result safetensors_open(int folder, const char *name, safetensors **file,
                           ps_error *err);

/* Accepts NULL. */
void safetensors_close(safetensors *file);

/* Number of tensors, and tensor `i`, in the order of their names' bytes. */
size_t safetensors_count(const safetensors *file);
const safetensors_tensor *safetensors_at(const safetensors *file, size_t i);

/* Returns NULL if the file lacks the tensor. */
const safetensors_tensor *safetensors_find(const safetensors *file,
                                           const char *name);

/* True if safetensors_read converts the type: F64, F32, F16 or BF16. */
bool safetensors_is_real(const safetensors_tensor *tensor);

/*
 * Reads all numbers of a tensor of this file.  `to` has room for
 * tensor->numbers.  F32, F16 and BF16 are converted exactly; F64 is rounded to
 * the nearest float, unless real is double.
 *
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY, PS_ERR_TRUNCATED, PS_ERR_UNSUPPORTED (the
 * type is not one of the four).  After an error, `to` has any values.
 */
ps_result safetensors_read(const safetensors *file,
                           const safetensors_tensor *tensor, real *to,
                           ps_error *err);

/*
 * Sets *same to whether a tensor of file `a` has the same type, shape and bytes
 * as one of file `b`, which may be the same file.
 *
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY, PS_ERR_TRUNCATED.
 */
ps_result safetensors_equal(const safetensors *a, const safetensors_tensor *ta,
                            const safetensors *b, const safetensors_tensor *tb,
                            bool *same, ps_error *err);

/* ---- Writing ---- */

/* A tensor to write; the caller owns all members. */
typedef struct safetensors_item {
    const char *name; /* UTF-8, unique, not "__metadata__" */
    size_t rank;      /* 1 or 2 */
    uint64_t shape[2];
    const real *numbers; /* by rows */
} safetensors_item;

struct new_file;

/*
 * Writes n tensors as F32 to an open new file, in their order, with the
 * metadata {"format": "pt"} that transformers expects.  The numbers of the
 * first tensor start at a multiple of 8 bytes.  Publish or abandon the file
 * afterwards.
 *
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY, PS_ERR_ARGUMENT (a name occurs twice, is not
 * UTF-8 or is "__metadata__").
 */
ps_result safetensors_put(struct new_file *to, const safetensors_item *items,
                          size_t n, ps_error *err);

/*
 * Writes the file `name` in the directory `folder` (a descriptor, or AT_FDCWD;
 * `name` has no path): either completely, or not at all, in which case an
 * existing file is unchanged.  Errors as for safetensors_put and new_file_open.
 */
ps_result safetensors_write(int folder, const char *name,
                            const safetensors_item *items, size_t n,
                            ps_error *err);

#endif /* TR_FOLDER_SAFETENSORS_H */
