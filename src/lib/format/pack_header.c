/*
 * pack_header.c - encode and decode the 4096-byte header of a pack stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/pack_header.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "bytes.h"
#include "format/pack_layout.h"
#include "format/schema.h"
#include "format/version.h"

/* Offsets in the header; packstream(5) describes the fields. */
enum {
    AT_VERSION = 8,
    AT_HEADER_BYTES = 16,
    AT_ROW_BYTES = 20,
    AT_N_PACKS = 24,
    AT_N_SEQUENCES = 32,
    AT_N_TOKENS = 40,
    AT_CAPACITY = 48,
    AT_DEPTH = 52,
    AT_WINDOW = 56,
    AT_VOCAB_SIZE = 60,
    AT_MAX_SEQLEN = 64,
    AT_MIN_FILL = 72,
    AT_INCOMPAT = 80,
    AT_COMPAT = 88,
    AT_SPECIALS = 96,
    AT_TOKEN_BYTES = 120,
    AT_LABELS = 121,
    AT_GROUP = 122,
    AT_ZERO = 123,
    AT_BUDGET_CHANNELS = 124, /* one byte each: 1 + index of the channel, or
                                 BUDGET_ATTENTION; 0: no budget */
    AT_SEED = 128,
    AT_TOKENIZER = 136,
    AT_OPTIONS_DIGEST = 168,
    AT_PAD_ID = 176,
    AT_ALIGN = 180,
    AT_SEQ_BYTES = 184,
    AT_BLOCK_PACKS = 188,
    AT_BLOCK_BYTES = 192,
    AT_N_FIELDS = 200,
    AT_ZERO_TOO = 204,
    AT_BUDGETS = 208,
    AT_ZEROS = 240,
    AT_TABLE = 256,
    AT_DTYPE = 2048,
    AT_CHECKSUM = PS_PACK_HEADER_BYTES - 8
};

/*
 * Offset of the source in a table entry: 0 for a built-in field, otherwise 1 +
 * the index of the user channel.
 */
#define ENTRY_SOURCE 27

/* Maximum size of a sequence row: each field a vector of 8-byte values. */
#define MAX_SEQ_BYTES (8 * PS_MAX_FIELDS * PS_MAX_VECTOR)

#define BUDGET_ATTENTION 255

#define COMPAT_FRAMED UINT64_C(1)
#define COMPAT_SHARE UINT64_C(2)
#define INCOMPAT_ALIGNED UINT64_C(1)

/* As in PNG, damage by text-mode or 7-bit transfers is detectable. */
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
    return load_u64(header + AT_CHECKSUM);
}

void ps_pack_header_encode(const ps_pack_info *info, unsigned char *to)
{
    memset(to, 0, PS_PACK_HEADER_BYTES);
    memcpy(to, magic, sizeof magic);
    ps_version_encode(to + AT_VERSION, PS_PACK_MAJOR);
    store_u32(to + AT_HEADER_BYTES, PS_PACK_HEADER_BYTES);
    store_u32(to + AT_ROW_BYTES, info->row_bytes);
    store_u64(to + AT_N_PACKS, info->n_packs);
    store_u64(to + AT_N_SEQUENCES, info->n_sequences);
    store_u64(to + AT_N_TOKENS, info->n_tokens);
    store_u32(to + AT_CAPACITY, info->capacity);
    store_u32(to + AT_DEPTH, info->depth);
    store_u32(to + AT_WINDOW, info->max_displacement);
    store_u32(to + AT_VOCAB_SIZE, info->schema.vocab_size);
    store_u64(to + AT_MAX_SEQLEN, info->max_seqlen);
    store_u64(to + AT_MIN_FILL, info->min_fill);
    store_u64(to + AT_INCOMPAT, info->align > 1 ? INCOMPAT_ALIGNED : 0);
    store_u64(to + AT_COMPAT, (info->schema.framed ? COMPAT_FRAMED : 0) |
                              (info->share ? COMPAT_SHARE : 0));
    ps_specials_encode(&info->schema, to + AT_SPECIALS);
    to[AT_TOKEN_BYTES] = (unsigned char)ps_type_bytes(info->schema.token_type);
    to[AT_LABELS] = (unsigned char)info->schema.labels;
    to[AT_GROUP] = (unsigned char)info->group;
    for (uint32_t i = 0; i < info->n_budgets; i++) {
        const ps_budget *budget = &info->budgets[i];

        to[AT_BUDGET_CHANNELS + i] =
            budget->channel == PS_BUDGET_ATTENTION
                ? BUDGET_ATTENTION
                : (unsigned char)(budget->channel + 1);
        store_u64(to + AT_BUDGETS + 8 * i, budget->limit);
    }
    store_u64(to + AT_SEED, info->seed);
    memcpy(to + AT_TOKENIZER, info->schema.tokenizer,
           sizeof info->schema.tokenizer);
    store_u64(to + AT_OPTIONS_DIGEST, info->options_digest);
    store_u32(to + AT_PAD_ID, info->pad_id);
    store_u32(to + AT_ALIGN, info->align > 1 ? info->align : 0);
    store_u32(to + AT_SEQ_BYTES, info->seq_bytes);
    store_u32(to + AT_BLOCK_PACKS, info->block_packs);
    store_u64(to + AT_BLOCK_BYTES, info->block_bytes);
    store_u32(to + AT_N_FIELDS, info->n_fields);
    for (uint32_t i = 0; i < info->n_fields; i++) {
        const ps_field *f = &info->fields[i];
        unsigned char *entry =
            to + AT_TABLE + (size_t)i * PS_CHANNEL_ENTRY_BYTES;

        ps_channel_encode(&f->channel, f->offset, 1, entry);
        if (f->source != PS_BUILT_IN)
            entry[ENTRY_SOURCE] = (unsigned char)(f->source + 1);
    }
    memcpy(to + AT_DTYPE, info->dtype, sizeof info->dtype);
    store_u64(to + AT_CHECKSUM, ps_hash(to, AT_CHECKSUM));
}

/* Decodes the budgets, but does not check their channels. */
static ps_result decode_budgets(const unsigned char *from, ps_pack_info *info,
                                ps_error *err)
{
    const unsigned char *by = from + AT_BUDGET_CHANNELS;

    while (info->n_budgets < PS_MAX_BUDGETS && by[info->n_budgets] != 0)
        info->n_budgets++;
    for (uint32_t i = 0; i < PS_MAX_BUDGETS; i++) {
        const uint64_t limit = load_u64(from + AT_BUDGETS + (size_t)8 * i);
        const bool used = i < info->n_budgets;

        if (used ? limit == 0 || limit > PS_MAX_BUDGET
                 : limit != 0 || by[i] != 0)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "budget %" PRIu32 " is %" PRIu64 ", which is out of "
                           "range",
                           i, limit);
        if (used)
            info->budgets[i] = (ps_budget){
                .channel = by[i] == BUDGET_ATTENTION ? PS_BUDGET_ATTENTION
                                                     : by[i] - 1u,
                .limit = limit};
    }
    return PS_OK;
}

/* Decodes everything except the table of fields and the dtype. */
static ps_result decode_fixed(const unsigned char *from, ps_pack_info *info,
                              ps_error *err)
{
    const bool aligned =
        (load_u64(from + AT_INCOMPAT) & INCOMPAT_ALIGNED) != 0;
    ps_schema *schema = &info->schema;
    ps_result r;

    info->row_bytes = load_u32(from + AT_ROW_BYTES);
    info->seq_bytes = load_u32(from + AT_SEQ_BYTES);
    info->block_packs = load_u32(from + AT_BLOCK_PACKS);
    info->block_bytes = load_u64(from + AT_BLOCK_BYTES);
    info->n_packs = load_u64(from + AT_N_PACKS);
    info->n_sequences = load_u64(from + AT_N_SEQUENCES);
    info->n_tokens = load_u64(from + AT_N_TOKENS);
    info->capacity = load_u32(from + AT_CAPACITY);
    info->depth = load_u32(from + AT_DEPTH);
    info->max_displacement = load_u32(from + AT_WINDOW);
    info->max_seqlen = load_u64(from + AT_MAX_SEQLEN);
    info->min_fill = load_u64(from + AT_MIN_FILL);
    info->seed = load_u64(from + AT_SEED);
    info->options_digest = load_u64(from + AT_OPTIONS_DIGEST);
    info->pad_id = load_u32(from + AT_PAD_ID);
    info->align = aligned ? load_u32(from + AT_ALIGN) : 1;
    r = ps_geometry_check(info, err);
    if (r != PS_OK)
        return r;
    if (load_u32(from + AT_HEADER_BYTES) != PS_PACK_HEADER_BYTES)
        return ps_fail(err, PS_ERR_CORRUPT, "bad header length");
    if (info->row_bytes == 0 || info->row_bytes > PS_MAX_ROW_BYTES ||
        info->row_bytes % 8 != 0 || info->seq_bytes < 16 ||
        info->seq_bytes > MAX_SEQ_BYTES || info->seq_bytes % 8 != 0)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "invalid sizes: rows of %" PRIu32 " and sequence rows "
                       "of %" PRIu32 " bytes",
                       info->row_bytes, info->seq_bytes);
    if (info->block_packs == 0 || info->block_packs > PS_MAX_BLOCK_PACKS ||
        (info->block_packs & (info->block_packs - 1)) != 0 ||
        info->block_bytes > PS_MAX_BLOCK_BYTES)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "invalid sizes: blocks of %" PRIu32 " packs and %" PRIu64
                       " bytes",
                       info->block_packs, info->block_bytes);
    if (aligned && info->align < 2)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "invalid alignment: sequences aligned to %u",
                       (unsigned)info->align);

    if (!ps_token_type(from[AT_TOKEN_BYTES], &schema->token_type))
        return ps_fail(err, PS_ERR_CORRUPT, "invalid size: tokens of %u bytes",
                       (unsigned)from[AT_TOKEN_BYTES]);
    info->group = from[AT_GROUP];
    info->share = (load_u64(from + AT_COMPAT) & COMPAT_SHARE) != 0;
    schema->framed = (load_u64(from + AT_COMPAT) & COMPAT_FRAMED) != 0;
    schema->labels = (ps_label_convention)from[AT_LABELS];
    schema->vocab_size = load_u32(from + AT_VOCAB_SIZE);
    ps_specials_decode(from + AT_SPECIALS, schema);
    memcpy(schema->tokenizer, from + AT_TOKENIZER, sizeof schema->tokenizer);
    return decode_budgets(from, info, err);
}

/*
 * Checks that a field is inside its row and starts after the previous field,
 * which ends at *end.
 */
static ps_result check_place(const ps_pack_info *info, const ps_field *f,
                             uint64_t *end, ps_error *err)
{
    const bool in_row = f->channel.kind != PS_PER_SEQUENCE;
    const uint64_t places = ps_field_places(info, &f->channel, f->source);

    if (places == 0 || places > PS_MAX_ROW_BYTES)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the list '%s' has no budget, or one that exceeds a row",
                       f->channel.name);
    if (f->offset < *end || f->offset % ps_type_bytes(f->channel.type) != 0)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "field '%s' has the wrong offset",
                       f->channel.name);
    *end = f->offset + ps_channel_bytes(&f->channel) * places;
    if (*end > (in_row ? info->row_bytes : info->seq_bytes))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "field '%s' is outside its row", f->channel.name);
    return PS_OK;
}

/*
 * True for start and length of a list whose field in the row was decoded.  That
 * both are decoded only once is checked by has_lists.
 */
static bool is_rest_of_list(const ps_pack_info *info, const ps_field *f)
{
    const ps_field *row = ps_pack_field(info, f->channel.name);

    return row != f && row->channel.kind == PS_LIST &&
           row->source == f->source && f->channel.kind == PS_PER_SEQUENCE &&
           f->channel.type == PS_U32 && f->channel.count == 2 &&
           f->channel.fill == 0;
}

/* True if every list has exactly one field in the sequence row. */
static bool has_lists(const ps_pack_info *info)
{
    for (uint32_t c = 0; c < info->schema.n_channels; c++) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < info->n_fields; i++)
            n += info->fields[i].source == c;
        if (info->schema.channels[c].kind == PS_LIST && n != 2)
            return false;
    }
    return true;
}

/*
 * Decodes the table of fields.  Built-in fields of a later minor version stay
 * in info->fields and are ignored.
 */
static ps_result decode_table(const unsigned char *from, ps_pack_info *info,
                              ps_error *err)
{
    uint64_t row_end = 0;
    uint64_t seq_end = 0;

    info->n_fields = load_u32(from + AT_N_FIELDS);
    if (info->n_fields > PS_MAX_FIELDS)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the header lists %u fields, but the limit is %d",
                       (unsigned)info->n_fields, PS_MAX_FIELDS);
    for (uint32_t i = 0; i < info->n_fields; i++) {
        const unsigned char *entry =
            from + AT_TABLE + (size_t)i * PS_CHANNEL_ENTRY_BYTES;
        ps_field *f = &info->fields[i];
        ps_channel *channel;
        bool is_rest;
        ps_result r = ps_channel_decode(entry, &f->channel, &f->offset, 1,
                                        err);

        if (r != PS_OK)
            return r;
        f->source = entry[ENTRY_SOURCE] == 0 ? PS_BUILT_IN
                                             : entry[ENTRY_SOURCE] - 1u;
        is_rest = is_rest_of_list(info, f);
        if (!is_rest && ps_pack_field(info, f->channel.name) != f)
            return ps_fail(err, PS_ERR_CORRUPT, "field '%s' is listed twice",
                           f->channel.name);
        r = check_place(info, f,
                        f->channel.kind == PS_PER_SEQUENCE ? &seq_end
                                                           : &row_end,
                        err);
        if (r != PS_OK)
            return r;
        if (f->source == PS_BUILT_IN || is_rest)
            continue;

        /* Restore the user channel at its index in the schema. */
        if (f->source >= PS_MAX_CHANNELS)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "field '%s' has a source out of range",
                           f->channel.name);
        channel = &info->schema.channels[f->source];
        if (channel->name[0] != '\0')
            return ps_fail(err, PS_ERR_CORRUPT,
                           "fields '%s' and '%s' have the same source",
                           channel->name, f->channel.name);
        *channel = f->channel;
        info->schema.n_channels++;
    }
    return PS_OK;
}

/* True if a built-in field with these properties exists at `offset`. */
static bool has_own(const ps_pack_info *info, const char *name, ps_type type,
                    ps_kind kind, uint32_t offset)
{
    const ps_field *f = ps_pack_field(info, name);

    return f != NULL && f->source == PS_BUILT_IN && f->channel.type == type &&
           f->channel.kind == kind && f->channel.count == 0 &&
           f->offset == offset;
}

/* Checks that every built-in field is present, and determines `split`. */
static ps_result find_built_in(ps_pack_info *info, ps_error *err)
{
    const ps_field *tokens = &info->fields[PS_FIELD_TOKENS];

    if (!has_own(info, "tokens", info->schema.token_type, PS_PER_TOKEN, 0) ||
        ps_pack_field(info, "tokens") != tokens ||
        !has_own(info, "seq_id", PS_U64, PS_PER_SEQUENCE, PS_SEQ_ID) ||
        !has_own(info, "seq_start", PS_I32, PS_PER_SEQUENCE, PS_SEQ_START) ||
        !has_own(info, "seq_tok", PS_I32, PS_PER_SEQUENCE, PS_SEQ_TOK))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "tokens, seq_id, seq_start or seq_tok is missing in the "
                       "header");
    info->split =
        has_own(info, "piece_off", PS_U32, PS_PER_SEQUENCE,
                PS_SEQ_PIECE_OFF) &&
        has_own(info, "full_len", PS_U32, PS_PER_SEQUENCE, PS_SEQ_FULL_LEN);
    if (info->group > info->schema.n_channels ||
        (info->group > 0 &&
         !ps_channel_is_number(&info->schema.channels[info->group - 1])))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the header groups by channel %" PRIu32 ", which is "
                       "not a per-sequence channel of numbers",
                       info->group);
    if (!has_lists(info))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "a list has no start and length in the sequence row");
    for (uint32_t i = 0; i < info->n_budgets; i++) {
        const uint32_t by = info->budgets[i].channel;

        if (by != PS_BUDGET_ATTENTION &&
            (by >= info->schema.n_channels ||
             !ps_channel_has_budget(&info->schema.channels[by])))
            return ps_fail(err, PS_ERR_CORRUPT,
                           "a budget of channel %" PRIu32 ", which is neither "
                           "an integer per-sequence channel nor a list",
                           by);
    }
    if (tokens->channel.fill != info->pad_id)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "tokens are not filled with the pad id");
    return PS_OK;
}

/*
 * Each known version has exactly one layout.  The dtype must match it, because
 * numpy readers rely on the dtype alone.
 */
static ps_result check_layout(const unsigned char *from,
                              const ps_pack_info *info, ps_error *err)
{
    const unsigned char *entry = from + AT_TABLE;
    ps_pack_info wanted = *info;
    bool zero;
    ps_result r = ps_layout(&wanted, err);

    if (r == PS_OK)
        r = ps_pack_info_compare(info, &wanted, err);
    if (r == PS_OK && info->block_bytes != wanted.block_bytes)
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "the maximum block size is %" PRIu64 " bytes, not %" PRIu64,
                    info->block_bytes, wanted.block_bytes);
    for (uint32_t i = 0; r == PS_OK && i < info->n_fields; i++) {
        const ps_channel *c = &info->fields[i].channel;

        if (c->fill != wanted.fields[i].channel.fill)
            r = ps_fail(err, PS_ERR_CORRUPT,
                        "field '%s' is filled with %" PRIu64 ", not %" PRIu64,
                        c->name, c->fill, wanted.fields[i].channel.fill);
    }
    if (r == PS_OK && memcmp(wanted.dtype, from + AT_DTYPE,
                             sizeof wanted.dtype) != 0)
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "the dtype contradicts the field table");
    if (r != PS_OK)
        return r;

    /* In known versions, bytes reserved for later versions are zero. */
    zero = from[AT_ZERO] == 0 && load_u32(from + AT_ZERO_TOO) == 0 &&
           (info->align > 1 || load_u32(from + AT_ALIGN) == 0) &&
           all_zero(from + AT_ZEROS, AT_TABLE - AT_ZEROS);
    for (uint32_t i = 0; zero && i < info->n_fields; i++) {
        zero = ps_channel_unused_is_zero(entry, true);
        entry += PS_CHANNEL_ENTRY_BYTES;
    }
    if (!zero || !all_zero(entry, (size_t)(from + AT_DTYPE - entry)))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "unused bytes of the header are not zero");
    return PS_OK;
}

ps_result ps_pack_header_decode(const unsigned char *from,
                                ps_pack_info *info, ps_error *err)
{
    ps_result r;

    *info = (ps_pack_info){0};
    if (!ps_is_pack_magic_prefix(from, sizeof magic))
        return ps_fail(err, PS_ERR_MAGIC, "not a pack stream");
    r = ps_version_decode(from + AT_VERSION, PS_PACK_MAJOR,
                          &info->version_major, &info->version_minor, err);
    if (r == PS_OK && info->version_major < PS_PACK_MAJOR)
        r = ps_fail(err, PS_ERR_UNSUPPORTED,
                    "pack stream format %u is no longer supported: pack the "
                    "token records again",
                    (unsigned)info->version_major);
    if (r != PS_OK)
        return r;
    if (load_u64(from + AT_CHECKSUM) != ps_hash(from, AT_CHECKSUM))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the header's checksum does not match");
    r = ps_incompat_check(load_u64(from + AT_INCOMPAT), INCOMPAT_ALIGNED,
                          err);
    if (r != PS_OK)
        return r;

    r = decode_fixed(from, info, err);
    if (r == PS_OK)
        r = decode_table(from, info, err);
    if (r == PS_OK)
        r = find_built_in(info, err);
    if (r == PS_OK)
        r = ps_schema_check(&info->schema, err);

    /* The layout of a later version is unknown. */
    if (r == PS_OK && ps_is_version_known(info))
        r = check_layout(from, info, err);
    if (r == PS_OK)
        memcpy(info->dtype, from + AT_DTYPE, sizeof info->dtype - 1);
    if (r == PS_OK || r == PS_ERR_CORRUPT)
        return r;
    /* Report invalid values in a header as damage, not as an argument error. */
    if (err != NULL)
        err->code = PS_ERR_CORRUPT;
    return PS_ERR_CORRUPT;
}

ps_result ps_pack_header_read(const unsigned char *from, size_t got,
                              ps_pack_info *info, ps_error *err)
{
    const char *other = ps_recognize(from, got);

    if (!ps_is_pack_magic_prefix(from, got))
        return other == NULL
                   ? ps_fail(err, PS_ERR_MAGIC, "not a pack stream")
                   : ps_fail(err, PS_ERR_MAGIC,
                             "not a pack stream: this looks like %s", other);
    if (got < PS_PACK_HEADER_BYTES)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       got == 0 ? "the input is empty: even a pack stream "
                                  "without packs has a header"
                                : "the input ends inside the header");
    return ps_pack_header_decode(from, info, err);
}
