/*
 * config_reader.h - the values of config.json, by type.
 *
 * An absent key and null both give the default, `absent`.  After the first
 * error, all values are defaults or wrong ones, and other errors are ignored:
 * a caller may read everything and check `result` at the end.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_FOLDER_CONFIG_READER_H
#define TR_FOLDER_CONFIG_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "packstream.h"

typedef struct config_reader {
    const json_t *object;
    ps_error *err;
    ps_result result; /* PS_OK until the first error */
} config_reader;

/*
 * Reports "config.json: KEY: VALUE WHY", or without a value.  NULL: the value
 * of the key in r->object.
 */
void config_fail(config_reader *r, ps_result code, const char *key,
                 const json_t *value, const char *why);
void config_fail_key(config_reader *r, ps_result code, const char *key,
                     const char *why);

/* Returns NULL if the key is absent or its value null. */
const json_t *config_find(const json_t *object, const char *key);

/* True if the key is present, even with null. */
bool config_is_given(const config_reader *r, const char *key);

/* An integer from 1 to INT32_MAX. */
uint32_t config_size(config_reader *r, const char *key, uint32_t absent);

/* A number above `low`, or also equal to it if `closed`. */
double config_real(config_reader *r, const json_t *object, const char *key,
                   double absent, double low, bool closed);
bool config_bool(config_reader *r, const char *key, bool absent);
const char *config_text(config_reader *r, const json_t *object,
                        const char *key, const char *absent);

#endif /* TR_FOLDER_CONFIG_READER_H */
