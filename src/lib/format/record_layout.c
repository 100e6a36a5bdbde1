/*
 * record_layout.c - where everything lies in a pack record.
 *
 * The layout follows from capacity, depth, split, align and the channels.
 * Only writers work it out; readers use the table in the header.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/record_layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "bytes.h"

/* The fields of the head as a numpy dtype gives them. */
static const struct {
    const char *name;
    const char *format;
    unsigned offset;
} head_fields[] = {
    {"checksum", "<u8", 0},     {"magic", "<u4", 8},
    {"flags", "<u4", 12},       {"index", "<u8", 16},
    {"watermark", "<u8", 24},   {"sum_len_sq", "<u8", 32},
    {"n_seq", "<u4", 40},       {"n_tok", "<u4", 44},
    {"max_seqlen", "<u4", 48},
};

#define N_HEAD_FIELDS (sizeof head_fields / sizeof head_fields[0])

/* Appends a field behind the last; the end of the record so far moves on. */
static void add_field(ps_pack_info *info, uint64_t *end,
                      const ps_channel *channel, uint32_t source,
                      uint32_t count, uint32_t alignment)
{
    ps_field *f = &info->fields[info->n_fields++];
    uint64_t offset = round_up(*end, alignment);

    f->channel = *channel;
    f->source = source;
    f->offset = (uint32_t)offset;
    f->count = count;
    *end = offset + (uint64_t)count * ps_type_bytes(channel->type);
}

static void add_kind(ps_pack_info *info, uint64_t *end, ps_kind kind)
{
    uint32_t count = kind == PS_PER_TOKEN ? info->capacity : info->depth;

    for (uint32_t i = 0; i < info->schema.n_channels; i++)
        if (info->schema.channels[i].kind == kind)
            add_field(info, end, &info->schema.channels[i], i, count, 16);
}

static void add_fields(ps_pack_info *info, uint64_t *end)
{
    const ps_channel cu = {"cu", PS_I32, PS_PER_BOUNDARY, info->capacity};
    const ps_channel id = {"seq_id", PS_U64, PS_PER_SEQUENCE, UINT64_MAX};
    const ps_channel off = {"seq_off", PS_U32, PS_PER_SEQUENCE, 0};
    const ps_channel len = {"seq_len", PS_U32, PS_PER_SEQUENCE, 0};
    const ps_channel tok = {"seq_tok", PS_I32, PS_PER_SEQUENCE, 0};
    const ps_channel tokens = {"tokens", info->schema.token_type,
                               PS_PER_TOKEN, info->pad_id};

    info->n_fields = 0;
    add_field(info, end, &cu, PS_BUILT_IN, info->depth + 2, 16);
    add_field(info, end, &id, PS_BUILT_IN, info->depth, 16);
    if (info->split) {
        add_field(info, end, &off, PS_BUILT_IN, info->depth, 16);
        add_field(info, end, &len, PS_BUILT_IN, info->depth, 16);
    }
    info->seq_tok_field = 0;
    if (info->align > 1) {
        info->seq_tok_field = info->n_fields;
        add_field(info, end, &tok, PS_BUILT_IN, info->depth, 16);
    }
    add_kind(info, end, PS_PER_SEQUENCE);
    info->tokens_field = info->n_fields;
    add_field(info, end, &tokens, PS_BUILT_IN, info->capacity, 64);
    add_kind(info, end, PS_PER_TOKEN);
}

/* Appends to info->dtype; false, with what fits, when it is full. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static bool append(ps_pack_info *info, size_t *used, const char *format, ...)
{
    size_t left = sizeof info->dtype - *used;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(info->dtype + *used, left, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= left)
        return false;
    *used += (size_t)n;
    return true;
}

bool ps_layout_dtype(ps_pack_info *info)
{
    size_t used = 0;
    bool ok;

    memset(info->dtype, 0, sizeof info->dtype);
    ok = append(info, &used, "{'names':[");
    for (size_t i = 0; ok && i < N_HEAD_FIELDS; i++)
        ok = append(info, &used, "'%s',", head_fields[i].name);
    for (uint32_t i = 0; ok && i < info->n_fields; i++)
        ok = append(info, &used, "'%s',", info->fields[i].channel.name);

    ok = ok && append(info, &used, "],'formats':[");
    for (size_t i = 0; ok && i < N_HEAD_FIELDS; i++)
        ok = append(info, &used, "'%s',", head_fields[i].format);
    for (uint32_t i = 0; ok && i < info->n_fields; i++)
        ok = append(info, &used, "('%s',(%" PRIu32 ",)),",
                    ps_type_numpy(info->fields[i].channel.type),
                    info->fields[i].count);

    ok = ok && append(info, &used, "],'offsets':[");
    for (size_t i = 0; ok && i < N_HEAD_FIELDS; i++)
        ok = append(info, &used, "%u,", head_fields[i].offset);
    for (uint32_t i = 0; ok && i < info->n_fields; i++)
        ok = append(info, &used, "%" PRIu32 ",", info->fields[i].offset);
    return ok && append(info, &used, "],'itemsize':%" PRIu32 "}",
                        info->record_bytes);
}

ps_result ps_geometry_check(const ps_pack_info *info, ps_error *err)
{
    if (info->capacity == 0 || info->capacity > PS_MAX_CAPACITY)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the capacity must be between 1 and %" PRIu32,
                       PS_MAX_CAPACITY);
    if (info->depth == 0 || info->depth > PS_MAX_DEPTH ||
        info->depth > info->capacity)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the depth must be between 1 and %" PRIu32
                       " and not above the capacity",
                       PS_MAX_DEPTH);
    if (info->window == 0 || info->window > PS_MAX_WINDOW)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the window must be between 1 and %" PRIu32,
                       PS_MAX_WINDOW);
    if (info->align > 1 && info->capacity % info->align != 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "sequences are aligned to %" PRIu32
                       ", which does not divide the capacity, %" PRIu32,
                       info->align, info->capacity);
    return PS_OK;
}

ps_result ps_layout(ps_pack_info *info, ps_error *err)
{
    const uint32_t built_in =
        3u + (info->split ? 2u : 0u) + (info->align > 1 ? 1u : 0u);
    uint64_t end = PS_HEAD_BYTES;
    ps_result r = ps_geometry_check(info, err);

    if (r != PS_OK)
        return r;
    if (info->schema.n_channels > PS_MAX_FIELDS - built_in)
        return ps_fail(err, PS_ERR_LIMIT,
                       "%" PRIu32 " channels do not fit the header beside "
                       "what aligned sequences that are split need",
                       info->schema.n_channels);
    add_fields(info, &end);
    end = round_up(end, 64);
    if (end < PS_RECORD_MIN)
        end = PS_RECORD_MIN;
    if (end > PS_MAX_RECORD_BYTES)
        return ps_fail(err, PS_ERR_LIMIT,
                       "a pack record would take %" PRIu64
                       " bytes, the limit is %" PRIu32,
                       end, PS_MAX_RECORD_BYTES);
    info->record_bytes = (uint32_t)end;
    if (!ps_layout_dtype(info))
        return ps_fail(err, PS_ERR_LIMIT,
                       "the names of the channels are too long for the "
                       "header");
    return PS_OK;
}
