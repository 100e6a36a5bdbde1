/*
 * pack_reader_resume.c - resume reading at a mark.
 *
 * SPDX-License-Identifier: MIT
 *
 * The input either starts like the original input, with pack 0 of the first
 * stream, or it was written by a resumed packstream.  A resumed packstream
 * writes the header again, then the blocks that readers of the original output
 * may not have received.  The first block shows which case applies.
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

    place.max_displacement = r->info.max_displacement;
    ps_pack_mark_encode(&place, mark);
}

static ps_result refuse(const char *why, ps_error *err)
{
    return ps_fail(err, PS_ERR_ARGUMENT,
                   "the mark was saved for another input (%s): resume with "
                   "that input", why);
}

/* Sets the state of everything before the position from the mark. */
static void adopt(ps_pack_reader *r, const ps_pack_place *place)
{
    r->place = *place;
    r->ended = place->before;
    if (place->max_displacement > r->info.max_displacement)
        r->info.max_displacement = place->max_displacement;
}

/*
 * Skips packs up to the position.  The next pack has index `from`.  The last
 * pack skipped must be the one recorded in the mark.
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
            return refuse("the packs before the mark are missing", err);
    }
    if (pack.checksum != place->last)
        return refuse("the pack before the mark differs", err);
    return PS_OK;
}

/*
 * Seeks to the position in a complete, uncompressed file that starts like the
 * original input.
 */
static ps_result seek_place(ps_pack_reader *r, ps_pack_file *file,
                            const ps_pack_place *place, ps_error *err)
{
    ps_pack_file_at at;
    ps_result result = ps_pack_file_find(file, place->stream,
                                         place->seen.packs, &at, err);

    if (result == PS_ERR_ARGUMENT ||
        (result == PS_OK && at.before != place->before.packs))
        return refuse("the packs before the mark are missing", err);
    if (result != PS_OK)
        return result;
    if (place->stream > 0) {
        /* The first header has already been read. */
        result = ps_input_skip(r->input, at.header - r->input->taken, err);
        if (result == PS_OK)
            result = ps_pack_reader_header(r, err);
    }
    if (result != PS_OK)
        return result;
    if (r->place.header != place->header)
        return refuse("the header differs", err);
    if (place->seen.packs > 0) {
        result = ps_input_skip(r->input, at.block - r->input->taken, err);
        if (result == PS_OK)
            result = pass_to(r, at.first, place, err);
    }
    if (result == PS_OK)
        adopt(r, place);
    return result;
}

/*
 * Reads to the position in any other input that starts like the original input.
 * The mark of the reader at the position must be identical.
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
        return refuse("the input ends before the mark", err);
    if (result != PS_OK)
        return result;
    /* The original reader may itself have started in the middle. */
    if (place->index.n_blocks == PS_INDEX_UNSEEN)
        r->place.index = place->index;
    ps_pack_reader_save(r, reached);
    if (memcmp(reached, mark, sizeof reached) != 0)
        return refuse("the packs before the mark differ", err);
    return PS_OK;
}

/* True if the input is an uncompressed regular file read from its start. */
static bool is_whole_file(const ps_input *in)
{
    const off_t here = lseek(ps_input_descriptor(in), 0, SEEK_CUR);

    return ps_input_can_skip(in) && (uint64_t)here == in->taken + in->left;
}

/* Resumes in an input that starts like the original input. */
static ps_result resume_whole(ps_pack_reader *r, const ps_pack_place *place,
                              const unsigned char *mark, ps_error *err)
{
    ps_pack_file *file = NULL;
    ps_result result;

    if (r->place.header != place->first_header)
        return refuse("the first header differs", err);
    if (!is_whole_file(r->input))
        return read_to(r, place, mark, err);
    result = ps_pack_file_open(&file, ps_input_descriptor(r->input), err);
    if (result == PS_ERR_MEMORY || result == PS_ERR_IO)
        return result;
    /* A truncated or growing file has no index. */
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
                         "a reader cannot be resumed after it has read a "
                         "pack");
    if (result == PS_OK)
        result = ps_pack_reader_peek_head(r, &head, err);
    if (result != PS_OK)
        return result;
    if (head.first == 0)
        return resume_whole(r, &place, mark, err);

    /* The input starts later, with this block of the stream. */
    if (r->place.header != place.header)
        return refuse("the header differs", err);
    if (head.first > place.seen.packs) {
        (void)ps_fail(err, PS_ERR_CORRUPT,
                      "it starts with pack %" PRIu64 ", but the mark requires "
                      "the packs from %" PRIu64 " on",
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
