/*
 * safetensors.c - read a file of named tensors.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "data/error.h"
#include "folder/in_file.h"
#include "folder/json_file.h"

/* Longest part of a tensor's name in messages. */
#define SHOWN 80

struct safetensors {
    int fd;
    json_t *header;              /* owns the names and types */
    safetensors_tensor *tensors; /* sorted by name */
    uint64_t *shapes;            /* of all tensors */
    size_t n_tensors;
    size_t n_shapes;
    uint64_t data_at;    /* offset of the data in the file, in bytes */
    uint64_t data_bytes; /* bytes from there to the end of the file */
};

typedef struct type_row {
    const char *name;
    unsigned bits;
} type_row;

static const type_row types[] = {
    {"BOOL", 8},    {"F4", 4},       {"F6_E2M3", 6},     {"F6_E3M2", 6},
    {"U8", 8},      {"I8", 8},       {"F8_E5M2", 8},     {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},     {"BF16", 16},       {"I32", 32},
    {"U32", 32},    {"F32", 32},     {"C64", 64},        {"F64", 64},
    {"I64", 64},    {"U64", 64},
};

/* Returns the bits of a number, or 0 for an unknown type. */
static unsigned type_bits(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].bits;
    return 0;
}

/* ---- The header ---- */

/* Reports an error of a tensor's entry. */
static ps_result bad(const safetensors_tensor *t, const char *why,
                     ps_error *err)
{
    return tr_error(err, PS_ERR_CORRUPT, "tensor %.*s: %s", SHOWN,
                    message_name(t->name), why);
}

/* Reads a JSON number of 0 or more; jansson's are at most 2^63 - 1. */
static bool get_size(const json_t *value, uint64_t *size)
{
    const json_int_t n = json_integer_value(value);

    *size = (uint64_t)n;
    return json_is_integer(value) && n >= 0;
}

/* Reads the shape, and multiplies its sizes.  `bytes`: of all numbers. */
static ps_result read_shape(safetensors *f, safetensors_tensor *t,
                            const json_t *list, uint64_t *bytes, ps_error *err)
{
    const unsigned bits = type_bits(t->type);

    t->rank = json_array_size(list);
    t->shape = f->shapes + f->n_shapes;
    t->numbers = 1;
    for (size_t i = 0; i < t->rank; i++) {
        uint64_t size;

        if (!get_size(json_array_get(list, i), &size))
            return bad(t, "a size in \"shape\" is not a number of 0 or more",
                       err);
        if (size > 0 && t->numbers > UINT64_MAX / size)
            return bad(t, "the product of the shape is too large", err);
        t->numbers *= size;
        f->shapes[f->n_shapes++] = size;
    }
    if (t->numbers > UINT64_MAX / bits)
        return bad(t, "the product of the shape is too large", err);
    if (t->numbers * bits % 8 != 0)
        return bad(t, "does not end with a whole byte", err);
    *bytes = t->numbers * bits / 8;
    return PS_OK;
}

static ps_result read_entry(safetensors *f, safetensors_tensor *t,
                            const json_t *entry, ps_error *err)
{
    const json_t *type = json_object_get(entry, "dtype");
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *place = json_object_get(entry, "data_offsets");
    uint64_t bytes = 0;
    ps_result r;

    if (!json_is_object(entry))
        return bad(t, "is not an object", err);
    if (!json_is_string(type))
        return bad(t, "no string \"dtype\"", err);
    t->type = json_string_value(type);
    if (type_bits(t->type) == 0)
        return tr_error(err, PS_ERR_UNSUPPORTED,
                        "tensor %.*s: unknown type \"%.20s\"", SHOWN,
                        message_name(t->name), message_name(t->type));
    if (!json_is_array(shape))
        return bad(t, "no list \"shape\"", err);
    if (json_array_size(place) != 2 ||
        !get_size(json_array_get(place, 0), &t->begin) ||
        !get_size(json_array_get(place, 1), &t->end))
        return bad(t, "\"data_offsets\" is not a list of two numbers of 0 or "
                      "more", err);
    r = read_shape(f, t, shape, &bytes, err);
    if (r != PS_OK)
        return r;
    if (t->begin > t->end)
        return bad(t, "\"data_offsets\" ends before it begins", err);
    if (t->end - t->begin != bytes)
        return tr_error(err, PS_ERR_CORRUPT,
                        "tensor %.*s: has %" PRIu64 " bytes, but its shape "
                        "and type need %" PRIu64, SHOWN,
                        message_name(t->name), t->end - t->begin, bytes);
    return PS_OK;
}

static ps_result check_metadata(json_t *metadata, ps_error *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(metadata))
        return tr_error(err, PS_ERR_CORRUPT, "__metadata__ is not an object");
    json_object_foreach(metadata, key, value)
        if (!json_is_string(value))
            return tr_error(err, PS_ERR_CORRUPT,
                            "__metadata__: the value of %.*s is not a string",
                            SHOWN, message_name(key));
    return PS_OK;
}

/* Counts the sizes of all shapes, wrong ones too. */
static size_t count_shapes(json_t *header)
{
    const char *key;
    json_t *entry;
    size_t n = 0;

    json_object_foreach(header, key, entry)
        n += json_array_size(json_object_get(entry, "shape"));
    return n;
}

static ps_result read_entries(safetensors *f, ps_error *err)
{
    const char *key;
    json_t *entry;

    f->tensors = calloc(json_object_size(f->header) + 1, sizeof *f->tensors);
    f->shapes = calloc(count_shapes(f->header) + 1, sizeof *f->shapes);
    if (f->tensors == NULL || f->shapes == NULL)
        return tr_error(err, PS_ERR_MEMORY, "out of memory");
    json_object_foreach(f->header, key, entry) {
        safetensors_tensor *t = &f->tensors[f->n_tensors];
        ps_result r;

        if (strcmp(key, "__metadata__") == 0) {
            r = check_metadata(entry, err);
        } else {
            t->name = key;
            f->n_tensors++;
            r = read_entry(f, t, entry, err);
        }
        if (r != PS_OK)
            return r;
    }
    return PS_OK;
}

/* ---- The order of the tensors ---- */

static int by_place(const void *a, const void *b)
{
    const safetensors_tensor *s = a;
    const safetensors_tensor *t = b;

    if (s->begin != t->begin)
        return s->begin < t->begin ? -1 : 1;
    return (s->end > t->end) - (s->end < t->end);
}

static int by_name(const void *a, const void *b)
{
    const safetensors_tensor *s = a;
    const safetensors_tensor *t = b;

    return strcmp(s->name, t->name);
}

/* Checks that the tensors follow one another and fill the file. */
static ps_result check_places(safetensors *f, ps_error *err)
{
    uint64_t end = 0;

    qsort(f->tensors, f->n_tensors, sizeof *f->tensors, by_place);
    for (size_t i = 0; i < f->n_tensors; i++) {
        const safetensors_tensor *t = &f->tensors[i];

        if (t->begin != end)
            return tr_error(err, PS_ERR_CORRUPT,
                            "tensor %.*s: %s: begins at byte %" PRIu64
                            " of the data, not at %" PRIu64, SHOWN,
                            message_name(t->name),
                            t->begin < end ? "overlaps another"
                                           : "follows a hole",
                            t->begin, end);
        end = t->end;
        if (end > f->data_bytes)
            return tr_error(err, PS_ERR_TRUNCATED,
                            "tensor %.*s: ends at byte %" PRIu64
                            " of the data, but the file has %" PRIu64, SHOWN,
                            message_name(t->name), end, f->data_bytes);
    }
    if (end < f->data_bytes)
        return tr_error(err, PS_ERR_CORRUPT,
                        "byte %" PRIu64 ": %" PRIu64
                        " bytes after the last tensor", f->data_at + end,
                        f->data_bytes - end);
    qsort(f->tensors, f->n_tensors, sizeof *f->tensors, by_name);
    return PS_OK;
}

/* ---- Opening ---- */

/* Reads the header of n bytes. */
static ps_result read_header(safetensors *f, size_t n, ps_error *err)
{
    char *text = malloc(n + 1);
    ps_result r;

    if (text == NULL)
        return tr_error(err, PS_ERR_MEMORY, "out of memory");
    r = in_file_read(f->fd, text, n, sizeof(uint64_t), err);
    /* JSON allows white space before, this format does not. */
    if (r == PS_OK && (n == 0 || *text != '{'))
        r = tr_error(err, PS_ERR_CORRUPT, "byte 8: the header is not a JSON "
                                          "object");
    if (r == PS_OK)
        r = json_file_parse(text, n, sizeof(uint64_t), &f->header, err);
    free(text);
    return r;
}

static ps_result read_file(safetensors *f, int folder, const char *name,
                           ps_error *err)
{
    unsigned char first[sizeof(uint64_t)];
    uint64_t size, n;
    ps_result r = in_file_open(folder, name, &f->fd, &size, err);

    if (r == PS_OK)
        r = in_file_read(f->fd, first, sizeof first, 0, err);
    if (r != PS_OK)
        return r;
    if (size < sizeof first)
        return tr_error(err, PS_ERR_TRUNCATED, "the file grows while it is "
                                               "read");
    n = load_u64(first);
    if (n > SAFETENSORS_HEADER_MAX)
        return tr_error(err, PS_ERR_LIMIT,
                        "byte 0: the header has %" PRIu64 " bytes, but the "
                        "limit is %d: not a safetensors file?", n,
                        SAFETENSORS_HEADER_MAX);
    if (n > size - sizeof first)
        return tr_error(err, PS_ERR_TRUNCATED,
                        "byte 0: the header has %" PRIu64 " bytes, but the "
                        "file only %" PRIu64, n, size);
    f->data_at = sizeof first + n;
    f->data_bytes = size - f->data_at;
    r = read_header(f, (size_t)n, err);
    if (r == PS_OK)
        r = read_entries(f, err);
    if (r == PS_OK)
        r = check_places(f, err);
    return r;
}

ps_result safetensors_open(int folder, const char *name, safetensors **file,
                           ps_error *err)
{
    safetensors *f = malloc(sizeof *f);
    ps_result r;

    *file = NULL;
    if (f == NULL)
        return tr_error(err, PS_ERR_MEMORY, "out of memory");
    *f = (safetensors){.fd = -1};
    r = read_file(f, folder, name, err);
    if (r == PS_OK)
        *file = f;
    else
        safetensors_close(f);
    return r;
}

void safetensors_close(safetensors *file)
{
    if (file == NULL)
        return;
    if (file->fd >= 0)
        (void)close(file->fd);
    json_decref(file->header);
    free(file->tensors);
    free(file->shapes);
    free(file);
}

/* ---- Tensors ---- */

size_t safetensors_count(const safetensors *file)
{
    return file->n_tensors;
}

const safetensors_tensor *safetensors_at(const safetensors *file, size_t i)
{
    return &file->tensors[i];
}

const safetensors_tensor *safetensors_find(const safetensors *file,
                                           const char *name)
{
    const safetensors_tensor key = {.name = name};

    return bsearch(&key, file->tensors, file->n_tensors, sizeof key, by_name);
}

/* ---- Numbers ---- */

/* Bytes that are read at a time; a multiple of each number's bytes. */
#define CHUNK ((size_t)1 << 18)

static real real_f64(const unsigned char *p)
{
    const uint64_t bits = load_u64(p);
    double value;

    memcpy(&value, &bits, sizeof value);
    return (real)value;
}

static real real_bits32(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return (real)value;
}

/*
 * A float has 8 bits of exponent with a bias of 127, a half has 5 with a bias
 * of 15.  Subnormal halves are normal floats.
 */
static real real_f16(const unsigned char *p)
{
    const uint32_t half = load_u16(p);
    const uint32_t sign = (half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 31;
    uint32_t fraction = half & 0x3ff;

    if (exponent == 31)
        exponent = 255 - 112;
    if (exponent == 0) {
        if (fraction == 0)
            return real_bits32(sign);
        for (exponent = 1; (fraction & 0x400) == 0; exponent--)
            fraction <<= 1;
        fraction &= 0x3ff;
    }
    return real_bits32(sign | (exponent + 112) << 23 | fraction << 13);
}

/* Converts n numbers of 16, 32 or 64 bits. */
static void convert(const char *type, const unsigned char *from, size_t n,
                    real *to)
{
    if (strcmp(type, "F32") == 0)
        for (size_t i = 0; i < n; i++)
            to[i] = real_bits32(load_u32(from + 4 * i));
    else if (strcmp(type, "BF16") == 0)
        for (size_t i = 0; i < n; i++)
            to[i] = real_bits32((uint32_t)load_u16(from + 2 * i) << 16);
    else if (strcmp(type, "F16") == 0)
        for (size_t i = 0; i < n; i++)
            to[i] = real_f16(from + 2 * i);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = real_f64(from + 8 * i);
}

bool safetensors_is_real(const safetensors_tensor *tensor)
{
    const char *type = tensor->type;

    return strcmp(type, "F32") == 0 || strcmp(type, "BF16") == 0 ||
           strcmp(type, "F16") == 0 || strcmp(type, "F64") == 0;
}

ps_result safetensors_read(const safetensors *file,
                           const safetensors_tensor *tensor, real *to,
                           ps_error *err)
{
    const size_t bytes = type_bits(tensor->type) / 8;
    uint64_t left = tensor->end - tensor->begin;
    uint64_t at = file->data_at + tensor->begin;
    unsigned char *chunk;
    ps_result r = PS_OK;

    if (!safetensors_is_real(tensor))
        return tr_error(err, PS_ERR_UNSUPPORTED, "tensor %.*s: has the type "
                        "%s, not F32, F16, BF16 or F64", SHOWN,
                        message_name(tensor->name), tensor->type);
    chunk = malloc(CHUNK);
    if (chunk == NULL)
        return tr_error(err, PS_ERR_MEMORY, "out of memory");
    while (left > 0 && r == PS_OK) {
        const size_t n = left < CHUNK ? (size_t)left : CHUNK;

        r = in_file_read(file->fd, chunk, n, at, err);
        if (r == PS_OK)
            convert(tensor->type, chunk, n / bytes, to);
        to += n / bytes;
        at += n;
        left -= n;
    }
    free(chunk);
    return r;
}

static bool same_form(const safetensors_tensor *a, const safetensors_tensor *b)
{
    return strcmp(a->type, b->type) == 0 && a->rank == b->rank &&
           (a->rank == 0 ||
            memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

ps_result safetensors_equal(const safetensors *a, const safetensors_tensor *ta,
                            const safetensors *b, const safetensors_tensor *tb,
                            bool *same, ps_error *err)
{
    const uint64_t bytes = ta->end - ta->begin;
    unsigned char *chunk;
    ps_result r = PS_OK;

    *same = same_form(ta, tb);
    if (!*same)
        return PS_OK;
    chunk = malloc(2 * CHUNK);
    if (chunk == NULL)
        return tr_error(err, PS_ERR_MEMORY, "out of memory");
    for (uint64_t at = 0; at < bytes && r == PS_OK && *same; at += CHUNK) {
        const size_t n = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;

        r = in_file_read(a->fd, chunk, n, a->data_at + ta->begin + at, err);
        if (r == PS_OK)
            r = in_file_read(b->fd, chunk + CHUNK, n,
                             b->data_at + tb->begin + at, err);
        *same = r == PS_OK && memcmp(chunk, chunk + CHUNK, n) == 0;
    }
    free(chunk);
    return r;
}
