/*
 * pack_check.c - the sequences of a pack that a reader gave, and the rules
 * that the reader leaves unchecked.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "bytes.h"
#include "format/pack_record.h"
#include "format/record_layout.h"
#include "format/schema.h"
#include "format/version.h"

static const unsigned char *element(const ps_pack_info *info,
                                    const ps_pack *pack, uint32_t field,
                                    uint32_t i)
{
    const ps_field *f = &info->fields[field];

    return pack->record + f->offset +
           (size_t)i * ps_type_bytes(f->channel.type);
}

ps_piece ps_pack_piece(const ps_pack_info *info, const ps_pack *pack,
                       uint32_t i)
{
    uint32_t begin = ps_record_cu(info, pack->record, i);
    ps_piece piece = {
        .id = load_u64(element(info, pack, PS_FIELD_SEQ_ID, i)),
        .begin = begin,
        .n_tok = ps_record_length(info, pack->record, i),
    };

    piece.seq_len = piece.n_tok;
    if (info->split) {
        piece.seq_off = load_u32(element(info, pack, PS_FIELD_SEQ_OFF, i));
        piece.seq_len = load_u32(element(info, pack, PS_FIELD_SEQ_LEN, i));
    }
    return piece;
}

void ps_pack_payload(const ps_pack_info *info, const ps_pack *pack,
                     uint32_t i, void *payload)
{
    ps_payload_column columns[PS_MAX_FIELDS];
    uint32_t n_columns = ps_payload_columns(info, columns);
    ps_piece piece = ps_pack_piece(info, pack, i);
    uint64_t fixed_at =
        (uint64_t)ps_schema_shape(&info->schema).per_token * piece.n_tok;

    for (uint32_t l = 0; l < n_columns; l++) {
        const ps_payload_column *column = &columns[l];
        size_t first = column->per_token ? piece.begin : i;
        size_t n = column->per_token ? piece.n_tok : 1;
        uint64_t at = column->per_token
                          ? (uint64_t)column->before * piece.n_tok
                          : fixed_at + column->before;

        memcpy((unsigned char *)payload + at,
               pack->record + column->offset + first * column->bytes,
               n * column->bytes);
    }
}

/* Elements `i` to `end` - 1 of a field must hold its fill. */
static ps_result check_fill(const ps_pack_info *info, const ps_pack *pack,
                            uint32_t field, uint32_t i, uint32_t end,
                            ps_error *err)
{
    const ps_channel *c = &info->fields[field].channel;
    size_t bytes = ps_type_bytes(c->type);
    unsigned char fill[8];

    store_u64(fill, c->fill);
    for (; i < end; i++)
        if (memcmp(element(info, pack, field, i), fill, bytes) != 0)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "unused element %" PRIu32
                           " of '%s' does not hold its fill",
                           i, c->name);
    return PS_OK;
}

/*
 * Unused elements of a field must hold its fill: behind each aligned sequence,
 * and behind all sequences.  The gap behind the field must be zero.
 */
static ps_result check_unused(const ps_pack_info *info, const ps_pack *pack,
                              uint32_t field, ps_error *err)
{
    const ps_field *f = &info->fields[field];
    const ps_kind kind = f->channel.kind;
    size_t end = f->offset + f->count * ps_type_bytes(f->channel.type);
    size_t next = ps_field_limit(info, field);
    uint32_t used = f->count; /* of cu, which the reader has checked */
    ps_result r = PS_OK;

    if (kind == PS_PER_TOKEN && info->seq_tok_field != 0) {
        for (uint32_t i = 0; r == PS_OK && i < pack->n_seq; i++) {
            ps_piece piece = ps_pack_piece(info, pack, i);

            r = check_fill(info, pack, field, piece.begin + piece.n_tok,
                           ps_record_cu(info, pack->record, i + 1), err);
        }
    }
    if (kind == PS_PER_TOKEN)
        used = ps_record_cu(info, pack->record, pack->n_seq);
    else if (kind == PS_PER_SEQUENCE)
        used = pack->n_seq;
    if (r == PS_OK)
        r = check_fill(info, pack, field, used, f->count, err);
    if (r != PS_OK)
        return r;
    if (ps_is_version_known(info) &&
        !all_zero(pack->record + end, next - end))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the gap behind '%s' is not zero", f->channel.name);
    return PS_OK;
}

/* The head repeats a sum for those who read nothing else. */
static ps_result check_head(const ps_pack_info *info, const ps_pack *pack,
                            ps_error *err)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < pack->n_seq; i++) {
        uint64_t n = ps_record_length(info, pack->record, i);

        sum += n * n;
    }
    if (sum != pack->sum_len_sq)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "sum_len_sq is %" PRIu64 ", it should be %" PRIu64,
                       pack->sum_len_sq, sum);
    if (ps_is_version_known(info) &&
        !all_zero(pack->record + PS_HEAD_ZERO,
                  info->fields[0].offset - PS_HEAD_ZERO))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the unused end of the head is not zero");
    return PS_OK;
}

/* Tokens `first` to `first` + `n` - 1 must be in the vocabulary. */
static ps_result check_tokens(const ps_pack_info *info, const ps_pack *pack,
                              uint32_t first, uint32_t n, ps_error *err)
{
    const unsigned char *tokens =
        element(info, pack, info->tokens_field, first);
    ps_type type = info->schema.token_type;
    uint32_t vocab = info->schema.vocab_size;
    uint32_t bad = ps_tokens_check(tokens, n, type, vocab);

    if (bad == n)
        return PS_OK;
    return ps_fail(err, PS_ERR_RANGE,
                   "token %" PRIu32 " is %" PRIu32
                   ", outside the vocabulary of %" PRIu32,
                   first + bad, ps_token_at(tokens, bad, type), vocab);
}

/* False for a field that a later version has added, with its own rules. */
static bool is_field_known(const ps_pack_info *info, uint32_t field)
{
    return ps_is_version_known(info) ||
           info->fields[field].source != PS_BUILT_IN ||
           field <= PS_FIELD_SEQ_ID || field == info->tokens_field ||
           (info->seq_tok_field != 0 && field == info->seq_tok_field) ||
           (info->split && field <= PS_FIELD_SEQ_LEN);
}

ps_result ps_pack_check(const ps_pack_info *info, const ps_pack *pack,
                        ps_error *err)
{
    ps_result r = check_head(info, pack, err);

    for (uint32_t i = 0; r == PS_OK && i < info->n_fields; i++)
        if (is_field_known(info, i))
            r = check_unused(info, pack, i, err);
    if (r != PS_OK || info->schema.vocab_size == 0)
        return r;

    /* The pad id between aligned sequences may be outside the vocabulary. */
    if (info->seq_tok_field == 0)
        return check_tokens(info, pack, 0, pack->n_tok, err);
    for (uint32_t i = 0; r == PS_OK && i < pack->n_seq; i++) {
        ps_piece piece = ps_pack_piece(info, pack, i);

        r = check_tokens(info, pack, piece.begin, piece.n_tok, err);
    }
    return r;
}
