/*
 * random_input.c - the bytes of a regular file at any place, as they are
 * without compression.
 *
 * Of a plain file a run of bytes is kept, longer when they are asked for one
 * after another; of a compressed one the frame that was unpacked last.
 *
 * SPDX-License-Identifier: MIT
 */

#include "io/random_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "io/fd.h"
#include "io/seek_table.h"
#include "io/zstd_frame.h"

/* Memory that is made larger, never kept in part. */
typedef struct room {
    unsigned char *bytes;
    size_t size;
} room;

/* Frames that have a seek table behind them. */
typedef struct segment {
    uint64_t at;       /* of the first frame in the file */
    uint64_t plain_at; /* of its bytes when unpacked */
    ps_seek_table *table;
} segment;

struct ps_random_input {
    int fd;
    uint64_t file_size;
    uint64_t size; /* without compression */
    room kept;     /* the bytes from `kept_at` to `kept_end` */
    uint64_t kept_at;
    uint64_t kept_end;
    ps_decompressor *decompressor; /* NULL: a plain file */
    room packed;             /* a frame of the file */
    room joined;             /* bytes of several frames */
    segment *segments;
    uint32_t n_segments;
};

/* The bytes that were in it are gone. */
static ps_result make_room(room *r, uint64_t n, ps_error *err)
{
    if (n <= r->size)
        return PS_OK;
    free(r->bytes);
    *r = (room){0};
    if (n > SIZE_MAX)
        return ps_fail_memory(err);
    r->bytes = malloc((size_t)n);
    if (r->bytes == NULL)
        return ps_fail_memory(err);
    r->size = (size_t)n;
    return PS_OK;
}

/* pread(2), completed and restarted. */
static ps_result read_at(const ps_random_input *f, uint64_t at,
                         unsigned char *to, size_t n, ps_error *err)
{
    while (n > 0) {
        ssize_t got = pread(f->fd, to, n, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ps_fail_errno(err, "cannot read");
        if (got == 0)
            return ps_fail(err, PS_ERR_TRUNCATED,
                           "the file ends at byte %" PRIu64
                           ", it had %" PRIu64 " when it was opened",
                           at, f->file_size);
        to += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return PS_OK;
}

/* ---------------------------------------------------------------------
 * Plain files
 */

/*
 * How much to read for `n` bytes.  Who goes on behind what was read last
 * will want what follows, too.
 */
static size_t how_much(const ps_random_input *f, uint64_t offset, size_t n)
{
    bool goes_on = f->kept_at < f->kept_end && f->kept_end == offset;
    size_t more = n;

    if (goes_on && n > 0 && n < PS_IO_BYTES)
        more = PS_IO_BYTES / n * n;
    if (more > f->size - offset)
        more = (size_t)(f->size - offset);
    return more;
}

static ps_result read_plain(ps_random_input *f, uint64_t offset, size_t n,
                            ps_error *err)
{
    size_t more = how_much(f, offset, n);
    ps_result r = make_room(&f->kept, more, err);

    f->kept_at = f->kept_end = offset;
    if (r == PS_OK)
        r = read_at(f, offset, f->kept.bytes, more, err);
    if (r == PS_OK)
        f->kept_end = offset + more;
    return r;
}

/* ---------------------------------------------------------------------
 * Compressed files
 */

/* Puts the place of a frame before a message that names none. */
static ps_result at_frame(const segment *s, const ps_seek_frame *frame,
                          ps_result code, ps_error *err)
{
    char why[160];

    if (err == NULL || code == PS_ERR_MEMORY)
        return code;
    memcpy(why, err->text, sizeof why);
    why[sizeof why - 1] = '\0';
    return ps_fail(err, code,
                   "the zstd frame at byte %" PRIu64 " of the file: %s",
                   s->at + frame->at, why);
}

/* Unpacks the frame that holds byte `offset`. */
static ps_result unpack(ps_random_input *f, uint64_t offset, ps_error *err)
{
    const segment *s = f->segments;
    uint32_t low = 0;
    uint32_t high = f->n_segments - 1;
    ps_seek_frame frame;
    ps_result r;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        if (s[middle].plain_at <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    s += low;
    frame = ps_seek_table_find(s->table, offset - s->plain_at);
    f->kept_at = f->kept_end = 0;
    r = make_room(&f->packed, frame.bytes, err);
    if (r == PS_OK)
        r = make_room(&f->kept, frame.plain, err);
    if (r == PS_OK)
        r = read_at(f, s->at + frame.at, f->packed.bytes, frame.bytes, err);
    if (r != PS_OK)
        return r;
    r = ps_decompress_frame(f->decompressor, f->packed.bytes, frame.bytes,
                            f->kept.bytes, frame.plain, err);
    if (r != PS_OK)
        return at_frame(s, &frame, r, err);
    f->kept_at = s->plain_at + frame.plain_at;
    f->kept_end = f->kept_at + frame.plain;
    return PS_OK;
}

/*
 * Collects bytes that lie in several frames.  What packstream writes never
 * needs it, but other programs cut where they like.
 */
static ps_result join(ps_random_input *f, uint64_t offset, size_t n,
                      const unsigned char **bytes, ps_error *err)
{
    ps_result r = make_room(&f->joined, n, err);
    size_t done = 0;

    while (r == PS_OK && done < n) {
        uint64_t at = offset + done;

        if (at < f->kept_at || at >= f->kept_end)
            r = unpack(f, at, err);
        if (r == PS_OK) {
            uint64_t there = f->kept_end - at;
            size_t m = there < n - done ? (size_t)there : n - done;

            memcpy(f->joined.bytes + done,
                   f->kept.bytes + (size_t)(at - f->kept_at), m);
            done += m;
        }
    }
    *bytes = f->joined.bytes;
    return r;
}

static bool is_kept(const ps_random_input *f, uint64_t offset, size_t n)
{
    return offset >= f->kept_at && offset <= f->kept_end &&
           n <= f->kept_end - offset;
}

ps_result ps_random_input_read(ps_random_input *f, uint64_t offset, size_t n,
                               const unsigned char **bytes, ps_error *err)
{
    ps_result r = PS_OK;

    if (f->decompressor == NULL && !is_kept(f, offset, n))
        r = read_plain(f, offset, n, err);
    if (f->decompressor != NULL && !is_kept(f, offset, 1))
        r = unpack(f, offset, err);
    if (r != PS_OK)
        return r;
    if (!is_kept(f, offset, n))
        return join(f, offset, n, bytes, err);
    *bytes = f->kept.bytes + (size_t)(offset - f->kept_at);
    return PS_OK;
}

/* ---------------------------------------------------------------------
 * Opening
 */

/* A segment more; the array doubles whenever their number is a power of 2. */
static ps_result add_segment(ps_random_input *f, uint64_t at,
                             ps_seek_table *table, ps_error *err)
{
    uint32_t n = f->n_segments;
    segment *s = f->segments;

    if (n == PS_STREAMS_MAX) {
        ps_seek_table_free(table);
        return ps_fail(err, PS_ERR_LIMIT, "more than %" PRIu32
                       " seek tables", PS_STREAMS_MAX);
    }
    if ((n & (n - 1)) == 0)
        s = realloc(s, (n == 0 ? 1 : 2 * (size_t)n) * sizeof *s);
    if (s == NULL) {
        ps_seek_table_free(table);
        return ps_fail_memory(err);
    }
    f->segments = s;
    s[f->n_segments++] = (segment){.at = at, .table = table};
    return PS_OK;
}

/* Reads the table that ends at *end, which becomes where its frames start. */
static ps_result read_table(ps_random_input *f, uint64_t *end, ps_error *err)
{
    unsigned char footer[PS_SEEK_FOOTER_BYTES];
    ps_seek_table *table;
    uint64_t n;
    ps_result r = PS_ERR_UNSUPPORTED;

    if (*end >= sizeof footer) {
        r = read_at(f, *end - sizeof footer, footer, sizeof footer, err);
        if (r != PS_OK)
            return r;
        r = ps_seek_footer_decode(footer, *end, &n, err);
    }
    if (*end < sizeof footer || !ps_is_seek_footer(footer))
        return ps_fail(err, PS_ERR_UNSUPPORTED,
                       "no seek table ends at byte %" PRIu64
                       ": it was cut, or was not made seekable; what zstd "
                       "-d makes of it can be read at any place",
                       *end);
    if (r == PS_OK)
        r = make_room(&f->packed, n, err);
    if (r == PS_OK)
        r = read_at(f, *end - n, f->packed.bytes, (size_t)n, err);
    if (r == PS_OK)
        r = ps_seek_table_decode(&table, f->packed.bytes, n, *end, err);
    if (r != PS_OK)
        return r;
    *end -= n + ps_seek_table_bytes(table);
    return add_segment(f, *end, table, err);
}

/* The tables were found from the end on. */
static void put_in_order(ps_random_input *f)
{
    segment *s = f->segments;
    uint32_t n = f->n_segments;

    for (uint32_t i = 0; i < n / 2; i++) {
        segment other = s[i];

        s[i] = s[n - 1 - i];
        s[n - 1 - i] = other;
    }
    f->size = 0;
    for (uint32_t i = 0; i < n; i++) {
        s[i].plain_at = f->size;
        f->size += ps_seek_table_plain(s[i].table);
    }
}

static ps_result open_compressed(ps_random_input *f, ps_error *err)
{
    uint64_t end = f->file_size;
    ps_result r = ps_decompressor_open(&f->decompressor, err);

    while (r == PS_OK && end > 0)
        r = read_table(f, &end, err);
    if (r == PS_OK)
        put_in_order(f);
    /* A table may have been large; no frame needs as much. */
    free(f->packed.bytes);
    f->packed = (room){0};
    return r;
}

static ps_result open_file(ps_random_input *f, ps_error *err)
{
    unsigned char magic[4];
    struct stat st;
    ps_result r;

    if (fstat(f->fd, &st) != 0)
        return ps_fail_errno(err, "cannot look at the file");
    if (!S_ISREG(st.st_mode))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "only a regular file can be read at any place");
    f->file_size = f->size = (uint64_t)st.st_size;
    if (f->size < sizeof magic)
        return PS_OK;
    r = read_at(f, 0, magic, sizeof magic, err);
    if (r == PS_OK && ps_is_frame_magic(magic))
        r = open_compressed(f, err);
    return r;
}

ps_result ps_random_input_open(ps_random_input **file, int fd, ps_error *err)
{
    ps_random_input *f = calloc(1, sizeof *f);
    ps_result r;

    *file = NULL;
    if (f == NULL)
        return ps_fail_memory(err);
    f->fd = fd;
    r = open_file(f, err);
    if (r != PS_OK) {
        ps_random_input_free(f);
        return r;
    }
    *file = f;
    return PS_OK;
}

uint64_t ps_random_input_size(const ps_random_input *f)
{
    return f->size;
}

void ps_random_input_free(ps_random_input *f)
{
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < f->n_segments; i++)
        ps_seek_table_free(f->segments[i].table);
    free(f->segments);
    ps_decompressor_free(f->decompressor);
    free(f->kept.bytes);
    free(f->packed.bytes);
    free(f->joined.bytes);
    free(f);
}
