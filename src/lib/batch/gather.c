/*
 * gather.c - a field of packs as one dense array.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/spans.h"

#include <string.h>

#include "base/error.h"
#include "bytes.h"

/* A run of elements of one pack, and how many elements came before it. */
typedef void take_run(const unsigned char *from, size_t bytes, size_t n,
                      void *to, size_t before);

static void copy_run(const unsigned char *from, size_t bytes, size_t n,
                     void *to, size_t before)
{
    if (n > 0)
        memcpy((unsigned char *)to + before * bytes, from, n * bytes);
}

/* The value of bits as two's complement has it. */
static int32_t as_signed(uint32_t bits)
{
    int32_t value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static void widen_run(const unsigned char *from, size_t bytes, size_t n,
                      void *to, size_t before)
{
    int32_t *out = (int32_t *)to + before;

    if (bytes == 1)
        for (size_t i = 0; i < n; i++)
            out[i] = from[i];
    else if (bytes == 2)
        for (size_t i = 0; i < n; i++)
            out[i] = load_u16(from + 2 * i);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = as_signed(load_u32(from + 4 * i));
}

static void lengthen_run(const unsigned char *from, size_t bytes, size_t n,
                         void *to, size_t before)
{
    int64_t *out = (int64_t *)to + before;

    if (bytes == 1)
        for (size_t i = 0; i < n; i++)
            out[i] = from[i];
    else if (bytes == 2)
        for (size_t i = 0; i < n; i++)
            out[i] = load_u16(from + 2 * i);
    else if (bytes == 4)
        for (size_t i = 0; i < n; i++)
            out[i] = load_u32(from + 4 * i);
    else if (n > 0)
        copy_run(from, bytes, n, to, before);
}

static void lengthen_i32_run(const unsigned char *from, size_t bytes,
                             size_t n, void *to, size_t before)
{
    int64_t *out = (int64_t *)to + before;

    for (size_t i = 0; i < n; i++)
        out[i] = as_signed(load_u32(from + bytes * i));
}

/* How many elements of pack `p`, whose spans begin with `first`. */
static uint32_t run_length(const ps_spans *spans, uint32_t p, uint32_t first,
                           ps_kind kind)
{
    const uint32_t end = first + ps_spans_of(spans, p);

    return kind == PS_PER_TOKEN
               ? (uint32_t)(spans->cu[end] - spans->cu[first])
               : ps_spans_places(spans, p);
}

static ps_result gather(const ps_spans *spans, const ps_pack_info *info,
                        const unsigned char *records, const ps_field *field,
                        take_run *take, void *to, ps_error *err)
{
    const ps_kind kind = field->channel.kind;
    const size_t bytes = ps_type_bytes(field->channel.type);
    uint32_t first = 0;
    size_t before = 0;

    if (kind != PS_PER_TOKEN && kind != PS_PER_SEQUENCE)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "'%s' has no elements for tokens or sequences",
                       field->channel.name);
    for (uint32_t p = 0; p < spans->n_packs; p++) {
        const unsigned char *record = records + (size_t)p * info->record_bytes;
        const uint32_t n = run_length(spans, p, first, kind);

        take(record + field->offset, bytes, n, to, before);
        first += ps_spans_of(spans, p);
        before += n;
    }
    return PS_OK;
}

ps_result ps_spans_gather(const ps_spans *spans, const ps_pack_info *info,
                          const unsigned char *records,
                          const ps_field *field, void *to, ps_error *err)
{
    return gather(spans, info, records, field, copy_run, to, err);
}

static bool is_small_integer(ps_type type)
{
    return type == PS_U8 || type == PS_U16 || type == PS_U32 ||
           type == PS_I32;
}

ps_result ps_spans_gather_i32(const ps_spans *spans, const ps_pack_info *info,
                              const unsigned char *records,
                              const ps_field *field, int32_t *to,
                              ps_error *err)
{
    if (!is_small_integer(field->channel.type))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "'%s' is %s, which is no int32", field->channel.name,
                       ps_type_name(field->channel.type));
    return gather(spans, info, records, field, widen_run, to, err);
}

ps_result ps_spans_gather_i64(const ps_spans *spans, const ps_pack_info *info,
                              const unsigned char *records,
                              const ps_field *field, int64_t *to,
                              ps_error *err)
{
    const ps_type type = field->channel.type;

    if (!is_small_integer(type) && type != PS_U64 && type != PS_I64)
        return ps_fail(err, PS_ERR_ARGUMENT, "'%s' is %s, which is no int64",
                       field->channel.name, ps_type_name(type));
    return gather(spans, info, records, field,
                  type == PS_I32 ? lengthen_i32_run : lengthen_run, to, err);
}
