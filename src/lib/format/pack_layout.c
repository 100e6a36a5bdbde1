/*
 * pack_layout.c - offsets and sizes in a pack stream.
 *
 * SPDX-License-Identifier: MIT
 *
 * The layout depends on capacity, split, align and the channels.  The maximum
 * size of a block also depends on the depth.
 */

#include "format/pack_layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "bytes.h"
#include "format/block.h"
#include "format/schema.h"

/* Minimum size of the rows and heads of a full block by default, in bytes. */
#define BLOCK_BYTES (UINT32_C(1) << 20)

/* ---- Fields ---- */

uint64_t ps_field_places(const ps_pack_info *info, const ps_channel *channel,
                         uint32_t source)
{
    if (channel->kind != PS_LIST)
        return channel->kind == PS_PER_TOKEN ? info->capacity : 1;
    for (uint32_t i = 0; source != PS_BUILT_IN && i < info->n_budgets; i++)
        if (info->budgets[i].channel == source)
            return info->budgets[i].limit;
    return 0;
}

/* Appends a field to a row that has *end bytes in use. */
static void add_field(ps_pack_info *info, uint64_t *end,
                      const ps_channel *channel, uint32_t source)
{
    ps_field *f = &info->fields[info->n_fields++];

    *end = round_up(*end, ps_type_bytes(channel->type));
    *f = (ps_field){*channel, source, (uint32_t)*end};
    *end += ps_channel_bytes(channel) * ps_field_places(info, channel, source);
}

static void add_channels(ps_pack_info *info, uint64_t *end, ps_kind kind)
{
    for (uint32_t i = 0; i < info->schema.n_channels; i++)
        if (info->schema.channels[i].kind == kind)
            add_field(info, end, &info->schema.channels[i], i);
}

/* Adds the per-sequence channels, and start and length of each list. */
static void add_values(ps_pack_info *info, uint64_t *end)
{
    for (uint32_t i = 0; i < info->schema.n_channels; i++) {
        ps_channel c = info->schema.channels[i];

        if (c.kind == PS_PER_TOKEN)
            continue;
        if (c.kind == PS_LIST) {
            c.type = PS_U32;
            c.kind = PS_PER_SEQUENCE;
            c.count = 2;
            c.fill = 0;
        }
        add_field(info, end, &c, i);
    }
}

/* Adds all fields.  Sets the sizes of a row and a sequence row, in bytes. */
static void add_fields(ps_pack_info *info, uint64_t *row, uint64_t *seq)
{
    static const ps_channel built_in[] = {
        {"seq_id", PS_U64, PS_PER_SEQUENCE, 0, 0},
        {"seq_start", PS_I32, PS_PER_SEQUENCE, 0, 0},
        {"seq_tok", PS_I32, PS_PER_SEQUENCE, 0, 0},
        {"piece_off", PS_U32, PS_PER_SEQUENCE, 0, 0},
        {"full_len", PS_U32, PS_PER_SEQUENCE, 0, 0},
    };
    const ps_channel tokens = {"tokens", info->schema.token_type,
                               PS_PER_TOKEN, info->pad_id, 0};
    const size_t n = info->split ? 5 : 3;

    info->n_fields = 0;
    *row = *seq = 0;
    add_field(info, row, &tokens, PS_BUILT_IN);
    add_channels(info, row, PS_PER_TOKEN);
    add_channels(info, row, PS_LIST);
    for (size_t i = 0; i < n; i++)
        add_field(info, seq, &built_in[i], PS_BUILT_IN);
    add_values(info, seq);
    *row = round_up(*row, 8);
    *seq = round_up(*seq, 8);
}

/* ---- numpy dtypes ---- */

/*
 * Appends to info->dtype, which has space for PS_MAX_FIELDS fields with the
 * longest names, offsets and capacity.
 */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static void append(ps_pack_info *info, size_t *used, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    *used += (size_t)vsnprintf(info->dtype + *used,
                               sizeof info->dtype - *used, format, args);
    va_end(args);
}

/* Appends the type of a field and its shape: places first, then values. */
static void append_format(ps_pack_info *info, size_t *used, const ps_field *f)
{
    const ps_channel *c = &f->channel;
    const char *type = ps_type_numpy(c->type);
    const uint64_t places = ps_field_places(info, c, f->source);

    if (c->kind != PS_PER_SEQUENCE && c->count == 0)
        append(info, used, "('%s',(%" PRIu64 ",)),", type, places);
    else if (c->kind != PS_PER_SEQUENCE)
        append(info, used, "('%s',(%" PRIu64 ",%" PRIu32 ")),", type, places,
               c->count);
    else if (c->count == 0)
        append(info, used, "'%s',", type);
    else
        append(info, used, "('%s',(%" PRIu32 ",)),", type, c->count);
}

/* Appends the dtype of a row, or of a sequence row. */
static void append_dtype(ps_pack_info *info, size_t *used, bool of_sequence,
                         uint32_t bytes)
{
    static const char *const parts[] = {"{'names':[", "],'formats':[",
                                        "],'offsets':["};

    for (int part = 0; part < 3; part++) {
        append(info, used, "%s", parts[part]);
        for (uint32_t i = 0; i < info->n_fields; i++) {
            const ps_field *f = &info->fields[i];

            if ((f->channel.kind == PS_PER_SEQUENCE) != of_sequence)
                continue;
            if (part == 0)
                append(info, used, "'%s',", f->channel.name);
            else if (part == 2)
                append(info, used, "%" PRIu32 ",", f->offset);
            else
                append_format(info, used, f);
        }
    }
    append(info, used, "],'itemsize':%" PRIu32 "}\n", bytes);
}

static void write_dtype(ps_pack_info *info)
{
    size_t used = 0;

    memset(info->dtype, 0, sizeof info->dtype);
    append_dtype(info, &used, false, info->row_bytes);
    append_dtype(info, &used, true, info->seq_bytes);
}

/* ---- Sizes ---- */

static uint32_t fitting(const ps_pack_info *info)
{
    const uint32_t fit = info->capacity / info->align;

    return fit < PS_MAX_DEPTH ? fit : PS_MAX_DEPTH;
}

uint32_t ps_max_sequences(const ps_pack_info *info)
{
    const uint32_t fit = fitting(info);

    return info->depth == 0 ? fit : info->depth;
}

ps_result ps_geometry_check(const ps_pack_info *info, ps_error *err)
{
    if (info->capacity == 0 || info->capacity > PS_MAX_CAPACITY)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the capacity must be between 1 and %" PRIu32,
                       PS_MAX_CAPACITY);
    if (info->max_displacement == 0 || info->max_displacement > PS_MAX_WINDOW)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the window must be between 1 and %" PRIu32,
                       PS_MAX_WINDOW);
    if (info->align == 0 || info->capacity % info->align != 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the alignment, %" PRIu32 ", does not divide the "
                       "capacity, %" PRIu32,
                       info->align, info->capacity);
    if (info->depth > fitting(info))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "depth %" PRIu32 " exceeds the %" PRIu32 " sequences "
                       "that fit in a pack",
                       info->depth, fitting(info));
    return PS_OK;
}

/* Sets the number of packs per block and the maximum size of a block. */
static ps_result size_block(ps_pack_info *info, ps_error *err)
{
    const uint64_t of_pack =
        (uint64_t)ps_max_sequences(info) * info->seq_bytes;
    const uint64_t of_one =
        of_pack > PS_BLOCK_SEQ_BYTES ? of_pack : PS_BLOCK_SEQ_BYTES;
    uint32_t n = info->block_packs;
    uint64_t of_block;

    if (of_pack > PS_MAX_ROW_BYTES)
        return ps_fail(err, PS_ERR_LIMIT,
                       "the sequence rows of a pack of %" PRIu32 " sequences "
                       "take %" PRIu64 " bytes, but the limit is %" PRIu32
                       ": limit the depth",
                       ps_max_sequences(info), of_pack, PS_MAX_ROW_BYTES);
    if (n == 0) {
        n = 1; /* at most 32768, since a row has at least 8 bytes */
        while ((uint64_t)n * (info->row_bytes + PS_PACK_HEAD_BYTES) <
               BLOCK_BYTES)
            n *= 2;
    }
    if (n > PS_MAX_BLOCK_PACKS || (n & (n - 1)) != 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "packs per block must be a power of two, at most %d",
                       PS_MAX_BLOCK_PACKS);
    if (n > 1 && (uint64_t)n * info->row_bytes > PS_MAX_ROW_BYTES)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "a block of %" PRIu32 " packs takes %" PRIu64 " bytes, "
                       "but the limit is %" PRIu32,
                       n, (uint64_t)n * info->row_bytes, PS_MAX_ROW_BYTES);
    of_block = n * of_pack < of_one ? n * of_pack : of_one;
    info->block_packs = n;
    info->block_bytes = round_up(
        PS_BLOCK_HEAD_BYTES +
            (uint64_t)n * (info->row_bytes + PS_PACK_HEAD_BYTES) + of_block,
        PS_BLOCK_ALIGN);
    return PS_OK;
}

ps_result ps_layout(ps_pack_info *info, ps_error *err)
{
    const uint32_t built_in = info->split ? 6 : 4;
    const uint32_t lists = ps_schema_shape(&info->schema).n_lists;
    uint64_t row;
    uint64_t seq;
    ps_result r = ps_geometry_check(info, err);

    if (r != PS_OK)
        return r;
    /* A list has a field in the row and one in the sequence row. */
    if (info->schema.n_channels + lists > PS_MAX_FIELDS - built_in)
        return ps_fail(err, PS_ERR_LIMIT,
                       "the fields of %" PRIu32 " channels%s do not fit the "
                       "header",
                       info->schema.n_channels,
                       info->split ? " and of split sequences" : "");
    add_fields(info, &row, &seq);
    if (row > PS_MAX_ROW_BYTES)
        return ps_fail(err, PS_ERR_LIMIT,
                       "a row takes %" PRIu64 " bytes, but the limit is "
                       "%" PRIu32,
                       row, PS_MAX_ROW_BYTES);
    info->row_bytes = (uint32_t)row;
    info->seq_bytes = (uint32_t)seq;
    write_dtype(info);
    return size_block(info, err);
}
