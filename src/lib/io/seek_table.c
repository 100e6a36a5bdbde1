/*
 * seek_table.c - the seek table of zstd's seekable format.
 *
 * SPDX-License-Identifier: MIT
 *
 * Entries are kept in their encoded form, so a table takes about as much memory
 * as space in the file.  The position of every 64th frame is stored in a mark,
 * so that a search has to add up at most 64 entries.
 */

#include "io/seek_table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "bytes.h"

#define SEEKABLE_MAGIC UINT32_C(0x8F92EAB1)

/* Offsets in an entry and in the footer. */
#define ENTRY_BYTES_AT 0
#define ENTRY_PLAIN_AT 4
#define FOOTER_FRAMES_AT 0
#define FOOTER_DESCRIPTOR_AT 4
#define FOOTER_MAGIC_AT 5

/* Descriptor bits reserved for newer versions of the format. */
#define RESERVED (0xff & ~PS_SEEK_WITH_CHECKSUMS)

/* Upper bound on the compression ratio: 4 bytes encode a 128 KiB block. */
#define BEST_RATIO (UINT32_C(1) << 15)

/* Frames per mark. */
#define MARK_EVERY 64

static size_t entry_at(uint32_t frame)
{
    return PS_SEEK_PREFIX_BYTES + (size_t)frame * PS_SEEK_ENTRY_BYTES;
}

/* Sets the capacity in frames, at least 1. */
static ps_result reserve(ps_seek_table *t, uint32_t capacity, ps_error *err)
{
    size_t n_marks = (capacity - 1) / MARK_EVERY + 1;
    unsigned char *buf;
    ps_seek_mark *marks;

    /* The size cannot overflow: PS_SEEK_FRAMES_MAX limits it to about 2^30. */
    buf = realloc(t->buf, entry_at(capacity) + PS_SEEK_FOOTER_BYTES);
    if (buf == NULL)
        return ps_fail_memory(err);
    t->buf = buf;
    marks = realloc(t->marks, n_marks * sizeof *marks);
    if (marks == NULL)
        return ps_fail_memory(err);
    t->marks = marks;
    t->capacity = capacity;
    return PS_OK;
}

ps_result ps_seek_table_open(ps_seek_table **table, ps_error *err)
{
    ps_seek_table *t = calloc(1, sizeof *t);
    ps_result r = t == NULL ? ps_fail_memory(err) : reserve(t, 1, err);

    *table = NULL;
    if (r != PS_OK) {
        ps_seek_table_free(t);
        return r;
    }
    t->max = PS_SEEK_FRAMES_MAX;
    *table = t;
    return PS_OK;
}

/* Includes the old arrays, which are freed only after the table has grown. */
uint64_t ps_seek_table_takes(uint32_t max)
{
    uint64_t n = (uint64_t)max + 1;
    uint64_t bytes = ps_mem_sum(
        ps_mem_array(n, PS_SEEK_ENTRY_BYTES),
        ps_mem_array(n / MARK_EVERY + 3, sizeof(ps_seek_mark)));

    return ps_mem_sum(sizeof(ps_seek_table) + PS_SEEK_PREFIX_BYTES +
                      PS_SEEK_FOOTER_BYTES,
                      ps_mem_times(2, bytes));
}

ps_result ps_seek_table_add(ps_seek_table *t, uint64_t bytes, uint64_t plain,
                            ps_error *err)
{
    unsigned char *entry;
    ps_result r = PS_OK;

    if (t->frames >= t->max)
        return ps_fail(err, PS_ERR_LIMIT,
                       "the seek table cannot hold more than %" PRIu32
                       " frames",
                       t->max);
    if (bytes > UINT32_MAX || plain > UINT32_MAX)
        return ps_fail(err, PS_ERR_LIMIT,
                       "a frame of %" PRIu64 " bytes does not fit in a seek "
                       "table",
                       bytes > plain ? bytes : plain);
    if (t->frames == t->capacity)
        r = reserve(t, t->capacity < t->max / 2 ? 2 * t->capacity : t->max,
                    err);
    if (r != PS_OK)
        return r;
    if (t->frames % MARK_EVERY == 0)
        t->marks[t->frames / MARK_EVERY] = t->end;
    entry = t->buf + entry_at(t->frames);
    store_u32(entry + ENTRY_BYTES_AT, (uint32_t)bytes);
    store_u32(entry + ENTRY_PLAIN_AT, (uint32_t)plain);
    t->frames++;
    t->end.at += bytes;
    t->end.plain_at += plain;
    return PS_OK;
}

void ps_seek_table_encode(ps_seek_table *t, const unsigned char **bytes,
                          size_t *n)
{
    const size_t end = entry_at(t->frames);
    unsigned char *footer = t->buf + end;

    store_u32(t->buf, PS_SEEK_SKIPPABLE_MAGIC);
    store_u32(t->buf + 4, (uint32_t)(end - PS_SEEK_PREFIX_BYTES +
                                     PS_SEEK_FOOTER_BYTES));
    store_u32(footer + FOOTER_FRAMES_AT, t->frames);
    footer[FOOTER_DESCRIPTOR_AT] = 0;
    store_u32(footer + FOOTER_MAGIC_AT, SEEKABLE_MAGIC);
    *bytes = t->buf;
    *n = end + PS_SEEK_FOOTER_BYTES;
}

/* ---------------------------------------------------------------------
 * Decoding a table
 */

bool ps_is_seek_footer(const unsigned char *footer)
{
    return load_u32(footer + FOOTER_MAGIC_AT) == SEEKABLE_MAGIC;
}

static uint32_t entry_bytes(const unsigned char *footer)
{
    const unsigned descriptor = footer[FOOTER_DESCRIPTOR_AT];
    const bool checksums = (descriptor & PS_SEEK_WITH_CHECKSUMS) != 0;

    return PS_SEEK_ENTRY_BYTES + (checksums ? PS_SEEK_CHECKSUM_BYTES : 0);
}

/*
 * The format allows readers to ignore two of the reserved bits.  They are
 * rejected here as well, so that every flipped bit is detected.
 */
ps_result ps_seek_footer_decode(const unsigned char *footer, uint64_t before,
                                uint64_t *table_bytes, ps_error *err)
{
    uint32_t frames = load_u32(footer + FOOTER_FRAMES_AT);
    unsigned descriptor = footer[FOOTER_DESCRIPTOR_AT];

    if (!ps_is_seek_footer(footer))
        return ps_fail(err, PS_ERR_UNSUPPORTED, "there is no seek table");
    if ((descriptor & RESERVED) != 0)
        return ps_fail(err, PS_ERR_UNSUPPORTED,
                       "the descriptor of the seek table, 0x%02x, is unknown",
                       descriptor);
    *table_bytes = (uint64_t)frames * entry_bytes(footer) +
                   PS_SEEK_PREFIX_BYTES + PS_SEEK_FOOTER_BYTES;
    if (frames == 0 || frames > PS_SEEK_FRAMES_MAX || *table_bytes > before)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the seek table cannot have %" PRIu32 " frames",
                       frames);
    return PS_OK;
}

/* Adds an entry read from a file.  Its frame must end before byte `end`. */
static ps_result decode_entry(ps_seek_table *t, const unsigned char *entry,
                              uint64_t end, ps_error *err)
{
    uint32_t bytes = load_u32(entry + ENTRY_BYTES_AT);
    uint32_t plain = load_u32(entry + ENTRY_PLAIN_AT);

    if (bytes == 0 || bytes > end - t->end.at)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the seek table lists %" PRIu32 " bytes for frame %"
                       PRIu32 ", but only %" PRIu64 " are left",
                       bytes, t->frames, end - t->end.at);
    /* Half the size, because incompressible data grows slightly. */
    if (bytes / 2 > PS_FRAME_BYTES_MAX || plain > PS_FRAME_BYTES_MAX)
        return ps_fail(err, PS_ERR_LIMIT,
                       "frame %" PRIu32 " of the seek table has %" PRIu32
                       " bytes, but the limit is %" PRIu32,
                       t->frames, bytes > plain ? bytes : plain,
                       PS_FRAME_BYTES_MAX);
    if (plain / BEST_RATIO > bytes)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "%" PRIu32 " bytes cannot decompress to the %" PRIu32
                       " bytes that the seek table lists for frame %" PRIu32,
                       bytes, plain, t->frames);
    return ps_seek_table_add(t, bytes, plain, err);
}

ps_result ps_seek_table_decode(ps_seek_table **table,
                               const unsigned char *bytes, uint64_t n,
                               uint64_t before, ps_error *err)
{
    const unsigned char *entry = bytes + PS_SEEK_PREFIX_BYTES;
    const unsigned char *footer;
    uint64_t expected = 0;
    ps_result r;

    *table = NULL;
    if (n < PS_SEEK_PREFIX_BYTES + PS_SEEK_FOOTER_BYTES)
        return ps_fail(err, PS_ERR_CORRUPT, "the seek table is truncated");
    footer = bytes + n - PS_SEEK_FOOTER_BYTES;
    r = ps_seek_footer_decode(footer, before, &expected, err);
    if (r == PS_OK && expected != n)
        r = ps_fail(err, PS_ERR_CORRUPT, "the seek table is truncated");
    if (r == PS_OK)
        r = ps_seek_table_open(table, err);
    if (r == PS_OK && (load_u32(bytes) != PS_SEEK_SKIPPABLE_MAGIC ||
                       load_u32(bytes + 4) != n - PS_SEEK_PREFIX_BYTES))
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "the start of the seek table does not match its size");
    if (r == PS_OK)
        r = reserve(*table, load_u32(footer + FOOTER_FRAMES_AT), err);
    for (; r == PS_OK && entry < footer; entry += entry_bytes(footer))
        r = decode_entry(*table, entry, before - n, err);
    if (r != PS_OK) {
        ps_seek_table_free(*table);
        *table = NULL;
    }
    return r;
}

ps_seek_frame ps_seek_table_find(const ps_seek_table *t, uint64_t offset)
{
    uint32_t low = 0;
    uint32_t high = (t->frames - 1) / MARK_EVERY;
    ps_seek_frame f;

    /* Find the last mark at or before `offset`. */
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        if (t->marks[middle].plain_at <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    f = (ps_seek_frame){.number = low * MARK_EVERY,
                        .at = t->marks[low].at,
                        .plain_at = t->marks[low].plain_at};
    for (;;) {
        const unsigned char *entry = t->buf + entry_at(f.number);

        f.bytes = load_u32(entry + ENTRY_BYTES_AT);
        f.plain = load_u32(entry + ENTRY_PLAIN_AT);
        if (offset < f.plain_at + f.plain || f.number + 1 == t->frames)
            return f;
        f.at += f.bytes;
        f.plain_at += f.plain;
        f.number++;
    }
}

void ps_seek_table_free(ps_seek_table *t)
{
    if (t == NULL)
        return;
    free(t->marks);
    free(t->buf);
    free(t);
}
