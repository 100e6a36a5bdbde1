/*
 * pack_reader_resume.c - a pack reader goes on where another one was.
 *
 * The input that a reader is to go on in either begins where the other one's
 * began, with record 0 of the first stream, or is what a packstream that was
 * resumed writes: the header again, and then what the readers of its first
 * output may not have got.  The index of the first record tells.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "bytes.h"
#include "format/pack_header.h"
#include "format/pack_record.h"
#include "stream/pack_reader.h"

void ps_pack_reader_save(const ps_pack_reader *r,
                         unsigned char mark[PS_PACK_MARK_BYTES])
{
    ps_pack_place place = r->place;

    place.window = r->info.window;
    ps_pack_mark_encode(&place, mark);
}

static ps_result refuse(const char *why, ps_error *err)
{
    return ps_fail(err, PS_ERR_ARGUMENT,
                   "the mark belongs to another stream: %s", why);
}

static bool is_fresh(const ps_pack_reader *r)
{
    return ps_input_offset(r->input) == PS_PACK_HEADER_BYTES;
}

/* Takes the mark's word for all that is before the place. */
static void adopt(ps_pack_reader *r, const ps_pack_place *place)
{
    r->place = *place;
    r->ended = place->before;
    if (place->window > r->info.window)
        r->info.window = place->window;
}

/* ---------------------------------------------------------------------
 * To the last pack before the place, which must be the one of the mark
 */

/* Checks record `index`, the next one, and passes over it. */
static ps_result pass_pack(ps_pack_reader *r, uint64_t index,
                           uint64_t *checksum, ps_error *err)
{
    const unsigned char *bytes;
    bool is_end;
    ps_result result = ps_pack_reader_peek(r, index, &bytes, &is_end, err);

    if (result != PS_OK)
        return result;
    if (is_end || ps_record_index(bytes) != index) {
        (void)refuse("the packs before its place are not there", err);
        return ps_record_blame(index, ps_input_offset(r->input),
                               PS_ERR_ARGUMENT, err);
    }
    *checksum = load_u64(bytes);
    ps_input_take(r->input, r->info.record_bytes);
    return PS_OK;
}

/* `n` records that nobody has to look at, where they need not be read. */
static ps_result seek_records(ps_pack_reader *r, uint64_t n, uint64_t headers,
                              ps_error *err)
{
    const uint32_t size = r->info.record_bytes;

    if (n > UINT64_MAX / 2 / size)
        return refuse("no input is so long", err);
    return ps_input_skip(r->input, n * size +
                         headers * PS_PACK_HEADER_BYTES, err);
}

/* From record `from` on to the place, which has packs before it. */
static ps_result pass_to(ps_pack_reader *r, uint64_t from,
                         const ps_pack_place *place, ps_error *err)
{
    const uint64_t last = place->seen.packs - 1;
    uint64_t checksum = 0;
    ps_result result = PS_OK;

    if (ps_input_can_skip(r->input)) {
        result = seek_records(r, last - from, 0, err);
        from = last;
    }
    for (; result == PS_OK && from <= last; from++)
        result = pass_pack(r, from, &checksum, err);
    if (result == PS_OK && checksum != place->last)
        return refuse("the pack before its place is another one", err);
    return result;
}

/* ---------------------------------------------------------------------
 * In an input that begins as the other one did
 */

/* To the header of the stream, and behind it. */
static ps_result seek_stream(ps_pack_reader *r, const ps_pack_place *place,
                             ps_error *err)
{
    uint64_t ends = place->stream;
    ps_result result = seek_records(r, place->before.packs + ends, ends - 1,
                                    err);

    if (result == PS_OK)
        result = ps_pack_reader_header(r, err);
    if (result == PS_ERR_MAGIC)
        return refuse("no header stands where it has one", err);
    if (result == PS_OK && !ps_pack_info_equal(&r->info, &r->current))
        return refuse("its records are of another kind", err);
    return result;
}

static ps_result seek_place(ps_pack_reader *r, const ps_pack_place *place,
                            ps_error *err)
{
    ps_result result = PS_OK;

    if (place->stream > 0)
        result = seek_stream(r, place, err);
    if (result == PS_OK && r->place.header != place->header)
        return refuse("the header is another one", err);
    if (result == PS_OK && place->seen.packs > 0)
        result = pass_to(r, 0, place, err);
    if (result == PS_OK)
        adopt(r, place);
    return result;
}

static bool is_before(const ps_pack_place *a, const ps_pack_place *b)
{
    return a->stream < b->stream ||
           (a->stream == b->stream && a->seen.packs < b->seen.packs);
}

/* Reads all that is before the place, and arrives there with its mark. */
static ps_result read_to(ps_pack_reader *r, const ps_pack_place *place,
                         const unsigned char *mark, ps_error *err)
{
    unsigned char here[PS_PACK_MARK_BYTES];
    ps_result result = PS_OK;

    while (result == PS_OK && is_before(&r->place, place)) {
        ps_pack pack;
        bool is_pack;

        result = ps_pack_reader_step(r, &pack, &is_pack, err);
    }
    if (result == PS_END)
        return refuse("the input ends before its place", err);
    if (result != PS_OK)
        return result;
    ps_pack_reader_save(r, here);
    if (memcmp(here, mark, sizeof here) != 0)
        return refuse("other packs are before its place", err);
    return PS_OK;
}

static ps_result go_on_from_start(ps_pack_reader *r,
                                  const ps_pack_place *place,
                                  const unsigned char *mark, ps_error *err)
{
    if (r->place.header != place->first_header)
        return refuse("the first header is another one", err);
    return ps_input_can_skip(r->input) ? seek_place(r, place, err)
                                         : read_to(r, place, mark, err);
}

/* ---------------------------------------------------------------------
 * In an input that begins later, with record `first` of the stream
 */

static ps_result go_on_late(ps_pack_reader *r, uint64_t first,
                            const ps_pack_place *place, ps_error *err)
{
    ps_result result = PS_OK;

    if (r->place.header != place->header)
        return refuse("the header is another one", err);
    if (first > place->seen.packs) {
        (void)ps_fail(err, PS_ERR_CORRUPT,
                      "the first record's index is %" PRIu64
                      ": records are missing behind the mark",
                      first);
        return ps_record_blame(place->seen.packs,
                               ps_input_offset(r->input), PS_ERR_CORRUPT,
                               err);
    }
    if (first < place->seen.packs)
        result = pass_to(r, first, place, err);
    if (result == PS_OK)
        adopt(r, place);
    return result;
}

/* The index of the first record, which stays where it is. */
static ps_result look_ahead(ps_pack_reader *r, uint64_t *first, ps_error *err)
{
    const unsigned char *bytes;
    bool is_end;
    ps_result result = ps_pack_reader_peek(r, 0, &bytes, &is_end, err);

    if (result == PS_OK)
        *first = ps_record_index(bytes);
    return result;
}

ps_result ps_pack_reader_resume(ps_pack_reader *r, const unsigned char *mark,
                                ps_error *err)
{
    ps_pack_place place;
    uint64_t first;
    ps_result result = ps_pack_mark_decode(mark, &place, err);

    if (result == PS_OK && !is_fresh(r))
        result = ps_fail(err, PS_ERR_ARGUMENT,
                         "a reader cannot be resumed after it has read");
    if (result == PS_OK)
        result = look_ahead(r, &first, err);
    if (result != PS_OK)
        return result;
    return first > 0 ? go_on_late(r, first, &place, err)
                     : go_on_from_start(r, &place, mark, err);
}
