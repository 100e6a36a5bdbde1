/*
 * pack_record.c - building and reading pack records.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/pack_record.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "bytes.h"
#include "format/record_layout.h"
#include "format/totals.h"
#include "format/version.h"

/* "PKSR", the magic of every record. */
#define RECORD_MAGIC UINT32_C(0x52534B50)
#define FLAG_END UINT32_C(1)

/* Places in the head. */
#define AT_MAGIC 8
#define AT_FLAGS 12
#define AT_INDEX 16
#define AT_WATERMARK 24
#define AT_SUM_LEN_SQ 32
#define AT_N_SEQ 40
#define AT_N_TOK 44
#define AT_MAX_SEQLEN 48

uint32_t ps_payload_columns(const ps_pack_info *info,
                            ps_payload_column columns[PS_MAX_FIELDS])
{
    static const ps_kind kinds[] = {PS_PER_TOKEN, PS_PER_SEQUENCE};
    const ps_field *tokens = &info->fields[info->tokens_field];
    uint32_t before = (uint32_t)ps_type_bytes(tokens->channel.type);
    uint32_t n = 0;

    columns[n++] = (ps_payload_column){tokens->offset, before, true, 0};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (uint32_t c = 0; c < info->schema.n_channels; c++) {
            const ps_channel *channel = &info->schema.channels[c];
            const ps_field *f = ps_pack_field(info, channel->name);
            uint32_t bytes = (uint32_t)ps_type_bytes(channel->type);

            if (channel->kind != kinds[k])
                continue;
            columns[n++] = (ps_payload_column){
                f->offset, bytes, kinds[k] == PS_PER_TOKEN, before};
            before += bytes;
        }
        before = 0;
    }
    return n;
}

uint32_t ps_field_limit(const ps_pack_info *info, uint32_t i)
{
    return i + 1 < info->n_fields ? info->fields[i + 1].offset
                                  : info->record_bytes;
}

ps_form ps_form_of(const ps_pack_info *info)
{
    ps_form form = {.record_bytes = info->record_bytes,
                    .split = info->split,
                    .align = info->align,
                    .seq_tok_field = info->seq_tok_field,
                    .n_fields = info->n_fields};

    for (uint32_t i = 0; i < info->n_fields; i++) {
        const ps_field *f = &info->fields[i];
        uint32_t bytes = (uint32_t)ps_type_bytes(f->channel.type);
        uint32_t end = f->offset + f->count * bytes;

        form.fields[i] = (ps_form_field){.kind = f->channel.kind,
                                         .offset = f->offset,
                                         .bytes = bytes,
                                         .count = f->count,
                                         .gap = ps_field_limit(info, i) - end,
                                         .fill = f->channel.fill};
    }
    return form;
}

/* Byte `at` of a field. */
static unsigned char *place(const ps_record *r, uint32_t field, size_t at)
{
    return r->bytes + r->form->fields[field].offset + at;
}

/* Writes `n` elements of a bit pattern. */
static void fill_elements(unsigned char *to, size_t bytes, size_t n,
                          uint64_t pattern)
{
    if (bytes == 1 || pattern == 0) {
        memset(to, (int)(pattern & 0xff), bytes * n);
    } else if (bytes == 2) {
        for (size_t i = 0; i < n; i++)
            store_u16(to + 2 * i, (uint16_t)pattern);
    } else if (bytes == 4) {
        for (size_t i = 0; i < n; i++)
            store_u32(to + 4 * i, (uint32_t)pattern);
    } else {
        for (size_t i = 0; i < n; i++)
            store_u64(to + 8 * i, pattern);
    }
}

void ps_record_add(ps_record *r, const ps_piece *piece)
{
    const ps_form *form = r->form;
    size_t i = r->n_seq;

    store_u32(place(r, PS_FIELD_CU, 4 * i), r->n_rows);
    store_u64(place(r, PS_FIELD_SEQ_ID, 8 * i), piece->id);
    if (form->split) {
        store_u32(place(r, PS_FIELD_SEQ_OFF, 4 * i), piece->seq_off);
        store_u32(place(r, PS_FIELD_SEQ_LEN, 4 * i), piece->seq_len);
    }
    r->n_rows += piece->n_tok;
    if (form->align > 1) {
        const uint32_t over = piece->n_tok % form->align;
        const uint32_t gap = over == 0 ? 0 : form->align - over;

        /* Fill the gap between this sequence and the next. */
        store_u32(place(r, form->seq_tok_field, 4 * i), piece->n_tok);
        for (uint32_t k = 0; gap > 0 && k < form->n_fields; k++) {
            const ps_form_field *f = &form->fields[k];

            if (f->kind == PS_PER_TOKEN)
                fill_elements(place(r, k, (size_t)r->n_rows * f->bytes),
                              f->bytes, gap, f->fill);
        }
        r->n_rows += gap;
    }
    r->n_seq++;
    r->n_tok += piece->n_tok;
    r->sum_len_sq += (uint64_t)piece->n_tok * piece->n_tok;
    if (piece->n_tok > r->max_seqlen)
        r->max_seqlen = piece->n_tok;
}

void ps_record_end(ps_record *r, uint64_t index, uint64_t watermark)
{
    const ps_form *form = r->form;

    store_u32(place(r, PS_FIELD_CU, 4 * (size_t)r->n_seq), r->n_rows);

    /* Elements behind those in use, and the gaps behind the fields. */
    memset(r->bytes + PS_HEAD_ZERO, 0, form->fields[0].offset - PS_HEAD_ZERO);
    for (uint32_t i = 0; i < form->n_fields; i++) {
        const ps_form_field *f = &form->fields[i];
        size_t used = f->kind == PS_PER_TOKEN      ? r->n_rows
                      : f->kind == PS_PER_SEQUENCE ? r->n_seq
                                                   : r->n_seq + 1;
        unsigned char *rest = r->bytes + f->offset + used * f->bytes;
        size_t n = f->count - used;

        if (n > 0)
            fill_elements(rest, f->bytes, n, f->fill);
        if (f->gap > 0)
            memset(rest + n * f->bytes, 0, f->gap);
    }

    store_u32(r->bytes + AT_MAGIC, RECORD_MAGIC);
    store_u32(r->bytes + AT_FLAGS, 0);
    store_u64(r->bytes + AT_INDEX, index);
    store_u64(r->bytes + AT_WATERMARK, watermark);
    store_u64(r->bytes + AT_SUM_LEN_SQ, r->sum_len_sq);
    store_u32(r->bytes + AT_N_SEQ, r->n_seq);
    store_u32(r->bytes + AT_N_TOK, r->n_tok);
    store_u32(r->bytes + AT_MAX_SEQLEN, r->max_seqlen);
}

void ps_record_renumber(unsigned char *bytes, uint64_t index)
{
    store_u64(bytes + AT_INDEX, index);
}

void ps_record_set_watermark(unsigned char *bytes, uint64_t watermark)
{
    store_u64(bytes + AT_WATERMARK, watermark);
}

void ps_record_raise(const ps_pack_info *info, unsigned char *bytes,
                     uint32_t n_seq, uint64_t by)
{
    unsigned char *id = bytes + info->fields[PS_FIELD_SEQ_ID].offset;

    ps_record_set_watermark(bytes, load_u64(bytes + AT_WATERMARK) + by);
    for (uint32_t i = 0; i < n_seq; i++, id += 8)
        store_u64(id, load_u64(id) + by);
}

void ps_record_finalize(unsigned char *bytes, uint32_t record_bytes)
{
    store_u64(bytes, ps_hash(bytes + AT_MAGIC, record_bytes - AT_MAGIC));
}

ps_result ps_end_decode(const ps_pack_info *info, const unsigned char *bytes,
                        ps_totals *totals, uint64_t *digest, ps_error *err)
{
    size_t end = PS_HEAD_BYTES + PS_TOTALS_BYTES;

    ps_totals_decode(bytes + PS_HEAD_BYTES, totals, digest);
    if (load_u64(bytes + AT_INDEX) != totals->packs ||
        load_u64(bytes + AT_WATERMARK) != totals->input_sequences ||
        (ps_is_version_known(info) &&
         (!all_zero(bytes + AT_SUM_LEN_SQ, PS_HEAD_BYTES - AT_SUM_LEN_SQ) ||
          !all_zero(bytes + end, info->record_bytes - end))))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END's head or unused bytes are wrong");
    return PS_OK;
}

void ps_end_encode(const ps_pack_info *info, const ps_totals *totals,
                   uint64_t digest, unsigned char *bytes)
{
    memset(bytes, 0, info->record_bytes);
    store_u32(bytes + AT_MAGIC, RECORD_MAGIC);
    store_u32(bytes + AT_FLAGS, FLAG_END);
    store_u64(bytes + AT_INDEX, totals->packs);
    store_u64(bytes + AT_WATERMARK, totals->input_sequences);
    ps_totals_encode(totals, digest, bytes + PS_HEAD_BYTES);
    ps_record_finalize(bytes, info->record_bytes);
}

ps_result ps_record_check(const ps_pack_info *info,
                          const unsigned char *bytes, bool *is_end,
                          ps_error *err)
{
    uint32_t flags = load_u32(bytes + AT_FLAGS);

    *is_end = (flags & FLAG_END) != 0;
    if (load_u32(bytes + AT_MAGIC) != RECORD_MAGIC)
        return ps_fail(err, PS_ERR_CORRUPT, "no record starts here");
    if (load_u64(bytes) !=
        ps_hash(bytes + AT_MAGIC, info->record_bytes - AT_MAGIC))
        return ps_fail(err, PS_ERR_CORRUPT, "the checksum does not agree");
    if ((flags & ~FLAG_END) != 0)
        return ps_fail(err, PS_ERR_CORRUPT, "unknown flags 0x%" PRIx32,
                       flags);
    return PS_OK;
}

uint64_t ps_record_index(const unsigned char *bytes)
{
    return load_u64(bytes + AT_INDEX);
}

ps_result ps_record_blame(uint64_t record, uint64_t offset, ps_result code,
                          ps_error *err)
{
    char why[200];

    if (err == NULL)
        return code;
    memcpy(why, err->text, sizeof why);
    why[sizeof why - 1] = '\0';
    return ps_fail(err, code, "record %" PRIu64 " at byte %" PRIu64 ": %s",
                   record, offset, why);
}

uint32_t ps_record_cu(const ps_pack_info *info, const unsigned char *bytes,
                      uint32_t i)
{
    return load_u32(bytes + info->fields[PS_FIELD_CU].offset +
                    4 * (size_t)i);
}

uint32_t ps_record_length(const ps_pack_info *info,
                          const unsigned char *bytes, uint32_t i)
{
    if (info->seq_tok_field != 0)
        return load_u32(bytes + info->fields[info->seq_tok_field].offset +
                        4 * (size_t)i);
    return ps_record_cu(info, bytes, i + 1) - ps_record_cu(info, bytes, i);
}

/*
 * Each sequence must take up its length, rounded up; the lengths must add up
 * to n_tok.  *max becomes the greatest.
 */
static ps_result check_lengths(const ps_pack_info *info, const ps_pack *pack,
                               uint32_t *max, ps_error *err)
{
    const unsigned char *bytes = pack->record;
    uint64_t sum = 0;
    bool fine = true;

    *max = 0;
    for (uint32_t i = 0; fine && i < pack->n_seq; i++) {
        uint32_t rows = ps_record_cu(info, bytes, i + 1) -
                        ps_record_cu(info, bytes, i);
        uint32_t n = ps_record_length(info, bytes, i);

        fine = n >= 1 && n <= rows && rows - n < info->align &&
               rows % info->align == 0;
        sum += n;
        *max = n > *max ? n : *max;
    }
    if (!fine || sum != pack->n_tok)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the lengths in seq_tok do not fit the boundaries or "
                       "n_tok");
    return PS_OK;
}

static ps_result decode_head(const ps_pack_info *info,
                             const unsigned char *bytes, ps_pack *pack,
                             ps_error *err)
{
    pack->index = load_u64(bytes + AT_INDEX);
    pack->watermark = load_u64(bytes + AT_WATERMARK);
    pack->sum_len_sq = load_u64(bytes + AT_SUM_LEN_SQ);
    pack->n_seq = load_u32(bytes + AT_N_SEQ);
    pack->n_tok = load_u32(bytes + AT_N_TOK);
    pack->max_seqlen = load_u32(bytes + AT_MAX_SEQLEN);
    if (pack->n_seq == 0 || pack->n_seq > info->depth)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "%" PRIu32 " sequences, the depth is %" PRIu32,
                       pack->n_seq, info->depth);
    if (pack->n_tok > info->capacity)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "%" PRIu32 " tokens, the capacity is %" PRIu32,
                       pack->n_tok, info->capacity);
    return PS_OK;
}

ps_result ps_record_decode(const ps_pack_info *info,
                           const unsigned char *bytes, ps_pack *pack,
                           ps_error *err)
{
    const bool gaps = info->seq_tok_field != 0;
    uint32_t before = ps_record_cu(info, bytes, 0);
    uint32_t last;
    uint32_t max = 0;
    bool fine;
    ps_result r = decode_head(info, bytes, pack, err);

    pack->record = bytes;
    if (r != PS_OK)
        return r;

    /*
     * cu must rise from 0 to n_tok, or to the end of the last gap; all
     * elements behind that hold the capacity.
     */
    last = gaps ? ps_record_cu(info, bytes, pack->n_seq) : pack->n_tok;
    fine = before == 0 && last <= info->capacity;
    for (uint32_t i = 1; fine && i <= pack->n_seq; i++) {
        uint32_t here = ps_record_cu(info, bytes, i);

        fine = here > before && here <= last;
        max = here - before > max ? here - before : max;
        before = here;
    }
    fine = fine && before == last;
    for (uint32_t i = pack->n_seq + 1; fine && i < info->depth + 2; i++)
        fine = ps_record_cu(info, bytes, i) == info->capacity;
    if (!fine)
        return ps_fail(err, PS_ERR_CORRUPT,
                       gaps ? "the boundaries do not rise from 0"
                            : "the boundaries do not rise from 0 to n_tok");

    /* Kernels are given max_seqlen: it is that of the longest sequence. */
    if (gaps)
        r = check_lengths(info, pack, &max, err);
    if (r == PS_OK && max != pack->max_seqlen)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "max_seqlen is %" PRIu32 ", it should be %" PRIu32,
                       pack->max_seqlen, max);
    return r;
}

ps_result ps_head_decode(const ps_pack_info *info, const unsigned char *bytes,
                         ps_pack *pack, ps_error *err)
{
    pack->record = NULL;
    if (load_u32(bytes + AT_MAGIC) != RECORD_MAGIC ||
        load_u32(bytes + AT_FLAGS) != 0)
        return ps_fail(err, PS_ERR_CORRUPT, "no pack starts here");
    return decode_head(info, bytes, pack, err);
}

const ps_field *ps_pack_field(const ps_pack_info *info, const char *name)
{
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (strcmp(info->fields[i].channel.name, name) == 0)
            return &info->fields[i];
    return NULL;
}
