/*
 * input_files.h - which rank reads which files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_INPUTS_H
#define BERT_INPUTS_H

#include <stdbool.h>

#include "data/data_loader.h"

bool inputs_is_stdin(const char *name);

/*
 * What the names say: FEED_SHARDS if they have a place for the rank, FEED_FIRST
 * if one of them is a pipe or standard input, else FEED_SHARED.  Gives NULL,
 * or a name without a place for the rank among others that have one.
 */
const char *inputs_tell(const char *const *names, uint32_t n,
                        feed_input *input);

/* The name of a rank's file, to be freed; NULL: no memory. */
char *inputs_name(const feed_options *options, uint32_t file, uint32_t rank);

#endif /* BERT_INPUTS_H */
