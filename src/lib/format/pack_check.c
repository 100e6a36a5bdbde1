/*
 * pack_check.c - access to the sequences of a pack, and the rules that readers
 * leave unchecked.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "bytes.h"
#include "format/pack.h"
#include "format/schema.h"
#include "format/version.h"

ps_piece ps_pack_piece(const ps_pack_info *info, const ps_pack *pack,
                       uint32_t i)
{
    const unsigned char *seq = ps_pack_sequence(info, pack, i);
    ps_piece piece = {
        .id = ps_seq_id(seq),
        .begin = ps_seq_start(seq),
        .n_tok = ps_seq_n_tok(seq),
    };

    piece.seq_len = piece.n_tok;
    if (info->split) {
        piece.seq_off = load_u32(seq + PS_SEQ_PIECE_OFF);
        piece.seq_len = load_u32(seq + PS_SEQ_FULL_LEN);
    }
    return piece;
}

void ps_pack_payload(const ps_pack_info *info, const ps_pack *pack,
                     uint32_t i, void *payload)
{
    ps_payload_column columns[PS_MAX_FIELDS];
    uint32_t n_columns = ps_payload_columns(info, columns);
    const unsigned char *seq = ps_pack_sequence(info, pack, i);
    const size_t begin = ps_seq_start(seq);
    const uint32_t n_tok = ps_seq_n_tok(seq);
    unsigned char *to = payload;
    uint64_t fixed_at =
        (uint64_t)ps_schema_shape(&info->schema).per_token * n_tok;

    for (uint32_t l = 0; l < n_columns; l++) {
        const ps_payload_column *column = &columns[l];

        if (column->per_token)
            memcpy(to + (uint64_t)column->before * n_tok,
                   pack->row + column->offset + begin * column->bytes,
                   (size_t)n_tok * column->bytes);
        else
            memcpy(to + fixed_at + column->before, seq + column->offset,
                   column->bytes);
    }
    to += ps_payload_bytes(&info->schema, n_tok);
    for (uint32_t c = 0; c < info->schema.n_channels; c++)
        if (info->schema.channels[c].kind == PS_LIST) {
            const ps_list list = ps_pack_list(info, pack, c, i);
            const size_t n =
                list.n * ps_channel_bytes(&info->schema.channels[c]);

            memcpy(to, list.elements, n);
            to += n;
        }
}

uint64_t ps_pack_payload_bytes(const ps_pack_info *info, const ps_pack *pack,
                               uint32_t i)
{
    const uint32_t n_tok = ps_seq_n_tok(ps_pack_sequence(info, pack, i));
    uint64_t bytes = ps_payload_bytes(&info->schema, n_tok);

    for (uint32_t c = 0; c < info->schema.n_channels; c++)
        if (info->schema.channels[c].kind == PS_LIST)
            bytes += ps_pack_list(info, pack, c, i).n *
                     ps_channel_bytes(&info->schema.channels[c]);
    return bytes;
}

/* Checks that elements first to end - 1 of a field equal its fill value. */
static ps_result check_fill(const ps_field *f, const unsigned char *elements,
                            uint32_t first, uint32_t end, ps_error *err)
{
    const size_t bytes = ps_type_bytes(f->channel.type);
    const size_t values = ps_channel_values(&f->channel);
    unsigned char fill[8];

    store_u64(fill, f->channel.fill);
    for (size_t i = first * values; i < end * values; i++)
        if (memcmp(elements + i * bytes, fill, bytes) != 0)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "unused element %zu of '%s' is not the fill value",
                           i / values, f->channel.name);
    return PS_OK;
}

/* Checks the unused elements of a list's field, after the last list. */
static ps_result check_list_fill(const ps_pack_info *info, const ps_pack *pack,
                                 const ps_field *f, ps_error *err)
{
    const ps_list last = ps_pack_list(info, pack, f->source, pack->n_seq - 1);

    return check_fill(f, pack->row + f->offset, last.start + last.n,
                      (uint32_t)ps_field_places(info, &f->channel, f->source),
                      err);
}

/*
 * Checks the unused elements of a field of the row, between sequences and after
 * the last one.  The bytes from the end of the field to byte `limit` must be
 * zero.
 */
static ps_result check_unused(const ps_pack_info *info, const ps_pack *pack,
                              const ps_field *f, uint32_t limit, ps_error *err)
{
    const unsigned char *elements = pack->row + f->offset;
    const bool is_list = f->channel.kind == PS_LIST;
    const size_t end =
        f->offset + ps_field_places(info, &f->channel, f->source) *
                        ps_channel_bytes(&f->channel);
    ps_result r = is_list ? check_list_fill(info, pack, f, err) : PS_OK;

    for (uint32_t i = 0; r == PS_OK && !is_list && i < pack->n_seq; i++) {
        const bool is_last = i + 1 == pack->n_seq;
        const ps_piece s = ps_pack_piece(info, pack, i);

        if (info->align > 1 || is_last)
            r = check_fill(f, elements, s.begin + s.n_tok,
                           is_last ? info->capacity
                                   : ps_pack_piece(info, pack, i + 1).begin,
                           err);
    }
    if (r == PS_OK && ps_is_version_known(info) &&
        !all_zero(pack->row + end, limit - end))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the gap after '%s' is not zero", f->channel.name);
    return r;
}

/* Checks that the bytes between the fields of a sequence row are zero. */
static ps_result check_gaps(const ps_pack_info *info, const ps_pack *pack,
                            ps_error *err)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i <= info->n_fields; i++) {
        const bool is_last = i == info->n_fields;
        const ps_field *f = is_last ? NULL : &info->fields[i];
        const uint32_t offset = is_last ? info->seq_bytes : f->offset;

        if (!is_last && f->channel.kind != PS_PER_SEQUENCE)
            continue;
        for (uint32_t k = 0; offset > end && k < pack->n_seq; k++)
            if (!all_zero(ps_pack_sequence(info, pack, k) + end, offset - end))
                return ps_fail(err, PS_ERR_CORRUPT,
                               "byte %" PRIu32 " of the row of sequence "
                               "%" PRIu32 ", or a later one, is not zero",
                               end, k);
        end = is_last ? end
                      : offset + (uint32_t)ps_channel_bytes(&f->channel);
    }
    return PS_OK;
}

/* Checks sum_len_sq, which is for programs that read only heads. */
static ps_result check_sum(const ps_pack_info *info, const ps_pack *pack,
                           ps_error *err)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < pack->n_seq; i++) {
        uint64_t n = ps_seq_n_tok(ps_pack_sequence(info, pack, i));

        sum += n * n;
    }
    if (sum != pack->sum_len_sq)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "sum_len_sq is %" PRIu64 ", not %" PRIu64,
                       pack->sum_len_sq, sum);
    return PS_OK;
}

/* Amount of the budget of a channel that sequence `i` uses. */
static uint64_t use_of(const ps_pack_info *info, const ps_pack *pack,
                       uint32_t channel, uint32_t i)
{
    const ps_channel *c = &info->schema.channels[channel];

    return c->kind == PS_LIST
               ? ps_pack_list(info, pack, channel, i).n
               : ps_integer_load(c->type,
                                 ps_pack_sequence(info, pack, i) +
                                     ps_source_field(info, channel)->offset);
}

/* Sums cannot overflow: 2^20 sequences use at most 2^43 each. */
void ps_pack_uses(const ps_pack_info *info, const ps_pack *pack,
                  uint64_t uses[PS_MAX_BUDGETS])
{
    for (uint32_t b = 0; b < info->n_budgets; b++) {
        const ps_budget *budget = &info->budgets[b];

        uses[b] = pack->sum_len_sq;
        if (budget->channel == PS_BUDGET_ATTENTION)
            continue;
        uses[b] = 0;
        for (uint32_t i = 0; i < pack->n_seq && uses[b] != UINT64_MAX; i++) {
            const uint64_t value = use_of(info, pack, budget->channel, i);

            uses[b] = value > budget->limit ? UINT64_MAX : uses[b] + value;
        }
    }
}

static ps_result check_budgets(const ps_pack_info *info, const ps_pack *pack,
                               ps_error *err)
{
    uint64_t uses[PS_MAX_BUDGETS];

    ps_pack_uses(info, pack, uses);
    for (uint32_t b = 0; b < info->n_budgets; b++) {
        const ps_budget *budget = &info->budgets[b];

        if (uses[b] > budget->limit)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "%s exceeds its budget, %" PRIu64,
                           budget->channel == PS_BUDGET_ATTENTION
                               ? "sum_len_sq"
                               : info->schema.channels[budget->channel].name,
                           budget->limit);
    }
    return PS_OK;
}

/* Checks that tokens are in the vocabulary.  The pad id can be outside. */
static ps_result check_vocabulary(const ps_pack_info *info,
                                  const ps_pack *pack, ps_error *err)
{
    const ps_type type = info->schema.token_type;
    const uint32_t vocab = info->schema.vocab_size;

    for (uint32_t i = 0; vocab > 0 && i < pack->n_seq; i++) {
        const ps_piece s = ps_pack_piece(info, pack, i);
        const unsigned char *tokens =
            pack->row + s.begin * ps_type_bytes(type);
        const uint32_t bad = ps_tokens_check(tokens, s.n_tok, type, vocab);

        if (bad < s.n_tok)
            return ps_fail(err, PS_ERR_RANGE,
                           "token %" PRIu32 " is %" PRIu32
                           ", outside the vocabulary of %" PRIu32,
                           s.begin + bad, ps_token_at(tokens, bad, type),
                           vocab);
    }
    return PS_OK;
}

ps_result ps_pack_check(const ps_pack_info *info, const ps_pack *pack,
                        ps_error *err)
{
    const bool is_known = ps_is_version_known(info);
    ps_result r = check_sum(info, pack, err);

    /* Built-in fields of a later version can have other rules. */
    for (uint32_t i = 0; r == PS_OK && i < info->n_fields; i++) {
        const ps_field *f = &info->fields[i];
        const bool is_last = i + 1 == info->n_fields ||
                             f[1].channel.kind == PS_PER_SEQUENCE;

        if (f->channel.kind != PS_PER_SEQUENCE &&
            (is_known || f->source != PS_BUILT_IN || i == PS_FIELD_TOKENS))
            r = check_unused(info, pack, f,
                             is_last ? info->row_bytes : f[1].offset, err);
    }
    if (r == PS_OK && is_known)
        r = check_gaps(info, pack, err);
    if (r == PS_OK)
        r = check_budgets(info, pack, err);
    return r == PS_OK ? check_vocabulary(info, pack, err) : r;
}
