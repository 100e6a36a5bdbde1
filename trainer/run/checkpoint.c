/*
 * checkpoint.c - the state of a training run in a file.
 *
 * The file consists of a header of fixed size, settings, weights, first
 * moments, second moments, the input positions of other ranks if each reads its
 * own shards, and an XXH3 digest of everything before the digest.  The header
 * is little-endian; weights and moments are in the machine's format.  A file
 * from a machine with a different number format is rejected.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "data/error.h"
#include "files/files.h"

#define LAYOUT 3 /* version of the file and of the order of weights */
#define PROBE UINT32_C(0x01020304)

/* Offsets in the header. */
enum {
    AT_VERSION = 8,
    AT_PROBE = 12, /* in the machine's byte order */
    AT_REAL_BYTES = 16,
    AT_SETTINGS_BYTES = 20,
    AT_NUMBERS = 24,
    AT_STEPS = 32,
    AT_SEQUENCES = 40,
    AT_TOKENS = 48,
    AT_PRODUCT1 = 56,
    AT_PRODUCT2 = 64,
    AT_POSITION = 72,
    /* Offsets in an input position. */
    AT_EPOCH = 0,
    AT_FILE = 4,
    AT_MARK = 8,
    POSITION_BYTES = AT_MARK + PS_PACK_MARK_BYTES,
    HEAD_BYTES = AT_POSITION + POSITION_BYTES
};

static const char magic[] = "BERTckpt";

/* A file and the digest of the bytes written or read so far. */
typedef struct stream {
    atomic_file *file; /* output */
    int fd;            /* input */
    XXH3_state_t *digest;
    ps_error *err; /* receives errors of reads */
} stream;

/* ---- Numbers ---- */

static void store_double(unsigned char *to, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    store_u64(to, bits);
}

static double load_double(const unsigned char *from)
{
    uint64_t bits = load_u64(from);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static void store_position(unsigned char *to, const tr_input_position *position)
{
    store_u32(to + AT_EPOCH, position->epoch);
    store_u32(to + AT_FILE, position->file);
    memcpy(to + AT_MARK, position->mark, PS_PACK_MARK_BYTES);
}

static tr_input_position load_position(const unsigned char *from)
{
    tr_input_position position = {.epoch = load_u32(from + AT_EPOCH),
                                  .file = load_u32(from + AT_FILE)};

    memcpy(position.mark, from + AT_MARK, PS_PACK_MARK_BYTES);
    return position;
}

/* ---- The header ---- */

static void store_head(const checkpoint *c, const checkpoint_run *run,
                       unsigned char head[HEAD_BYTES])
{
    const uint32_t probe = PROBE;

    memcpy(head, magic, TEMP_FILE_MAGIC);
    store_u32(head + AT_VERSION, LAYOUT);
    memcpy(head + AT_PROBE, &probe, sizeof probe);
    store_u32(head + AT_REAL_BYTES, sizeof(real));
    store_u32(head + AT_SETTINGS_BYTES, (uint32_t)strlen(c->settings));
    store_u64(head + AT_NUMBERS, c->numbers);
    store_u64(head + AT_STEPS, run->steps);
    store_u64(head + AT_SEQUENCES, run->sequences);
    store_u64(head + AT_TOKENS, run->tokens);
    store_double(head + AT_PRODUCT1, run->lamb.product1);
    store_double(head + AT_PRODUCT2, run->lamb.product2);
    store_position(head + AT_POSITION, &run->position);
}

static void load_head(const unsigned char *head, checkpoint_run *run)
{
    *run = (checkpoint_run){
        .steps = load_u64(head + AT_STEPS),
        .sequences = load_u64(head + AT_SEQUENCES),
        .tokens = load_u64(head + AT_TOKENS),
        .lamb = {.product1 = load_double(head + AT_PRODUCT1),
                 .product2 = load_double(head + AT_PRODUCT2)},
        .position = load_position(head + AT_POSITION)};
}

static ps_result check_head(const unsigned char *head, ps_error *err)
{
    uint32_t probe;

    memcpy(&probe, head + AT_PROBE, sizeof probe);
    if (memcmp(head, magic, TEMP_FILE_MAGIC) != 0)
        return tr_error(err, PS_ERR_MAGIC, "not a checkpoint");
    if (load_u32(head + AT_VERSION) != LAYOUT)
        return tr_error(err, PS_ERR_UNSUPPORTED,
                        "unsupported checkpoint version");
    if (probe != PROBE || load_u32(head + AT_REAL_BYTES) != sizeof(real))
        return tr_error(err, PS_ERR_UNSUPPORTED,
                        "saved by a different type of machine or build");
    if (load_u32(head + AT_SETTINGS_BYTES) >= CHECKPOINT_SETTINGS)
        return tr_error(err, PS_ERR_CORRUPT, "the checkpoint is damaged");
    return PS_OK;
}

/* ---- Bytes ---- */

/* Writes n bytes.  A single write can be shorter than requested. */
static bool put(stream *s, const void *bytes, size_t n)
{
    const int fd = s->file->next.fd;
    const bool written = files_write(fd, bytes, n);

    (void)XXH3_64bits_update(s->digest, bytes, n);
    s->file->next_size = (uint64_t)lseek(fd, 0, SEEK_CUR);
    if (!written)
        message_errno("%s", message_name(s->file->name));
    return written;
}

static ps_result get(stream *s, void *bytes, size_t n)
{
    unsigned char *to = bytes;
    size_t wanted = n;

    while (n > 0) {
        ssize_t got = read(s->fd, to, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tr_error_errno(s->err);
        if (got == 0)
            return tr_error(s->err, PS_ERR_TRUNCATED,
                            "the checkpoint is truncated");
        to += got;
        n -= (size_t)got;
    }
    (void)XXH3_64bits_update(s->digest, bytes, wanted);
    return PS_OK;
}

/* Starts a digest.  Returns false if out of memory. */
static bool begin(stream *s)
{
    s->digest = XXH3_createState();
    return s->digest != NULL && XXH3_64bits_reset(s->digest) == XXH_OK;
}

/* ---- Writing ---- */

bool checkpoint_open(atomic_file *f, const char *name)
{
    return atomic_file_open(f, name, magic);
}

static bool put_positions(stream *s, const checkpoint *c)
{
    unsigned char position[POSITION_BYTES];
    bool done = true;

    for (uint32_t i = 0; i < c->n_positions && done; i++) {
        store_position(position, &c->positions[i]);
        done = put(s, position, sizeof position);
    }
    return done;
}

static bool put_all(stream *s, const checkpoint *c, const checkpoint_run *run)
{
    const size_t bytes = c->numbers * sizeof(real);
    unsigned char head[HEAD_BYTES];

    store_head(c, run, head);
    return put(s, head, sizeof head) &&
           put(s, c->settings, strlen(c->settings)) &&
           put(s, c->weights, bytes) && put(s, c->mean, bytes) &&
           put(s, c->square, bytes) && put_positions(s, c);
}

bool checkpoint_write(atomic_file *f, const checkpoint *c,
                      const checkpoint_run *run)
{
    stream s = {.file = f};
    unsigned char digest[8];
    bool done;

    if (!begin(&s)) {
        (void)message_memory();
        return false;
    }
    done = put_all(&s, c, run);
    store_u64(digest, XXH3_64bits_digest(s.digest));
    (void)XXH3_freeState(s.digest);
    return done && atomic_file_write(f, digest, sizeof digest);
}

/* ---- Reading ---- */

/* Reports the first word that differs between two settings. */
static ps_result other_settings(const char *saved, const char *ours,
                                ps_error *err)
{
    size_t at = 0, n, m;

    while (saved[at] == ours[at] && saved[at] != '\0')
        at++;
    if (saved[at] == '\0' && ours[at] == ' ')
        return tr_error(err, PS_ERR_ARGUMENT, "saved without%s", ours + at);
    if (saved[at] == ' ' && ours[at] == '\0')
        return tr_error(err, PS_ERR_ARGUMENT, "saved with%s, which is missing",
                        saved + at);
    while (at > 0 && saved[at - 1] != ' ')
        at--;
    n = strcspn(saved + at, " ");
    m = strcspn(ours + at, " ");
    return tr_error(err, PS_ERR_ARGUMENT, "saved with %.*s, not with %.*s",
                    (int)n, saved + at, (int)m, ours + at);
}

static ps_result get_settings(stream *s, const checkpoint *c,
                              const unsigned char *head)
{
    char settings[CHECKPOINT_SETTINGS] = {0};
    ps_result r = get(s, settings, load_u32(head + AT_SETTINGS_BYTES));

    if (r != PS_OK)
        return r;
    for (char *p = settings; *p != '\0'; p++)
        if (*p < ' ' || *p > '~')
            return tr_error(s->err, PS_ERR_CORRUPT,
                            "the checkpoint is damaged");
    if (strcmp(settings, c->settings) != 0)
        return other_settings(settings, c->settings, s->err);
    if (load_u64(head + AT_NUMBERS) != c->numbers)
        return tr_error(s->err, PS_ERR_CORRUPT, "the checkpoint is damaged");
    return PS_OK;
}

static ps_result get_arrays(stream *s, const checkpoint *c)
{
    ps_result r = get(s, c->weights, c->numbers * sizeof *c->weights);

    if (r == PS_OK)
        r = get(s, c->mean, c->numbers * sizeof *c->mean);
    if (r == PS_OK)
        r = get(s, c->square, c->numbers * sizeof *c->square);
    for (uint32_t i = 0; i < c->n_positions && r == PS_OK; i++) {
        unsigned char position[POSITION_BYTES];

        r = get(s, position, sizeof position);
        if (r == PS_OK)
            c->positions[i] = load_position(position);
    }
    return r;
}

static ps_result get_end(stream *s)
{
    uint64_t is = XXH3_64bits_digest(s->digest);
    unsigned char digest[8], more;
    ps_result r = get(s, digest, sizeof digest);
    ssize_t got;

    if (r == PS_OK && load_u64(digest) != is)
        r = tr_error(s->err, PS_ERR_CORRUPT, "the checkpoint is damaged");
    if (r != PS_OK)
        return r;
    do {
        got = read(s->fd, &more, 1);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return tr_error_errno(s->err);
    if (got > 0)
        return tr_error(s->err, PS_ERR_CORRUPT,
                        "trailing bytes after the checkpoint");
    return PS_OK;
}

ps_result checkpoint_read(const char *name, const checkpoint *c,
                          checkpoint_run *run, ps_error *err)
{
    unsigned char head[HEAD_BYTES];
    stream s = {.fd = open(name, O_RDONLY | O_CLOEXEC), .err = err};
    ps_result r = PS_OK;

    if (s.fd < 0)
        return errno == ENOENT ? PS_END : tr_error_errno(err);
    if (!begin(&s))
        r = tr_error(err, PS_ERR_MEMORY, "no memory for a checkpoint");
    if (r == PS_OK)
        r = get(&s, head, sizeof head);
    if (r == PS_OK)
        r = check_head(head, err);
    if (r == PS_OK)
        r = get_settings(&s, c, head);
    if (r == PS_OK)
        r = get_arrays(&s, c);
    if (r == PS_OK)
        r = get_end(&s);
    if (r == PS_OK)
        load_head(head, run);
    (void)XXH3_freeState(s.digest);
    (void)close(s.fd);
    return r;
}
