/*
 * model.c - fuzzing target: the files of a model folder.
 *
 * The input: a byte that selects a safetensors file (even) or config.json
 * (odd), and the file.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "folder/json_file.h"
#include "folder/model_config.h"
#include "folder/safetensors.h"

_Noreturn void must_fail(const char *what, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

/* A message is printable and not empty. */
static void check_error(const ps_error *err, ps_result r)
{
    must(err->code == r && err->text[0] != '\0');
    for (const char *c = err->text; *c != '\0'; c++)
        must(*c >= ' ' && *c <= '~');
}

/* Sizes are those of the data, so every number can be allocated and read. */
static void read_tensors(const safetensors *file, size_t size)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < safetensors_count(file); i++) {
        const safetensors_tensor *t = safetensors_at(file, i);
        ps_error err;
        real *to;

        must(t->begin <= t->end && t->end <= size);
        must(safetensors_find(file, t->name) == t);
        sum += t->end - t->begin;
        if (!safetensors_is_real(t))
            continue;
        must(t->numbers <= size);
        to = malloc((size_t)t->numbers * sizeof *to + 1);
        must(to != NULL);
        must(safetensors_read(file, t, to, &err) == PS_OK);
        free(to);
    }
    must(sum <= size);
}

static void run_safetensors(const uint8_t *data, size_t size)
{
    FILE *out = tmpfile();
    safetensors *file;
    char name[32];
    ps_error err;
    ps_result r;

    must(out != NULL && fwrite(data, 1, size, out) == size &&
         fflush(out) == 0);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", fileno(out));
    r = safetensors_open(AT_FDCWD, name, &file, &err);
    if (r == PS_OK)
        read_tensors(file, size);
    else
        check_error(&err, r);
    safetensors_close(file);
    (void)fclose(out);
}

/* A config that is accepted is composed and parsed as the same. */
static void run_config(const uint8_t *data, size_t size)
{
    static tr_config config;
    json_t *object;
    ps_error err;
    ps_result r = json_file_parse((const char *)data, size, 0, &object, &err);

    if (r == PS_OK)
        r = model_config_parse(object, &config, &err);
    json_decref(object);
    if (r != PS_OK) {
        check_error(&err, r);
        return;
    }
    must(model_config_check(&config, &err) == PS_OK);
    must(config.heads % config.kv_heads == 0 && config.rope.theta > 0 &&
         config.layers <= TR_LAYERS_MAX);
    object = model_config_compose(&config);
    must(object != NULL);
    must(model_config_parse(object, &config, &err) == PS_OK);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 2 == 0)
        run_safetensors(data + 1, size - 1);
    else
        run_config(data + 1, size - 1);
    return 0;
}
