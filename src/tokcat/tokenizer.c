/*
 * tokenizer.c - the digest and vocabulary size of a tokenizer file.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/tokenizer.h"

#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <xxhash.h>

#include "cli/message.h"
#include "files/files.h"
#include "tokcat/input.h"

int tokenizer_digest(const char *name, unsigned char digest[32])
{
    XXH3_state_t *state = XXH3_createState();
    const int fd = files_open_input(name);
    unsigned char block[65536];
    XXH128_canonical_t canonical;
    ssize_t n = -1;

    if (state == NULL)
        message_error("%s: out of memory", files_input_name(name));
    if (fd >= 0 && state != NULL) {
        (void)XXH3_128bits_reset(state);
        while ((n = input_read(fd, block, sizeof block)) > 0)
            (void)XXH3_128bits_update(state, block, (size_t)n);
        if (n < 0)
            message_errno("%s: cannot read", files_input_name(name));
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
        memset(digest, 0, 32);
        memcpy(digest, canonical.digest, sizeof canonical.digest);
    }
    if (fd >= 0)
        files_close_input(fd);
    (void)XXH3_freeState(state);
    return n == 0 ? STATUS_OK : STATUS_FAILURE;
}

/* Raises *size to more than an id.  Ignores values that are not ids. */
static void count_id(const json_t *id, uint32_t *size)
{
    const json_int_t value = json_integer_value(id);

    if (json_is_integer(id) && value >= 0 && value < UINT32_MAX &&
        value >= *size)
        *size = (uint32_t)value + 1;
}

/*
 * Set when memory runs out, since jansson reports some allocation failures as
 * syntax errors.  Static because jansson's allocator has no context argument.
 */
static bool ran_out;

static void *allocate(size_t size)
{
    void *p = malloc(size);

    ran_out = ran_out || p == NULL;
    return p;
}

/* Callback for jansson; `fd` points to the descriptor. */
static size_t read_some(void *to, size_t n, void *fd)
{
    const ssize_t got = input_read(*(const int *)fd, to, n);

    return got < 0 ? (size_t)-1 : (size_t)got;
}

int tokenizer_vocabulary(const char *name, uint32_t *size)
{
    int fd = files_open_input(name);
    json_t *tokenizer;
    json_t *vocabulary;
    json_t *added;
    json_t *value;
    const char *key;
    size_t i;

    if (fd < 0)
        return STATUS_FAILURE;
    json_set_alloc_funcs(allocate, free);
    tokenizer = json_load_callback(read_some, &fd, JSON_ALLOW_NUL, NULL);
    files_close_input(fd);

    /*
     * "vocab" maps tokens to ids or, for Unigram models, lists tokens in the
     * order of their ids.  Added tokens are listed separately.
     */
    vocabulary = json_object_get(json_object_get(tokenizer, "model"), "vocab");
    added = json_object_get(tokenizer, "added_tokens");
    i = json_array_size(vocabulary);
    *size = i < UINT32_MAX ? (uint32_t)i : UINT32_MAX;
    json_object_foreach(vocabulary, key, value)
        count_id(value, size);
    if (vocabulary != NULL)
        json_array_foreach(added, i, value)
            count_id(json_object_get(value, "id"), size);
    json_decref(tokenizer);
    if (!ran_out)
        return STATUS_OK;
    message_error("%s: out of memory", files_input_name(name));
    return STATUS_FAILURE;
}
