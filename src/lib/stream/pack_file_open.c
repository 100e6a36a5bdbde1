/*
 * pack_file_open.c - find the streams of a file of packs.
 *
 * SPDX-License-Identifier: MIT
 *
 * A file can contain several streams.  The start of a stream can be found only
 * from its end, because its length is in the trailer.  Opening a file therefore
 * finds the streams from last to first.
 */

#include "stream/pack_file_parts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "format/pack_header.h"
#include "format/totals.h"

/* Reads the header at `at`, where the file may be truncated. */
static ps_result read_header(ps_pack_file *f, uint64_t at,
                             ps_pack_info *info, ps_error *err)
{
    uint64_t left = ps_random_input_size(f->input) - at;
    size_t n = left < PS_PACK_HEADER_BYTES ? (size_t)left
                                           : PS_PACK_HEADER_BYTES;
    const unsigned char *bytes = (const unsigned char *)"";
    ps_result r = PS_OK;

    if (n > 0)
        r = ps_random_input_read(f->input, at, n, &bytes, err);
    return r == PS_OK ? ps_pack_header_read(bytes, n, info, err) : r;
}

/* Finds the start of the stream that ends at `stop`, and its END. */
static ps_result read_trailer(ps_pack_file *f, uint64_t stop,
                              ps_file_stream *s, ps_error *err)
{
    const unsigned char *bytes;
    uint64_t end_bytes;
    uint64_t stream_bytes;
    ps_result r;

    if (stop >= PS_PACK_HEADER_BYTES + PS_TRAILER_BYTES) {
        r = ps_random_input_read(f->input, stop - PS_TRAILER_BYTES,
                                 PS_TRAILER_BYTES, &bytes, err);
        if (r != PS_OK)
            return r;
        if (ps_trailer_decode(bytes, &end_bytes, &stream_bytes) &&
            stream_bytes <= stop) {
            *s = (ps_file_stream){.at = stop - stream_bytes,
                                  .end = stop - end_bytes};
            return PS_OK;
        }
    }
    return ps_fail(err, PS_ERR_TRUNCATED,
                   "no complete END before byte %" PRIu64 ": the stream is "
                   "truncated or damaged there",
                   stop);
}

/* Reads END of a stream, which ends at `stop`.  Valid until the next read. */
static ps_result read_end(ps_pack_file *f, const ps_file_stream *s,
                          uint64_t stop, const ps_pack_info *info,
                          ps_end *end, ps_error *err)
{
    const size_t size = (size_t)(stop - s->end);
    const unsigned char *bytes;
    ps_block_head head;
    ps_result r = ps_random_input_read(f->input, s->end, size, &bytes, err);

    if (r != PS_OK)
        return r;
    r = ps_block_head_decode(info, bytes, &head, err);
    if (r == PS_OK && (head.kind != PS_BLOCK_END || head.bytes != size))
        r = ps_fail(err, PS_ERR_CORRUPT, "not an END of %zu bytes",
                    size);
    if (r == PS_OK)
        r = ps_end_decode(info, bytes, &head, end, err);
    if (r == PS_OK)
        r = ps_totals_check(info, &end->totals, err);
    return r == PS_OK ? r : ps_blame(NULL, s->end, r, err);
}

static ps_result add_stream(ps_pack_file *f, const ps_file_stream *found,
                            ps_error *err)
{
    ps_file_stream *s;

    if (f->n_streams == PS_STREAMS_MAX)
        return ps_fail(err, PS_ERR_LIMIT,
                       "exceeds the limit of %" PRIu32 " streams in a file",
                       PS_STREAMS_MAX);
    s = ps_array_grow(f->streams, &f->streams_capacity, f->n_streams + 1u, 1,
                      sizeof *s);
    if (s == NULL)
        return ps_fail_memory(err);
    f->streams = s;
    s[f->n_streams++] = *found;
    return PS_OK;
}

/*
 * Checks that the packs counted by END fit the bytes before it, and that the
 * index starts with pack 0.  Otherwise the file contains only the tail of a
 * stream.
 */
static ps_result check_packs(const ps_pack_info *info, const ps_file_stream *s,
                             const ps_end *end, ps_error *err)
{
    const uint64_t bytes = s->end - s->at - PS_PACK_HEADER_BYTES;
    const uint32_t n = end->n_parts + end->n_blocks;
    ps_entry first = {0};

    if (end->totals.packs > bytes / (info->row_bytes + PS_PACK_HEAD_BYTES))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END declares %" PRIu64 " packs, which do not fit in "
                       "the %" PRIu64 " bytes before it",
                       end->totals.packs, bytes);
    if (n > 0)
        first = ps_entry_decode(end->entries);
    if ((n > 0) == (end->totals.packs > 0) && first.first == 0)
        return PS_OK;
    return ps_fail(err, PS_ERR_CORRUPT,
                   "END declares %" PRIu64 " packs, but the file starts with "
                   "pack %" PRIu64,
                   end->totals.packs, first.first);
}

/*
 * Finds the stream that ends at *end, and sets *end to its start.  The header
 * of the stream must have the same geometry as the first header.
 */
static ps_result find_stream(ps_pack_file *f, uint64_t *end, ps_error *err)
{
    const uint64_t stop = *end;
    ps_pack_info info;
    ps_end found;
    ps_error why;
    ps_file_stream s = {0};
    ps_result r = read_trailer(f, stop, &s, err);

    if (r != PS_OK)
        return r;
    *end = s.at;
    r = read_header(f, s.at, &info, err);
    if (r == PS_ERR_MAGIC)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END before byte %" PRIu64 " declares a stream from "
                       "byte %" PRIu64 ", but there is no header",
                       stop, s.at);
    if (r == PS_OK && ps_pack_info_compare(&info, &f->info, &why) != PS_OK)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the stream at byte %" PRIu64 " cannot be joined to the "
                       "first: %s",
                       s.at, why.text);
    if (r == PS_OK)
        r = read_end(f, &s, stop, &info, &found, err);
    if (r == PS_OK)
        r = check_packs(&info, &s, &found, err);
    if (r == PS_OK && !ps_totals_add(&f->totals, &found.totals))
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "the totals of the streams exceed 64 bits");
    if (r != PS_OK)
        return r;
    s.packs = found.totals.packs;
    if (info.max_displacement > f->info.max_displacement)
        f->info.max_displacement = info.max_displacement;
    if (info.depth == 0)
        info.depth = found.totals.max_depth;
    if (info.depth > f->info.depth)
        f->info.depth = info.depth;
    return add_stream(f, &s, err);
}

/*
 * Reverses the order of the streams, which were found from last to first, and
 * numbers their packs.
 */
static void turn_round(ps_pack_file *f)
{
    ps_file_stream *s = f->streams;
    const uint32_t n = f->n_streams;
    uint64_t packs = 0;

    for (uint32_t i = 0; i < n / 2; i++) {
        ps_file_stream other = s[i];

        s[i] = s[n - 1 - i];
        s[n - 1 - i] = other;
    }
    for (uint32_t i = 0; i < n; i++) {
        s[i].first = packs;
        packs += s[i].packs;
    }
}

/* Opens `source`, or `fd` if it is NULL. */
static ps_result open_any(ps_pack_file **file, int fd,
                          const ps_random_source *source, ps_error *err)
{
    ps_pack_file *f = calloc(1, sizeof *f);
    uint64_t end = 0;
    ps_result r;

    *file = NULL;
    if (f == NULL)
        return ps_fail_memory(err);
    r = source == NULL
            ? ps_random_input_open(&f->input, fd, err)
            : ps_random_input_open_source(&f->input, source, err);
    if (r == PS_OK)
        r = read_header(f, 0, &f->info, err);
    if (r == PS_OK)
        end = ps_random_input_size(f->input);
    while (r == PS_OK && end > 0)
        r = find_stream(f, &end, err);
    if (r != PS_OK) {
        ps_pack_file_free(f);
        return r;
    }
    turn_round(f);
    f->indexed = f->n_streams;
    *file = f;
    return PS_OK;
}

ps_result ps_pack_file_open(ps_pack_file **file, int fd, ps_error *err)
{
    return open_any(file, fd, NULL, err);
}

ps_result ps_pack_file_open_source(ps_pack_file **file,
                                   const ps_random_source *source,
                                   ps_error *err)
{
    return open_any(file, -1, source, err);
}

void ps_pack_file_free(ps_pack_file *f)
{
    if (f == NULL)
        return;
    ps_random_input_free(f->input);
    free(f->streams);
    free(f->end.bytes);
    free(f->listed.bytes);
    free(f->heads.bytes);
    free(f->sequences.bytes);
    free(f);
}

/* End of stream `i`: the start of the next stream, or the end of the file. */
static uint64_t stream_end(const ps_pack_file *f, uint32_t i)
{
    return i + 1 < f->n_streams ? f->streams[i + 1].at
                                : ps_random_input_size(f->input);
}

ps_result ps_pack_file_end(ps_pack_file *f, uint32_t i, ps_pack_info *info,
                           ps_end *end, ps_error *err)
{
    const ps_file_stream *s = &f->streams[i];
    ps_result r = read_header(f, s->at, info, err);

    if (r == PS_OK)
        r = read_end(f, s, stream_end(f, i), info, end, err);
    if (r != PS_OK)
        return r;
    /* If the geometry had changed, reads would use the wrong row size. */
    if (end->totals.packs != s->packs ||
        end->stream_bytes != stream_end(f, i) - s->at ||
        ps_pack_info_compare(info, &f->info, NULL) != PS_OK)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the stream at byte %" PRIu64 " has changed", s->at);
    return check_packs(info, s, end, err);
}

ps_result ps_pack_file_stream(ps_pack_file *f, uint32_t i, ps_pack_info *info,
                              ps_totals *totals, ps_error *err)
{
    ps_end end;
    ps_result r;

    if (i >= f->n_streams)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "stream %" PRIu32 " is out of range: the file has "
                       "%" PRIu32 " streams, numbered from 0",
                       i, f->n_streams);
    r = ps_pack_file_end(f, i, info, &end, err);
    if (r == PS_OK)
        *totals = end.totals;
    return r;
}

const ps_pack_info *ps_pack_file_info(const ps_pack_file *f)
{
    return &f->info;
}

uint64_t ps_pack_file_packs(const ps_pack_file *f)
{
    return f->totals.packs;
}

uint32_t ps_pack_file_streams(const ps_pack_file *f)
{
    return f->n_streams;
}

const ps_totals *ps_pack_file_totals(const ps_pack_file *f)
{
    return &f->totals;
}
