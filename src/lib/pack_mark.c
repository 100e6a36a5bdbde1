/*
 * pack_mark.c - a place between two records of a pack stream, and the mark
 * that is kept of it.
 *
 * A mark is "PKSM", a version, the numbers of the place one after another,
 * zeros, and the XXH3 of all that; little-endian.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack_mark.h"

#include <inttypes.h>
#include <string.h>

#include "bytes.h"
#include "checksum.h"
#include "error.h"

#define MARK_VERSION 1
#define AT_VERSION 4
#define AT_NUMBERS 8
#define AT_CHECKSUM (PS_PACK_MARK_BYTES - 8)

/* No input has more packs: their bytes would not fit 63 bits. */
#define PACKS_MOST (UINT64_C(1) << 55)

static const unsigned char magic[4] = {'P', 'K', 'S', 'M'};

/* The numbers in their order.  Packs show but some of the totals. */
#define U64_NUMBERS(X, p)                                               \
    X((p)->first_header)                                                \
    X((p)->header)                                                      \
    X((p)->last)                                                        \
    X((p)->digest)                                                      \
    X((p)->newest)                                                      \
    X((p)->seen.packs)                                                  \
    X((p)->seen.sequences)                                              \
    X((p)->seen.tokens)                                                 \
    X((p)->seen.max_displacement)                                       \
    X((p)->before.packs)                                                \
    X((p)->before.sequences)                                            \
    X((p)->before.tokens)                                               \
    X((p)->before.input_sequences)                                      \
    X((p)->before.input_tokens)                                         \
    X((p)->before.rejected_sequences)                                   \
    X((p)->before.rejected_tokens)                                      \
    X((p)->before.truncated_sequences)                                  \
    X((p)->before.truncated_tokens)                                     \
    X((p)->before.split_sequences)                                      \
    X((p)->before.extra_pieces)                                         \
    X((p)->before.max_displacement)
#define U32_NUMBERS(X, p)                                               \
    X((p)->stream)                                                      \
    X((p)->window)                                                      \
    X((p)->seen.max_seqlen)                                             \
    X((p)->seen.max_depth)                                              \
    X((p)->seen.min_fill)                                               \
    X((p)->before.max_seqlen)                                           \
    X((p)->before.max_depth)                                            \
    X((p)->before.min_fill)

/* How many bytes they take, which leaves zeros for later versions. */
#define COUNT_8(field) +8
#define COUNT_4(field) +4
#define NUMBERS_BYTES (0 U64_NUMBERS(COUNT_8, 0) U32_NUMBERS(COUNT_4, 0))
#define AT_ZERO (AT_NUMBERS + NUMBERS_BYTES)

_Static_assert(AT_ZERO <= AT_CHECKSUM, "the numbers fit a mark");

static void store_place(const ps_pack_place *place, unsigned char *to)
{
#define STORE_U64(field)                                                \
    store_u64(to, field);                                               \
    to += 8;
#define STORE_U32(field)                                                \
    store_u32(to, field);                                               \
    to += 4;
    U64_NUMBERS(STORE_U64, place)
    U32_NUMBERS(STORE_U32, place)
#undef STORE_U64
#undef STORE_U32
}

static void load_place(const unsigned char *from, ps_pack_place *place)
{
#define LOAD_U64(field)                                                 \
    field = load_u64(from);                                             \
    from += 8;
#define LOAD_U32(field)                                                 \
    field = load_u32(from);                                             \
    from += 4;
    U64_NUMBERS(LOAD_U64, place)
    U32_NUMBERS(LOAD_U32, place)
#undef LOAD_U64
#undef LOAD_U32
}

void ps_pack_mark_encode(const ps_pack_place *place,
                         unsigned char mark[PS_PACK_MARK_BYTES])
{
    memset(mark, 0, PS_PACK_MARK_BYTES);
    memcpy(mark, magic, sizeof magic);
    store_u32(mark + AT_VERSION, MARK_VERSION);
    store_place(place, mark + AT_NUMBERS);
    store_u64(mark + AT_CHECKSUM, XXH3_64bits(mark, AT_CHECKSUM));
}

/* Whether such a place can be at all. */
static bool is_possible(const ps_pack_place *p)
{
    if (p->seen.packs > PACKS_MOST || p->before.packs > PACKS_MOST ||
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
    load_place(mark + AT_NUMBERS, place);
    if (!is_possible(place) ||
        !all_zero(mark + AT_ZERO, AT_CHECKSUM - AT_ZERO))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the mark is damaged: its numbers cannot be");
    return PS_OK;
}
