/*
 * pack_header.c - the 4096-byte header of a pack stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/pack_header.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "bytes.h"
#include "format/record_layout.h"
#include "format/schema.h"
#include "format/version.h"

#define TABLE_AT 256
#define DTYPE_AT 2048
#define CHECKSUM_AT (PS_PACK_HEADER_BYTES - 8)

#define COMPAT_FRAMED UINT64_C(1)
#define INCOMPAT_ALIGNED UINT64_C(1)

/* The high bit and the line ends betray text-mode and 7-bit transport. */
static const unsigned char magic[8] = {0x89, 'P',  'K',  'S',
                                       '\r', '\n', 0x1a, '\n'};

bool ps_is_pack_magic_prefix(const unsigned char *bytes, size_t n)
{
    return memcmp(bytes, magic, n < sizeof magic ? n : sizeof magic) == 0;
}

bool ps_is_pack_head(const unsigned char *content, uint64_t bytes)
{
    return bytes == PS_PACK_HEADER_BYTES &&
           ps_is_pack_magic_prefix(content, sizeof magic);
}

uint64_t ps_pack_digest_begin(const unsigned char *header)
{
    return load_u64(header + CHECKSUM_AT);
}

void ps_pack_header_encode(const ps_pack_info *info, unsigned char *to)
{
    memset(to, 0, PS_PACK_HEADER_BYTES);
    memcpy(to, magic, sizeof magic);
    ps_version_encode(to + 8);
    store_u32(to + 16, PS_PACK_HEADER_BYTES);
    store_u32(to + 20, info->record_bytes);
    store_u64(to + 24, info->n_records);
    store_u64(to + 32, info->n_sequences);
    store_u64(to + 40, info->n_tokens);
    store_u32(to + 48, info->capacity);
    store_u32(to + 52, info->depth);
    store_u32(to + 56, info->window);
    store_u32(to + 60, info->schema.vocab_size);
    store_u64(to + 64, info->max_seqlen);
    store_u64(to + 72, info->min_fill);
    store_u64(to + 80, info->align > 1 ? INCOMPAT_ALIGNED : 0);
    store_u64(to + 88, info->schema.framed ? COMPAT_FRAMED : 0);
    ps_specials_encode(&info->schema, to + 96);
    to[120] = (unsigned char)ps_type_bytes(info->schema.token_type);
    to[121] = (unsigned char)info->schema.labels;
    store_u64(to + 128, info->seed);
    memcpy(to + 136, info->schema.tokenizer, sizeof info->schema.tokenizer);
    store_u64(to + 168, info->options_digest);
    store_u32(to + 176, info->pad_id);
    store_u32(to + 180, info->align > 1 ? info->align : 0);
    store_u32(to + 200, info->n_fields);
    for (uint32_t i = 0; i < info->n_fields; i++) {
        const ps_field *f = &info->fields[i];
        unsigned char *entry =
            to + TABLE_AT + (size_t)i * PS_CHANNEL_ENTRY_BYTES;

        ps_channel_encode(&f->channel, f->offset, f->count, entry);
        if (f->source != PS_BUILT_IN)
            entry[27] = (unsigned char)(f->source + 1);
    }
    memcpy(to + DTYPE_AT, info->dtype, sizeof info->dtype);
    store_u64(to + CHECKSUM_AT, XXH3_64bits(to, CHECKSUM_AT));
}

static void decode_numbers(const unsigned char *from, ps_pack_info *info)
{
    info->record_bytes = load_u32(from + 20);
    info->n_records = load_u64(from + 24);
    info->n_sequences = load_u64(from + 32);
    info->n_tokens = load_u64(from + 40);
    info->capacity = load_u32(from + 48);
    info->depth = load_u32(from + 52);
    info->window = load_u32(from + 56);
    info->max_seqlen = load_u64(from + 64);
    info->min_fill = load_u64(from + 72);
    info->seed = load_u64(from + 128);
    info->options_digest = load_u64(from + 168);
    info->pad_id = load_u32(from + 176);
    info->align = (load_u64(from + 80) & INCOMPAT_ALIGNED) != 0
                      ? load_u32(from + 180)
                      : 1;
}

/* The part of the schema that is not in the table. */
static ps_result decode_schema(const unsigned char *from, ps_schema *schema,
                               ps_error *err)
{
    if (!ps_token_type(from[120], &schema->token_type))
        return ps_fail(err, PS_ERR_CORRUPT, "tokens of %u bytes",
                       (unsigned)from[120]);
    schema->framed = (load_u64(from + 88) & COMPAT_FRAMED) != 0;
    schema->labels = (ps_label_convention)from[121];
    schema->vocab_size = load_u32(from + 60);
    ps_specials_decode(from + 96, schema);
    memcpy(schema->tokenizer, from + 136, sizeof schema->tokenizer);
    return PS_OK;
}

/* How many elements a field of that kind has. */
static uint32_t count_of(const ps_pack_info *info, ps_kind kind)
{
    if (kind == PS_PER_TOKEN)
        return info->capacity;
    return kind == PS_PER_SEQUENCE ? info->depth : info->depth + 2;
}

/* A field must lie behind the one before it and inside the record. */
static ps_result check_place(const ps_pack_info *info, const ps_field *f,
                             uint64_t *end, ps_error *err)
{
    size_t bytes = ps_type_bytes(f->channel.type);

    if (f->offset < *end || f->offset % bytes != 0 ||
        f->count != count_of(info, f->channel.kind))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "field '%s' lies in the wrong place",
                       f->channel.name);
    *end = f->offset + (uint64_t)f->count * bytes;
    if (*end > info->record_bytes)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "field '%s' lies outside the record",
                       f->channel.name);
    return PS_OK;
}

/* A user's channel goes back to its place in the token records' table. */
static ps_result place_channel(ps_pack_info *info, const ps_field *f,
                               ps_error *err)
{
    ps_channel *to;

    if (f->source == PS_BUILT_IN)
        return PS_OK;
    if (f->source >= PS_MAX_CHANNELS)
        return ps_fail(err, PS_ERR_CORRUPT, "field '%s' has no source",
                       f->channel.name);
    to = &info->schema.channels[f->source];
    if (to->name[0] != '\0')
        return ps_fail(err, PS_ERR_CORRUPT,
                       "fields '%s' and '%s' have the same source", to->name,
                       f->channel.name);
    *to = f->channel;
    info->schema.n_channels++;
    return PS_OK;
}

/*
 * Reads the table.  A stream of a later minor version may hold built-in
 * fields that we do not know: they stay in the table and are left alone.
 */
static ps_result decode_table(const unsigned char *from, ps_pack_info *info,
                              ps_error *err)
{
    uint64_t end = PS_HEAD_BYTES;
    ps_result r = PS_OK;

    info->n_fields = load_u32(from + 200);
    if (info->n_fields > PS_MAX_FIELDS)
        return ps_fail(err, PS_ERR_CORRUPT, "%u fields in the header",
                       (unsigned)info->n_fields);
    for (uint32_t i = 0; i < info->n_fields && r == PS_OK; i++) {
        const unsigned char *entry =
            from + TABLE_AT + (size_t)i * PS_CHANNEL_ENTRY_BYTES;
        ps_field *f = &info->fields[i];

        r = ps_channel_decode(entry, &f->channel, &f->offset, &f->count,
                              err);
        f->source = entry[27] == 0 ? PS_BUILT_IN : entry[27] - 1u;
        if (r == PS_OK && ps_pack_field(info, f->channel.name) != f)
            r = ps_fail(err, PS_ERR_CORRUPT, "field '%s' is there twice",
                        f->channel.name);
        if (r == PS_OK)
            r = check_place(info, f, &end, err);
        if (r == PS_OK)
            r = place_channel(info, f, err);
    }
    return r;
}

static bool is_field(const ps_pack_info *info, uint32_t i, const char *name,
                     ps_type type, ps_kind kind)
{
    const ps_field *f = &info->fields[i];

    return i < info->n_fields && f->source == PS_BUILT_IN &&
           strcmp(f->channel.name, name) == 0 && f->channel.type == type &&
           f->channel.kind == kind;
}

/* What says how long aligned sequences are. */
static ps_result find_seq_tok(ps_pack_info *info, ps_error *err)
{
    if (info->align == 1)
        return PS_OK;
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (is_field(info, i, "seq_tok", PS_I32, PS_PER_SEQUENCE))
            info->seq_tok_field = i;
    if (info->seq_tok_field == 0)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "seq_tok is missing in the header");
    return PS_OK;
}

/* The fields that every stream has, where we look for them. */
static ps_result find_built_in(ps_pack_info *info, ps_error *err)
{
    ps_type token_type = info->schema.token_type;

    info->split =
        is_field(info, PS_FIELD_SEQ_OFF, "seq_off", PS_U32,
                 PS_PER_SEQUENCE) &&
        is_field(info, PS_FIELD_SEQ_LEN, "seq_len", PS_U32, PS_PER_SEQUENCE);
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (is_field(info, i, "tokens", token_type, PS_PER_TOKEN))
            info->tokens_field = i;
    if (!is_field(info, PS_FIELD_CU, "cu", PS_I32, PS_PER_BOUNDARY) ||
        !is_field(info, PS_FIELD_SEQ_ID, "seq_id", PS_U64,
                  PS_PER_SEQUENCE) ||
        info->tokens_field == 0)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "cu, seq_id or tokens is missing in the header");
    if (info->fields[info->tokens_field].channel.fill != info->pad_id)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the fill of tokens is not the pad id");
    return find_seq_tok(info, err);
}

static ps_result check_numbers(const unsigned char *from,
                               const ps_pack_info *info, ps_error *err)
{
    ps_result r = ps_geometry_check(info, err);

    if (r != PS_OK)
        return r;
    if (load_u32(from + 16) != PS_PACK_HEADER_BYTES)
        return ps_fail(err, PS_ERR_CORRUPT, "bad header length");
    if (info->record_bytes < PS_RECORD_MIN ||
        info->record_bytes > PS_MAX_RECORD_BYTES ||
        info->record_bytes % 64 != 0)
        return ps_fail(err, PS_ERR_CORRUPT, "records of %u bytes",
                       (unsigned)info->record_bytes);
    if ((load_u64(from + 80) & INCOMPAT_ALIGNED) != 0 && info->align < 2)
        return ps_fail(err, PS_ERR_CORRUPT, "sequences aligned to %u",
                       (unsigned)info->align);
    return PS_OK;
}

/*
 * The literal must say what the table says, or readers that go by it would
 * be misled.  How a later version writes it is not ours to judge.
 */
static ps_result decode_dtype(const unsigned char *from, ps_pack_info *info,
                              ps_error *err)
{
    const char *text = (const char *)from + DTYPE_AT;

    if (!ps_is_version_known(info)) {
        memcpy(info->dtype, text, sizeof info->dtype - 1);
        return PS_OK;
    }
    if (!ps_layout_dtype(info) ||
        memcmp(info->dtype, text, sizeof info->dtype) != 0)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the dtype does not agree with the field table");
    return PS_OK;
}

static ps_result decode_body(const unsigned char *from, ps_pack_info *info,
                             ps_error *err)
{
    ps_result r;

    decode_numbers(from, info);
    r = check_numbers(from, info, err);
    if (r == PS_OK)
        r = decode_schema(from, &info->schema, err);
    if (r == PS_OK)
        r = decode_table(from, info, err);
    if (r == PS_OK)
        r = find_built_in(info, err);
    if (r == PS_OK)
        r = ps_schema_check(&info->schema, err);
    if (r == PS_OK)
        r = decode_dtype(from, info, err);
    return r;
}

ps_result ps_pack_header_decode(const unsigned char *from,
                                ps_pack_info *info, ps_error *err)
{
    ps_result r;

    *info = (ps_pack_info){0};
    if (!ps_is_pack_magic_prefix(from, sizeof magic))
        return ps_fail(err, PS_ERR_MAGIC, "not a pack stream");
    r = ps_version_decode(from + 8, &info->version_major,
                          &info->version_minor, err);
    if (r != PS_OK)
        return r;
    if (load_u64(from + CHECKSUM_AT) != XXH3_64bits(from, CHECKSUM_AT))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the header's checksum does not agree");
    r = ps_incompat_check(load_u64(from + 80), INCOMPAT_ALIGNED, err);
    if (r != PS_OK)
        return r;
    r = decode_body(from, info, err);
    if (r == PS_OK || r == PS_ERR_CORRUPT)
        return r;
    /* What a caller could not ask for is, in a header, damage. */
    if (err != NULL)
        err->code = PS_ERR_CORRUPT;
    return PS_ERR_CORRUPT;
}

ps_result ps_pack_header_read(const unsigned char *from, size_t got,
                              ps_pack_info *info, ps_error *err)
{
    if (!ps_is_pack_magic_prefix(from, got))
        return ps_fail(err, PS_ERR_MAGIC, "not a pack stream");
    if (got < PS_PACK_HEADER_BYTES)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       got == 0 ? "the input is empty; even a pack stream "
                                  "without packs has a header"
                                : "the input ends inside the header");
    return ps_pack_header_decode(from, info, err);
}

bool ps_pack_info_equal(const ps_pack_info *a, const ps_pack_info *b)
{
    if (a->capacity != b->capacity || a->depth != b->depth ||
        a->record_bytes != b->record_bytes || a->n_fields != b->n_fields ||
        a->pad_id != b->pad_id || a->align != b->align ||
        !ps_schema_equal(&a->schema, &b->schema))
        return false;
    for (uint32_t i = 0; i < a->n_fields; i++)
        if (a->fields[i].offset != b->fields[i].offset ||
            strcmp(a->fields[i].channel.name, b->fields[i].channel.name) != 0)
            return false;
    return true;
}
