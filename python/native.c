/*
 * native.c - loops over many sequences or packs, for the Python package.
 *
 * SPDX-License-Identifier: MIT
 */

#include <packstream.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "format/block.h"
#include "format/digest.h"
#include "format/pack.h"
#include "native.h"
#include "stream/pack_file.h"

#define FIRST_BYTES ((size_t)64 << 10)

static ps_result fail_memory(ps_error *err)
{
    err->code = PS_ERR_MEMORY;
    err->sys_errno = 0;
    strcpy(err->text, "out of memory");
    return PS_ERR_MEMORY;
}

ps_result psn_sink_write(void *context, const void *bytes, size_t n,
                         ps_error *err)
{
    psn_sink *sink = context;

    if (n > sink->capacity - sink->size) {
        size_t capacity = sink->capacity == 0 ? FIRST_BYTES : sink->capacity;
        unsigned char *larger;

        while (capacity <= SIZE_MAX / 2 && n > capacity - sink->size)
            capacity *= 2;
        larger = n > capacity - sink->size ? NULL
                                           : realloc(sink->bytes, capacity);
        if (larger == NULL)
            return fail_memory(err);
        sink->bytes = larger;
        sink->capacity = capacity;
    }
    memcpy(sink->bytes + sink->size, bytes, n);
    sink->size += n;
    return PS_OK;
}

void psn_sink_free(psn_sink *sink)
{
    free(sink->bytes);
    sink->bytes = NULL;
    sink->size = sink->capacity = 0;
}

/* Number of tokens of sequence i, at most UINT32_MAX. */
static uint32_t length_of(const psn_columns *c, int64_t i)
{
    int64_t n = c->offsets[i + 1] - c->offsets[i];

    return n < 0 || n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* A buffer for the payload of one sequence at a time. */
typedef struct payload {
    unsigned char *bytes;
    size_t size; /* size of the last payload */
    size_t capacity;
} payload;

/* Number of elements of sequence i in the list column k. */
static size_t list_length(const psn_columns *c, uint32_t k, int64_t i)
{
    return (size_t)(c->lists[k][i + 1] - c->lists[k][i]);
}

/*
 * Appends sequence i's elements of all columns of one kind, in the order of the
 * schema, and the length of each list among the per-sequence values.  Returns
 * the end.
 */
static unsigned char *fill_columns(unsigned char *to, const ps_schema *schema,
                                   const psn_columns *c, int64_t i,
                                   uint32_t n_tok, ps_kind kind)
{
    const ps_channel tokens = {.type = schema->token_type,
                               .kind = PS_PER_TOKEN};

    for (uint32_t k = 0; k <= schema->n_channels; k++) {
        const ps_channel *channel =
            k == 0 ? &tokens : &schema->channels[k - 1];
        const bool is_list = channel->kind == PS_LIST;
        const size_t bytes = ps_channel_bytes(channel);
        size_t first = (size_t)i;
        size_t n = 1;

        if (is_list && kind == PS_PER_SEQUENCE) {
            store_u32(to, (uint32_t)list_length(c, k, i));
            to += 4;
        }
        if (channel->kind != kind)
            continue;
        if (is_list) {
            first = (size_t)c->lists[k][i];
            n = list_length(c, k, i);
        } else if (kind == PS_PER_TOKEN) {
            first = (size_t)c->offsets[i];
            n = n_tok;
        }
        memcpy(to, c->columns[k] + bytes * first, bytes * n);
        to += bytes * n;
    }
    return to;
}

/* Size of the elements of sequence i's lists, in bytes. */
static uint64_t lists_bytes(const ps_schema *schema, const psn_columns *c,
                            int64_t i)
{
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < schema->n_channels; k++)
        if (schema->channels[k].kind == PS_LIST)
            bytes += ps_channel_bytes(&schema->channels[k]) *
                     (uint64_t)list_length(c, k + 1, i);
    return bytes;
}

/* Fills in the payload of sequence i, which has n_tok tokens. */
static ps_result fill_payload(payload *p, const ps_schema *schema,
                              const psn_columns *c, int64_t i, uint32_t n_tok,
                              ps_error *err)
{
    const uint64_t size =
        ps_payload_bytes(schema, n_tok) + lists_bytes(schema, c, i);
    unsigned char *to;

    if (size > p->capacity) {
        to = size > SIZE_MAX / 2 ? NULL : realloc(p->bytes, 2 * (size_t)size);
        if (to == NULL)
            return fail_memory(err);
        p->bytes = to;
        p->capacity = 2 * (size_t)size;
    }
    p->size = (size_t)size;
    to = fill_columns(p->bytes, schema, c, i, n_tok, PS_PER_TOKEN);
    to = fill_columns(to, schema, c, i, n_tok, PS_PER_SEQUENCE);
    (void)fill_columns(to, schema, c, i, n_tok, PS_LIST);
    return PS_OK;
}

ps_result psn_pack(ps_packer *packer, const ps_schema *schema,
                   const psn_columns *c, uint64_t *id, int64_t *from,
                   const psn_sink *sink, size_t enough, ps_error *err)
{
    payload p = {0};
    ps_result r = PS_OK;

    while (r == PS_OK && *from < c->n && sink->size < enough) {
        ps_sequence s = {.id = *id, .n_tok = length_of(c, *from)};

        if (s.n_tok == 0) {
            r = ps_packer_reject(packer, &s, PS_REJECT_EMPTY, err);
        } else {
            r = fill_payload(&p, schema, c, *from, s.n_tok, err);
            s.payload = p.bytes;
            s.payload_bytes = p.size;
            if (r == PS_OK)
                r = ps_packer_put(packer, &s, err);
        }
        if (r == PS_OK) {
            ++*from;
            ++*id;
        }
    }
    free(p.bytes);
    return r;
}

ps_result psn_write(ps_token_writer *writer, const ps_schema *schema,
                    const psn_columns *c, ps_error *err)
{
    payload p = {0};
    ps_result r = PS_OK;

    for (int64_t i = 0; i < c->n && r == PS_OK; i++) {
        const uint32_t n_tok = length_of(c, i);

        r = fill_payload(&p, schema, c, i, n_tok, err);
        if (r == PS_OK)
            r = ps_token_writer_put(writer, n_tok, p.bytes, err);
    }
    free(p.bytes);
    return r;
}

/* Writes the head of a pack, with its index in place of the checksum. */
static void put_head(unsigned char *head, const ps_pack *pack,
                     uint32_t first_seq)
{
    const ps_pack_builder numbers = {.n_seq = pack->n_seq,
                                     .n_tok = pack->n_tok,
                                     .max_seqlen = pack->max_seqlen,
                                     .sum_len_sq = pack->sum_len_sq};

    ps_head_encode(head, &numbers, first_seq, pack->watermark);
    store_u64(head, pack->index);
}

ps_result psn_read(ps_pack_file *file, const uint64_t *numbers, uint64_t n,
                   unsigned char *rows, unsigned char *heads,
                   psn_sink *sequences, uint64_t *done, ps_error *err)
{
    const ps_pack_info *info = ps_pack_file_info(file);
    uint32_t n_seqs = 0;
    ps_result r = PS_OK;

    for (*done = 0; *done < n; ++*done) {
        ps_pack pack;

        r = ps_pack_file_read(file, numbers[*done], &pack, err);
        if (r == PS_OK)
            r = psn_sink_write(sequences, pack.sequences,
                               (size_t)pack.n_seq * info->seq_bytes, err);
        if (r != PS_OK)
            break;
        memcpy(rows, pack.row, info->row_bytes);
        rows += info->row_bytes;
        put_head(heads, &pack, n_seqs);
        heads += PS_PACK_HEAD_BYTES;
        n_seqs += pack.n_seq;
    }
    return r;
}

ps_result psn_costs(ps_pack_file *file, const ps_cost *cost,
                    const uint64_t *numbers, uint64_t n, uint64_t *costs,
                    uint64_t *done, ps_error *err)
{
    ps_result r = PS_OK;

    for (*done = 0; *done < n; ++*done) {
        ps_pack pack;

        r = ps_pack_file_head(file, numbers[*done], &pack, err);
        if (r == PS_OK)
            r = ps_pack_cost(cost, &pack, &costs[*done], err);
        if (r != PS_OK)
            break;
    }
    return r;
}

void psn_free(void *array)
{
    free(array);
}

ps_result psn_open(ps_pack_file **file, uint64_t size, psn_fetch_hook *fetch,
                   void *context, ps_error *err)
{
    const ps_random_source source = {size, fetch, context};

    return ps_pack_file_open_source(file, &source, err);
}

ps_result psn_extents(ps_pack_file *file, const uint64_t *numbers, uint64_t n,
                      uint64_t *extents, uint64_t *done, ps_error *err)
{
    ps_result r = PS_OK;

    for (*done = 0; *done < n; ++*done) {
        ps_pack_extent x;

        r = ps_pack_file_extent(file, numbers[*done], &x, err);
        if (r != PS_OK)
            break;
        *extents++ = x.at;
        *extents++ = x.n;
        *extents++ = x.row;
        *extents++ = x.tables;
    }
    return r;
}

/* ---- Blocks in memory ---- */

void psn_count(const ps_pack_info *info, const unsigned char *blocks,
               size_t bytes, uint64_t *n_packs, uint64_t *n_seqs)
{
    ps_block_head head;

    *n_packs = *n_seqs = 0;
    for (size_t at = 0; at < bytes; at += (size_t)head.bytes) {
        if (ps_block_head_decode(info, blocks + at, &head, NULL) != PS_OK)
            break;
        *n_packs += head.n_packs;
        *n_seqs += head.n_seqs;
    }
}

void psn_split(const ps_pack_info *info, const unsigned char *blocks,
               uint64_t n_packs, unsigned char *rows, unsigned char *heads,
               unsigned char *sequences)
{
    uint32_t n_seqs = 0;
    ps_block_head block;

    for (; n_packs > 0; n_packs -= block.n_packs, blocks += block.bytes) {
        ps_block_layout layout;
        size_t size;

        if (ps_block_head_decode(info, blocks, &block, NULL) != PS_OK)
            break;
        layout = ps_block_layout_of(info, block.n_packs, block.n_seqs);
        size = (size_t)block.n_packs * info->row_bytes;
        memcpy(rows, blocks + PS_BLOCK_HEAD_BYTES, size);
        rows += size;
        memcpy(heads, blocks + layout.heads,
               (size_t)block.n_packs * PS_PACK_HEAD_BYTES);
        for (uint32_t i = 0; i < block.n_packs; i++) {
            store_u64(heads, block.first + i);
            store_u32(heads + 8, ps_head_first_seq(heads) + n_seqs);
            heads += PS_PACK_HEAD_BYTES;
        }
        size = (size_t)block.n_seqs * info->seq_bytes;
        memcpy(sequences, blocks + layout.sequences, size);
        sequences += size;
        n_seqs += block.n_seqs;
    }
}

uint64_t psn_hash(const void *bytes, size_t n, uint64_t seed)
{
    return seed == 0 ? ps_hash(bytes, n)
                     : XXH3_64bits_withSeed(bytes, n, seed);
}

uint64_t psn_check(const psn_shape *shape, uint64_t n, const int64_t *indices,
                   const unsigned char *rows, const unsigned char *heads,
                   const unsigned char *sequences, uint32_t n_seqs,
                   uint32_t *next)
{
    const ps_pack_info info = {.capacity = shape->capacity,
                               .align = shape->align,
                               .depth = shape->depth,
                               .row_bytes = shape->row_bytes,
                               .seq_bytes = shape->seq_bytes};

    for (uint64_t i = 0; i < n; i++, heads += PS_PACK_HEAD_BYTES) {
        const uint32_t n_seq = ps_head_n_seq(heads);
        ps_pack pack = {.index = (uint64_t)indices[i],
                        .row = rows + i * info.row_bytes,
                        .sequences =
                            sequences + (size_t)*next * info.seq_bytes};

        if (ps_head_first_seq(heads) != *next || n_seq > n_seqs - *next ||
            (shape->verify
                 ? ps_pack_decode(&info, heads, &pack, NULL)
                 : ps_head_decode(&info, heads, &pack, NULL)) != PS_OK ||
            (!shape->verify &&
             ps_pack_check_sequences(&info, &pack, NULL) != PS_OK))
            return i;
        *next += n_seq;
    }
    return n;
}

void psn_cu(const psn_shape *shape, uint64_t n, const unsigned char *heads,
            const unsigned char *sequences, size_t width, int32_t *cu)
{
    for (uint64_t i = 0; i < n; i++, heads += PS_PACK_HEAD_BYTES) {
        const size_t n_seq = ps_head_n_seq(heads);
        const unsigned char *seq =
            sequences + (size_t)ps_head_first_seq(heads) * shape->seq_bytes;
        uint32_t end = 0;
        size_t k = 0;

        for (; k < n_seq && k + 1 < width; k++, seq += shape->seq_bytes) {
            *cu++ = (int32_t)ps_seq_start(seq);
            end = ps_seq_start(seq) +
                  ps_aligned(ps_seq_n_tok(seq), shape->align);
        }
        *cu++ = (int32_t)end;
        while (++k < width)
            *cu++ = (int32_t)shape->capacity;
    }
}

uint64_t psn_digest(uint64_t digest, const unsigned char *heads, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        digest = ps_pack_digest(
            digest, ps_head_checksum(heads + i * PS_PACK_HEAD_BYTES));
    return digest;
}

void psn_gather(void *to, const unsigned char *const *arrays,
                size_t element_bytes, const int64_t *which,
                const int64_t *starts, const int64_t *lengths, int64_t n)
{
    unsigned char *at = to;

    for (int64_t i = 0; i < n; i++) {
        size_t bytes = element_bytes * (size_t)lengths[i];

        memcpy(at, arrays[which[i]] + element_bytes * (size_t)starts[i],
               bytes);
        at += bytes;
    }
}

void psn_positions(int32_t *to, const int64_t *lengths, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < lengths[i]; k++)
            *to++ = (int32_t)k;
}

void psn_tokenizer_digest(const void *bytes, size_t n,
                          unsigned char digest[32])
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, n));
    memset(digest, 0, 32);
    memcpy(digest, canonical.digest, sizeof canonical.digest);
}
