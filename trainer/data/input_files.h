/*
 * input_files.h - decide which rank reads which files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_DATA_INPUT_FILES_H
#define TR_DATA_INPUT_FILES_H

#include <stdbool.h>

#include "data/data_loader.h"

bool tr_input_is_stdin(const char *name);

/*
 * Sets the kind: TR_INPUT_SHARDS if the names contain %d for the rank,
 * TR_INPUT_RANK0 if one is a pipe or standard input, otherwise
 * TR_INPUT_SHARED.  Returns NULL, or a name without %d if other names have %d.
 */
const char *tr_input_find_kind(const char *const *names, uint32_t n,
                               tr_input_kind *input);

/* Returns the name of a rank's file, to be freed, or NULL if out of memory. */
char *tr_input_name(const tr_loader_options *options, uint32_t file,
                    uint32_t rank);

#endif /* TR_DATA_INPUT_FILES_H */
