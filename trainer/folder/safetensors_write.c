/*
 * safetensors_write.c - write a file of named tensors.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/safetensors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "data/error.h"
#include "files/files.h"
#include "folder/new_file.h"

#define ALIGNMENT 8

/* Numbers that are converted at a time. */
#define CHUNK ((size_t)1 << 16)

#define F32_BYTES 4

static uint64_t numbers_of(const safetensors_item *item)
{
    return item->rank == 1 ? item->shape[0] : item->shape[0] * item->shape[1];
}

/* ---- The header ---- */

/* Adds an entry and moves *at to its end.  Returns false if out of memory. */
static bool add_entry(json_t *header, const safetensors_item *item,
                      uint64_t *at)
{
    const uint64_t begin = *at;
    json_t *shape = json_array();
    bool done = shape != NULL;

    for (size_t i = 0; i < item->rank && done; i++)
        done = json_array_append_new(
                   shape, json_integer((json_int_t)item->shape[i])) == 0;
    *at += numbers_of(item) * F32_BYTES;
    if (!done) {
        json_decref(shape);
        return false;
    }
    /* "o" takes over the reference, after an error too. */
    return json_object_set_new(
               header, item->name,
               json_pack("{s:s,s:o,s:[I,I]}", "dtype", "F32", "shape", shape,
                         "data_offsets", (json_int_t)begin,
                         (json_int_t)*at)) == 0;
}

static ps_result make_header(const safetensors_item *items, size_t n,
                             json_t **header, ps_error *err)
{
    uint64_t at = 0;

    *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    if (*header == NULL)
        return tr_error(err, PS_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++) {
        json_t *name = json_string(items[i].name);
        const bool is_text = name != NULL;

        json_decref(name);
        if (!is_text || json_object_get(*header, items[i].name) != NULL)
            return tr_error(err, PS_ERR_ARGUMENT, "tensor %.80s: %s",
                            message_name(items[i].name),
                            is_text ? "the name occurs twice"
                                    : "the name is not UTF-8");
        if (!add_entry(*header, &items[i], &at))
            return tr_error(err, PS_ERR_MEMORY, "out of memory");
    }
    return PS_OK;
}

/* Writes the size of the header, the header, and spaces. */
static ps_result put_header(new_file *to, const json_t *header, ps_error *err)
{
    char *text = json_dumps(header, JSON_COMPACT);
    const size_t n = text == NULL ? 0 : strlen(text);
    const size_t padded = (size_t)round_up(n, ALIGNMENT);
    unsigned char first[sizeof(uint64_t)];
    ps_result r;

    if (text == NULL)
        return tr_error(err, PS_ERR_MEMORY, "out of memory");
    if (padded > SAFETENSORS_HEADER_MAX)
        r = tr_error(err, PS_ERR_LIMIT, "the header exceeds %d bytes",
                     SAFETENSORS_HEADER_MAX);
    else {
        store_u64(first, padded);
        r = new_file_write(to, first, sizeof first, err);
    }
    if (r == PS_OK)
        r = new_file_write(to, text, n, err);
    if (r == PS_OK)
        r = new_file_write(to, "       ", padded - n, err);
    free(text);
    return r;
}

/* ---- Numbers ---- */

static uint32_t bits_of(real x)
{
    const float value = (float)x;
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static ps_result put_numbers(new_file *to, const safetensors_item *item,
                             unsigned char *chunk, ps_error *err)
{
    const real *from = item->numbers;
    uint64_t left = numbers_of(item);
    ps_result r = PS_OK;

    while (left > 0 && r == PS_OK) {
        const size_t n = left < CHUNK ? (size_t)left : CHUNK;

        for (size_t i = 0; i < n; i++)
            store_u32(chunk + F32_BYTES * i, bits_of(from[i]));
        r = new_file_write(to, chunk, n * F32_BYTES, err);
        from += n;
        left -= n;
    }
    return r;
}

/* ---- The file ---- */

ps_result safetensors_put(new_file *to, const safetensors_item *items, size_t n,
                          ps_error *err)
{
    unsigned char *chunk = malloc(CHUNK * F32_BYTES);
    json_t *header = NULL;
    ps_result r = PS_OK;

    if (chunk == NULL)
        r = tr_error(err, PS_ERR_MEMORY, "out of memory");
    if (r == PS_OK)
        r = make_header(items, n, &header, err);
    if (r == PS_OK)
        r = put_header(to, header, err);
    for (size_t i = 0; i < n && r == PS_OK; i++)
        r = put_numbers(to, &items[i], chunk, err);
    json_decref(header);
    free(chunk);
    return r;
}

ps_result safetensors_write(int folder, const char *name,
                            const safetensors_item *items, size_t n,
                            ps_error *err)
{
    const int own = files_openat(folder, ".", O_RDONLY | O_DIRECTORY);
    new_file f;
    ps_result r;

    if (own < 0)
        return tr_error_errno(err);
    r = new_file_open(&f, own, name, err);
    if (r == PS_OK)
        r = safetensors_put(&f, items, n, err);
    if (r == PS_OK)
        r = new_file_sync(&f, err);
    if (r == PS_OK)
        r = new_file_publish(&f, err);
    new_file_abandon(&f);
    if (r == PS_OK && !files_sync_folder(own))
        r = tr_error_errno(err);
    (void)close(own);
    return r;
}
