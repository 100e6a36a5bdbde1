/*
 * folder.c - read the weights of a model folder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/folder.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "data/error.h"
#include "files/files.h"
#include "folder/model_config.h"
#include "folder/named_error.h"
#include "folder/weights.h"

/* Longest part of a tensor's name in messages. */
#define SHOWN 80

/* ---- Names ---- */

/* Other spellings of a name in files, which are combined. */
enum {
    SHORT = 1,     /* without the prefix of the base model */
    OLD_NORM = 2,  /* gamma and beta, as TensorFlow has them */
    OLD_BIAS = 4,  /* the second name of a tied bias */
    SPELLINGS = 8
};

/* Replaces the end `from` of a name; false if it ends otherwise. */
static bool replace_end(char *name, const char *from, const char *to)
{
    const size_t n = strlen(name), m = strlen(from);

    if (n < m || strcmp(name + n - m, from) != 0 ||
        n - m + strlen(to) >= TR_TENSOR_NAME)
        return false;
    memcpy(name + n - m, to, strlen(to) + 1);
    return true;
}

/* Sets `name` to a spelling of a tensor's name; false if it has none. */
static bool spell(const tr_tensor *t, unsigned spelling,
                  char name[TR_TENSOR_NAME])
{
    const size_t prefix = strncmp(t->name, "bert.", 5) == 0    ? 5
                          : strncmp(t->name, "model.", 6) == 0 ? 6
                                                               : 0;

    if ((spelling & SHORT) != 0 && prefix == 0)
        return false;
    (void)snprintf(name, TR_TENSOR_NAME, "%s",
                   t->name + ((spelling & SHORT) != 0 ? prefix : 0));
    if ((spelling & OLD_NORM) != 0 &&
        !replace_end(name, "LayerNorm.weight", "LayerNorm.gamma") &&
        !replace_end(name, "LayerNorm.bias", "LayerNorm.beta"))
        return false;
    return (spelling & OLD_BIAS) == 0 ||
           (strcmp(name, "cls.predictions.bias") == 0 &&
            replace_end(name, "bias", "decoder.bias"));
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

/* True for tensors that are computed, not trained. */
static bool is_buffer(const char *name)
{
    return ends_with(name, "position_ids") ||
           ends_with(name, "rotary_emb.inv_freq") ||
           ends_with(name, "rotary_pos_emb.inv_freq");
}

/* Returns the name of the tensor that is tied to this one, or NULL. */
static const char *tied_to(const char *name)
{
    static const char *const ties[][2] = {
        {"cls.predictions.decoder.weight",
         "bert.embeddings.word_embeddings.weight"},
        {"cls.predictions.decoder.bias", "cls.predictions.bias"},
        {"decoder.weight", "model.embeddings.tok_embeddings.weight"},
        {"lm_head.weight", "model.embed_tokens.weight"},
    };

    for (size_t i = 0; i < sizeof ties / sizeof *ties; i++)
        if (strcmp(ties[i][0], name) == 0)
            return ties[i][1];
    return NULL;
}

/* ---- Matching ---- */

/* The model's tensors and where the files have them. */
typedef struct match {
    const model_folder_request *request;
    weights files;
    weights_place *places; /* for each tensor of the model */
    bool **used;           /* for each file, for each of its tensors */
    model_folder_report *report;
    ps_error *err;
} match;

static bool open_match(match *m)
{
    m->places = calloc(m->request->n_tensors + 1, sizeof *m->places);
    m->used = calloc(m->files.n + 1, sizeof *m->used);
    if (m->places == NULL || m->used == NULL)
        return false;
    for (size_t i = 0; i < m->files.n; i++) {
        m->used[i] = calloc(safetensors_count(m->files.file[i]) + 1,
                            sizeof **m->used);
        if (m->used[i] == NULL)
            return false;
    }
    return true;
}

static void close_match(match *m)
{
    for (size_t i = 0; i < m->files.n && m->used != NULL; i++)
        free(m->used[i]);
    free(m->used);
    free(m->places);
    weights_close(&m->files);
}

/* Formats a shape as "[2, 3]", cut if it is long. */
#define SHAPE_BYTES 48

static void show_shape(const uint64_t *shape, size_t rank,
                       char text[SHAPE_BYTES])
{
    size_t at = (size_t)snprintf(text, SHAPE_BYTES, "[");

    for (size_t i = 0; i < rank && at < SHAPE_BYTES; i++)
        at += (size_t)snprintf(text + at, SHAPE_BYTES - at, "%s%" PRIu64,
                               i == 0 ? "" : ", ", shape[i]);
    if (at < SHAPE_BYTES - 1)
        memcpy(text + at, "]", 2);
    else
        memcpy(text + SHAPE_BYTES - 5, "...]", 5);
}

static ps_result check_form(const match *m, const tr_tensor *t,
                            const weights_place *place)
{
    const uint64_t both[2] = {t->rows, t->columns};
    const uint64_t *wanted = t->vector ? both + 1 : both;
    const size_t rank = t->vector ? 1 : 2;
    const safetensors_tensor *is = place->tensor;
    char found[SHAPE_BYTES], expected[SHAPE_BYTES];

    if (is->rank != rank ||
        memcmp(is->shape, wanted, rank * sizeof *wanted) != 0) {
        show_shape(is->shape, is->rank, found);
        show_shape(wanted, rank, expected);
        (void)tr_error(m->err, PS_ERR_CORRUPT,
                       "tensor %.*s: has the shape %s, but the model needs %s",
                       SHOWN, message_name(is->name), found, expected);
        return named_error(m->err, m->files.name[place->file]);
    }
    if (!safetensors_is_real(is)) {
        (void)tr_error(m->err, PS_ERR_UNSUPPORTED,
                       "tensor %.*s: has the type %s, not F32, F16, BF16 or "
                       "F64", SHOWN, message_name(is->name), is->type);
        return named_error(m->err, m->files.name[place->file]);
    }
    return PS_OK;
}

static void use(match *m, const weights_place *place)
{
    const safetensors *f = m->files.file[place->file];

    m->used[place->file][place->tensor - safetensors_at(f, 0)] = true;
}

/* Finds a tensor of the model under any of its spellings. */
static ps_result find_tensor(match *m, size_t i)
{
    const tr_tensor *t = &m->request->tensors[i];
    weights_place *place = &m->places[i];
    char name[TR_TENSOR_NAME];

    for (unsigned s = 0; s < SPELLINGS && place->tensor == NULL; s++)
        if (spell(t, s, name))
            *place = weights_find(&m->files, name);
    if (place->tensor != NULL) {
        use(m, place);
        return check_form(m, t, place);
    }
    if (!t->optional) {
        (void)tr_error(m->err, PS_ERR_CORRUPT, "tensor %s is missing",
                       message_name(t->name));
        return named_error(m->err, m->files.title);
    }
    if (m->report->n_missing++ == 0)
        m->report->missing = t;
    return PS_OK;
}

/* Returns the place of a tensor of the model in the files, or NULL. */
static const weights_place *place_of(const match *m, const char *name)
{
    for (size_t i = 0; i < m->request->n_tensors; i++)
        if (strcmp(m->request->tensors[i].name, name) == 0)
            return m->places[i].tensor == NULL ? NULL : &m->places[i];
    return NULL;
}

/* Checks a tensor that the model lacks: it must be known. */
static ps_result check_extra(match *m, size_t file, const safetensors_tensor *t)
{
    const char *tied = tied_to(t->name);
    const weights_place *first = tied == NULL ? NULL : place_of(m, tied);
    bool same = false;
    ps_result r = PS_OK;

    if (is_buffer(t->name))
        return PS_OK;
    if (first == NULL)
        r = tr_error(m->err, PS_ERR_CORRUPT, "unexpected tensor %.*s: the "
                     "model has none of this name", SHOWN,
                     message_name(t->name));
    else
        r = safetensors_equal(m->files.file[file], t,
                              m->files.file[first->file], first->tensor, &same,
                              m->err);
    if (r == PS_OK && !same)
        r = tr_error(m->err, PS_ERR_CORRUPT, "tensor %.*s: is tied to %.*s by "
                     "the model, but differs from it", SHOWN,
                     message_name(t->name), SHOWN, tied);
    return r == PS_OK ? r : named_error(m->err, m->files.name[file]);
}

static ps_result check_extras(match *m)
{
    for (size_t i = 0; i < m->files.n; i++)
        for (size_t k = 0; k < safetensors_count(m->files.file[i]); k++) {
            ps_result r;

            if (m->used[i][k])
                continue;
            r = check_extra(m, i, safetensors_at(m->files.file[i], k));
            if (r != PS_OK)
                return r;
        }
    return PS_OK;
}

/* ---- Loading ---- */

static ps_result check_finite(const match *m, const tr_tensor *t,
                              const real *numbers)
{
    for (size_t i = 0; i < (size_t)t->rows * t->columns; i++)
        if (!isfinite(numbers[i]))
            return tr_error(m->err, PS_ERR_CORRUPT,
                            "tensor %s: number %zu is not finite",
                            message_name(t->name), i);
    return PS_OK;
}

static ps_result read_numbers(const match *m, real *numbers)
{
    for (size_t i = 0; i < m->request->n_tensors; i++) {
        const tr_tensor *t = &m->request->tensors[i];
        const weights_place *place = &m->places[i];
        ps_result r;

        if (place->tensor == NULL)
            continue;
        r = safetensors_read(m->files.file[place->file], place->tensor,
                             numbers + t->offset, m->err);
        if (r == PS_OK)
            r = check_finite(m, t, numbers + t->offset);
        if (r != PS_OK)
            return named_error(m->err, m->files.name[place->file]);
    }
    return PS_OK;
}

ps_result model_folder_load(const char *path,
                            const model_folder_request *request, real *numbers,
                            model_folder_report *report, ps_error *err)
{
    match m = {.request = request, .report = report, .err = err};
    ps_result r = weights_open(&m.files, path, err);

    *report = (model_folder_report){0};
    if (r == PS_OK && !open_match(&m))
        r = tr_error(err, PS_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < request->n_tensors && r == PS_OK; i++)
        r = find_tensor(&m, i);
    if (r == PS_OK)
        r = check_extras(&m);
    if (r == PS_OK)
        r = read_numbers(&m, numbers);
    close_match(&m);
    return r;
}

ps_result model_folder_config(const char *path, tr_config *config,
                              ps_error *err)
{
    const int folder = files_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    ps_result r;

    if (folder < 0)
        return tr_error_errno(err);
    r = model_config_read(folder, config, err);
    (void)close(folder);
    return r;
}
