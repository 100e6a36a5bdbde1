/*
 * pack_mark.c - saved positions between two packs of a stream.
 *
 * SPDX-License-Identifier: MIT
 *
 * A mark consists of "PKSM", a version, the members of ps_pack_place, zeros,
 * and the XXH3 of all bytes before it.  Numbers are little-endian.  Totals and
 * digest have the same layout as in END.
 */

#include "format/pack_mark.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "bytes.h"
#include "format/block.h"
#include "format/totals.h"

#define MARK_VERSION 2
#define AT_VERSION 4
#define AT_FIRST_HEADER 8
#define AT_HEADER 16
#define AT_LAST 24
#define AT_NEWEST 32
#define AT_STREAM 40
#define AT_WINDOW 44
#define AT_SEEN 48
#define AT_BEFORE (AT_SEEN + PS_TOTALS_BYTES)
#define AT_INDEX (AT_BEFORE + PS_TOTALS_BYTES)
#define AT_ZERO (AT_INDEX + 40)
#define AT_CHECKSUM (PS_PACK_MARK_BYTES - 8)

_Static_assert(AT_ZERO <= AT_CHECKSUM, "the numbers fit a mark");

/* Upper bound on the packs of an input: more would exceed 2^63 bytes. */
#define PACKS_MAX (UINT64_C(1) << 55)

static const unsigned char magic[4] = {'P', 'K', 'S', 'M'};

void ps_pack_mark_encode(const ps_pack_place *place,
                         unsigned char mark[PS_PACK_MARK_BYTES])
{
    const ps_index_seen *index = &place->index;

    memset(mark, 0, PS_PACK_MARK_BYTES);
    memcpy(mark, magic, sizeof magic);
    store_u32(mark + AT_VERSION, MARK_VERSION);
    store_u64(mark + AT_FIRST_HEADER, place->first_header);
    store_u64(mark + AT_HEADER, place->header);
    store_u64(mark + AT_LAST, place->last);
    store_u64(mark + AT_NEWEST, place->newest);
    store_u32(mark + AT_STREAM, place->stream);
    store_u32(mark + AT_WINDOW, place->max_displacement);
    ps_totals_encode(&place->seen, place->digest, mark + AT_SEEN);
    ps_totals_encode(&place->before, 0, mark + AT_BEFORE);
    store_u32(mark + AT_INDEX, index->n_blocks);
    store_u32(mark + AT_INDEX + 4, index->n_parts);
    store_u64(mark + AT_INDEX + 8, index->blocks);
    store_u64(mark + AT_INDEX + 16, index->parts);
    store_u64(mark + AT_INDEX + 24, index->first);
    store_u64(mark + AT_INDEX + 32, index->watermark);
    store_u64(mark + AT_CHECKSUM, ps_hash(mark, AT_CHECKSUM));
}

ps_result ps_pack_mark_decode(const unsigned char *mark,
                              ps_pack_place *place, ps_error *err)
{
    const ps_totals *seen = &place->seen;
    const ps_totals *before = &place->before;
    uint64_t none; /* `before` has no digest; must be 0 */
    bool possible;

    *place = (ps_pack_place){0};
    if (memcmp(mark, magic, sizeof magic) != 0)
        return ps_fail(err, PS_ERR_MAGIC, "not a mark of a pack reader");
    if (load_u64(mark + AT_CHECKSUM) != ps_hash(mark, AT_CHECKSUM))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the mark is damaged: its checksum does not match");
    if (load_u32(mark + AT_VERSION) != MARK_VERSION)
        return ps_fail(err, PS_ERR_UNSUPPORTED,
                       "the mark has version %" PRIu32 ", but this library "
                       "reads version %d",
                       load_u32(mark + AT_VERSION), MARK_VERSION);
    place->first_header = load_u64(mark + AT_FIRST_HEADER);
    place->header = load_u64(mark + AT_HEADER);
    place->last = load_u64(mark + AT_LAST);
    place->newest = load_u64(mark + AT_NEWEST);
    place->stream = load_u32(mark + AT_STREAM);
    place->max_displacement = load_u32(mark + AT_WINDOW);
    ps_totals_decode(mark + AT_SEEN, &place->seen, &place->digest);
    ps_totals_decode(mark + AT_BEFORE, &place->before, &none);
    place->index = (ps_index_seen){
        .n_blocks = load_u32(mark + AT_INDEX),
        .n_parts = load_u32(mark + AT_INDEX + 4),
        .blocks = load_u64(mark + AT_INDEX + 8),
        .parts = load_u64(mark + AT_INDEX + 16),
        .first = load_u64(mark + AT_INDEX + 24),
        .watermark = load_u64(mark + AT_INDEX + 32),
    };

    /* Reject positions that cannot exist. */
    possible = seen->packs <= PACKS_MAX && before->packs <= PACKS_MAX &&
               (place->index.n_blocks <= PS_INDEX_BLOCKS ||
                place->index.n_blocks == PS_INDEX_UNSEEN) &&
               place->max_displacement > 0 &&
               place->max_displacement <= PS_MAX_WINDOW &&
               (seen->packs > 0 || (place->last == 0 && place->newest == 0 &&
                                    place->digest == place->header)) &&
               (place->stream > 0 ||
                (place->first_header == place->header && before->packs == 0));
    if (none != 0 || !possible ||
        !all_zero(mark + AT_ZERO, AT_CHECKSUM - AT_ZERO))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the mark is damaged: its numbers contradict each "
                       "other");
    return PS_OK;
}
