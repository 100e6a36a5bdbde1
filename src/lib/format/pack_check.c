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

/*
 * Unused elements of a field must hold its fill: behind each aligned sequence,
 * and behind all sequences.  The gap behind the field must be zero.
 */
static ps_result check_unused(const ps_pack_info *info, const ps_pack *pack,
                              uint32_t field, ps_error *err)
{
    const ps_field *f = &info->fields[field];
    const ps_kind kind = f->channel.kind;
    const unsigned char *elements = pack->record + f->offset;
    const size_t bytes = ps_type_bytes(f->channel.type);
    const size_t end = f->offset + f->count * bytes;
    const bool aligned = kind == PS_PER_TOKEN && info->seq_tok_field != 0;
    const uint32_t n_gaps = aligned ? pack->n_seq : 0;
    uint32_t used = f->count; /* of cu, which the reader has checked */
    unsigned char fill[8];

    store_u64(fill, f->channel.fill);
    if (kind == PS_PER_TOKEN)
        used = ps_record_cu(info, pack->record, pack->n_seq);
    else if (kind == PS_PER_SEQUENCE)
        used = pack->n_seq;
    for (uint32_t k = 0; k <= n_gaps; k++) {
        uint32_t i = used;
        uint32_t limit = f->count;

        if (k < n_gaps) {
            i = ps_record_cu(info, pack->record, k) +
                ps_record_length(info, pack->record, k);
            limit = ps_record_cu(info, pack->record, k + 1);
        }
        for (; i < limit; i++)
            if (memcmp(elements + i * bytes, fill, bytes) != 0)
                return ps_fail(err, PS_ERR_CORRUPT,
                               "unused element %" PRIu32
                               " of '%s' does not hold its fill",
                               i, f->channel.name);
    }
    if (ps_is_version_known(info) &&
        !all_zero(pack->record + end, ps_field_limit(info, field) - end))
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

ps_result ps_pack_check(const ps_pack_info *info, const ps_pack *pack,
                        ps_error *err)
{
    const bool aligned = info->seq_tok_field != 0;
    const ps_type type = info->schema.token_type;
    const uint32_t vocab = info->schema.vocab_size;
    const uint32_t n_runs = aligned ? pack->n_seq : 1;
    ps_result r = check_head(info, pack, err);

    /* A field that a later version has added has its own rules. */
    for (uint32_t i = 0; r == PS_OK && i < info->n_fields; i++)
        if (ps_is_version_known(info) ||
            info->fields[i].source != PS_BUILT_IN || i <= PS_FIELD_SEQ_ID ||
            i == info->tokens_field ||
            (aligned && i == info->seq_tok_field) ||
            (info->split && i <= PS_FIELD_SEQ_LEN))
            r = check_unused(info, pack, i, err);
    if (r != PS_OK || vocab == 0)
        return r;

    /*
     * Tokens must be in the vocabulary, but the pad id between aligned
     * sequences may be outside.
     */
    for (uint32_t i = 0; i < n_runs; i++) {
        const uint32_t first =
            aligned ? ps_record_cu(info, pack->record, i) : 0;
        const uint32_t n =
            aligned ? ps_record_length(info, pack->record, i) : pack->n_tok;
        const unsigned char *tokens =
            element(info, pack, info->tokens_field, first);
        const uint32_t bad = ps_tokens_check(tokens, n, type, vocab);

        if (bad < n)
            return ps_fail(err, PS_ERR_RANGE,
                           "token %" PRIu32 " is %" PRIu32
                           ", outside the vocabulary of %" PRIu32,
                           first + bad, ps_token_at(tokens, bad, type), vocab);
    }
    return PS_OK;
}
