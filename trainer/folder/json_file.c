/*
 * json_file.c - a JSON object in a file.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/json_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "data/error.h"
#include "folder/in_file.h"

/* Longest part of jansson's message that is shown; it quotes the file. */
#define WHY_BYTES 120

ps_result json_file_parse(const char *text, size_t n, uint64_t at,
                          json_t **object, ps_error *err)
{
    const char *nul = memchr(text, '\0', n);
    json_error_t why = {0};

    *object = NULL;
    /* jansson skips a NUL after a number. */
    if (nul != NULL)
        return tr_error(err, PS_ERR_CORRUPT, "byte %llu: a NUL is not JSON",
                        (unsigned long long)(at + (uint64_t)(nul - text)));
    *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (*object == NULL && json_error_code(&why) == json_error_out_of_memory)
        return tr_error(err, PS_ERR_MEMORY, "out of memory");
    if (*object == NULL)
        return tr_error(err, PS_ERR_CORRUPT, "byte %llu: not JSON: %.*s",
                        (unsigned long long)at +
                            (why.position > 0 ? (unsigned)why.position : 0),
                        WHY_BYTES, message_name(why.text));
    if (json_is_object(*object))
        return PS_OK;
    json_decref(*object);
    *object = NULL;
    return tr_error(err, PS_ERR_CORRUPT, "not a JSON object");
}

ps_result json_file_read(int folder, const char *name, size_t max,
                         json_t **object, ps_error *err)
{
    char *text = NULL;
    uint64_t size;
    ps_result r;
    int fd;

    *object = NULL;
    r = in_file_open(folder, name, &fd, &size, err);
    if (r != PS_OK)
        return r;
    if (size > max)
        r = tr_error(err, PS_ERR_LIMIT, "%llu bytes, but the limit is %zu",
                     (unsigned long long)size, max);
    if (r == PS_OK && (text = malloc((size_t)size + 1)) == NULL)
        r = tr_error(err, PS_ERR_MEMORY, "out of memory");
    if (r == PS_OK)
        r = in_file_read(fd, text, (size_t)size, 0, err);
    if (r == PS_OK)
        r = json_file_parse(text, (size_t)size, 0, object, err);
    free(text);
    (void)close(fd);
    return r;
}

char *json_file_text(const json_t *object)
{
    /* Python prints the shortest form; 17 digits would turn 1e-12 into
     * 9.9999999999999998e-13. */
    for (size_t digits = 15;; digits++) {
        char *text = json_dumps(object, JSON_INDENT(2) |
                                            JSON_REAL_PRECISION(digits));
        const size_t n = text == NULL ? 0 : strlen(text);
        json_t *again;
        char *longer;
        bool is_same;

        if (text == NULL)
            return NULL;
        again = json_loadb(text, n, 0, NULL);
        is_same = again != NULL && json_equal(again, object) != 0;
        json_decref(again);
        if (is_same || digits == 17) {
            longer = realloc(text, n + 2);
            if (longer == NULL) {
                free(text);
                return NULL;
            }
            memcpy(longer + n, "\n", 2);
            return longer;
        }
        free(text);
    }
}
