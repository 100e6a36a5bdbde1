/*
 * pack_mark.c - a place between two records of a pack stream, and the mark
 * that is kept of it.
 *
 * A mark is "PKSM", a version, the numbers of the place, of which totals and
 * digest are laid out as in END, zeros, and the XXH3 of all that;
 * little-endian.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/pack_mark.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "bytes.h"
#include "format/totals.h"

#define MARK_VERSION 1
#define AT_VERSION 4
#define AT_FIRST_HEADER 8
#define AT_HEADER 16
#define AT_LAST 24
#define AT_NEWEST 32
#define AT_STREAM 40
#define AT_WINDOW 44
#define AT_SEEN 48
#define AT_BEFORE (AT_SEEN + PS_TOTALS_BYTES)
#define AT_ZERO (AT_BEFORE + PS_TOTALS_BYTES)
#define AT_CHECKSUM (PS_PACK_MARK_BYTES - 8)

_Static_assert(AT_ZERO <= AT_CHECKSUM, "the numbers fit a mark");

/* No input has more packs: their bytes would not fit 63 bits. */
#define PACKS_MAX (UINT64_C(1) << 55)

static const unsigned char magic[4] = {'P', 'K', 'S', 'M'};

static void store_place(const ps_pack_place *p, unsigned char *mark)
{
    store_u64(mark + AT_FIRST_HEADER, p->first_header);
    store_u64(mark + AT_HEADER, p->header);
    store_u64(mark + AT_LAST, p->last);
    store_u64(mark + AT_NEWEST, p->newest);
    store_u32(mark + AT_STREAM, p->stream);
    store_u32(mark + AT_WINDOW, p->window);
    ps_totals_encode(&p->seen, p->digest, mark + AT_SEEN);
    ps_totals_encode(&p->before, 0, mark + AT_BEFORE);
}

/* False if there is a digest where none belongs. */
static bool load_place(const unsigned char *mark, ps_pack_place *p)
{
    uint64_t none;

    p->first_header = load_u64(mark + AT_FIRST_HEADER);
    p->header = load_u64(mark + AT_HEADER);
    p->last = load_u64(mark + AT_LAST);
    p->newest = load_u64(mark + AT_NEWEST);
    p->stream = load_u32(mark + AT_STREAM);
    p->window = load_u32(mark + AT_WINDOW);
    ps_totals_decode(mark + AT_SEEN, &p->seen, &p->digest);
    ps_totals_decode(mark + AT_BEFORE, &p->before, &none);
    return none == 0;
}

void ps_pack_mark_encode(const ps_pack_place *place,
                         unsigned char mark[PS_PACK_MARK_BYTES])
{
    memset(mark, 0, PS_PACK_MARK_BYTES);
    memcpy(mark, magic, sizeof magic);
    store_u32(mark + AT_VERSION, MARK_VERSION);
    store_place(place, mark);
    store_u64(mark + AT_CHECKSUM, XXH3_64bits(mark, AT_CHECKSUM));
}

/* Whether such a place can be at all. */
static bool is_possible(const ps_pack_place *p)
{
    if (p->seen.packs > PACKS_MAX || p->before.packs > PACKS_MAX ||
        p->window == 0 || p->window > PS_MAX_WINDOW)
        return false;
    if (p->seen.packs == 0 &&
        (p->last != 0 || p->newest != 0 || p->digest != p->header))
        return false;
    return p->stream > 0 ||
           (p->first_header == p->header && p->before.packs == 0);
}

ps_result ps_pack_mark_decode(const unsigned char *mark,
                              ps_pack_place *place, ps_error *err)
{
    *place = (ps_pack_place){0};
    if (memcmp(mark, magic, sizeof magic) != 0)
        return ps_fail(err, PS_ERR_MAGIC, "this is no mark of a reader");
    if (load_u64(mark + AT_CHECKSUM) != XXH3_64bits(mark, AT_CHECKSUM))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the mark is damaged: its checksum does not agree");
    if (load_u32(mark + AT_VERSION) != MARK_VERSION)
        return ps_fail(err, PS_ERR_UNSUPPORTED,
                       "the mark is of version %" PRIu32
                       ", this library knows version %d",
                       load_u32(mark + AT_VERSION), MARK_VERSION);
    if (!load_place(mark, place) || !is_possible(place) ||
        !all_zero(mark + AT_ZERO, AT_CHECKSUM - AT_ZERO))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the mark is damaged: its numbers cannot be");
    return PS_OK;
}
