/*
 * pack_reader_resume.c - a pack reader goes on where another one was.
 *
 * Its input begins where the other one's began, with record 0 of the first
 * stream; or a packstream that was resumed wrote it: the header again, and
 * then the packs that readers of the first output may not have got.  The
 * index of the first record tells which.
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

/* Trusts the mark for all that is before the place. */
static void adopt(ps_pack_reader *r, const ps_pack_place *place)
{
    r->place = *place;
    r->ended = place->before;
    if (place->window > r->info.window)
        r->info.window = place->window;
}

/* Skips `n` records and some headers. */
static ps_result skip_records(ps_pack_reader *r, uint64_t n, uint64_t headers,
                              ps_error *err)
{
    const uint32_t size = r->info.record_bytes;

    if (n > UINT64_MAX / 2 / size)
        return refuse("no input is so long", err);
    return ps_input_skip(r->input, n * size +
                         headers * PS_PACK_HEADER_BYTES, err);
}

/*
 * From record `from` of the stream to the place, which has packs before it.
 * The last of them must be the one that the mark knows.
 */
static ps_result pass_to(ps_pack_reader *r, uint64_t from,
                         const ps_pack_place *place, ps_error *err)
{
    const uint64_t last = place->seen.packs - 1;
    uint64_t checksum = 0;
    ps_result result = PS_OK;

    if (ps_input_can_skip(r->input)) {
        result = skip_records(r, last - from, 0, err);
        from = last;
    }
    for (; result == PS_OK && from <= last; from++) {
        const unsigned char *bytes;
        bool is_end;

        result = ps_pack_reader_peek(r, from, &bytes, &is_end, err);
        if (result != PS_OK)
            return result;
        if (is_end || ps_record_index(bytes) != from) {
            (void)refuse("the packs before its place are not there", err);
            return ps_record_blame(from, r->input->taken,
                                   PS_ERR_ARGUMENT, err);
        }
        checksum = load_u64(bytes);
        ps_input_take(r->input, r->info.record_bytes);
    }
    if (result == PS_OK && checksum != place->last)
        return refuse("the pack before its place is another one", err);
    return result;
}

/* In a plain file that begins as the other one did: straight to the place. */
static ps_result seek_place(ps_pack_reader *r, const ps_pack_place *place,
                            ps_error *err)
{
    const uint64_t ends = place->stream;
    ps_error why;
    ps_result result = PS_OK;

    if (ends > 0) {
        /* Behind the END before the stream; the first header was read. */
        result = skip_records(r, place->before.packs + ends, ends - 1, err);
        if (result == PS_OK)
            result = ps_pack_reader_header(r, err);
        if (result == PS_ERR_MAGIC)
            return refuse("no header stands where it has one", err);
        if (result == PS_OK &&
            ps_pack_info_compare(&r->current, &r->info, &why) != PS_OK)
            return refuse(why.text, err);
    }
    if (result == PS_OK && r->place.header != place->header)
        return refuse("the header is another one", err);
    if (result == PS_OK && place->seen.packs > 0)
        result = pass_to(r, 0, place, err);
    if (result == PS_OK)
        adopt(r, place);
    return result;
}

/*
 * In any other input that begins as the other one did: reads all that is
 * before the place, and must arrive there with the same mark.
 */
static ps_result read_to(ps_pack_reader *r, const ps_pack_place *place,
                         const unsigned char *mark, ps_error *err)
{
    const ps_pack_place *here = &r->place;
    unsigned char reached[PS_PACK_MARK_BYTES];
    ps_result result = PS_OK;

    while (result == PS_OK &&
           (here->stream < place->stream ||
            (here->stream == place->stream &&
             here->seen.packs < place->seen.packs))) {
        ps_pack pack;
        bool is_pack;

        result = ps_pack_reader_step(r, &pack, &is_pack, err);
    }
    if (result == PS_END)
        return refuse("the input ends before its place", err);
    if (result != PS_OK)
        return result;
    ps_pack_reader_save(r, reached);
    if (memcmp(reached, mark, sizeof reached) != 0)
        return refuse("other packs are before its place", err);
    return PS_OK;
}

ps_result ps_pack_reader_resume(ps_pack_reader *r, const unsigned char *mark,
                                ps_error *err)
{
    ps_pack_place place;
    const unsigned char *record;
    uint64_t first;
    bool is_end;
    ps_result result = ps_pack_mark_decode(mark, &place, err);

    if (result == PS_OK && r->input->taken != PS_PACK_HEADER_BYTES)
        result = ps_fail(err, PS_ERR_ARGUMENT,
                         "a reader cannot be resumed after it has read");
    if (result == PS_OK)
        result = ps_pack_reader_peek(r, 0, &record, &is_end, err);
    if (result != PS_OK)
        return result;
    first = ps_record_index(record);
    if (first == 0) {
        if (r->place.header != place.first_header)
            return refuse("the first header is another one", err);
        return ps_input_can_skip(r->input) ? seek_place(r, &place, err)
                                           : read_to(r, &place, mark, err);
    }

    /* The input begins later, with this record of the stream. */
    if (r->place.header != place.header)
        return refuse("the header is another one", err);
    if (first > place.seen.packs) {
        (void)ps_fail(err, PS_ERR_CORRUPT,
                      "the first record's index is %" PRIu64
                      ": records are missing behind the mark",
                      first);
        return ps_record_blame(place.seen.packs, r->input->taken,
                               PS_ERR_CORRUPT, err);
    }
    if (first < place.seen.packs)
        result = pass_to(r, first, &place, err);
    if (result == PS_OK)
        adopt(r, &place);
    return result;
}
