/*
 * model_folder.c - reads and writes model folders, for tests in Python.
 *
 * usage: model_folder config FOLDER...
 *        model_folder compose FOLDER
 *        model_folder check FILE...
 *        model_folder list
 *        model_folder rewrite FILE OUT
 *        model_folder load FOLDER TABLE
 *        model_folder save FOLDER TABLE SOURCE|-
 *
 * config prints a line of JSON for each folder: the parsed config.json, or
 * {"error": MESSAGE}.  compose prints config.json for the config of FOLDER.
 * check prints "ok", or the code and the message, for each safetensors file;
 * list does so for the names on stdin.  rewrite reads all tensors and writes
 * them again.
 *
 * A line of TABLE is NAME ROWS COLUMNS FLAGS; flags are v for a vector, o for
 * an optional tensor, - for none.  load prints the number of missing tensors,
 * and then all numbers, in the format of the machine; they are -1 before.  save
 * reads the numbers from stdin; the config is that of SOURCE or, if that is -,
 * of FOLDER.config.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folder/folder.h"
#include "folder/json_file.h"
#include "folder/model_config.h"

/* Exits with a message. */
static void must(bool done, const char *what)
{
    if (done)
        return;
    (void)fprintf(stderr, "model_folder: %s\n", what);
    exit(1);
}

/* ---- config.json ---- */

static json_t *json_of_rope(const tr_rope *r)
{
    return json_pack("{s:f,s:f,s:f,s:f,s:I}", "theta", r->theta, "factor",
                     r->factor, "low", r->low_factor, "high", r->high_factor,
                     "old", (json_int_t)r->old_positions);
}

static json_t *json_of_config(const tr_config *c)
{
    json_t *windowed = json_array();

    for (uint32_t i = 0; i < c->layers; i++)
        (void)json_array_append_new(windowed, json_boolean(c->windowed[i]));
    return json_pack(
        "{s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:i,s:f,s:f,s:I,s:I,s:I,s:b,s:b,s:b,"
        "s:o,s:o,s:I,s:o}",
        "family", (int)c->family, "vocab_size", (json_int_t)c->vocab_size,
        "hidden", (json_int_t)c->hidden, "layers", (json_int_t)c->layers,
        "heads", (json_int_t)c->heads, "intermediate",
        (json_int_t)c->intermediate, "positions", (json_int_t)c->positions,
        "activation", (int)c->activation, "epsilon", c->epsilon, "dropout",
        c->dropout, "types", (json_int_t)c->types, "kv_heads",
        (json_int_t)c->kv_heads, "head_width", (json_int_t)c->head_width,
        "tied", c->tied, "qkv_bias", c->qkv_bias, "qk_norm", c->qk_norm, "rope",
        json_of_rope(&c->rope), "local_rope", json_of_rope(&c->local_rope),
        "window", (json_int_t)c->window, "windowed", windowed);
}

static void print_config(const char *path)
{
    static tr_config config;
    ps_error err;
    json_t *object = model_folder_config(path, &config, &err) == PS_OK
                         ? json_of_config(&config)
                         : json_pack("{s:s}", "error", err.text);

    must(object != NULL && json_dumpf(object, stdout, JSON_COMPACT) == 0,
         "cannot print the config");
    putchar('\n');
    json_decref(object);
}

static void compose(const char *path)
{
    static tr_config config;
    json_t *object;
    ps_error err;
    char *text;

    must(model_folder_config(path, &config, &err) == PS_OK, err.text);
    object = model_config_compose(&config);
    text = json_file_text(object);
    must(text != NULL, "out of memory");
    fputs(text, stdout);
    free(text);
    json_decref(object);
}

/* ---- One file ---- */

static void check(const char *name)
{
    safetensors *file;
    ps_error err;
    ps_result r = safetensors_open(AT_FDCWD, name, &file, &err);

    if (r == PS_OK)
        puts("ok");
    else
        printf("%d %s\n", (int)r, err.text);
    safetensors_close(file);
}

static void check_list(void)
{
    char name[4096];

    while (fgets(name, sizeof name, stdin) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        check(name);
    }
}

static void rewrite(const char *from, const char *to)
{
    safetensors_item *items;
    safetensors *file;
    real **numbers;
    ps_error err;
    size_t n;

    must(safetensors_open(AT_FDCWD, from, &file, &err) == PS_OK, err.text);
    n = safetensors_count(file);
    items = calloc(n + 1, sizeof *items);
    numbers = calloc(n + 1, sizeof *numbers);
    must(items != NULL && numbers != NULL, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const safetensors_tensor *t = safetensors_at(file, i);

        numbers[i] = malloc(sizeof(real) * (size_t)t->numbers + 1);
        must(numbers[i] != NULL, "out of memory");
        must(t->rank == 1 || t->rank == 2, "more than two dimensions");
        must(safetensors_read(file, t, numbers[i], &err) == PS_OK, err.text);
        items[i] = (safetensors_item){.name = t->name, .rank = t->rank,
                                      .numbers = numbers[i]};
        memcpy(items[i].shape, t->shape, t->rank * sizeof *t->shape);
    }
    must(safetensors_write(AT_FDCWD, to, items, n, &err) == PS_OK, err.text);
    for (size_t i = 0; i < n; i++)
        free(numbers[i]);
    free(numbers);
    free(items);
    safetensors_close(file);
}

/* ---- Folders ---- */

typedef struct table {
    tr_tensor *tensors;
    size_t n;
    size_t numbers;
} table;

static table read_table(const char *name)
{
    FILE *in = fopen(name, "r");
    unsigned long rows, columns;
    char tensor[TR_TENSOR_NAME], flags[8];
    table t = {0};

    must(in != NULL, "cannot open the table");
    while (fscanf(in, "%95s %lu %lu %7s", tensor, &rows, &columns, flags) ==
           4) {
        t.tensors = realloc(t.tensors, (t.n + 1) * sizeof *t.tensors);
        must(t.tensors != NULL, "out of memory");
        t.tensors[t.n] = (tr_tensor){.rows = (uint32_t)rows,
                                     .columns = (uint32_t)columns,
                                     .offset = t.numbers,
                                     .vector = strchr(flags, 'v') != NULL,
                                     .optional = strchr(flags, 'o') != NULL};
        (void)strcpy(t.tensors[t.n++].name, tensor);
        t.numbers += rows * columns;
    }
    (void)fclose(in);
    return t;
}

static void load(const char *path, const char *table_name)
{
    const table t = read_table(table_name);
    const model_folder_request request = {t.tensors, t.n};
    real *numbers = malloc((t.numbers + 1) * sizeof *numbers);
    model_folder_report report;
    ps_error err;

    must(numbers != NULL, "out of memory");
    for (size_t i = 0; i < t.numbers; i++)
        numbers[i] = -1;
    must(model_folder_load(path, &request, numbers, &report, &err) == PS_OK,
         err.text);
    printf("%zu\n", report.n_missing);
    must(fwrite(numbers, sizeof *numbers, t.numbers, stdout) == t.numbers,
         "cannot write");
    free(numbers);
    free(t.tensors);
}

static void save(const char *path, const char *table_name, const char *source)
{
    static tr_config config;
    const table t = read_table(table_name);
    real *numbers = malloc((t.numbers + 1) * sizeof *numbers);
    const bool composed = strcmp(source, "-") == 0;
    const model_folder_model model = {
        .source = composed ? NULL : source,
        .config = &config,
        .tensors = t.tensors,
        .n_tensors = t.n,
        .numbers = numbers};
    char other[4096];
    ps_error err;

    must(numbers != NULL &&
         fread(numbers, sizeof *numbers, t.numbers, stdin) == t.numbers,
         "cannot read the numbers");
    (void)snprintf(other, sizeof other, "%s.config", path);
    must(model_folder_config(composed ? other : source, &config, &err) == PS_OK,
         err.text);
    must(model_folder_check(path, &err) == PS_OK, err.text);
    must(model_folder_save(path, &model, &err) == PS_OK, err.text);
    free(numbers);
    free(t.tensors);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "config") == 0)
        for (int i = 2; i < argc; i++)
            print_config(argv[i]);
    else if (strcmp(what, "compose") == 0 && argc == 3)
        compose(argv[2]);
    else if (strcmp(what, "check") == 0)
        for (int i = 2; i < argc; i++)
            check(argv[i]);
    else if (strcmp(what, "list") == 0 && argc == 2)
        check_list();
    else if (strcmp(what, "rewrite") == 0 && argc == 4)
        rewrite(argv[2], argv[3]);
    else if (strcmp(what, "load") == 0 && argc == 4)
        load(argv[2], argv[3]);
    else if (strcmp(what, "save") == 0 && argc == 5)
        save(argv[2], argv[3], argv[4]);
    else
        must(false, "usage: see the comment at the top of its source");
    return 0;
}
