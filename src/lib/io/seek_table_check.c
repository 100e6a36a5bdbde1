/*
 * seek_table_check.c - whether the frames of a compressed input are those of
 * the seek table behind them, seen while they pass.
 *
 * A table does not follow all frames: most inputs have none, and those of
 * other writers are left alone.  One must follow the streams that begin with a
 * frame that is known as their head.
 *
 * SPDX-License-Identifier: MIT
 */

#include "io/seek_table_check.h"

#include <inttypes.h>
#include <string.h>

#include <zstd.h>

#include "base/error.h"
#include "base/hash.h"
#include "bytes.h"
#include "io/seek_table.h"

/* In the fifth byte of a frame: its content's checksum ends it. */
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

static bool is_table(const ps_frame_check *c)
{
    return c->packed >= PS_SEEK_PREFIX_BYTES &&
           load_u32(c->head) == PS_SEEK_SKIPPABLE_MAGIC;
}

/* ---- A table ---- */

/* Entries of which size would fill it, if there is one for each frame. */
static size_t find_entry_bytes(const ps_frame_check *c)
{
    const uint64_t n = load_u32(c->head + 4);
    const size_t larger = PS_SEEK_ENTRY_BYTES + PS_SEEK_CHECKSUM_BYTES;

    if (n == PS_SEEK_FOOTER_BYTES + c->frames * PS_SEEK_ENTRY_BYTES)
        return PS_SEEK_ENTRY_BYTES;
    return n == PS_SEEK_FOOTER_BYTES + c->frames * larger ? larger : 0;
}

static void begin_table(ps_frame_check *c)
{
    c->entry_bytes = find_entry_bytes(c);
    c->entries = c->chain = 0;
    c->agrees = false;
}

static void see_entry(ps_frame_check *c)
{
    const bool checksum = c->entry_bytes > PS_SEEK_ENTRY_BYTES;

    c->chain = add_link(c->chain, load_u32(c->part), load_u32(c->part + 4),
                        checksum && !c->unchecked ? load_u32(c->part + 8)
                                                  : 0);
    c->entries++;
}

static void see_footer(ps_frame_check *c)
{
    const bool checksums = c->entry_bytes > PS_SEEK_ENTRY_BYTES;
    const unsigned chain = checksums && !c->unchecked ? PS_CHAIN_CHECKSUMS
                                                      : PS_CHAIN_SIZES;

    c->agrees = load_u32(c->part) == c->frames &&
                c->part[4] == (checksums ? PS_SEEK_WITH_CHECKSUMS : 0) &&
                ps_is_seek_footer(c->part) && c->chain == c->chains[chain];
}

/* What follows the prefix. */
static void see_table(ps_frame_check *c, const unsigned char *bytes, size_t n)
{
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
        if (is_entry)
            see_entry(c);
        else
            see_footer(c);
    }
}

static void forget_frames(ps_frame_check *c)
{
    c->wanted = c->unchecked = false;
    c->frames = 0;
    memset(c->chains, 0, sizeof c->chains);
}

static void end_table(ps_frame_check *c)
{
    if (c->wanted && !c->agrees && !c->bad) {
        c->bad = true;
        c->bad_at = c->at;
    }
    forget_frames(c);
}

/* ---- Any frame ---- */

/*
 * Keeps the first eight bytes of those of which `before` came before these;
 * gives how many of these are among them.
 */
static size_t keep_first(unsigned char first[8], uint64_t before,
                         const unsigned char *bytes, size_t n)
{
    size_t at = before < 8 ? (size_t)before : 8;

    n = n < 8 - at ? n : 8 - at;
    memcpy(first + at, bytes, n);
    return n;
}

static void see_tail(ps_frame_check *c, const unsigned char *bytes, size_t n)
{
    for (size_t i = n < 4 ? 0 : n - 4; i < n; i++)
        c->tail = c->tail >> 8 | (uint32_t)bytes[i] << 24;
}

static bool has_checksum(const ps_frame_check *c)
{
    return load_u32(c->head) == ZSTD_MAGICNUMBER &&
           (c->head[4] & FRAME_HAS_CHECKSUM) != 0;
}

static void end_frame(ps_frame_check *c)
{
    uint64_t *chains = c->chains;

    if (!c->wanted && c->is_head != NULL && c->is_head(c->content, c->plain)) {
        forget_frames(c);
        c->wanted = true;
    }
    chains[PS_CHAIN_SIZES] = add_link(chains[PS_CHAIN_SIZES], c->packed,
                                      c->plain, 0);
    chains[PS_CHAIN_CHECKSUMS] = add_link(chains[PS_CHAIN_CHECKSUMS],
                                          c->packed, c->plain, c->tail);
    c->unchecked = c->unchecked || !has_checksum(c);
    c->frames++;
}

void ps_frame_check_see(ps_frame_check *c, const unsigned char *bytes,
                        size_t packed, const unsigned char *content,
                        size_t plain, bool end)
{
    size_t head = keep_first(c->head, c->packed, bytes, packed);

    (void)keep_first(c->content, c->plain, content, plain);
    see_tail(c, bytes, packed);
    c->packed += packed;
    c->plain += plain;
    if (is_table(c)) {
        if (head > 0)
            begin_table(c);
        if (c->entry_bytes > 0)
            see_table(c, bytes + head, packed - head);
    }
    if (!end)
        return;
    if (is_table(c))
        end_table(c);
    else
        end_frame(c);
    c->at += c->packed;
    c->packed = c->plain = 0;
}

ps_result ps_frame_check_result(const ps_frame_check *c, bool at_end,
                                ps_error *err)
{
    if (c->bad)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the seek table at byte %" PRIu64
                       " of the compressed input is not that of the frames "
                       "before it",
                       c->bad_at);
    if (at_end && c->wanted)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "the compressed input ends at byte %" PRIu64
                       ", without the seek table of its %" PRIu64 " frames",
                       c->at, c->frames);
    return PS_OK;
}
