/*
 * json_file.h - a JSON object in a file.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_FOLDER_JSON_FILE_H
#define TR_FOLDER_JSON_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "packstream.h"

/*
 * Parses n bytes, which start at byte `at` of a file, as one object with unique
 * keys.  NUL characters are refused, in strings too.  The caller releases
 * *object with json_decref; on failure it is NULL.
 *
 * PS_OK, PS_ERR_MEMORY, PS_ERR_CORRUPT.
 */
ps_result json_file_parse(const char *text, size_t n, uint64_t at,
                          json_t **object, ps_error *err);

/*
 * Reads the file `name` of the directory `folder` in the same way.
 *
 * PS_OK, PS_ERR_MEMORY, PS_ERR_CORRUPT, PS_ERR_TRUNCATED, PS_ERR_LIMIT (the
 * file has more than `max` bytes), and as in_file_open.
 */
ps_result json_file_read(int folder, const char *name, size_t max,
                         json_t **object, ps_error *err);

/*
 * The object as indented text that ends with a newline.  Numbers have as many
 * digits as they need.  Returns NULL if out of memory; the caller frees it.
 */
char *json_file_text(const json_t *object);

#endif /* TR_FOLDER_JSON_FILE_H */
