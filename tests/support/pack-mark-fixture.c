/*
 * pack-mark-fixture.c - shared by the tests of marks and shared readers.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-mark-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/pack_mark.h"

static int open_pipe(const bytes *b)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_true(b->size <= 65536);
    assert_int_equal(write(ends[1], b->data, b->size), b->size);
    (void)close(ends[1]);
    return ends[0];
}

int open_input(const bytes *b, input_kind kind)
{
    bytes packed;
    int fd;

    if (kind == PLAIN_FILE)
        return open_bytes(b);
    if (kind == PLAIN_PIPE)
        return open_pipe(b);
    packed = compress_packs(b, 512);
    fd = kind == ZSTD_FILE ? open_bytes(&packed) : open_pipe(&packed);
    free_bytes(&packed);
    return fd;
}

ps_pack_reader *open_packs(const bytes *b, input_kind kind, int *fd)
{
    ps_pack_reader *r;
    ps_error err;

    *fd = open_input(b, kind);
    assert_ok(ps_pack_reader_open(&r, *fd, &err), &err);
    return r;
}

void close_packs(ps_pack_reader *r, int fd)
{
    ps_pack_reader_free(r);
    (void)close(fd);
}

mark save_mark(const ps_pack_reader *r)
{
    mark m;

    memset(&m, 0xff, sizeof m);
    ps_pack_reader_save(r, m.bytes);
    return m;
}

bool is_mark(const ps_pack_reader *r, const mark *wanted)
{
    const mark here = save_mark(r);

    return memcmp(&here, wanted, sizeof here) == 0;
}

mark *read_marks(const bytes *b, const expected *e)
{
    mark *marks = regrow(NULL, ((size_t)e->n + 1) * sizeof *marks);
    int fd;
    ps_pack_reader *r = open_packs(b, PLAIN_FILE, &fd);
    ps_pack pack;
    ps_error err;

    for (uint64_t i = 0; i < e->n; i++) {
        marks[i] = save_mark(r);
        assert_ok(ps_pack_reader_next(r, &pack, &err), &err);
    }
    assert_result(ps_pack_reader_next(r, &pack, &err), PS_END, &err);
    marks[e->n] = save_mark(r);
    close_packs(r, fd);
    return marks;
}

/* The same for a reader that started in the middle of a stream. */
static bool is_late_mark(const ps_pack_reader *r, const mark *wanted)
{
    const mark here = save_mark(r);
    ps_pack_place place;
    ps_pack_place other;
    mark late;
    ps_error err;

    assert_ok(ps_pack_mark_decode(here.bytes, &place, &err), &err);
    assert_ok(ps_pack_mark_decode(wanted->bytes, &other, &err), &err);
    if (place.index.n_blocks == PS_INDEX_UNSEEN)
        other.index = place.index;
    ps_pack_mark_encode(&other, late.bytes);
    return memcmp(&here, &late, sizeof here) == 0;
}

void check_rest(ps_pack_reader *r, const expected *e, const mark *marks,
                uint64_t i, uint64_t gap)
{
    bool (*const is)(const ps_pack_reader *r, const mark *wanted) =
        gap > 0 ? is_late_mark : is_mark;
    ps_pack pack;
    ps_error err;

    assert_true(is(r, &marks[i]));
    for (; i < e->n; i++) {
        assert_ok(ps_pack_reader_next(r, &pack, &err), &err);
        pack.offset += gap;
        assert_true(is_pack(e, i, &pack));
        if (i + 1 < e->n)
            assert_true(is(r, &marks[i + 1]));
    }
    assert_result(ps_pack_reader_next(r, &pack, &err), PS_END, &err);
    assert_true(is(r, &marks[e->n]));
    assert_totals(ps_pack_reader_totals(r), &e->totals);
    assert_int_equal(ps_pack_reader_info(r)->max_displacement,
                     e->info.max_displacement);
}

given make_given(bytes b)
{
    given g = {.b = b, .e = read_whole(&b)};

    g.marks = read_marks(&g.b, &g.e);
    return g;
}

void free_given(given *g)
{
    drop_memory(g->marks);
    free_expected(&g->e);
    free_bytes(&g->b);
}

given make_streams(const uint32_t *counts, uint64_t seed)
{
    bytes b = {0};

    for (uint32_t i = 0; counts[i] > 0; i++)
        join_bytes(&b, make_pack_stream(counts[i] - 1, 4 + 3 * ((i + 1) % 3),
                                         seed + i));
    return make_given(b);
}
