/*
 * weights.c - the safetensors files of a model folder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/message.h"
#include "data/error.h"
#include "files/files.h"
#include "folder/json_file.h"
#include "folder/named_error.h"

/* Largest index that is read, in bytes. */
#define INDEX_MAX ((size_t)1 << 26)

/* Longest part of a name in messages. */
#define SHOWN 80

static ps_result no_memory(ps_error *err)
{
    return tr_error(err, PS_ERR_MEMORY, "out of memory");
}

/* ---- Files ---- */

/* Opens one more file.  Errors do not name it. */
static ps_result open_file(weights *w, int folder, const char *name,
                           ps_error *err)
{
    safetensors **file = realloc(w->file, (w->n + 1) * sizeof *file);
    char **names;
    ps_result r;

    if (file == NULL)
        return no_memory(err);
    w->file = file;
    names = realloc(w->name, (w->n + 1) * sizeof *names);
    if (names == NULL)
        return no_memory(err);
    w->name = names;
    names[w->n] = files_join(name, strlen(name), "");
    if (names[w->n] == NULL)
        return no_memory(err);
    r = safetensors_open(folder, name, &w->file[w->n], err);
    if (r != PS_OK)
        free(names[w->n]);
    else
        w->n++;
    return r;
}

weights_place weights_find(const weights *w, const char *name)
{
    weights_place place = {0};

    for (; place.file < w->n; place.file++) {
        place.tensor = safetensors_find(w->file[place.file], name);
        if (place.tensor != NULL)
            return place;
    }
    return (weights_place){0};
}

/* ---- The index ---- */

/* True for a name without a path. */
static bool is_plain(const char *name)
{
    return *name != '\0' && strlen(name) < 256 && strchr(name, '/') == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool is_open(const weights *w, const char *name)
{
    for (size_t i = w->n; i-- > 0;)
        if (strcmp(w->name[i], name) == 0)
            return true;
    return false;
}

/* Opens the files that the map names, each once. */
static ps_result open_files(weights *w, int folder, json_t *map,
                            ps_error *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(map, key, value) {
        const char *name = json_string_value(value);
        ps_result r;

        if (name == NULL || !is_plain(name)) {
            (void)tr_error(err, PS_ERR_CORRUPT, "tensor %.*s: the file %.*s is "
                           "not a name in this folder", SHOWN,
                           message_name(key), SHOWN,
                           name == NULL ? "" : message_name(name));
            return named_error(err, WEIGHTS_INDEX);
        }
        if (is_open(w, name))
            continue;
        if (w->n == WEIGHTS_FILES_MAX) {
            (void)tr_error(err, PS_ERR_LIMIT, "names more than %d files",
                           WEIGHTS_FILES_MAX);
            return named_error(err, WEIGHTS_INDEX);
        }
        r = open_file(w, folder, name, err);
        if (r != PS_OK)
            return named_error(err, name);
    }
    return PS_OK;
}

/* Checks that the map has exactly the tensors of the files. */
static ps_result check_map(const weights *w, json_t *map, ps_error *err)
{
    const char *key;
    json_t *value;
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < safetensors_count(w->file[i]); k++, n++) {
            const safetensors_tensor *t = safetensors_at(w->file[i], k);
            const char *file =
                json_string_value(json_object_get(map, t->name));

            if (file != NULL && strcmp(file, w->name[i]) == 0)
                continue;
            (void)tr_error(err, PS_ERR_CORRUPT, "tensor %.*s: the index has "
                           "it in %.*s", SHOWN, message_name(t->name), SHOWN,
                           file == NULL ? "no file" : message_name(file));
            return named_error(err, w->name[i]);
        }
    if (n == json_object_size(map))
        return PS_OK;
    json_object_foreach(map, key, value) {
        if (weights_find(w, key).tensor != NULL)
            continue;
        (void)tr_error(err, PS_ERR_CORRUPT, "tensor %.*s: is not in %.*s",
                       SHOWN, message_name(key), SHOWN,
                       message_name(json_string_value(value)));
        return named_error(err, WEIGHTS_INDEX);
    }
    return PS_OK;
}

static ps_result open_index(weights *w, int folder, ps_error *err)
{
    json_t *map;
    json_t *index;
    ps_result r = json_file_read(folder, WEIGHTS_INDEX, INDEX_MAX, &index, err);

    w->title = WEIGHTS_INDEX;
    if (r == PS_ERR_IO && err->sys_errno == ENOENT)
        return tr_error(err, PS_ERR_CORRUPT, "has neither " WEIGHTS_NAME
                                             " nor " WEIGHTS_INDEX);
    if (r != PS_OK)
        return named_error(err, WEIGHTS_INDEX);
    map = json_object_get(index, "weight_map");
    if (json_object_size(map) == 0) {
        (void)tr_error(err, PS_ERR_CORRUPT, "no object \"weight_map\" with "
                                            "names of tensors");
        r = named_error(err, WEIGHTS_INDEX);
    }
    if (r == PS_OK)
        r = open_files(w, folder, map, err);
    if (r == PS_OK)
        r = check_map(w, map, err);
    json_decref(index);
    return r;
}

/* ---- The folder ---- */

ps_result weights_open(weights *w, const char *path, ps_error *err)
{
    const int folder = files_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    ps_result r;

    *w = (weights){.title = WEIGHTS_NAME};
    if (folder < 0)
        return tr_error_errno(err);
    r = open_file(w, folder, WEIGHTS_NAME, err);
    if (r == PS_ERR_IO && err->sys_errno == ENOENT)
        r = open_index(w, folder, err);
    else if (r != PS_OK)
        (void)named_error(err, WEIGHTS_NAME);
    (void)close(folder);
    return r;
}

void weights_close(weights *w)
{
    for (size_t i = 0; i < w->n; i++) {
        safetensors_close(w->file[i]);
        free(w->name[i]);
    }
    free(w->file);
    free(w->name);
    *w = (weights){0};
}
