/*
 * random_input.c - random access to the uncompressed contents of a regular
 * file.
 *
 * SPDX-License-Identifier: MIT
 *
 * For an uncompressed file, the bytes of the last read are cached, and more
 * bytes are read if reads are sequential.  For a compressed file, the last
 * frame is cached.
 */

#include "io/random_input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "io/fd.h"
#include "io/seek_table.h"
#include "io/zstd_frame.h"

typedef struct buffer {
    unsigned char *bytes;
    size_t size; /* bytes allocated */
} buffer;

/* Bytes `at` to `end` - 1 of the uncompressed contents. */
typedef struct piece {
    buffer buffer;
    uint64_t at;
    uint64_t end;
} piece;

/* Consecutive frames followed by their seek table. */
typedef struct segment {
    uint64_t at;       /* offset of the first frame in the file */
    uint64_t plain_at; /* offset of its uncompressed contents */
    ps_seek_table *table;
} segment;

struct ps_random_input {
    int fd;                  /* not owned */
    ps_random_source source; /* if `read` is NULL, `fd` is read instead */
    uint64_t file_size;      /* size of the file when opened, bytes */
    uint64_t size;           /* size of the uncompressed contents, bytes */
    piece kept;              /* last bytes read, or last frame */
    ZSTD_DCtx *zstd;         /* NULL if the file is not compressed */
    buffer compressed;       /* one frame of the file, or a seek table */
    buffer joined;           /* bytes from several frames */
    segment *segments;
    uint32_t n_segments;
    size_t segments_capacity;
};

/* Ensures a capacity of `n` bytes.  Growing discards the contents. */
static ps_result reserve(buffer *b, uint64_t n, ps_error *err)
{
    if (n <= b->size)
        return PS_OK;
    free(b->bytes);
    *b = (buffer){0};
    if (n > SIZE_MAX)
        return ps_fail_memory(err);
    b->bytes = malloc((size_t)n);
    if (b->bytes == NULL)
        return ps_fail_memory(err);
    b->size = (size_t)n;
    return PS_OK;
}

static ps_result read_at(const ps_random_input *f, uint64_t at,
                         unsigned char *to, size_t n, ps_error *err)
{
    ssize_t got;

    if (f->source.read != NULL)
        return f->source.read(f->source.context, to, n, at, err);
    got = ps_read_at(f->fd, to, n, at);
    if (got < 0)
        return ps_fail_errno(err, "cannot read");
    if ((size_t)got < n)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "the file was truncated: it ends at or before byte "
                       "%" PRIu64 ", but had %" PRIu64 " bytes when opened",
                       at + (uint64_t)got, f->file_size);
    return PS_OK;
}

/*
 * Reads the `n` bytes at `offset` into a piece, and further bytes up to `most`
 * in total.  An error in the further bytes is ignored; a read that needs them
 * will report it.
 */
static ps_result read_piece(ps_random_input *f, piece *p, uint64_t offset,
                            size_t n, size_t most, ps_error *err)
{
    ssize_t got = -1;
    ps_result r;

    if (f->source.read != NULL)
        most = n;
    if (most > f->size - offset)
        most = (size_t)(f->size - offset);
    r = reserve(&p->buffer, most, err);
    p->at = p->end = offset;
    if (r == PS_OK && most > n)
        got = ps_read_at(f->fd, p->buffer.bytes, most, offset);
    if (r == PS_OK && got < (ssize_t)n) {
        r = read_at(f, offset, p->buffer.bytes, n, err);
        got = (ssize_t)n;
    }
    if (r == PS_OK)
        p->end = offset + (uint64_t)got;
    return r;
}

/* Finds the frame that contains byte `offset`, and its segment. */
static const segment *find_frame(const ps_random_input *f, uint64_t offset,
                                 ps_seek_frame *frame)
{
    const segment *s = f->segments;
    uint32_t low = 0;
    uint32_t high = f->n_segments - 1;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        if (s[middle].plain_at <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    s += low;
    *frame = ps_seek_table_find(s->table, offset - s->plain_at);
    return s;
}

/* Decompresses the frame that contains byte `offset`. */
static ps_result read_frame(ps_random_input *f, uint64_t offset,
                            ps_error *err)
{
    ps_seek_frame frame;
    const segment *s = find_frame(f, offset, &frame);
    ps_error why;
    ps_result r;

    f->kept.at = f->kept.end = 0;
    r = reserve(&f->compressed, frame.bytes, err);
    if (r == PS_OK)
        r = reserve(&f->kept.buffer, frame.plain, err);
    if (r == PS_OK)
        r = read_at(f, s->at + frame.at, f->compressed.bytes, frame.bytes,
                    err);
    if (r != PS_OK)
        return r;
    r = ps_decompress_frame(f->zstd, f->compressed.bytes, frame.bytes,
                            f->kept.buffer.bytes, frame.plain, &why);
    if (r == PS_ERR_MEMORY)
        return ps_fail_memory(err);
    if (r != PS_OK)
        return ps_fail(err, r,
                       "the zstd frame at byte %" PRIu64 " of the file: %s",
                       s->at + frame.at, why.text);
    f->kept.at = s->plain_at + frame.plain_at;
    f->kept.end = f->kept.at + frame.plain;
    return PS_OK;
}

/*
 * Collects bytes that span several frames, the first of which is cached.  Files
 * written by packstream do not need this, but other programs can start frames
 * anywhere.
 */
static ps_result join(ps_random_input *f, uint64_t offset, size_t n,
                      const unsigned char **bytes, ps_error *err)
{
    ps_result r = reserve(&f->joined, n, err);
    size_t done = 0;

    while (r == PS_OK && done < n) {
        uint64_t at = offset + done;

        if (at >= f->kept.end)
            r = read_frame(f, at, err);
        if (r == PS_OK) {
            uint64_t there = f->kept.end - at;
            size_t m = there < n - done ? (size_t)there : n - done;

            memcpy(f->joined.bytes + done,
                   f->kept.buffer.bytes + (size_t)(at - f->kept.at), m);
            done += m;
        }
    }
    *bytes = f->joined.bytes;
    return r;
}

static bool has(const piece *p, uint64_t offset, size_t n)
{
    return offset >= p->at && offset <= p->end && n <= p->end - offset;
}

static ps_result read_compressed(ps_random_input *f, uint64_t offset, size_t n,
                                 const unsigned char **bytes, ps_error *err)
{
    ps_result r = PS_OK;

    if (!has(&f->kept, offset, 1))
        r = read_frame(f, offset, err);
    if (r != PS_OK)
        return r;
    if (!has(&f->kept, offset, n))
        return join(f, offset, n, bytes, err);
    *bytes = f->kept.buffer.bytes + (size_t)(offset - f->kept.at);
    return PS_OK;
}

ps_result ps_random_input_read(ps_random_input *f, uint64_t offset, size_t n,
                               const unsigned char **bytes, ps_error *err)
{
    const bool goes_on = f->kept.at < f->kept.end && f->kept.end == offset;
    size_t most = n;
    ps_result r = PS_OK;

    if (f->zstd != NULL)
        return read_compressed(f, offset, n, bytes, err);
    /* Sequential reads are likely to continue. */
    if (goes_on && n > 0 && n < PS_IO_BYTES)
        most = PS_IO_BYTES / n * n;
    if (!has(&f->kept, offset, n))
        r = read_piece(f, &f->kept, offset, n, most, err);
    if (r == PS_OK)
        *bytes = f->kept.buffer.bytes + (size_t)(offset - f->kept.at);
    return r;
}

/*
 * Reads the seek table that ends at *end, and sets *end to the start of its
 * frames.
 */
static ps_result read_table(ps_random_input *f, uint64_t *end, ps_error *err)
{
    unsigned char footer[PS_SEEK_FOOTER_BYTES];
    ps_seek_table *table;
    segment *s;
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
                       "no seek table ends at byte %" PRIu64 ": the file is "
                       "truncated or was compressed without one: decompress "
                       "it with zstd -d first",
                       *end);
    if (r == PS_OK)
        r = reserve(&f->compressed, n, err);
    if (r == PS_OK)
        r = read_at(f, *end - n, f->compressed.bytes, (size_t)n, err);
    if (r == PS_OK)
        r = ps_seek_table_decode(&table, f->compressed.bytes, n, *end, err);
    if (r != PS_OK)
        return r;
    *end -= n + table->end.at;

    if (f->n_segments == PS_STREAMS_MAX) {
        ps_seek_table_free(table);
        return ps_fail(err, PS_ERR_LIMIT, "exceeds the limit of %" PRIu32 " "
                       "seek tables", PS_STREAMS_MAX);
    }
    s = ps_array_grow(f->segments, &f->segments_capacity, f->n_segments + 1u,
                      1, sizeof *s);
    if (s == NULL) {
        ps_seek_table_free(table);
        return ps_fail_memory(err);
    }
    f->segments = s;
    s[f->n_segments++] = (segment){.at = *end, .table = table};
    return PS_OK;
}

/* Reads all seek tables, starting with the last. */
static ps_result open_compressed(ps_random_input *f, ps_error *err)
{
    uint64_t end = f->file_size;
    ps_result r = PS_OK;
    segment *s;
    uint32_t n;

    f->zstd = ZSTD_createDCtx();
    if (f->zstd == NULL)
        return ps_fail_memory(err);
    while (r == PS_OK && end > 0)
        r = read_table(f, &end, err);
    if (r != PS_OK)
        return r;
    s = f->segments;
    n = f->n_segments;
    for (uint32_t i = 0; i < n / 2; i++) {
        segment other = s[i];

        s[i] = s[n - 1 - i];
        s[n - 1 - i] = other;
    }
    f->size = 0;
    for (uint32_t i = 0; i < n; i++) {
        s[i].plain_at = f->size;
        f->size += s[i].table->end.plain_at;
    }
    /* A table can be much larger than any frame. */
    free(f->compressed.bytes);
    f->compressed = (buffer){0};
    return PS_OK;
}

/* Returns the size of a regular file, in bytes. */
static ps_result get_size(int fd, uint64_t *size, ps_error *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return ps_fail_errno(err, "cannot stat");
    if (!S_ISREG(st.st_mode))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "not a regular file: random access needs one");
    *size = (uint64_t)st.st_size;
    return PS_OK;
}

static ps_result open_file(ps_random_input *f, ps_error *err)
{
    unsigned char magic[4];
    ps_result r;

    f->size = f->file_size;
    if (f->size < sizeof magic)
        return PS_OK;
    r = read_at(f, 0, magic, sizeof magic, err);
    if (r == PS_OK && ps_is_frame_magic(magic))
        r = open_compressed(f, err);
    return r;
}

/* Opens `source` if it has a read hook, otherwise `fd`. */
static ps_result open_any(ps_random_input **file, int fd,
                          const ps_random_source *source, ps_error *err)
{
    ps_random_input *f = calloc(1, sizeof *f);
    ps_result r;

    *file = NULL;
    if (f == NULL)
        return ps_fail_memory(err);
    f->fd = fd;
    f->source = *source;
    f->file_size = source->size;
    r = open_file(f, err);
    if (r != PS_OK) {
        ps_random_input_free(f);
        return r;
    }
    *file = f;
    return PS_OK;
}

ps_result ps_random_input_open(ps_random_input **file, int fd, ps_error *err)
{
    ps_random_source source = {0};
    ps_result r = get_size(fd, &source.size, err);

    *file = NULL;
    return r == PS_OK ? open_any(file, fd, &source, err) : r;
}

ps_result ps_random_input_open_source(ps_random_input **file,
                                      const ps_random_source *source,
                                      ps_error *err)
{
    return open_any(file, -1, source, err);
}

void ps_random_input_extent(const ps_random_input *f, uint64_t *offset,
                            uint64_t *n)
{
    ps_seek_frame frame;
    const segment *s;
    uint64_t last = *offset + *n - 1;

    if (f->zstd == NULL)
        return;
    s = find_frame(f, *offset, &frame);
    *offset = s->at + frame.at;
    s = find_frame(f, last, &frame);
    *n = s->at + frame.at + frame.bytes - *offset;
}

bool ps_random_input_is_compressed(const ps_random_input *f)
{
    return f->zstd != NULL;
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
    (void)ZSTD_freeDCtx(f->zstd);
    free(f->kept.buffer.bytes);
    free(f->compressed.bytes);
    free(f->joined.bytes);
    free(f);
}
