/*
 * pack.c - build, decode and check packs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/pack.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "format/schema.h"

/*
 * Bytes covered by a pack checksum: the index, two hashes, and the head from
 * n_seq on.
 */
#define SUMMED_HEAD (PS_PACK_HEAD_BYTES - PS_HEAD_N_SEQ)
#define SUMMED_BYTES (24 + SUMMED_HEAD)

/* ---- Lists ---- */

/*
 * A list has its elements in a field of the row, and start and length, each
 * u32, in a field of the sequence row.
 */
#define AT_LENGTH 4

const ps_field *ps_source_field(const ps_pack_info *info, uint32_t channel)
{
    const bool in_row = info->schema.channels[channel].kind == PS_PER_TOKEN;
    const ps_field *f = info->fields;

    while (f->source != channel ||
           (f->channel.kind == PS_PER_TOKEN) != in_row ||
           f->channel.kind == PS_LIST)
        f++;
    return f;
}

ps_list ps_pack_list(const ps_pack_info *info, const ps_pack *pack,
                     uint32_t channel, uint32_t i)
{
    const ps_field *row = ps_pack_field(info,
                                        info->schema.channels[channel].name);
    const unsigned char *seq = ps_pack_sequence(info, pack, i) +
                               ps_source_field(info, channel)->offset;
    const uint32_t start = load_u32(seq);

    return (ps_list){
        .start = start,
        .n = load_u32(seq + AT_LENGTH),
        .elements = pack->row + row->offset +
                    (size_t)start * ps_channel_bytes(&row->channel)};
}

/* ---- Building ---- */

uint32_t ps_payload_columns(const ps_pack_info *info,
                            ps_payload_column columns[PS_MAX_FIELDS])
{
    const ps_field *tokens = &info->fields[PS_FIELD_TOKENS];
    uint32_t before = (uint32_t)ps_channel_bytes(&tokens->channel);
    uint32_t n = 0;

    columns[n++] = (ps_payload_column){tokens->offset, before, true, 0};
    for (int per_token = 1; per_token >= 0; per_token--) {
        for (uint32_t c = 0; c < info->schema.n_channels; c++) {
            const ps_channel *channel = &info->schema.channels[c];
            const uint32_t bytes = ps_channel_fixed_bytes(channel);
            const bool is_list = channel->kind == PS_LIST;

            if ((channel->kind == PS_PER_TOKEN) != (per_token == 1))
                continue;
            columns[n++] = (ps_payload_column){
                ps_source_field(info, c)->offset + (is_list ? AT_LENGTH : 0),
                bytes, per_token == 1, before};
            before += bytes;
        }
        before = 0;
    }
    return n;
}

ps_form ps_form_of(const ps_pack_info *info)
{
    ps_form form = {.capacity = info->capacity,
                    .row_bytes = info->row_bytes,
                    .seq_bytes = info->seq_bytes,
                    .split = info->split,
                    .align = info->align};
    uint64_t used = 0; /* bytes of a sequence row in use */

    for (uint32_t i = 0; i < info->n_fields; i++) {
        const ps_field *f = &info->fields[i];
        uint32_t bytes = (uint32_t)ps_channel_bytes(&f->channel);

        if (f->channel.kind == PS_LIST)
            form.lists[form.n_lists++] =
                ps_source_field(info, f->source)->offset;
        if (f->channel.kind != PS_PER_SEQUENCE)
            form.fields[form.n_fields++] = (ps_form_field){
                .offset = f->offset,
                .bytes = bytes,
                .places = (uint32_t)ps_field_places(info, &f->channel,
                                                    f->source),
                .value_bytes = (uint32_t)ps_type_bytes(f->channel.type),
                .fill = f->channel.fill};
        else
            used += bytes;
    }
    form.gaps = used < info->seq_bytes;
    for (uint32_t i = 0; i < form.n_fields; i++) {
        ps_form_field *f = &form.fields[i];
        uint32_t next =
            i + 1 < form.n_fields ? f[1].offset : info->row_bytes;

        f->gap = next - f->offset - f->places * f->bytes;
    }
    return form;
}

/*
 * Fills `all` bytes with copies of a value of `bytes` bytes, doubling the
 * filled part in each step.
 */
static void repeat(unsigned char *to, uint64_t value, size_t bytes,
                   size_t all)
{
    size_t done = bytes < all ? bytes : all;

    store_low(to, value, done);
    while (done < all) {
        const size_t n = done < all - done ? done : all - done;

        memcpy(to + done, to, n);
        done += n;
    }
}

/*
 * Fills `n` elements of a field, starting at `first`, with its fill value.
 * Returns the address after them.
 */
static unsigned char *fill_field(const ps_pack_builder *b,
                                 const ps_form_field *f, uint32_t first,
                                 uint32_t n)
{
    const size_t all = (size_t)n * f->bytes;
    unsigned char *to = b->row + f->offset + (size_t)first * f->bytes;

    if (f->fill == 0)
        memset(to, 0, all);
    else
        repeat(to, f->fill, f->value_bytes, all);
    return to + all;
}

void ps_pack_pad(const ps_pack_builder *b, uint32_t first, uint32_t n)
{
    const uint32_t n_fields = b->form->n_fields - b->form->n_lists;

    for (uint32_t i = 0; i < n_fields; i++)
        (void)fill_field(b, &b->form->fields[i], first, n);
}

unsigned char *ps_pack_next_list(ps_pack_builder *b, uint32_t i, uint32_t *n)
{
    const ps_form *form = b->form;
    const ps_form_field *f = &form->fields[form->n_fields - form->n_lists + i];
    unsigned char *seq = b->seq + form->lists[i];
    const uint32_t start = b->used[i];

    *n = load_u32(seq + AT_LENGTH);
    store_u32(seq, start);
    b->used[i] += *n;
    return b->row + f->offset + (size_t)start * f->bytes;
}

void ps_pack_end(const ps_pack_builder *b)
{
    const ps_form_field *f = b->form->fields;
    const ps_form_field *lists = f + b->form->n_fields - b->form->n_lists;
    const ps_form_field *end = f + b->form->n_fields;

    for (; f < end; f++) {
        const uint32_t first = f < lists ? b->n_rows : b->used[f - lists];
        unsigned char *gap = fill_field(b, f, first, f->places - first);

        if (f->gap > 0)
            memset(gap, 0, f->gap);
    }
}

/* ---- Heads ---- */

ps_result ps_head_decode(const ps_pack_info *info, const unsigned char *head,
                         ps_pack *pack, ps_error *err)
{
    const uint32_t most = ps_max_sequences(info);

    pack->checksum = load_u64(head + PS_HEAD_CHECKSUM);
    pack->n_seq = load_u32(head + PS_HEAD_N_SEQ);
    pack->n_tok = load_u32(head + PS_HEAD_N_TOK);
    pack->max_seqlen = load_u32(head + PS_HEAD_MAX_SEQLEN);
    pack->sum_len_sq = load_u64(head + PS_HEAD_SUM_LEN_SQ);
    pack->watermark = load_u64(head + PS_HEAD_WATERMARK);
    if (pack->n_seq == 0)
        return ps_fail(err, PS_ERR_CORRUPT, "it has no sequences");
    if (pack->n_seq > most)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "%" PRIu32 " sequences exceed the depth, %" PRIu32,
                       pack->n_seq, most);
    if (pack->n_tok > info->capacity)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "%" PRIu32 " tokens exceed the capacity, %" PRIu32,
                       pack->n_tok, info->capacity);
    return PS_OK;
}

/* ---- Whole packs ---- */

uint64_t ps_pack_checksum(const ps_pack_info *info, uint64_t index,
                          const unsigned char *head, const unsigned char *row,
                          const unsigned char *sequences)
{
    const size_t bytes = (size_t)ps_head_n_seq(head) * info->seq_bytes;
    unsigned char summed[SUMMED_BYTES];

    store_u64(summed, index);
    store_u64(summed + 8, ps_hash(row, info->row_bytes));
    store_u64(summed + 16, ps_hash(sequences, bytes));
    memcpy(summed + 24, head + PS_HEAD_N_SEQ, SUMMED_HEAD);
    return ps_hash(summed, sizeof summed);
}

/* Checks that the lists of a channel follow each other inside their field. */
static ps_result check_lists(const ps_pack_info *info, const ps_pack *pack,
                             uint32_t channel, ps_error *err)
{
    const ps_channel *c = &info->schema.channels[channel];
    const uint64_t places = ps_field_places(info, c, channel);
    uint64_t next = 0;

    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const ps_list list = ps_pack_list(info, pack, channel, i);

        if (list.start != next)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "'%s' of sequence %" PRIu32 " starts at %" PRIu32
                           ", not %" PRIu64,
                           c->name, i, list.start, next);
        next += list.n;
        if (next > places)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "'%s' of sequence %" PRIu32 " has %" PRIu32
                           " elements, but only %" PRIu64 " fit",
                           c->name, i, list.n, places - list.start);
    }
    return PS_OK;
}

static ps_result check_all_lists(const ps_pack_info *info, const ps_pack *pack,
                                 ps_error *err)
{
    ps_result r = PS_OK;

    for (uint32_t c = 0; r == PS_OK && c < info->schema.n_channels; c++)
        if (info->schema.channels[c].kind == PS_LIST)
            r = check_lists(info, pack, c, err);
    return r;
}

ps_result ps_pack_check_sequences(const ps_pack_info *info,
                                  const ps_pack *pack, ps_error *err)
{
    const unsigned char *seq = pack->sequences;
    uint64_t sum = 0;
    uint32_t max = 0;
    uint32_t next = 0;

    for (uint32_t i = 0; i < pack->n_seq; i++, seq += info->seq_bytes) {
        const uint32_t n = ps_seq_n_tok(seq);

        if (ps_seq_start(seq) != next)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "sequence %" PRIu32 " starts at %" PRIu32 ", not "
                           "%" PRIu32,
                           i, ps_seq_start(seq), next);
        if (n == 0 || n > info->capacity - next)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "sequence %" PRIu32 " has %" PRIu32 " tokens, but "
                           "only %" PRIu32 " fit",
                           i, n, info->capacity - next);
        /* At most the capacity, which is a multiple of the alignment. */
        next += ps_aligned(n, info->align);
        sum += n;
        max = n > max ? n : max;
    }
    if (sum != pack->n_tok)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "n_tok is %" PRIu32 ", not %" PRIu64,
                       pack->n_tok, sum);
    /* Trainers pass max_seqlen to kernels unchecked, so it must be right. */
    if (max != pack->max_seqlen)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "max_seqlen is %" PRIu32 ", not %" PRIu32,
                       pack->max_seqlen, max);
    return check_all_lists(info, pack, err);
}

ps_result ps_pack_decode(const ps_pack_info *info, const unsigned char *head,
                         ps_pack *pack, ps_error *err)
{
    ps_result r = ps_head_decode(info, head, pack, err);

    if (r != PS_OK)
        return r;
    if (pack->checksum != ps_pack_checksum(info, pack->index, head, pack->row,
                                           pack->sequences))
        return ps_fail(err, PS_ERR_CORRUPT, "the checksum does not match");
    return ps_pack_check_sequences(info, pack, err);
}

const ps_field *ps_pack_field(const ps_pack_info *info, const char *name)
{
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (strcmp(info->fields[i].channel.name, name) == 0)
            return &info->fields[i];
    return NULL;
}
