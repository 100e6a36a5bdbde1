/*
 * pack_file.c - random access to the packs of a regular file.
 *
 * SPDX-License-Identifier: MIT
 */

#include "stream/pack_file_parts.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "format/pack.h"
#include "format/pack_layout.h"

/*
 * Returns the stream that contains pack `i`: the last stream whose `first` is
 * at most i.  A stream without packs has the same `first` as the next stream.
 */
static uint32_t stream_of(const ps_pack_file *f, uint64_t i)
{
    uint32_t low = 0;
    uint32_t high = f->n_streams - 1;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        if (f->streams[middle].first <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/*
 * Sets the position of pack `i` in *pack and makes its block the current block.
 * *again is set if the block was already the current block.
 */
static ps_result locate(ps_pack_file *f, uint64_t i, ps_pack *pack,
                        bool *again, ps_error *err)
{
    ps_file_block *b = &f->block;
    ps_result r = PS_OK;

    *pack = (ps_pack){0};
    if (i >= f->totals.packs)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "pack %" PRIu64 " is out of range: the file has "
                       "%" PRIu64 " packs, numbered from 0",
                       i, f->totals.packs);
    pack->stream = stream_of(f, i);
    pack->index = i - f->streams[pack->stream].first;
    *again = pack->stream == f->block_stream && pack->index >= b->first &&
             pack->index - b->first < b->n_packs;
    if (!*again) {
        f->heads.is_whole = f->sequences.is_whole = false;
        b->n_packs = 0;
        r = ps_pack_file_block(f, pack->stream, pack->index, b, err);
        f->block_stream = pack->stream;
    }
    pack->offset = b->at;
    return r;
}

/*
 * Copies `n` bytes of the file to a table.  A damaged block can have offsets
 * beyond the end of the file.
 */
static ps_result read_table(ps_pack_file *f, uint64_t at, uint64_t n,
                            ps_file_table *to, ps_error *err)
{
    const uint64_t size = ps_random_input_size(f->input);
    const unsigned char *from;
    unsigned char *bytes;
    ps_result r;

    if (n > size || at > size - n)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the block extends past the end of the file");
    bytes = ps_array_grow(to->bytes, &to->capacity, (size_t)n, 4096, 1);
    if (bytes == NULL)
        return ps_fail_memory(err);
    to->bytes = bytes;
    r = ps_random_input_read(f->input, at, (size_t)n, &from, err);
    if (r == PS_OK)
        memcpy(bytes, from, (size_t)n);
    return r;
}

/* If possible, reads a table of all packs and sets t->is_whole. */
static ps_result try_table(ps_pack_file *f, uint64_t at, uint64_t n,
                           ps_file_table *t, ps_error *err)
{
    const ps_result r = read_table(f, at, n, t, NULL);

    t->is_whole = r == PS_OK;
    return r == PS_ERR_MEMORY ? ps_fail_memory(err) : PS_OK;
}

/*
 * Returns the head of pack `k` of the current block.  On the second access to a
 * block, reads all its heads at once if possible.
 */
static ps_result read_head(ps_pack_file *f, uint32_t k, bool again,
                           const unsigned char **head, ps_error *err)
{
    const ps_file_block *b = &f->block;
    const uint64_t heads =
        b->at + ps_block_layout_of(&f->info, b->n_packs, 0).heads;
    const uint64_t at = (uint64_t)k * PS_PACK_HEAD_BYTES;
    ps_file_table *t = &f->heads;
    ps_result r = PS_OK;

    if (again && !t->is_whole)
        r = try_table(f, heads, (uint64_t)b->n_packs * PS_PACK_HEAD_BYTES, t,
                      err);
    if (r != PS_OK)
        return r;
    if (!t->is_whole)
        return ps_random_input_read(f->input, heads + at, PS_PACK_HEAD_BYTES,
                                    head, err);
    *head = t->bytes + at;
    return PS_OK;
}

/*
 * Returns the sequence rows of a pack.  If the heads are cached and the rows
 * are not too large, reads the sequence rows of the whole block at once.
 */
static ps_result read_sequences(ps_pack_file *f, const unsigned char *head,
                                const unsigned char **sequences,
                                ps_error *err)
{
    const ps_file_block *b = &f->block;
    const uint32_t bytes = f->info.seq_bytes;
    const uint64_t all =
        b->at + ps_block_layout_of(&f->info, b->n_packs, 0).end;
    const uint64_t at = (uint64_t)ps_head_first_seq(head) * bytes;
    const uint64_t n = (uint64_t)ps_head_n_seq(head) * bytes;
    ps_file_table *t = &f->sequences;
    ps_result r = PS_OK;

    if (f->heads.is_whole && !t->is_whole) {
        const unsigned char *last = f->heads.bytes +
                                    (size_t)b->n_packs * PS_PACK_HEAD_BYTES -
                                    PS_PACK_HEAD_BYTES;
        const uint64_t end =
            ((uint64_t)ps_head_first_seq(last) + ps_head_n_seq(last)) * bytes;

        /* A damaged last head must not prevent reading other packs. */
        if (end <= PS_BLOCK_SEQ_BYTES && at + n <= end)
            r = try_table(f, all, end, t, err);
        t->size = end;
    }
    if (r != PS_OK)
        return r;
    if (t->is_whole && at + n <= t->size) {
        *sequences = t->bytes + at;
        return PS_OK;
    }
    t->is_whole = false;
    r = read_table(f, all + at, n, t, err);
    *sequences = t->bytes;
    return r;
}

/* The parts of a pack to read, besides its head. */
typedef enum parts {
    HEAD,
    SEQUENCES,
    ROW_AND_SEQUENCES
} parts;

static ps_result read_pack(ps_pack_file *f, uint64_t i, parts wanted,
                           ps_pack *pack, ps_error *err)
{
    unsigned char head[PS_PACK_HEAD_BYTES];
    const unsigned char *bytes;
    bool again;
    uint32_t k;
    ps_result r = locate(f, i, pack, &again, err);

    if (r != PS_OK)
        return r;
    k = (uint32_t)(pack->index - f->block.first);
    r = read_head(f, k, again, &bytes, err);
    if (r == PS_OK) {
        memcpy(head, bytes, sizeof head);
        r = ps_head_decode(&f->info, head, pack, err);
    }
    if (r == PS_OK && wanted >= SEQUENCES)
        r = read_sequences(f, head, &pack->sequences, err);
    if (r == PS_OK && wanted == ROW_AND_SEQUENCES)
        r = ps_random_input_read(f->input,
                                 pack->offset + PS_BLOCK_HEAD_BYTES +
                                     (uint64_t)k * f->info.row_bytes,
                                 f->info.row_bytes, &pack->row, err);
    if (r == PS_OK && wanted == ROW_AND_SEQUENCES)
        r = ps_pack_decode(&f->info, head, pack, err);
    return r == PS_ERR_CORRUPT ? ps_blame(pack, pack->offset, r, err) : r;
}

ps_result ps_pack_file_read(ps_pack_file *f, uint64_t i, ps_pack *pack,
                            ps_error *err)
{
    return read_pack(f, i, ROW_AND_SEQUENCES, pack, err);
}

ps_result ps_pack_file_head(ps_pack_file *f, uint64_t i, ps_pack *pack,
                            ps_error *err)
{
    return read_pack(f, i, HEAD, pack, err);
}

ps_result ps_pack_file_sequences(ps_pack_file *f, uint64_t i, ps_pack *pack,
                                 ps_error *err)
{
    return read_pack(f, i, SEQUENCES, pack, err);
}

ps_result ps_pack_file_extent(ps_pack_file *f, uint64_t i, ps_pack_extent *x,
                              ps_error *err)
{
    const ps_file_block *b = &f->block;
    ps_pack pack;
    uint64_t rows, tables;
    bool again;
    ps_result r = locate(f, i, &pack, &again, err);

    if (r != PS_OK)
        return r;
    rows = b->at + PS_BLOCK_HEAD_BYTES;
    tables = b->at + ps_block_layout_of(&f->info, b->n_packs, 0).heads;
    if (b->end <= tables || b->end - b->at > PS_MAX_BLOCK_BYTES)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the index declares %" PRIu64 " bytes for the block at "
                       "byte %" PRIu64 " with %" PRIu32 " packs",
                       b->end - b->at, b->at, b->n_packs);
    *x = (ps_pack_extent){.at = b->at, .n = b->end - b->at};
    ps_random_input_extent(f->input, &x->at, &x->n);
    if (!ps_random_input_is_compressed(f->input)) {
        x->row = rows + (pack.index - b->first) * f->info.row_bytes;
        x->tables = tables;
    }
    return PS_OK;
}
