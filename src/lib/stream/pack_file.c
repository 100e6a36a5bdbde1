/*
 * pack_file.c - packs of a regular file, at any place.
 *
 * A file may hold several streams, and where one starts is known only from
 * those behind it: END stands last and says how many packs are before it,
 * and all records have the size that the first header gives.  So opening a
 * file walks from its end to its beginning, one step for each stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "format/pack_header.h"
#include "format/pack_record.h"
#include "format/record_layout.h"
#include "format/totals.h"
#include "io/random_input.h"

/*
 * Heads of packs up to this size are read with all that lies between them, if
 * they are asked for one after another: it takes less time than a system call
 * for each.
 */
#define RUN_RECORD 4096

/* One of the streams of a file. */
typedef struct stream {
    uint64_t at; /* of its header */
    uint64_t packs;
    uint64_t first; /* number of its first pack in the file */
} stream;

struct ps_pack_file {
    ps_random_input *input;
    ps_pack_info info; /* of the first stream, but for the window */
    ps_totals totals;
    stream *streams;
    uint32_t n_streams;
    size_t streams_capacity;
    uint64_t next_head; /* number of the pack behind that of the last head */
};

/* The header at `at`, or what there is of it. */
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

/*
 * Reads END of a stream with the header `info`, which ends at `end`.  If
 * something else stands there, the stream has most likely been cut.
 */
static ps_result read_end(ps_pack_file *f, const ps_pack_info *info,
                          uint64_t end, ps_totals *totals, ps_error *err)
{
    const uint32_t size = f->info.record_bytes;
    const unsigned char *bytes;
    uint64_t digest;
    bool is_end = false;
    ps_result r;

    if (end >= (uint64_t)PS_PACK_HEADER_BYTES + size) {
        r = ps_random_input_read(f->input, end - size, size, &bytes, err);
        if (r != PS_OK)
            return r;
        if (ps_record_check(info, bytes, &is_end, NULL) != PS_OK)
            is_end = false;
    }
    if (!is_end)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "no whole END stands before byte %" PRIu64
                       ": the stream is cut or damaged there",
                       end);
    r = ps_end_decode(info, bytes, totals, &digest, err);
    return r == PS_OK ? r : ps_record_blame(totals->packs, end - size, r, err);
}

static ps_result add_stream(ps_pack_file *f, uint64_t at, uint64_t packs,
                            ps_error *err)
{
    stream *s;

    if (f->n_streams == PS_STREAMS_MAX)
        return ps_fail(err, PS_ERR_LIMIT,
                       "more than %" PRIu32 " streams in a file",
                       PS_STREAMS_MAX);
    s = ps_array_grow(f->streams, &f->streams_capacity, f->n_streams + 1u, 1,
                      sizeof *s);
    if (s == NULL)
        return ps_fail_memory(err);
    f->streams = s;
    s[f->n_streams++] = (stream){.at = at, .packs = packs};
    return PS_OK;
}

/*
 * Finds the stream that ends at *end, which becomes where it starts.  END
 * says where that is; the header there must agree.
 */
static ps_result find_stream(ps_pack_file *f, uint64_t *end, ps_error *err)
{
    const uint32_t size = f->info.record_bytes;
    const uint64_t behind = *end;
    ps_pack_info info = f->info;
    ps_totals totals = {0};
    ps_error why;
    uint64_t before;
    ps_result r;

    /* Only the header says which version END is of. */
    info.version_minor = UINT16_MAX;
    r = read_end(f, &info, behind, &totals, err);
    if (r != PS_OK)
        return r;
    before = behind - size - PS_PACK_HEADER_BYTES;
    if (totals.packs > before / size)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END has %" PRIu64 " packs before it, but only %"
                       PRIu64 " bytes are there",
                       totals.packs, before);

    *end = before - totals.packs * size;
    r = read_header(f, *end, &info, err);
    if (r == PS_ERR_MAGIC)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END has %" PRIu64 " packs before it, but no header "
                       "stands at byte %" PRIu64,
                       totals.packs, *end);
    if (r == PS_OK && ps_pack_info_compare(&info, &f->info, &why) != PS_OK)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the stream that starts at byte %" PRIu64
                       " cannot follow the first: %s",
                       *end, why.text);
    if (r == PS_OK)
        r = ps_totals_check(&info, &totals, err);
    if (r == PS_OK && info.window > f->info.window)
        f->info.window = info.window;

    if (r == PS_OK)
        r = read_end(f, &info, behind, &totals, err);
    if (r == PS_OK && !ps_totals_add(&f->totals, &totals))
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "the totals of the streams exceed 64 bits");
    if (r == PS_OK)
        r = add_stream(f, *end, totals.packs, err);
    return r;
}

ps_result ps_pack_file_open(ps_pack_file **file, int fd, ps_error *err)
{
    ps_pack_file *f = calloc(1, sizeof *f);
    uint64_t end = 0;
    uint64_t packs = 0;
    stream *s;
    uint32_t n;
    ps_result r;

    *file = NULL;
    if (f == NULL)
        return ps_fail_memory(err);
    r = ps_random_input_open(&f->input, fd, err);
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

    /* Turn the streams round, which were found from the last to the first. */
    s = f->streams;
    n = f->n_streams;
    for (uint32_t i = 0; i < n / 2; i++) {
        stream other = s[i];

        s[i] = s[n - 1 - i];
        s[n - 1 - i] = other;
    }
    for (uint32_t i = 0; i < n; i++) {
        s[i].first = packs;
        packs += s[i].packs;
    }
    f->next_head = UINT64_MAX;
    *file = f;
    return PS_OK;
}

void ps_pack_file_free(ps_pack_file *f)
{
    if (f == NULL)
        return;
    ps_random_input_free(f->input);
    free(f->streams);
    free(f);
}

/*
 * The stream with pack `i`: the last whose `first` is not above i.  Streams
 * without packs have the same `first` as the one behind them.
 */
static uint32_t stream_of(const ps_pack_file *f, uint64_t i)
{
    uint32_t low = 0;
    uint32_t high = f->n_streams - 1;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        if (f->streams[middle].first <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static ps_result has_changed(const stream *s, ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT,
                   "the stream at byte %" PRIu64 " has changed", s->at);
}

ps_result ps_pack_file_stream(ps_pack_file *f, uint32_t i, ps_pack_info *info,
                              ps_totals *totals, ps_error *err)
{
    const stream *s;
    ps_result r;

    if (i >= f->n_streams)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "there is no stream %" PRIu32 ", but %" PRIu32
                       " from 0 on",
                       i, f->n_streams);
    s = &f->streams[i];
    r = read_header(f, s->at, info, err);
    if (r != PS_OK)
        return r;
    /* END is checked by this header, so it must not be of larger records. */
    if (ps_pack_info_compare(info, &f->info, NULL) != PS_OK)
        return has_changed(s, err);
    r = read_end(f, info,
                 s->at + PS_PACK_HEADER_BYTES +
                 (s->packs + 1) * f->info.record_bytes,
                 totals, err);
    return r == PS_OK && totals->packs != s->packs ? has_changed(s, err) : r;
}

/* Finds pack `i`: says in *pack where it is and has to be. */
static ps_result locate(const ps_pack_file *f, uint64_t i, ps_pack *pack,
                        ps_error *err)
{
    const stream *s;

    *pack = (ps_pack){0};
    if (i >= f->totals.packs)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "there is no pack %" PRIu64 ", but %" PRIu64
                       " from 0 on",
                       i, f->totals.packs);
    s = &f->streams[stream_of(f, i)];
    pack->index = i - s->first;
    pack->stream = (uint32_t)(s - f->streams);
    pack->offset = s->at + PS_PACK_HEADER_BYTES +
                   pack->index * f->info.record_bytes;
    return PS_OK;
}

/* Whether a pack that was decoded is the one of this index. */
static ps_result check_index(const ps_pack *pack, uint64_t index,
                             ps_error *err)
{
    if (pack->index == index)
        return PS_OK;
    return ps_fail(err, PS_ERR_CORRUPT,
                   "its index is %" PRIu64
                   ": records are missing, repeated or out of order",
                   pack->index);
}

ps_result ps_pack_file_read(ps_pack_file *f, uint64_t i, ps_pack *pack,
                            ps_error *err)
{
    const unsigned char *bytes;
    ps_result r = locate(f, i, pack, err);
    const uint64_t index = pack->index;
    bool is_end;

    if (r == PS_OK)
        r = ps_random_input_read(f->input, pack->offset, f->info.record_bytes,
                                 &bytes, err);
    if (r == PS_OK)
        r = ps_record_check(&f->info, bytes, &is_end, err);
    if (r == PS_OK && is_end)
        r = ps_fail(err, PS_ERR_CORRUPT, "END stands in the place of a pack");
    if (r == PS_OK)
        r = ps_record_decode(&f->info, bytes, pack, err);
    if (r == PS_OK)
        r = check_index(pack, index, err);
    return r == PS_ERR_CORRUPT
               ? ps_record_blame(index, pack->offset, r, err) : r;
}

ps_result ps_pack_file_head(ps_pack_file *f, uint64_t i, ps_pack *pack,
                            ps_error *err)
{
    const bool goes_on = i == f->next_head;
    const unsigned char *bytes;
    ps_result r = locate(f, i, pack, err);
    const uint64_t index = pack->index;

    if (r == PS_OK)
        f->next_head = i + 1;
    if (r == PS_OK && goes_on && f->info.record_bytes <= RUN_RECORD)
        r = ps_random_input_read_run(f->input, pack->offset, PS_HEAD_BYTES,
                                     &bytes, err);
    else if (r == PS_OK)
        r = ps_random_input_read(f->input, pack->offset, PS_HEAD_BYTES,
                                 &bytes, err);
    if (r == PS_OK)
        r = ps_head_decode(&f->info, bytes, pack, err);
    if (r == PS_OK)
        r = check_index(pack, index, err);
    return r == PS_ERR_CORRUPT
               ? ps_record_blame(index, pack->offset, r, err) : r;
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
