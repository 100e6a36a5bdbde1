/*
 * pack_reader_resume.c - a pack reader goes on where another one was.
 *
 * Its input begins where the other one's began, with pack 0 of the first
 * stream; or a packstream that was resumed wrote it: the header again, and
 * then the blocks whose packs readers of the first output may not have got.
 * The first block tells which.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bytes.h"
#include "format/pack_header.h"
#include "stream/pack_file.h"
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

/*
 * From pack `from` of the stream, which comes next, to the place, which has
 * packs before it.  The last of them must be the one that the mark knows.
 */
static ps_result pass_to(ps_pack_reader *r, uint64_t from,
                         const ps_pack_place *place, ps_error *err)
{
    ps_pack pack = {0};

    for (; from < place->seen.packs; from++) {
        bool is_pack;
        ps_result result =
            ps_pack_reader_fetch(r, from, &pack, &is_pack, err);

        if (result != PS_OK)
            return result;
        if (!is_pack)
            return refuse("the packs before its place are not there", err);
    }
    if (pack.checksum != place->last)
        return refuse("the pack before its place is another one", err);
    return PS_OK;
}

/*
 * In a whole plain file that begins as the other one did: straight to the
 * place.
 */
static ps_result seek_place(ps_pack_reader *r, ps_pack_file *file,
                            const ps_pack_place *place, ps_error *err)
{
    ps_pack_file_at at;
    ps_error why;
    ps_result result = ps_pack_file_find(file, place->stream,
                                         place->seen.packs, &at, err);

    if (result == PS_ERR_ARGUMENT ||
        (result == PS_OK && at.before != place->before.packs))
        return refuse("the packs before its place are not there", err);
    if (result != PS_OK)
        return result;
    if (place->stream > 0) {
        /* The first header was read. */
        result = ps_input_skip(r->input, at.header - r->input->taken, err);
        if (result == PS_OK)
            result = ps_pack_reader_header(r, err);
        if (result == PS_OK &&
            ps_pack_info_compare(&r->current, &r->info, &why) != PS_OK)
            return refuse(why.text, err);
    }
    if (result == PS_OK && r->place.header != place->header)
        return refuse("the header is another one", err);
    if (result == PS_OK && place->seen.packs > 0) {
        result = ps_input_skip(r->input, at.block - r->input->taken, err);
        if (result == PS_OK)
            result = pass_to(r, at.first, place, err);
    }
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
    /* The other one may have been entered in the middle. */
    if (place->index.n_blocks == PS_INDEX_UNSEEN)
        r->place.index = place->index;
    ps_pack_reader_save(r, reached);
    if (memcmp(reached, mark, sizeof reached) != 0)
        return refuse("other packs are before its place", err);
    return PS_OK;
}

/* Whether the input is a plain regular file, from its first byte on. */
static bool is_whole_file(const ps_input *in)
{
    const off_t here = lseek(ps_input_descriptor(in), 0, SEEK_CUR);

    return ps_input_can_skip(in) && here >= 0 &&
           (uint64_t)here == in->taken + in->left;
}

/* Goes on in an input that begins as the other one did. */
static ps_result resume_whole(ps_pack_reader *r, const ps_pack_place *place,
                              const unsigned char *mark, ps_error *err)
{
    ps_pack_file *file = NULL;
    ps_result result;

    if (r->place.header != place->first_header)
        return refuse("the first header is another one", err);
    if (!is_whole_file(r->input))
        return read_to(r, place, mark, err);
    result = ps_pack_file_open(&file, ps_input_descriptor(r->input), err);
    if (result == PS_ERR_MEMORY || result == PS_ERR_IO)
        return result;
    /* A file that is cut or still grows has no index. */
    if (result != PS_OK)
        return read_to(r, place, mark, err);
    result = seek_place(r, file, place, err);
    ps_pack_file_free(file);
    return result;
}

ps_result ps_pack_reader_resume(ps_pack_reader *r, const unsigned char *mark,
                                ps_error *err)
{
    ps_pack_place place;
    ps_block_head head;
    ps_result result = ps_pack_mark_decode(mark, &place, err);

    if (result == PS_OK &&
        (r->bytes != NULL || r->input->taken != PS_PACK_HEADER_BYTES))
        result = ps_fail(err, PS_ERR_ARGUMENT,
                         "a reader cannot be resumed after it has read");
    if (result == PS_OK)
        result = ps_pack_reader_peek_head(r, &head, err);
    if (result != PS_OK)
        return result;
    if (head.first == 0)
        return resume_whole(r, &place, mark, err);

    /* The input begins later, with this block of the stream. */
    if (r->place.header != place.header)
        return refuse("the header is another one", err);
    if (head.first > place.seen.packs) {
        (void)ps_fail(err, PS_ERR_CORRUPT,
                      "it begins with pack %" PRIu64
                      ": packs are missing behind the mark, from %" PRIu64
                      " on",
                      head.first, place.seen.packs);
        return ps_blame(NULL, r->input->taken, PS_ERR_CORRUPT, err);
    }
    r->place.index.n_blocks = place.index.n_blocks = PS_INDEX_UNSEEN;
    if (head.first < place.seen.packs)
        result = pass_to(r, head.first, &place, err);
    if (result == PS_OK)
        adopt(r, &place);
    return result;
}
