/*
 * columns.h - the keys of JSON objects as the channels of a schema.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_COLUMNS_H
#define TOKCAT_COLUMNS_H

#include <jansson.h>

#include "tokcat/job.h"

/* Each returns an exit status, after a message if not STATUS_OK. */

/* Checks that every list that is not ignored has `n_tok` elements. */
int columns_check_lengths(job *j, json_t *object, size_t n_tok);

/*
 * Makes the channels of the stream: those that the user declared, in that
 * order, then the object's other keys as they come.
 */
int columns_learn(job *j, json_t *object);

/* Checks that an object has just the keys of the stream's channels. */
int columns_check_keys(job *j, json_t *object);

/* Stores the channels of an object whose keys were checked. */
int columns_store(job *j, const json_t *object, uint32_t n_tok);

/* "a string", or a number as it was written, for messages. */
#define COLUMNS_SHOWN_BYTES 48
const char *columns_show(const json_t *value,
                         char shown[COLUMNS_SHOWN_BYTES]);

#endif
