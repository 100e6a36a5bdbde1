/*
 * model-folder-t.c - model folders are saved completely or not at all, and read
 * completely or not at all.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder/folder.h"
#include "folder/json_file.h"
#include "folder/model_config.h"

#define WORD "bert.embeddings.word_embeddings.weight"

static const tr_tensor tensors[] = {
    {.name = WORD, .rows = 50, .columns = 4, .offset = 0},
    {.name = "bert.embeddings.LayerNorm.weight", .rows = 1, .columns = 4,
     .offset = 200, .vector = true},
    {.name = "bert.pooler.dense.weight", .rows = 4, .columns = 4, .offset = 204,
     .optional = true},
    {.name = "cls.predictions.bias", .rows = 1, .columns = 50, .offset = 220,
     .vector = true},
};

#define NUMBERS 270

static const tr_config small = {.family = TR_BERT, .vocab_size = 50,
                                .hidden = 4, .layers = 1, .heads = 2,
                                .intermediate = 8, .positions = 16,
                                .activation = TR_GELU_TANH, .epsilon = 1e-12,
                                .deviation = 0.02,
                                .dropout = 0.1, .types = 2, .kv_heads = 2,
                                .head_width = 2, .tied = true,
                                .rope = {.theta = 10000, .factor = 1},
                                .local_rope = {.theta = 10000, .factor = 1}};

/* A test's folder, and a model's folder in it. */
typedef struct place {
    char path[40];
    char model[48];
    char other[48];
    real numbers[NUMBERS];
} place;

static int open_place(void **state)
{
    static place p;

    p = (place){.path = "/tmp/model-folder-t.XXXXXX"};
    assert_non_null(mkdtemp(p.path));
    (void)snprintf(p.model, sizeof p.model, "%s/model", p.path);
    (void)snprintf(p.other, sizeof p.other, "%s/other", p.path);
    for (int i = 0; i < NUMBERS; i++)
        p.numbers[i] = (real)i / 4;
    *state = &p;
    return 0;
}

static void remove_all(const char *path)
{
    DIR *list = opendir(path);
    const struct dirent *entry;

    if (list == NULL)
        return;
    while ((entry = readdir(list)) != NULL)
        if (*entry->d_name != '.')
            assert_int_equal(unlinkat(dirfd(list), entry->d_name, 0), 0);
    (void)closedir(list);
    assert_int_equal(rmdir(path), 0);
}

static int close_place(void **state)
{
    const place *p = *state;

    remove_all(p->model);
    remove_all(p->other);
    return rmdir(p->path);
}

/* Writes a small file in a folder. */
static void put(const char *folder, const char *name, const char *text)
{
    char path[128];
    FILE *out;

    (void)mkdir(folder, 0777);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fputs(text, out) < 0, 0);
    assert_int_equal(fclose(out), 0);
}

/* Number of files in a folder; -1: no folder. */
static int count(const char *folder)
{
    DIR *list = opendir(folder);
    const struct dirent *entry;
    int n = 0;

    if (list == NULL)
        return -1;
    while ((entry = readdir(list)) != NULL)
        n += *entry->d_name != '.';
    (void)closedir(list);
    return n;
}

static ps_result save(const place *p, size_t n_tensors, const char *source,
                      ps_error *err)
{
    const model_folder_model model = {.source = source,
                                      .config = &small,
                                      .tensors = tensors,
                                      .n_tensors = n_tensors,
                                      .numbers = p->numbers};

    return model_folder_save(p->model, &model, err);
}

static ps_result load(const place *p, real *numbers,
                      model_folder_report *report, ps_error *err)
{
    const model_folder_request request = {tensors, COUNT(tensors)};

    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = -1;
    return model_folder_load(p->model, &request, numbers, report, err);
}

static void assert_untouched(const real *numbers)
{
    for (int i = 0; i < NUMBERS; i++)
        assert_true(numbers[i] == -1);
}

/* A saved folder can be read again, and has no other files. */
static void test_round_trip(void **state)
{
    const place *p = *state;
    real numbers[NUMBERS];
    model_folder_report report;
    static tr_config config;
    ps_error err;

    assert_int_equal(model_folder_check(p->model, &err), PS_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(save(p, COUNT(tensors), NULL, &err), PS_OK);
        assert_int_equal(count(p->model), 2);
    }
    assert_int_equal(load(p, numbers, &report, &err), PS_OK);
    assert_memory_equal(numbers, p->numbers, sizeof numbers);
    assert_int_equal(report.n_missing, 0);
    assert_int_equal(model_folder_config(p->model, &config, &err), PS_OK);
    assert_memory_equal(&config, &small, sizeof config);
}

/* Missing optional tensors keep their values and are counted. */
static void test_optional(void **state)
{
    const place *p = *state;
    const model_folder_model model = {.config = &small,
                                      .tensors = tensors + 3,
                                      .n_tensors = 1,
                                      .numbers = p->numbers};
    tr_tensor wanted[2] = {tensors[2], tensors[3]};
    const model_folder_request request = {wanted, 2};
    model_folder_report report;
    real numbers[NUMBERS];
    ps_error err;

    numbers[204] = 99;
    assert_int_equal(model_folder_save(p->model, &model, &err), PS_OK);
    assert_int_equal(
        model_folder_load(p->model, &request, numbers, &report, &err), PS_OK);
    assert_int_equal(report.n_missing, 1);
    assert_ptr_equal(report.missing, &wanted[0]);
    assert_true(numbers[204] == 99 && numbers[221] == p->numbers[221]);
    wanted[0].optional = false;
    assert_int_equal(
        model_folder_load(p->model, &request, numbers, &report, &err),
        PS_ERR_CORRUPT);
    assert_string_equal(err.text, "model.safetensors: tensor "
                                  "bert.pooler.dense.weight is missing");
}

/* If one tensor does not fit, no number is written. */
static void test_untouched(void **state)
{
    const place *p = *state;
    real numbers[NUMBERS];
    model_folder_report report;
    ps_error err;

    assert_int_equal(load(p, numbers, &report, &err), PS_ERR_IO);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_int_equal(save(p, 3, NULL, &err), PS_OK);
    assert_int_equal(load(p, numbers, &report, &err), PS_ERR_CORRUPT);
    assert_string_equal(err.text, "model.safetensors: tensor "
                                  "cls.predictions.bias is missing");
    assert_untouched(numbers);
    put(p->model, "model.safetensors", "short");
    assert_int_equal(load(p, numbers, &report, &err), PS_ERR_TRUNCATED);
    assert_string_equal(err.text, "model.safetensors: the file ends at byte 5");
    assert_untouched(numbers);
}

/* A failure leaves no folder that did not exist, and no temporary file. */
static void test_full(void **state)
{
    const place *p = *state;
    struct rlimit limit, old;
    real numbers[NUMBERS];
    model_folder_report report;
    ps_error err;

    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 1024;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(save(p, COUNT(tensors), NULL, &err), PS_ERR_IO);
    assert_string_equal(err.text, "model.safetensors: File too large");
    assert_int_equal(count(p->model), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);

    assert_int_equal(save(p, COUNT(tensors), NULL, &err), PS_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(save(p, COUNT(tensors), NULL, &err), PS_ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(count(p->model), 2);
    assert_int_equal(load(p, numbers, &report, &err), PS_OK);
}

/* Names that are taken by something else are errors. */
static void test_names(void **state)
{
    const place *p = *state;
    char path[64];
    ps_error err;

    put(p->path, "model", "");
    assert_int_equal(save(p, COUNT(tensors), NULL, &err), PS_ERR_IO);
    assert_int_equal(err.sys_errno, ENOTDIR);
    assert_int_equal(unlink(p->model), 0);
    (void)snprintf(path, sizeof path, "%s/config.json", p->model);
    assert_int_equal(mkdir(p->model, 0777), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(save(p, COUNT(tensors), NULL, &err), PS_ERR_IO);
    assert_string_equal(err.text, "config.json: Is a directory");
    assert_int_equal(rmdir(path), 0);
}

/* Files of a killed process are replaced. */
static void test_left(void **state)
{
    const place *p = *state;
    ps_error err;

    put(p->model, "model.safetensors.new", "half");
    put(p->model, "config.json.new", "{");
    assert_int_equal(save(p, COUNT(tensors), NULL, &err), PS_OK);
    assert_int_equal(count(p->model), 2);
}

/* A source gives config.json and the files of the tokenizer. */
/* The text of the saved config.json. */
static void read_config(const place *p, char text[1024])
{
    char path[64];
    FILE *in;

    memset(text, 0, 1024);
    (void)snprintf(path, sizeof path, "%s/config.json", p->model);
    in = fopen(path, "r");
    assert_non_null(in);
    assert_true(fread(text, 1, 1023, in) > 0);
    (void)fclose(in);
}

/* A config.json of the model in `small`, with a key that this model ignores. */
#define SMALL \
    "{\"model_type\":\"bert\",\"x\":1e-12,\"dtype\":\"bfloat16\"," \
    "\"architectures\":[\"BertModel\"],\"vocab_size\":50," \
    "\"hidden_size\":4,\"num_hidden_layers\":1,\"intermediate_size\":8," \
    "\"max_position_embeddings\":16,\"hidden_act\":\"gelu_new\","

static void test_source(void **state)
{
    const place *p = *state;
    char text[1024], composed[1024];
    ps_error err;

    /* Without a config.json of this model, it is composed. */
    assert_int_equal(save(p, COUNT(tensors), NULL, &err), PS_OK);
    read_config(p, composed);
    assert_int_equal(save(p, COUNT(tensors), p->other, &err), PS_OK);
    read_config(p, text);
    assert_string_equal(text, composed);
    put(p->other, "vocab.txt", "[PAD]\n");
    put(p->other, "notes.txt", "not copied");
    put(p->other, "config.json", SMALL "\"num_attention_heads\":1}");
    assert_int_equal(save(p, COUNT(tensors), p->other, &err), PS_OK);
    assert_int_equal(count(p->model), 3);
    read_config(p, text);
    assert_string_equal(text, composed);
    put(p->other, "config.json", SMALL "\"num_attention_heads\":2}");
    assert_int_equal(save(p, COUNT(tensors), p->other, &err), PS_OK);
    read_config(p, text);
    assert_non_null(strstr(text, "{\n  \"model_type\": \"bert\",\n"
                                 "  \"x\": 1e-12,\n"
                                 "  \"dtype\": \"float32\",\n"
                                 "  \"architectures\": [\n"
                                 "    \"BertForPreTraining\"\n  ],\n"));
}

/* A folder with shards is refused and stays as it is. */
static void test_shards(void **state)
{
    static const char *const names[] = {"model.safetensors.index.json",
                                        "model-00001-of-00002.safetensors"};
    const place *p = *state;
    ps_error err;

    for (size_t i = 0; i < COUNT(names); i++) {
        put(p->model, names[i], "");
        assert_int_equal(model_folder_check(p->model, &err), PS_ERR_ARGUMENT);
        assert_non_null(strstr(err.text, names[i]));
        assert_int_equal(save(p, COUNT(tensors), NULL, &err), PS_ERR_ARGUMENT);
        assert_int_equal(count(p->model), 1);
        remove_all(p->model);
    }
}

/* ---- config.json ---- */

/* Composed configs of all families are parsed as the same. */
static void test_composed(void **state)
{
    static tr_config configs[6], again;

    for (size_t i = 0; i < COUNT(configs); i++) {
        configs[i] = small;
        configs[i].dropout = i == 0 ? 0.1 : 0;
        configs[i].types = i == 0 ? 2 : 1;
        configs[i].deviation = 0.01 + 0.01 * (double)i;
        configs[i].family = i == 0   ? TR_BERT
                            : i == 1 ? TR_MODERNBERT
                                     : TR_LLAMA;
    }
    configs[1].window = 65;
    configs[1].windowed[0] = true;
    configs[1].local_rope = (tr_rope){.theta = 500, .factor = 2};
    configs[2].head_width = 6;
    configs[2].rope = (tr_rope){5e5, 8, 1, 4, 8192};
    configs[2].local_rope = configs[2].rope;
    configs[3].qkv_bias = true;
    configs[3].kv_heads = 1;
    configs[4].qk_norm = true;
    configs[4].tied = false;
    configs[4].window = 7;
    configs[4].windowed[0] = true;
    configs[5].window = 9;
    configs[5].windowed[0] = true;
    for (size_t i = 0; i < COUNT(configs); i++) {
        json_t *object = model_config_compose(&configs[i]);
        ps_error err = {0};

        assert_non_null(object);
        assert_int_equal(model_config_parse(object, &again, &err), PS_OK);
        assert_memory_equal(&again, &configs[i], sizeof again);
        json_decref(object);
    }
}

/* Numbers are checked in configs made from options, too. */
static void test_ranges(void **state)
{
    static tr_config c[14];
    ps_error err;

    assert_int_equal(model_config_check(&small, &err), PS_OK);
    for (size_t i = 0; i < COUNT(c); i++)
        c[i] = small;
    c[0].vocab_size = 0;
    c[1].hidden = 5;
    c[2].layers = TR_LAYERS_MAX + 1;
    c[3].heads = 3;
    c[4].intermediate = UINT32_C(1) << 30;
    c[5].positions = UINT32_MAX;
    c[6].epsilon = 0;
    c[7].dropout = 1;
    c[8].types = 0;
    c[9].kv_heads = 3;
    c[10].head_width = 3;
    c[11].family = TR_MODERNBERT;
    c[11].heads = c[11].kv_heads = 4;
    c[11].head_width = 1;
    c[12].epsilon = (double)NAN;
    c[13].family = TR_LLAMA;
    c[13].head_width = UINT32_C(1) << 30;
    for (size_t i = 0; i < COUNT(c); i++)
        assert_int_equal(model_config_check(&c[i], &err), PS_ERR_RANGE);
}

/* After an error the config is unchanged. */
static void test_unchanged(void **state)
{
    static tr_config config;
    json_t *object = json_pack("{s:s,s:i}", "model_type", "bert",
                               "vocab_size", 0);
    ps_error err;

    config = small;
    assert_int_equal(model_config_parse(object, &config, &err), PS_ERR_RANGE);
    assert_memory_equal(&config, &small, sizeof config);
    json_decref(object);
}

/* ---- Memory ---- */

static size_t left; /* allocations that succeed */

static void *allocate(size_t n)
{
    if (left == 0)
        return NULL;
    left--;
    return malloc(n);
}

/* Save and load a folder; allocations after the first n fail. */
static ps_result save_with(const place *p, const char *source, size_t n)
{
    ps_error err;
    ps_result r;

    json_set_alloc_funcs(allocate, free);
    left = n;
    r = save(p, COUNT(tensors), source, &err);
    json_set_alloc_funcs(malloc, free);
    return r;
}

static ps_result load_with(const place *p, size_t n)
{
    static tr_config config;
    real numbers[NUMBERS];
    model_folder_report report;
    ps_error err;
    ps_result r;

    json_set_alloc_funcs(allocate, free);
    left = n;
    r = load(p, numbers, &report, &err);
    if (r == PS_OK)
        r = model_folder_config(p->model, &config, &err);
    else
        assert_untouched(numbers);
    json_set_alloc_funcs(malloc, free);
    if (r == PS_OK)
        assert_memory_equal(&config, &small, sizeof config);
    return r;
}

/* Each allocation of jansson may fail: there is an error, and no leak. */
static void test_memory(void **state)
{
    const place *p = *state;
    size_t n;

    put(p->other, "config.json", "{\"model_type\":\"bert\"}");
    for (n = 0; save_with(p, p->other, n) != PS_OK; n++)
        assert_int_equal(count(p->model), -1);
    assert_true(n > 20);
    remove_all(p->model);
    for (n = 0; save_with(p, NULL, n) != PS_OK; n++)
        assert_int_equal(count(p->model), -1);
    assert_true(n > 20);
    for (n = 0; load_with(p, n) != PS_OK; n++)
        assert_int_equal(count(p->model), 2);
    assert_true(n > 20);
}

#define IN_PLACE(test) \
    cmocka_unit_test_setup_teardown(test, open_place, close_place)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        IN_PLACE(test_round_trip),       IN_PLACE(test_optional),
        IN_PLACE(test_untouched),        IN_PLACE(test_full),
        IN_PLACE(test_names),            IN_PLACE(test_left),
        IN_PLACE(test_source),           IN_PLACE(test_shards),
        cmocka_unit_test(test_composed), cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_unchanged), IN_PLACE(test_memory),
    };

    return run_as_tap("model-folder", tests, NULL);
}
