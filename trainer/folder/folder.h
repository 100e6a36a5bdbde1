/*
 * folder.h - the folder of a model, as the transformers package saves it:
 * config.json, model.safetensors or shards with an index, and the files of the
 * tokenizer.
 *
 * These functions print nothing.  Messages name the file in the folder and the
 * tensor; the caller adds the folder's name.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_FOLDER_FOLDER_H
#define TR_FOLDER_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "folder/safetensors.h"
#include "model/config.h"
#include "model/scalar.h"
#include "model/tensor.h"
#include "packstream.h"

/* Reads config.json; see model_config_read. */
ps_result model_folder_config(const char *path, tr_config *config,
                              ps_error *err);

/* ---- Loading ---- */

typedef struct model_folder_request {
    const tr_tensor *tensors; /* of the model */
    size_t n_tensors;
} model_folder_request;

typedef struct model_folder_report {
    size_t n_missing;         /* optional tensors that no file has */
    const tr_tensor *missing; /* the first of them, in `request`, or NULL */
} model_folder_report;

/*
 * Reads the weights of all tensors to numbers[offset]: from model.safetensors
 * or, without it, from the files that model.safetensors.index.json names.
 * Numbers of missing optional tensors keep their values.
 *
 * A tensor is found by its name; without the prefix of the base model ("bert."
 * or "model."), as saved from BertModel; and with LayerNorm.gamma and
 * LayerNorm.beta in place of LayerNorm.weight and LayerNorm.bias.  A vector
 * has the shape [columns] in files, a matrix [rows, columns].
 *
 * Files may also have position_ids and rotary frequencies, and a second copy of
 * a tied tensor, such as lm_head.weight, which must be equal.  Any other tensor
 * that the model lacks is an error.
 *
 * The table and the files are checked before any number is written, and no
 * number is written after such an error.  Only a file that cannot be read, or
 * shrinks, after the checks, or a number that is not finite, leaves some
 * numbers changed.
 *
 * PS_OK; PS_ERR_IO, PS_ERR_MEMORY; PS_ERR_TRUNCATED, PS_ERR_LIMIT,
 * PS_ERR_CORRUPT (a damaged file or index; a missing or unexpected tensor; a
 * shape that differs), PS_ERR_UNSUPPORTED (a type of numbers).
 */
ps_result model_folder_load(const char *path,
                            const model_folder_request *request, real *numbers,
                            model_folder_report *report, ps_error *err);

/* ---- Saving ---- */

typedef struct model_folder_model {
    const char *source; /* folder that the model was read from, or NULL */
    const tr_config *config;
    const tr_tensor *tensors;
    size_t n_tensors;
    const real *numbers;
} model_folder_model;

/*
 * Checks whether model_folder_save can replace the model in the folder `path`,
 * which need not exist.  Call it before training.  A folder with an index or
 * with shards of another model is refused: other programs could read these
 * instead of model.safetensors.
 *
 * PS_OK, PS_ERR_IO, PS_ERR_ARGUMENT.
 */
ps_result model_folder_check(const char *path, ps_error *err);

/*
 * Writes model.safetensors and config.json to the folder `path`, which is
 * created if missing.  With a source folder, its config.json is copied, with
 * the class and the number type of the new file, and so are the files of its
 * tokenizer.  Without one, or if its config.json no longer describes the model,
 * config.json is composed from `config`.
 *
 * All files are complete on disk, under temporary names, before the first
 * one gets its name; config.json is the last.  If the call fails before that,
 * the folder is as before, and removed if it did not exist.
 *
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY, PS_ERR_ARGUMENT as model_folder_check and
 * safetensors_put.
 */
ps_result model_folder_save(const char *path, const model_folder_model *model,
                            ps_error *err);

#endif /* TR_FOLDER_FOLDER_H */
