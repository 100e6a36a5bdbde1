/*
 * seek_table_check.c - check seek tables against the frames before them while
 * reading.
 *
 * SPDX-License-Identifier: MIT
 *
 * Most inputs have no seek table, and tables of other writers are not checked.
 * A table is required only after a stream that is_head recognizes by its first
 * frame.
 */

#include "io/seek_table_check.h"

#include <inttypes.h>
#include <string.h>

#include <zstd.h>

#include "base/error.h"
#include "base/hash.h"
#include "bytes.h"
#include "io/seek_table.h"

/* Flag in the fifth byte of a frame: the frame ends with a content checksum. */
#define FRAME_HAS_CHECKSUM 4

static uint64_t add_link(uint64_t chain, uint64_t packed, uint64_t plain,
                         uint32_t checksum)
{
    unsigned char link[20];

    store_u64(link, packed);
    store_u64(link + 8, plain);
    store_u32(link + 16, checksum);
    return XXH3_64bits_withSeed(link, sizeof link, chain);
}

static bool is_table(const ps_seek_check *c)
{
    return c->compressed >= PS_SEEK_PREFIX_BYTES &&
           load_u32(c->head) == PS_SEEK_SKIPPABLE_MAGIC;
}

/*
 * Processes `n` bytes of a table after its prefix.  Entries can be split
 * anywhere between calls.
 */
static void see_table(ps_seek_check *c, const unsigned char *bytes, size_t n)
{
    const unsigned char *part = c->part;
    const bool checksums = c->entry_bytes > PS_SEEK_ENTRY_BYTES;
    const bool checked = checksums && !c->unchecked;

    while (n > 0) {
        bool is_entry = c->entries < c->frames;
        size_t whole = is_entry ? c->entry_bytes : PS_SEEK_FOOTER_BYTES;
        size_t more = n < whole - c->have ? n : whole - c->have;

        memcpy(c->part + c->have, bytes, more);
        c->have += more;
        bytes += more;
        n -= more;
        if (c->have < whole)
            return;
        c->have = 0;

        if (is_entry) {
            c->chain = add_link(c->chain, load_u32(part), load_u32(part + 4),
                                checked ? load_u32(part + 8) : 0);
            c->entries++;
        } else {
            c->agrees =
                load_u32(part) == c->frames &&
                part[4] == (checksums ? PS_SEEK_WITH_CHECKSUMS : 0) &&
                ps_is_seek_footer(part) &&
                c->chain == c->chains[checked ? PS_CHAIN_CHECKSUMS
                                              : PS_CHAIN_SIZES];
        }
    }
}

/*
 * Collects the first eight bytes of a frame or its contents.  Earlier calls
 * passed `before` bytes.  Returns the number of bytes used.
 */
static size_t keep_first(unsigned char first[8], uint64_t before,
                         const unsigned char *bytes, size_t n)
{
    size_t at = before < 8 ? (size_t)before : 8;

    n = n < 8 - at ? n : 8 - at;
    memcpy(first + at, bytes, n);
    return n;
}

/* Handles the end of a frame, which can be a seek table. */
static void end_frame(ps_seek_check *c)
{
    const bool table = is_table(c);
    const bool starts = !table && !c->wanted && c->is_head != NULL &&
                        c->is_head(c->content, c->plain);
    const bool has_checksum = load_u32(c->head) == ZSTD_MAGICNUMBER &&
                              (c->head[4] & FRAME_HAS_CHECKSUM) != 0;
    uint64_t *chains = c->chains;

    if (table && c->wanted && !c->agrees && !c->bad) {
        c->bad = true;
        c->bad_at = c->at;
    }
    /* The next table covers the frames after this table, or from this head. */
    if (table || starts) {
        c->wanted = starts;
        c->unchecked = false;
        c->frames = 0;
        memset(c->chains, 0, sizeof c->chains);
    }
    if (!table) {
        chains[PS_CHAIN_SIZES] =
            add_link(chains[PS_CHAIN_SIZES], c->compressed, c->plain, 0);
        chains[PS_CHAIN_CHECKSUMS] = add_link(
            chains[PS_CHAIN_CHECKSUMS], c->compressed, c->plain, c->tail);
        c->unchecked = c->unchecked || !has_checksum;
        c->frames++;
    }
    c->at += c->compressed;
    c->compressed = c->plain = 0;
}

void ps_seek_check_see(ps_seek_check *c, const unsigned char *bytes,
                       size_t n, const unsigned char *content, size_t plain,
                       bool end)
{
    size_t head = keep_first(c->head, c->compressed, bytes, n);

    (void)keep_first(c->content, c->plain, content, plain);
    for (size_t i = n < 4 ? 0 : n - 4; i < n; i++)
        c->tail = c->tail >> 8 | (uint32_t)bytes[i] << 24;
    c->compressed += n;
    c->plain += plain;

    if (is_table(c)) {
        const size_t larger = PS_SEEK_ENTRY_BYTES + PS_SEEK_CHECKSUM_BYTES;
        const uint64_t size = load_u32(c->head + 4);

        if (head > 0) {
            /*
             * Find the entry size for which the table has one entry per frame;
             * 0 if there is no such size.
             */
            c->entry_bytes = 0;
            if (size == PS_SEEK_FOOTER_BYTES + c->frames * PS_SEEK_ENTRY_BYTES)
                c->entry_bytes = PS_SEEK_ENTRY_BYTES;
            else if (size == PS_SEEK_FOOTER_BYTES + c->frames * larger)
                c->entry_bytes = larger;
            c->entries = c->chain = 0;
            c->agrees = false;
        }
        if (c->entry_bytes > 0)
            see_table(c, bytes + head, n - head);
    }
    if (end)
        end_frame(c);
}

ps_result ps_seek_check_result(const ps_seek_check *c, bool at_end,
                               ps_error *err)
{
    if (c->bad)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the seek table at byte %" PRIu64 " of the compressed "
                       "input does not match the frames before it",
                       c->bad_at);
    if (at_end && c->wanted)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "the compressed input ends at byte %" PRIu64
                       ", without the seek table of its %" PRIu64 " frames",
                       c->at, c->frames);
    return PS_OK;
}
