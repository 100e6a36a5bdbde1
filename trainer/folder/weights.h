/*
 * weights.h - the safetensors files of a model folder.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_FOLDER_WEIGHTS_H
#define TR_FOLDER_WEIGHTS_H

#include <stddef.h>

#include "folder/safetensors.h"
#include "packstream.h"

#define WEIGHTS_NAME "model.safetensors"
#define WEIGHTS_INDEX "model.safetensors.index.json"

/* Most files of a model: all are open at the same time. */
#define WEIGHTS_FILES_MAX 512

typedef struct weights {
    const char *title; /* WEIGHTS_NAME or WEIGHTS_INDEX; for messages */
    safetensors **file;
    char **name; /* of each file, in the folder */
    size_t n;
} weights;

typedef struct weights_place {
    size_t file;
    const safetensors_tensor *tensor; /* NULL: not found */
} weights_place;

/*
 * Opens the folder's model.safetensors or, without it, the files named by
 * model.safetensors.index.json.  The index must map each tensor to the file
 * that has it, and all tensors of the files; the files must be in the folder.
 *
 * PS_OK, and as model_folder_load.  After an error, only close it.
 */
ps_result weights_open(weights *w, const char *path, ps_error *err);
void weights_close(weights *w);

weights_place weights_find(const weights *w, const char *name);

#endif /* TR_FOLDER_WEIGHTS_H */
