/*
 * folder_save.c - write a model folder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "data/error.h"
#include "files/files.h"
#include "folder/in_file.h"
#include "folder/json_file.h"
#include "folder/model_config.h"
#include "folder/named_error.h"
#include "folder/new_file.h"
#include "folder/weights.h"

/* Files of tokenizers, and settings for generating text. */
static const char *const copied[] = {
    "added_tokens.json",  "chat_template.jinja",
    "chat_template.json", "generation_config.json",
    "merges.txt",         "special_tokens_map.json",
    "spiece.model",       "tokenizer.json",
    "tokenizer.model",    "tokenizer_config.json",
    "vocab.json",         "vocab.txt",
};

#define N_COPIED (sizeof copied / sizeof *copied)

typedef struct saving {
    int folder;
    int source;       /* -1: none, or it was removed */
    bool is_made;     /* the folder did not exist */
    json_t *config;   /* of the new config.json */
    /* In the order in which they get their names; config.json is the last */
    new_file files[N_COPIED + 2];
    size_t n;
    size_t published; /* files that have their names */
    ps_error *err;
} saving;

/* ---- The folder ---- */

/* True for a shard, such as model-00001-of-00002.safetensors. */
static bool is_shard(const char *name)
{
    const char *end = strrchr(name, '.');

    return strncmp(name, "model-", 6) == 0 && strstr(name, "-of-") != NULL &&
           end != NULL && strcmp(end, ".safetensors") == 0;
}

/* Checks that the folder has neither an index nor shards. */
static ps_result check_folder(int folder, ps_error *err)
{
    const int again = files_openat(folder, ".", O_RDONLY | O_DIRECTORY);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;
    ps_result r = PS_OK;

    if (list == NULL) {
        r = tr_error_errno(err);
        if (again >= 0)
            (void)close(again);
        return r;
    }
    for (errno = 0; r == PS_OK && (entry = readdir(list)) != NULL; errno = 0)
        if (is_shard(entry->d_name) ||
            strcmp(entry->d_name, WEIGHTS_INDEX) == 0)
            r = tr_error(err, PS_ERR_ARGUMENT,
                         "has a model in shards (%.100s): choose another "
                         "folder, or remove it", entry->d_name);
    if (r == PS_OK && errno != 0)
        r = tr_error_errno(err);
    (void)closedir(list);
    return r;
}

/* Checks that a folder can be made, by making it for a moment. */
static ps_result check_parent(const char *path, ps_error *err)
{
    return mkdir(path, 0777) == 0 && rmdir(path) == 0 ? PS_OK
                                                      : tr_error_errno(err);
}

ps_result model_folder_check(const char *path, ps_error *err)
{
    const int folder = files_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    ps_result r;

    if (folder < 0)
        return errno == ENOENT ? check_parent(path, err) : tr_error_errno(err);
    r = check_folder(folder, err);
    if (r == PS_OK && faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        r = tr_error_errno(err);
    (void)close(folder);
    return r;
}

static ps_result open_target(saving *s, const char *path)
{
    if (mkdir(path, 0777) == 0)
        s->is_made = true;
    else if (errno != EEXIST)
        return tr_error_errno(s->err);
    s->folder = files_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    if (s->folder < 0)
        return tr_error_errno(s->err);
    return check_folder(s->folder, s->err);
}

/* From the same folder, nothing has to be copied. */
static bool is_same_folder(const saving *s)
{
    struct stat a, b;

    return fstat(s->source, &a) == 0 && fstat(s->folder, &b) == 0 &&
           files_are_one(&a, &b);
}

/* ---- config.json ---- */

/* True if an object of config.json describes this model, of which `composed` is
 * the object. */
static bool describes(const json_t *object, const json_t *composed)
{
    ps_error err;
    tr_config *const config = malloc(sizeof *config);
    json_t *again = NULL;
    bool same;

    if (config != NULL
        && model_config_parse(object, config, &err) == PS_OK)
        again = model_config_compose(config);
    same = again != NULL && json_equal(again, composed) != 0;
    json_decref(again);
    free(config);
    return same;
}

/* The source's config.json, unless it was changed or removed meanwhile. */
static ps_result make_config(saving *s, const model_folder_model *model)
{
    json_t *source = NULL;
    ps_error ignored;
    ps_result r;

    s->config = model_config_compose(model->config);
    if (s->config == NULL)
        return tr_error(s->err, PS_ERR_MEMORY, "out of memory");
    if (s->source >= 0
        && json_file_read(s->source, MODEL_CONFIG_NAME, MODEL_CONFIG_MAX,
                          &source, &ignored) == PS_OK
        && describes(source, s->config)) {
        json_decref(s->config);
        s->config = json_incref(source);
    }
    json_decref(source);
    r = model_config_adapt(s->config, s->err);
    return r == PS_OK ? r : named_error(s->err, MODEL_CONFIG_NAME);
}

/* ---- Files under temporary names ---- */

/* Starts the next file.  Ends with end_file if successful. */
static ps_result begin_file(saving *s, const char *name)
{
    ps_result r = new_file_open(&s->files[s->n], s->folder, name, s->err);

    if (r != PS_OK)
        return named_error(s->err, name);
    s->n++;
    return PS_OK;
}

/* Syncs the last file, unless writing failed. */
static ps_result end_file(saving *s, ps_result r)
{
    new_file *f = &s->files[s->n - 1];

    if (r == PS_OK)
        r = new_file_sync(f, s->err);
    return r == PS_OK ? r : named_error(s->err, f->name);
}

static ps_result put_weights(saving *s, const model_folder_model *model)
{
    safetensors_item *items = calloc(model->n_tensors + 1, sizeof *items);
    ps_result r;

    if (items == NULL)
        return tr_error(s->err, PS_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < model->n_tensors; i++) {
        const tr_tensor *t = &model->tensors[i];

        items[i] = (safetensors_item){.name = t->name,
                                      .rank = t->vector ? 1 : 2,
                                      .numbers = model->numbers + t->offset};
        items[i].shape[0] = t->vector ? t->columns : t->rows;
        items[i].shape[1] = t->vector ? 0 : t->columns;
    }
    r = begin_file(s, WEIGHTS_NAME);
    if (r == PS_OK)
        r = end_file(s, safetensors_put(&s->files[s->n - 1], items,
                                        model->n_tensors, s->err));
    free(items);
    return r;
}

#define CHUNK ((size_t)1 << 16)

static ps_result copy_bytes(saving *s, int from, uint64_t size)
{
    unsigned char *chunk = malloc(CHUNK);
    ps_result r = PS_OK;

    if (chunk == NULL)
        return tr_error(s->err, PS_ERR_MEMORY, "out of memory");
    for (uint64_t at = 0; at < size && r == PS_OK; at += CHUNK) {
        const size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;

        r = in_file_read(from, chunk, n, at, s->err);
        if (r == PS_OK)
            r = new_file_write(&s->files[s->n - 1], chunk, n, s->err);
    }
    free(chunk);
    return r;
}

/* Copies a file of the source, unless it has none of this name. */
static ps_result copy_file(saving *s, const char *name)
{
    uint64_t size;
    int from;
    ps_result r = in_file_open(s->source, name, &from, &size, s->err);

    if (r == PS_ERR_IO && s->err->sys_errno == ENOENT)
        return PS_OK;
    if (r != PS_OK)
        return named_error(s->err, name);
    r = begin_file(s, name);
    if (r == PS_OK)
        r = end_file(s, copy_bytes(s, from, size));
    (void)close(from);
    return r;
}

static ps_result put_config(saving *s)
{
    char *text = json_file_text(s->config);
    ps_result r;

    if (text == NULL)
        return tr_error(s->err, PS_ERR_MEMORY, "out of memory");
    r = begin_file(s, MODEL_CONFIG_NAME);
    if (r == PS_OK)
        r = end_file(s, new_file_write(&s->files[s->n - 1], text, strlen(text),
                                       s->err));
    free(text);
    return r;
}

static ps_result put_all(saving *s, const model_folder_model *model)
{
    const bool copies = s->source >= 0 && !is_same_folder(s);
    ps_result r = PS_OK;

    for (size_t i = 0; i < N_COPIED && copies && r == PS_OK; i++)
        r = copy_file(s, copied[i]);
    if (r == PS_OK)
        r = put_weights(s, model);
    return r == PS_OK ? put_config(s) : r;
}

/* ---- Names ---- */

static ps_result publish(saving *s)
{
    while (s->published < s->n) {
        ps_result r = new_file_publish(&s->files[s->published], s->err);

        if (r != PS_OK)
            return named_error(s->err, s->files[s->published].name);
        s->published++;
    }
    return files_sync_folder(s->folder) ? PS_OK : tr_error_errno(s->err);
}

/* Syncs the name of a new folder. */
static ps_result sync_parent(saving *s)
{
    const int parent = files_openat(s->folder, "..", O_RDONLY | O_DIRECTORY);
    const bool done = parent >= 0 && files_sync_folder(parent);
    ps_result r = done ? PS_OK : tr_error_errno(s->err);

    if (parent >= 0)
        (void)close(parent);
    return r;
}

/* Removes what a failed call wrote. */
static void undo(saving *s, const char *path)
{
    for (size_t i = s->published; i < s->n; i++)
        new_file_abandon(&s->files[i]);
    if (!s->is_made)
        return;
    for (size_t i = 0; i < s->published; i++)
        (void)unlinkat(s->folder, s->files[i].name, 0);
    (void)rmdir(path);
}

ps_result model_folder_save(const char *path, const model_folder_model *model,
                            ps_error *err)
{
    saving s = {.folder = -1, .source = -1, .err = err};
    ps_result r = open_target(&s, path);

    if (r == PS_OK && model->source != NULL)
        s.source = files_openat(AT_FDCWD, model->source,
                                O_RDONLY | O_DIRECTORY);
    if (r == PS_OK)
        r = make_config(&s, model);
    if (r == PS_OK)
        r = put_all(&s, model);
    if (r == PS_OK)
        r = publish(&s);
    if (r == PS_OK && s.is_made)
        r = sync_parent(&s);
    if (r != PS_OK)
        undo(&s, path);
    json_decref(s.config);
    if (s.source >= 0)
        (void)close(s.source);
    if (s.folder >= 0)
        (void)close(s.folder);
    return r;
}
