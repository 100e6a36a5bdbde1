/*
 * feed.c - batches out of pack streams.
 *
 * SPDX-License-Identifier: MIT
 */
#include "feed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "draw.h"
#include "fail.h"
#include "fill.h"
#include "share.h"

#define AHEAD 64 /* packs that are read before they are wanted */

struct feed {
    feed_options options;
    fill *fill;
    share *share; /* NULL: all of it is ours */
    uint32_t epoch;
    uint32_t file;
    int fd;
    ps_pack_reader *reader;
    ps_loader *loader; /* NULL until the first pack is wanted */
    bool first_known;
    ps_pack_info first; /* the header of the first stream */
};

/* ---- Files ---- */

const char *feed_name(const feed *f)
{
    const char *name = f->options.names[f->file];

    return strcmp(name, "-") == 0 ? "stdin" : name;
}

static bool is_stdin(const char *name)
{
    return strcmp(name, "-") == 0;
}

static ps_result open_file(feed *f, ps_error *err)
{
    const char *name = f->options.names[f->file];

    if (is_stdin(name)) {
        f->fd = STDIN_FILENO;
        return PS_OK;
    }
    do {
        f->fd = open(name, O_RDONLY | O_CLOEXEC);
    } while (f->fd < 0 && errno == EINTR);
    if (f->fd < 0)
        return fail_errno(err);
    return PS_OK;
}

static void close_file(feed *f)
{
    ps_loader_free(f->loader);
    f->loader = NULL;
    ps_pack_reader_free(f->reader);
    f->reader = NULL;
    if (f->fd > STDIN_FILENO)
        (void)close(f->fd);
    f->fd = -1;
}

static ps_result open_stream(feed *f, ps_error *err)
{
    ps_result r = open_file(f, err);

    if (r == PS_OK)
        r = ps_pack_reader_open(&f->reader, f->fd, err);
    if (r == PS_OK)
        r = fill_use(f->fill, ps_pack_reader_info(f->reader), err);
    if (r == PS_OK && !f->first_known) {
        f->first = *ps_pack_reader_info(f->reader);
        f->first_known = true;
    }
    return r;
}

/* The next file, or the first one again; PS_END after the last epoch. */
static ps_result next_stream(feed *f, bool *turned, ps_error *err)
{
    *turned = f->file + 1 == f->options.n_names;
    if (*turned && f->epoch + 1 == f->options.epochs)
        return PS_END;
    close_file(f);
    f->epoch += *turned;
    f->file = *turned ? 0 : f->file + 1;
    return open_stream(f, err);
}

/* ---- The feed ---- */

static ps_result check_options(const feed_options *o, ps_error *err)
{
    uint32_t pipes = 0;

    for (uint32_t i = 0; i < o->n_names; i++)
        pipes += is_stdin(o->names[i]);
    if (pipes > 1 || (pipes == 1 && o->epochs > 1))
        return fail(err, PS_ERR_ARGUMENT,
                         "standard input can be read only once");
    if (pipes == 1 && o->ranks > 1)
        return fail(err, PS_ERR_ARGUMENT,
                    "standard input is that of one rank, and all read the "
                    "packs: name a file");
    return PS_OK;
}

ps_result feed_open(feed **to, const feed_options *options, ps_error *err)
{
    feed *f = calloc(1, sizeof *f);
    ps_result r;

    *to = f;
    if (f == NULL)
        return fail(err, PS_ERR_MEMORY, "no memory for a feed");
    f->options = *options;
    f->fd = -1;
    f->fill = fill_open(options);
    if (options->ranks > 1)
        f->share = share_open(options->ranks, options->hidden);
    if (f->fill == NULL || (options->ranks > 1 && f->share == NULL))
        return fail(err, PS_ERR_MEMORY, "no memory for a feed");
    r = check_options(options, err);
    return r == PS_OK ? open_stream(f, err) : r;
}

void feed_free(feed *f)
{
    if (f == NULL)
        return;
    close_file(f);
    fill_free(f->fill);
    share_free(f->share);
    free(f);
}

const ps_pack_info *feed_info(const feed *f)
{
    return &f->first;
}

uint32_t feed_vocab(const feed *f)
{
    return fill_vocab(f->fill);
}

const bert_batch *feed_batch(const feed *f)
{
    return fill_batch(f->fill);
}

feed_counts feed_count(const feed *f)
{
    return fill_count(f->fill);
}

/* ---- Batches ---- */

/* What keys of masks begin with: each epoch masks in another way. */
static uint64_t stream_key(const feed *f, const ps_pack *pack)
{
    uint64_t key = draw_mix(f->options.seed, f->epoch);

    return draw_mix(draw_mix(key, f->file), pack->stream);
}

static bool is_full(const feed *f)
{
    feed_counts n = feed_count(f);

    return (f->options.packs > 0 && n.packs == f->options.packs) ||
           (f->options.sequences > 0 && n.sequences == f->options.sequences);
}

static ps_result check_fits(const feed *f, const ps_pack *pack, ps_error *err)
{
    uint64_t sequences = (uint64_t)feed_count(f).sequences + pack->n_seq;

    if (f->options.sequences == 0 || sequences <= f->options.sequences)
        return PS_OK;
    return fail(err, PS_ERR_ARGUMENT,
                     "pack %" PRIu64 " goes beyond a batch of %" PRIu32
                     " sequences; packs made with --flush-every=%" PRIu32
                     " do not", pack->index, f->options.sequences,
                     f->options.sequences);
}

/*
 * The next pack of the file.  A thread of the loader's reads ahead of us.
 * We take packs one by one, as a batch goes on from one file to the next.
 */
static ps_result next_pack(feed *f, ps_pack *pack, ps_error *err)
{
    const ps_loader_options options = {.packs = 1, .buffers = AHEAD};
    ps_batch batch;
    ps_result r = PS_OK;

    if (f->loader == NULL)
        r = ps_loader_open(&f->loader, f->reader, &options, err);
    if (r == PS_OK)
        r = ps_loader_next(f->loader, &batch, err);
    if (r == PS_OK)
        *pack = batch.heads[0];
    return r;
}

/* Adds the next pack, or none where an epoch ended and another begins. */
static ps_result add_pack(feed *f, bool *turned, ps_error *err)
{
    ps_pack pack;
    ps_result r = next_pack(f, &pack, err);

    while (r == PS_END) {
        r = next_stream(f, turned, err);
        if (r != PS_OK || *turned)
            return r;
        r = next_pack(f, &pack, err);
    }
    if (r == PS_OK)
        r = check_fits(f, &pack, err);
    if (r == PS_OK)
        r = fill_put(f->fill, &pack, stream_key(f, &pack), err);
    return r;
}

static ps_result keep_share(feed *f, ps_error *err)
{
    const uint32_t *ranks;
    ps_result r = share_deal(f->share, fill_batch(f->fill), &ranks, err);

    if (r == PS_OK)
        fill_keep(f->fill, ranks, f->options.rank);
    return r;
}

ps_result feed_next(feed *f, ps_error *err)
{
    ps_result r = PS_OK;
    bool turned = false;

    fill_begin(f->fill);
    while (r == PS_OK && !is_full(f) &&
           !(turned && feed_count(f).packs > 0))
        r = add_pack(f, &turned, err);
    if (r != PS_OK && (r != PS_END || feed_count(f).packs == 0))
        return r;
    fill_end(f->fill);
    return f->share != NULL ? keep_share(f, err) : PS_OK;
}

/* ---- Places ---- */

feed_place feed_save(const feed *f)
{
    feed_place place = {.epoch = f->epoch, .file = f->file};

    if (f->loader != NULL)
        ps_loader_save(f->loader, place.mark);
    else
        ps_pack_reader_save(f->reader, place.mark);
    return place;
}

ps_result feed_resume(feed *f, const feed_place *place, ps_error *err)
{
    ps_result r = PS_OK;

    if (place->file >= f->options.n_names ||
        place->epoch >= f->options.epochs)
        return fail(err, PS_ERR_ARGUMENT,
                         "there are fewer files or epochs than before");
    f->epoch = place->epoch;
    if (place->file != f->file) {
        close_file(f);
        f->file = place->file;
        r = open_stream(f, err);
    }
    if (r == PS_OK)
        r = ps_pack_reader_resume(f->reader, place->mark, err);
    return r;
}
