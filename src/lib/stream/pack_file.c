/*
 * pack_file.c - random access to the packs of a regular file.
 *
 * SPDX-License-Identifier: MIT
 *
 * A file can contain several streams.  The start of a stream can be found only
 * from its end, because its length is in the trailer.  Opening a file therefore
 * finds the streams from last to first.  The index of a stream is read when one
 * of its packs is requested, one INDEX block at a time.
 */

#include "stream/pack_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem_bound.h"
#include "format/block.h"
#include "format/pack.h"
#include "format/pack_header.h"
#include "format/pack_layout.h"
#include "format/totals.h"
#include "io/random_input.h"

/* One stream of the file.  Offsets are in bytes of the file's contents. */
typedef struct stream {
    uint64_t at;  /* offset of its header */
    uint64_t end; /* offset of END */
    uint64_t packs;
    uint64_t first; /* number of its first pack in the file */
} stream;

/* Encoded index entries in a growing array. */
typedef struct entries {
    unsigned char *bytes;
    size_t capacity; /* entries allocated */
    uint32_t n;      /* entries in use */
} entries;

/* A block of packs. */
typedef struct block {
    uint64_t at;      /* offset in the file */
    uint64_t end;     /* offset of the next block, from the index */
    uint64_t first;   /* index of its first pack in the stream */
    uint32_t n_packs; /* number of packs */
} block;

/* Part of a block, in a growing array. */
typedef struct table {
    unsigned char *bytes;
    size_t capacity; /* bytes allocated */
    uint64_t size;   /* bytes in use */
    bool is_whole;   /* covers all packs of the block */
} table;

struct ps_pack_file {
    ps_random_input *input;
    ps_pack_info info; /* of the first stream, with the maximum displacement and
                          depth */
    ps_totals totals;
    stream *streams;
    uint32_t n_streams;
    size_t streams_capacity;

    /* The cached part of one stream's index. */
    uint32_t indexed; /* stream number; n_streams: none */
    uint32_t n_parts; /* entries of INDEX blocks in `end`; blocks of packs
                         follow */
    entries end;      /* entries in END */
    uint32_t part;    /* INDEX block cached in `listed`; n_parts: none */
    entries listed;

    /* The current block, which was last read from, and its cached parts. */
    uint32_t block_stream;
    block block;     /* n_packs is 0: none */
    table heads;     /* of all packs */
    table sequences; /* of all packs, or of the last pack read */
};

/* ---- Opening ---- */

/* Reads the header at `at`, where the file may be truncated. */
static ps_result read_header(ps_pack_file *f, uint64_t at,
                             ps_pack_info *info, ps_error *err)
{
    uint64_t left = ps_random_input_size(f->input) - at;
    size_t n = left < PS_PACK_HEADER_BYTES ? (size_t)left
                                           : PS_PACK_HEADER_BYTES;
    const unsigned char *bytes = (const unsigned char *)"";
    ps_result r = PS_OK;

    if (n > 0)
        r = ps_random_input_read(f->input, at, n, &bytes, err);
    return r == PS_OK ? ps_pack_header_read(bytes, n, info, err) : r;
}

/* Finds the start of the stream that ends at `behind`, and its END. */
static ps_result read_trailer(ps_pack_file *f, uint64_t behind, stream *s,
                              ps_error *err)
{
    const unsigned char *bytes;
    uint64_t end_bytes;
    uint64_t stream_bytes;
    ps_result r;

    if (behind >= PS_PACK_HEADER_BYTES + PS_TRAILER_BYTES) {
        r = ps_random_input_read(f->input, behind - PS_TRAILER_BYTES,
                                 PS_TRAILER_BYTES, &bytes, err);
        if (r != PS_OK)
            return r;
        if (ps_trailer_decode(bytes, &end_bytes, &stream_bytes) &&
            stream_bytes <= behind) {
            *s = (stream){.at = behind - stream_bytes,
                          .end = behind - end_bytes};
            return PS_OK;
        }
    }
    return ps_fail(err, PS_ERR_TRUNCATED,
                   "no complete END before byte %" PRIu64 ": the stream is "
                   "truncated or damaged there",
                   behind);
}

/* Reads END of a stream, which ends at `behind`.  Valid until the next read. */
static ps_result read_end(ps_pack_file *f, const stream *s, uint64_t behind,
                          const ps_pack_info *info, ps_end *end, ps_error *err)
{
    const size_t size = (size_t)(behind - s->end);
    const unsigned char *bytes;
    ps_block_head head;
    ps_result r = ps_random_input_read(f->input, s->end, size, &bytes, err);

    if (r != PS_OK)
        return r;
    r = ps_block_head_decode(info, bytes, &head, err);
    if (r == PS_OK && (head.kind != PS_BLOCK_END || head.bytes != size))
        r = ps_fail(err, PS_ERR_CORRUPT, "not an END of %zu bytes",
                    size);
    if (r == PS_OK)
        r = ps_end_decode(info, bytes, &head, end, err);
    if (r == PS_OK)
        r = ps_totals_check(info, &end->totals, err);
    return r == PS_OK ? r : ps_blame(NULL, s->end, r, err);
}

static ps_result add_stream(ps_pack_file *f, const stream *found,
                            ps_error *err)
{
    stream *s;

    if (f->n_streams == PS_STREAMS_MAX)
        return ps_fail(err, PS_ERR_LIMIT,
                       "exceeds the limit of %" PRIu32 " streams in a file",
                       PS_STREAMS_MAX);
    s = ps_array_grow(f->streams, &f->streams_capacity, f->n_streams + 1u, 1,
                      sizeof *s);
    if (s == NULL)
        return ps_fail_memory(err);
    f->streams = s;
    s[f->n_streams++] = *found;
    return PS_OK;
}

/*
 * Checks that the packs counted by END fit the bytes before it, and that the
 * index starts with pack 0.  Otherwise the file contains only the tail of a
 * stream.
 */
static ps_result check_packs(const ps_pack_info *info, const stream *s,
                             const ps_end *end, ps_error *err)
{
    const uint64_t bytes = s->end - s->at - PS_PACK_HEADER_BYTES;
    const uint32_t n = end->n_parts + end->n_blocks;
    ps_entry first = {0};

    if (end->totals.packs > bytes / (info->row_bytes + PS_PACK_HEAD_BYTES))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END declares %" PRIu64 " packs, which do not fit in "
                       "the %" PRIu64 " bytes before it",
                       end->totals.packs, bytes);
    if (n > 0)
        first = ps_entry_decode(end->entries);
    if ((n > 0) == (end->totals.packs > 0) && first.first == 0)
        return PS_OK;
    return ps_fail(err, PS_ERR_CORRUPT,
                   "END declares %" PRIu64 " packs, but the file starts with "
                   "pack %" PRIu64,
                   end->totals.packs, first.first);
}

/*
 * Finds the stream that ends at *end, and sets *end to its start.  The header
 * of the stream must have the same geometry as the first header.
 */
static ps_result find_stream(ps_pack_file *f, uint64_t *end, ps_error *err)
{
    const uint64_t behind = *end;
    ps_pack_info info;
    ps_end found;
    ps_error why;
    stream s = {0};
    ps_result r = read_trailer(f, behind, &s, err);

    if (r != PS_OK)
        return r;
    *end = s.at;
    r = read_header(f, s.at, &info, err);
    if (r == PS_ERR_MAGIC)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END before byte %" PRIu64 " declares a stream from "
                       "byte %" PRIu64 ", but there is no header",
                       behind, s.at);
    if (r == PS_OK && ps_pack_info_compare(&info, &f->info, &why) != PS_OK)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the stream at byte %" PRIu64 " cannot be joined to the "
                       "first: %s",
                       s.at, why.text);
    if (r == PS_OK)
        r = read_end(f, &s, behind, &info, &found, err);
    if (r == PS_OK)
        r = check_packs(&info, &s, &found, err);
    if (r == PS_OK && !ps_totals_add(&f->totals, &found.totals))
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "the totals of the streams exceed 64 bits");
    if (r != PS_OK)
        return r;
    s.packs = found.totals.packs;
    if (info.max_displacement > f->info.max_displacement)
        f->info.max_displacement = info.max_displacement;
    if (info.depth == 0)
        info.depth = found.totals.max_depth;
    if (info.depth > f->info.depth)
        f->info.depth = info.depth;
    return add_stream(f, &s, err);
}

/*
 * Reverses the order of the streams, which were found from last to first, and
 * numbers their packs.
 */
static void turn_round(ps_pack_file *f)
{
    stream *s = f->streams;
    const uint32_t n = f->n_streams;
    uint64_t packs = 0;

    for (uint32_t i = 0; i < n / 2; i++) {
        stream other = s[i];

        s[i] = s[n - 1 - i];
        s[n - 1 - i] = other;
    }
    for (uint32_t i = 0; i < n; i++) {
        s[i].first = packs;
        packs += s[i].packs;
    }
}

/* Opens `source`, or `fd` if it is NULL. */
static ps_result open_any(ps_pack_file **file, int fd,
                          const ps_random_source *source, ps_error *err)
{
    ps_pack_file *f = calloc(1, sizeof *f);
    uint64_t end = 0;
    ps_result r;

    *file = NULL;
    if (f == NULL)
        return ps_fail_memory(err);
    r = source == NULL
            ? ps_random_input_open(&f->input, fd, err)
            : ps_random_input_open_source(&f->input, source, err);
    if (r == PS_OK)
        r = read_header(f, 0, &f->info, err);
    if (r == PS_OK)
        end = ps_random_input_size(f->input);
    while (r == PS_OK && end > 0)
        r = find_stream(f, &end, err);
    if (r != PS_OK) {
        ps_pack_file_free(f);
        return r;
    }
    turn_round(f);
    f->indexed = f->n_streams;
    *file = f;
    return PS_OK;
}

ps_result ps_pack_file_open(ps_pack_file **file, int fd, ps_error *err)
{
    return open_any(file, fd, NULL, err);
}

ps_result ps_pack_file_open_source(ps_pack_file **file,
                                   const ps_random_source *source,
                                   ps_error *err)
{
    return open_any(file, -1, source, err);
}

void ps_pack_file_free(ps_pack_file *f)
{
    if (f == NULL)
        return;
    ps_random_input_free(f->input);
    free(f->streams);
    free(f->end.bytes);
    free(f->listed.bytes);
    free(f->heads.bytes);
    free(f->sequences.bytes);
    free(f);
}

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

static ps_result fail_changed(const stream *s, ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT,
                   "the stream at byte %" PRIu64 " has changed", s->at);
}

/* End of stream `i`: the start of the next stream, or the end of the file. */
static uint64_t behind(const ps_pack_file *f, uint32_t i)
{
    return i + 1 < f->n_streams ? f->streams[i + 1].at
                                : ps_random_input_size(f->input);
}

ps_result ps_pack_file_stream(ps_pack_file *f, uint32_t i, ps_pack_info *info,
                              ps_totals *totals, ps_error *err)
{
    const stream *s;
    ps_end end;
    ps_result r;

    if (i >= f->n_streams)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "stream %" PRIu32 " is out of range: the file has "
                       "%" PRIu32 " streams, numbered from 0",
                       i, f->n_streams);
    s = &f->streams[i];
    r = read_header(f, s->at, info, err);
    if (r == PS_OK)
        r = read_end(f, s, behind(f, i), info, &end, err);
    if (r != PS_OK)
        return r;
    *totals = end.totals;
    /* If the geometry had changed, reads would use the wrong row size. */
    if (totals->packs != s->packs ||
        ps_pack_info_compare(info, &f->info, NULL) != PS_OK)
        return fail_changed(s, err);
    return PS_OK;
}

/* ---- The index ---- */

/* Copies entries to a list. */
static ps_result keep(entries *list, const unsigned char *from, uint32_t n,
                      ps_error *err)
{
    unsigned char *bytes = ps_array_grow(list->bytes, &list->capacity, n + 1u,
                                         1, PS_ENTRY_BYTES);

    if (bytes == NULL)
        return ps_fail_memory(err);
    list->bytes = bytes;
    list->n = n;
    memcpy(bytes, from, (size_t)n * PS_ENTRY_BYTES);
    return PS_OK;
}

static ps_entry entry_at(const entries *list, uint32_t i)
{
    return ps_entry_decode(list->bytes + (size_t)i * PS_ENTRY_BYTES);
}

/* Caches the entries in END of stream `i`. */
static ps_result index_stream(ps_pack_file *f, uint32_t i, ps_error *err)
{
    ps_pack_info info;
    ps_end end;
    ps_result r;

    if (f->indexed == i)
        return PS_OK;
    f->indexed = f->n_streams;
    r = read_header(f, f->streams[i].at, &info, err);
    if (r == PS_OK)
        r = read_end(f, &f->streams[i], behind(f, i), &info, &end, err);
    if (r == PS_OK && (end.totals.packs != f->streams[i].packs ||
                       end.stream_bytes != behind(f, i) - f->streams[i].at))
        r = fail_changed(&f->streams[i], err);
    if (r == PS_OK)
        r = check_packs(&info, &f->streams[i], &end, err);
    if (r == PS_OK)
        r = keep(&f->end, end.entries, end.n_parts + end.n_blocks, err);
    if (r != PS_OK)
        return r;
    f->n_parts = f->part = end.n_parts;
    f->indexed = i;
    return PS_OK;
}

/* Caches INDEX block `i` of a stream. */
static ps_result index_part(ps_pack_file *f, const stream *s, uint32_t i,
                            ps_error *err)
{
    const ps_entry part = entry_at(&f->end, i);
    const uint64_t at = s->at + part.offset;
    const ps_index_end end = {part.offset, s->packs};
    const unsigned char *bytes;
    ps_block_head head;
    ps_result r = PS_OK;

    if (f->part == i)
        return PS_OK;
    f->part = f->n_parts;
    if (s->end - at < PS_INDEX_BYTES)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "part %" PRIu32 " of the index is not located before "
                       "END", i);
    r = ps_random_input_read(f->input, at, PS_INDEX_BYTES, &bytes, err);
    if (r != PS_OK)
        return r;
    r = ps_block_head_decode(&f->info, bytes, &head, err);
    bytes += PS_BLOCK_HEAD_BYTES;
    if (r == PS_OK &&
        (head.kind != PS_BLOCK_INDEX ||
         head.body != ps_hash(bytes, PS_INDEX_BYTES - PS_BLOCK_HEAD_BYTES)))
        r = ps_fail(err, PS_ERR_CORRUPT, "incomplete part of the index");
    if (r == PS_OK)
        r = ps_entries_check(bytes, PS_INDEX_BLOCKS, end, err);
    if (r == PS_OK && ps_entry_decode(bytes).first != part.first)
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "its first pack is not the one that END lists");
    if (r != PS_OK)
        return ps_blame(NULL, at, r, err);
    r = keep(&f->listed, bytes, PS_INDEX_BLOCKS, err);
    f->part = r == PS_OK ? i : f->n_parts;
    return r;
}

/*
 * Returns the last entry in low to high - 1 whose first pack is <= `k`, or
 * `low` if there is none.
 */
static uint32_t last_below(const entries *list, uint32_t low, uint32_t high,
                           uint64_t k)
{
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (entry_at(list, middle).first <= k)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Finds the block that contains pack `k` of stream `i`. */
static ps_result find_block(ps_pack_file *f, uint32_t i, uint64_t k, block *b,
                            ps_error *err)
{
    const stream *s = &f->streams[i];
    const entries *list = &f->end;
    uint64_t next = s->packs; /* index of the first pack after the list, then
                                 after the block found */
    uint64_t end = s->end;    /* end of the blocks in the list */
    uint32_t low, high, at;
    ps_entry e;
    ps_result r = index_stream(f, i, err);

    if (r != PS_OK)
        return r;
    low = f->n_parts;
    high = f->end.n;
    if (low == high || entry_at(list, low).first > k) {
        const uint32_t part = last_below(list, 0, f->n_parts, k);

        end = s->at + entry_at(&f->end, part).offset;
        if (part + 1 < high)
            next = entry_at(list, part + 1).first;
        r = index_part(f, s, part, err);
        if (r != PS_OK)
            return r;
        list = &f->listed;
        low = 0;
        high = list->n;
    }
    at = last_below(list, low, high, k);
    e = entry_at(list, at);
    if (at + 1 < high) {
        next = entry_at(list, at + 1).first;
        end = s->at + entry_at(list, at + 1).offset;
    }
    if (next - e.first > PS_MAX_BLOCK_PACKS ||
        (next - e.first) * (f->info.row_bytes + PS_PACK_HEAD_BYTES) >
            s->end - s->at - e.offset)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the index of the stream at byte %" PRIu64
                       " has no block with pack %" PRIu64,
                       s->at, k);
    *b = (block){s->at + e.offset, end, e.first, (uint32_t)(next - e.first)};
    return PS_OK;
}

/*
 * Returns the first entry in low to high - 1 whose watermark is >= `least`, or
 * `high` if there is none.
 */
static uint32_t first_marked(const entries *list, uint32_t low, uint32_t high,
                             uint64_t least)
{
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (entry_at(list, middle).watermark >= least)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

ps_result ps_pack_file_marked(ps_pack_file *f, uint32_t i, uint64_t least,
                              uint64_t *first, uint64_t *end, ps_error *err)
{
    const stream *s = &f->streams[i];
    const entries *list = &f->end;
    uint32_t at;
    block b;
    ps_result r = index_stream(f, i, err);

    *first = *end = s->first + s->packs;
    if (r != PS_OK)
        return r;
    at = first_marked(list, 0, f->end.n, least);
    if (at == f->end.n)
        return PS_OK;
    if (at < f->n_parts) {
        r = index_part(f, s, at, err);
        list = &f->listed;
        at = first_marked(list, 0, f->listed.n, least);
        if (r == PS_OK && at == f->listed.n)
            r = ps_fail(err, PS_ERR_CORRUPT,
                        "its last watermark is not the one that END lists");
    }
    if (r == PS_OK)
        r = find_block(f, i, entry_at(list, at).first, &b, err);
    if (r != PS_OK)
        return r;
    *first = s->first + b.first;
    *end = *first + b.n_packs;
    return PS_OK;
}

ps_result ps_pack_file_find(ps_pack_file *f, uint32_t i, uint64_t packs,
                            ps_pack_file_at *at, ps_error *err)
{
    block b = {0};
    ps_result r = PS_OK;

    if (i >= f->n_streams || packs > f->streams[i].packs)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the file has fewer packs");
    if (packs > 0)
        r = find_block(f, i, packs - 1, &b, err);
    *at = (ps_pack_file_at){f->streams[i].at, f->streams[i].first, b.at,
                            b.first};
    return r;
}

/* ---- Packs ---- */

/*
 * Sets the position of pack `i` in *pack and makes its block the current block.
 * *again is set if the block was already the current block.
 */
static ps_result locate(ps_pack_file *f, uint64_t i, ps_pack *pack,
                        bool *again, ps_error *err)
{
    block *b = &f->block;
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
        r = find_block(f, pack->stream, pack->index, b, err);
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
                            table *to, ps_error *err)
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
static ps_result try_table(ps_pack_file *f, uint64_t at, uint64_t n, table *t,
                           ps_error *err)
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
    const block *b = &f->block;
    const uint64_t heads =
        b->at + ps_block_layout_of(&f->info, b->n_packs, 0).heads;
    const uint64_t at = (uint64_t)k * PS_PACK_HEAD_BYTES;
    table *t = &f->heads;
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
    const block *b = &f->block;
    const uint32_t bytes = f->info.seq_bytes;
    const uint64_t all =
        b->at + ps_block_layout_of(&f->info, b->n_packs, 0).end;
    const uint64_t at = (uint64_t)ps_head_first_seq(head) * bytes;
    const uint64_t n = (uint64_t)ps_head_n_seq(head) * bytes;
    table *t = &f->sequences;
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

ps_result ps_pack_file_read(ps_pack_file *f, uint64_t i, ps_pack *pack,
                            ps_error *err)
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
    if (r == PS_OK)
        r = read_sequences(f, head, &pack->sequences, err);
    if (r == PS_OK)
        r = ps_random_input_read(f->input,
                                 pack->offset + PS_BLOCK_HEAD_BYTES +
                                     (uint64_t)k * f->info.row_bytes,
                                 f->info.row_bytes, &pack->row, err);
    if (r == PS_OK)
        r = ps_pack_decode(&f->info, head, pack, err);
    return r == PS_ERR_CORRUPT ? ps_blame(pack, pack->offset, r, err) : r;
}

ps_result ps_pack_file_head(ps_pack_file *f, uint64_t i, ps_pack *pack,
                            ps_error *err)
{
    const unsigned char *head;
    bool again;
    ps_result r = locate(f, i, pack, &again, err);

    if (r == PS_OK)
        r = read_head(f, (uint32_t)(pack->index - f->block.first), again,
                      &head, err);
    if (r == PS_OK)
        r = ps_head_decode(&f->info, head, pack, err);
    return r == PS_ERR_CORRUPT ? ps_blame(pack, pack->offset, r, err) : r;
}

ps_result ps_pack_file_sequences(ps_pack_file *f, uint64_t i, ps_pack *pack,
                                 ps_error *err)
{
    unsigned char head[PS_PACK_HEAD_BYTES];
    const unsigned char *bytes;
    bool again;
    ps_result r = locate(f, i, pack, &again, err);

    if (r == PS_OK)
        r = read_head(f, (uint32_t)(pack->index - f->block.first), again,
                      &bytes, err);
    if (r == PS_OK) {
        memcpy(head, bytes, sizeof head);
        r = ps_head_decode(&f->info, head, pack, err);
    }
    if (r == PS_OK)
        r = read_sequences(f, head, &pack->sequences, err);
    return r == PS_ERR_CORRUPT ? ps_blame(pack, pack->offset, r, err) : r;
}

ps_result ps_pack_file_extent(ps_pack_file *f, uint64_t i, ps_pack_extent *x,
                              ps_error *err)
{
    const block *b = &f->block;
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

const ps_pack_info *ps_pack_file_info(const ps_pack_file *f)
{
    return &f->info;
}

uint64_t ps_pack_file_packs(const ps_pack_file *f)
{
    return f->totals.packs;
}

uint32_t ps_pack_file_streams(const ps_pack_file *f)
{
    return f->n_streams;
}

const ps_totals *ps_pack_file_totals(const ps_pack_file *f)
{
    return &f->totals;
}
