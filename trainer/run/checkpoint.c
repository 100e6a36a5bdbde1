/*
 * checkpoint.c - the state of a training run in a file.
 *
 * A head of fixed size, settings, weights, means, means of squares, places of
 * other ranks, where they have shards of their own, and the XXH3 of all that.
 * The head is little-endian; weights and moments are as
 * this machine has them, and another one, or a build with another type of
 * numbers, refuses them.
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
#include "data/error.h"

#define LAYOUT 3 /* of the file, and of the weights in it */
#define PROBE UINT32_C(0x01020304)

/* Places in the head. */
enum {
    AT_VERSION = 8,
    AT_PROBE = 12, /* as the machine stores it */
    AT_REAL_BYTES = 16,
    AT_SETTINGS_BYTES = 20,
    AT_NUMBERS = 24,
    AT_STEPS = 32,
    AT_SEQUENCES = 40,
    AT_TOKENS = 48,
    AT_PRODUCT1 = 56,
    AT_PRODUCT2 = 64,
    AT_PLACE = 72,
    /* ...and in a place. */
    AT_EPOCH = 0,
    AT_FILE = 4,
    AT_MARK = 8,
    PLACE_BYTES = AT_MARK + PS_PACK_MARK_BYTES,
    HEAD_BYTES = AT_PLACE + PLACE_BYTES
};

static const unsigned char magic[ATOMIC_FILE_MAGIC] = "BERTckpt";

/* A file, and the digest of what was written or read so far. */
typedef struct stream {
    atomic_file *file; /* to write to */
    int fd;            /* to read from */
    XXH3_state_t *digest;
    ps_error *err; /* of reading */
} stream;

/* ---- Numbers ---- */

static void store(unsigned char *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i & 0xff);
}

static uint64_t load(const unsigned char *from, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = bytes; i-- > 0;)
        value = value << 8 | from[i];
    return value;
}

static void store_double(unsigned char *to, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    store(to, bits, 8);
}

static double load_double(const unsigned char *from)
{
    uint64_t bits = load(from, 8);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static void store_place(unsigned char *to, const feed_place *place)
{
    store(to + AT_EPOCH, place->epoch, 4);
    store(to + AT_FILE, place->file, 4);
    memcpy(to + AT_MARK, place->mark, PS_PACK_MARK_BYTES);
}

static feed_place load_place(const unsigned char *from)
{
    feed_place place = {.epoch = (uint32_t)load(from + AT_EPOCH, 4),
                        .file = (uint32_t)load(from + AT_FILE, 4)};

    memcpy(place.mark, from + AT_MARK, PS_PACK_MARK_BYTES);
    return place;
}

/* ---- The head ---- */

static void store_head(const checkpoint *c, const checkpoint_run *run,
                       unsigned char head[HEAD_BYTES])
{
    const uint32_t probe = PROBE;

    memcpy(head, magic, sizeof magic);
    store(head + AT_VERSION, LAYOUT, 4);
    memcpy(head + AT_PROBE, &probe, sizeof probe);
    store(head + AT_REAL_BYTES, sizeof(real), 4);
    store(head + AT_SETTINGS_BYTES, strlen(c->settings), 4);
    store(head + AT_NUMBERS, c->numbers, 8);
    store(head + AT_STEPS, run->steps, 8);
    store(head + AT_SEQUENCES, run->sequences, 8);
    store(head + AT_TOKENS, run->tokens, 8);
    store_double(head + AT_PRODUCT1, run->lamb.product1);
    store_double(head + AT_PRODUCT2, run->lamb.product2);
    store_place(head + AT_PLACE, &run->place);
}

static void load_head(const unsigned char *head, checkpoint_run *run)
{
    *run = (checkpoint_run){
        .steps = load(head + AT_STEPS, 8),
        .sequences = load(head + AT_SEQUENCES, 8),
        .tokens = load(head + AT_TOKENS, 8),
        .lamb = {.product1 = load_double(head + AT_PRODUCT1),
                 .product2 = load_double(head + AT_PRODUCT2)},
        .place = load_place(head + AT_PLACE)};
}

static ps_result check_head(const unsigned char *head, ps_error *err)
{
    uint32_t probe;

    memcpy(&probe, head + AT_PROBE, sizeof probe);
    if (memcmp(head, magic, sizeof magic) != 0)
        return error_set(err, PS_ERR_MAGIC, "not a checkpoint");
    if (load(head + AT_VERSION, 4) != LAYOUT)
        return error_set(err, PS_ERR_UNSUPPORTED,
                         "a checkpoint of another version");
    if (probe != PROBE || load(head + AT_REAL_BYTES, 4) != sizeof(real))
        return error_set(err, PS_ERR_UNSUPPORTED,
                         "its numbers are of another type than ours");
    if (load(head + AT_SETTINGS_BYTES, 4) >= CHECKPOINT_SETTINGS)
        return error_set(err, PS_ERR_CORRUPT, "the checkpoint is damaged");
    return PS_OK;
}

/* ---- Bytes ---- */

/* The file may be larger than memory, so it is written piece by piece. */
static bool put(stream *s, const void *bytes, size_t n)
{
    const unsigned char *from = bytes;

    (void)XXH3_64bits_update(s->digest, from, n);
    while (n > 0) {
        const ssize_t part = write(s->file->next, from, n);

        if (part < 0 && errno == EINTR)
            continue;
        /* Some devices report that they are full this way. */
        if (part == 0)
            errno = ENOSPC;
        if (part <= 0) {
            message_errno("%s", message_name(s->file->name));
            return false;
        }
        s->file->next_size += (uint64_t)part;
        from += part;
        n -= (size_t)part;
    }
    return true;
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
            return error_errno(s->err);
        if (got == 0)
            return error_set(s->err, PS_ERR_TRUNCATED, "the checkpoint is cut");
        to += got;
        n -= (size_t)got;
    }
    (void)XXH3_64bits_update(s->digest, bytes, wanted);
    return PS_OK;
}

/* False: no memory. */
static bool begin(stream *s)
{
    s->digest = XXH3_createState();
    return s->digest != NULL && XXH3_64bits_reset(s->digest) == XXH_OK;
}

/* ---- Writing ---- */

static bool is_checkpoint(const unsigned char *bytes, size_t n)
{
    return memcmp(bytes, magic, n) == 0;
}

bool checkpoint_open(atomic_file *f, const char *name)
{
    return atomic_file_open(f, name, is_checkpoint);
}

static bool put_places(stream *s, const checkpoint *c)
{
    unsigned char place[PLACE_BYTES];
    bool done = true;

    for (uint32_t i = 0; i < c->n_places && done; i++) {
        store_place(place, &c->places[i]);
        done = put(s, place, sizeof place);
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
           put(s, c->square, bytes) && put_places(s, c);
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
    store(digest, XXH3_64bits_digest(s.digest), sizeof digest);
    (void)XXH3_freeState(s.digest);
    return done && atomic_file_write(f, digest, sizeof digest);
}

/* ---- Reading ---- */

/* Tells the first word that differs. */
static ps_result other_settings(const char *saved, const char *ours,
                                ps_error *err)
{
    size_t at = 0, n, m;

    while (saved[at] == ours[at] && saved[at] != '\0')
        at++;
    if (saved[at] == '\0' && ours[at] == ' ')
        return error_set(err, PS_ERR_ARGUMENT, "saved without%s", ours + at);
    if (saved[at] == ' ' && ours[at] == '\0')
        return error_set(err, PS_ERR_ARGUMENT, "saved with%s, which is missing",
                         saved + at);
    while (at > 0 && saved[at - 1] != ' ')
        at--;
    n = strcspn(saved + at, " ");
    m = strcspn(ours + at, " ");
    return error_set(err, PS_ERR_ARGUMENT, "saved with %.*s, not with %.*s",
                     (int)n, saved + at, (int)m, ours + at);
}

static ps_result get_settings(stream *s, const checkpoint *c,
                              const unsigned char *head)
{
    char settings[CHECKPOINT_SETTINGS] = {0};
    ps_result r = get(s, settings, load(head + AT_SETTINGS_BYTES, 4));

    if (r != PS_OK)
        return r;
    for (char *p = settings; *p != '\0'; p++)
        if (*p < ' ' || *p > '~')
            return error_set(s->err, PS_ERR_CORRUPT,
                             "the checkpoint is damaged");
    if (strcmp(settings, c->settings) != 0)
        return other_settings(settings, c->settings, s->err);
    if (load(head + AT_NUMBERS, 8) != c->numbers)
        return error_set(s->err, PS_ERR_CORRUPT, "the checkpoint is damaged");
    return PS_OK;
}

static ps_result get_arrays(stream *s, const checkpoint *c)
{
    ps_result r = get(s, c->weights, c->numbers * sizeof *c->weights);

    if (r == PS_OK)
        r = get(s, c->mean, c->numbers * sizeof *c->mean);
    if (r == PS_OK)
        r = get(s, c->square, c->numbers * sizeof *c->square);
    for (uint32_t i = 0; i < c->n_places && r == PS_OK; i++) {
        unsigned char place[PLACE_BYTES];

        r = get(s, place, sizeof place);
        if (r == PS_OK)
            c->places[i] = load_place(place);
    }
    return r;
}

static ps_result get_end(stream *s)
{
    uint64_t is = XXH3_64bits_digest(s->digest);
    unsigned char digest[8], more;
    ps_result r = get(s, digest, sizeof digest);
    ssize_t got;

    if (r == PS_OK && load(digest, 8) != is)
        r = error_set(s->err, PS_ERR_CORRUPT, "the checkpoint is damaged");
    if (r != PS_OK)
        return r;
    do {
        got = read(s->fd, &more, 1);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_errno(s->err);
    if (got > 0)
        return error_set(s->err, PS_ERR_CORRUPT,
                         "something follows the checkpoint");
    return PS_OK;
}

ps_result checkpoint_read(const char *name, const checkpoint *c,
                          checkpoint_run *run, ps_error *err)
{
    unsigned char head[HEAD_BYTES];
    stream s = {.fd = open(name, O_RDONLY | O_CLOEXEC), .err = err};
    ps_result r = PS_OK;

    if (s.fd < 0)
        return errno == ENOENT ? PS_END : error_errno(err);
    if (!begin(&s))
        r = error_set(err, PS_ERR_MEMORY, "no memory for a checkpoint");
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
