/*
 * source.c - read packs from files, one after another, for all epochs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/error.h"
#include "data/input_files.h"
#include "data/rng.h"

#define AHEAD 64 /* number of packs read ahead */

struct tr_source {
    const tr_loader_options *options;
    tr_builder *to;
    uint32_t epoch;
    _Atomic uint32_t file; /* atomic for tr_source_name in another thread */
    char **names;          /* names of all files */
    int fd;
    int quit[2]; /* pipe that tr_source_stop writes to, or -1 */
    ps_pack_reader *reader;
    ps_loader *loader; /* NULL until the first pack is requested */
};

/* ---- Files ---- */

const char *tr_source_name(const tr_source *s)
{
    const char *name = s->names[s->file];

    return tr_input_is_stdin(name) ? "stdin" : name;
}

static ps_result open_file(tr_source *s, ps_error *err)
{
    /* Do not wait for the writer of a pipe: wait_input does. */
    const int now = s->options->ahead ? O_NONBLOCK : 0;
    const char *name = s->names[s->file];

    if (tr_input_is_stdin(name)) {
        s->fd = STDIN_FILENO;
        return PS_OK;
    }
    do {
        s->fd = open(name, O_RDONLY | O_CLOEXEC | now);
    } while (s->fd < 0 && errno == EINTR);
    if (s->fd < 0 || fcntl(s->fd, F_SETFL, O_RDONLY) != 0)
        return tr_error_errno(err);
    return PS_OK;
}

static void close_file(tr_source *s)
{
    ps_loader_free(s->loader);
    s->loader = NULL;
    ps_pack_reader_free(s->reader);
    s->reader = NULL;
    if (s->fd > STDIN_FILENO)
        (void)close(s->fd);
    s->fd = -1;
}

/* Waits for data from the file, or for tr_source_stop. */
static ps_result wait_input(void *context, ps_error *err)
{
    const tr_source *s = context;
    struct pollfd both[] = {{.fd = s->quit[0], .events = POLLIN},
                            {.fd = s->fd, .events = POLLIN}};

    while (poll(both, 2, -1) < 0 && errno == EINTR)
        continue;
    if (both[0].revents != 0)
        return tr_error(err, PS_ERR_IO, "reading was stopped");
    return PS_OK;
}

static ps_result open_stream(tr_source *s, ps_error *err)
{
    ps_result r = open_file(s, err);

    if (r == PS_OK && s->options->ahead)
        r = wait_input(s, err);
    if (r == PS_OK)
        r = ps_pack_reader_open(&s->reader, s->fd, err);
    if (r == PS_OK)
        r = tr_builder_use(s->to, ps_pack_reader_info(s->reader), err);
    if (r == PS_OK && s->options->ahead)
        ps_pack_reader_on_wait(s->reader, wait_input, s);
    return r;
}

static ps_result make_names(tr_source *s, ps_error *err)
{
    const uint32_t n = s->options->n_names;
    bool made;

    s->names = calloc(n, sizeof *s->names);
    made = s->names != NULL;
    for (uint32_t i = 0; made && i < n; i++) {
        s->names[i] = tr_input_name(s->options, i, s->options->rank);
        made = s->names[i] != NULL;
    }
    return made ? PS_OK : tr_error(err, PS_ERR_MEMORY, "no memory for names");
}

ps_result tr_source_open(tr_source **to, const tr_loader_options *options,
                         tr_builder *f, ps_error *err)
{
    tr_source *s = calloc(1, sizeof *s);
    ps_result r;

    *to = NULL;
    if (s == NULL)
        return tr_error(err, PS_ERR_MEMORY, "no memory for input files");
    *s = (tr_source){.options = options,
                     .to = f,
                     .fd = -1,
                     .quit = {-1, -1}};
    r = make_names(s, err);
    if (r != PS_OK) {
        tr_source_free(s);
        return r;
    }
    *to = s;
    if (options->ahead && pipe(s->quit) != 0)
        return tr_error_errno(err);
    return open_stream(s, err);
}

void tr_source_free(tr_source *s)
{
    if (s == NULL)
        return;
    close_file(s);
    for (int i = 0; i < 2; i++)
        if (s->quit[i] >= 0)
            (void)close(s->quit[i]);
    for (uint32_t i = 0; s->names != NULL && i < s->options->n_names; i++)
        free(s->names[i]);
    free(s->names);
    free(s);
}

void tr_source_stop(tr_source *s)
{
    while (write(s->quit[1], "", 1) < 0 && errno == EINTR)
        continue;
}

/* ---- Packs ---- */

/* Key of masks, which differs between epochs. */
static uint64_t stream_key(const tr_source *s, const ps_pack *pack)
{
    uint64_t key = tr_rng_mix(s->options->seed, s->epoch);

    return tr_rng_mix(tr_rng_mix(key, s->file), pack->stream);
}

static ps_result check_fits(const tr_source *s, const ps_pack *pack,
                            uint32_t most, ps_error *err)
{
    uint64_t sequences =
        (uint64_t)tr_builder_counts(s->to).sequences + pack->n_seq;

    if (most == 0 || sequences <= most)
        return PS_OK;
    return tr_error(err, PS_ERR_ARGUMENT,
                    "pack %" PRIu64 " crosses the end of a batch of %" PRIu32
                    " sequences: make packs with --flush-every=%" PRIu32,
                    pack->index, most, most);
}

/*
 * Returns the next pack of the file.  A thread of ps_loader reads ahead, unless
 * this source already runs in a separate thread.  Packs are read one at a time,
 * because a batch may span two files.
 */
static ps_result next_pack(tr_source *s, ps_pack *pack, ps_error *err)
{
    const ps_loader_options options = {.packs = 1,
                                       .buffers = AHEAD,
                                       .no_thread = s->options->ahead};
    ps_batch batch;
    ps_result r = PS_OK;

    if (s->loader == NULL)
        r = ps_loader_open(&s->loader, s->reader, &options, err);
    if (r == PS_OK)
        r = ps_loader_next(s->loader, &batch, err);
    if (r == PS_OK)
        *pack = batch.heads[0];
    return r;
}

ps_result tr_source_add(tr_source *s, uint32_t sequences, ps_error *err)
{
    ps_pack pack;
    ps_result r = next_pack(s, &pack, err);

    while (r == PS_END && s->file + 1 < s->options->n_names) {
        close_file(s);
        s->file++;
        r = open_stream(s, err);
        if (r == PS_OK)
            r = next_pack(s, &pack, err);
    }
    if (r == PS_OK)
        r = check_fits(s, &pack, sequences, err);
    if (r == PS_OK)
        r = tr_builder_add(s->to, &pack, stream_key(s, &pack), err);
    return r;
}

ps_result tr_source_next_epoch(tr_source *s, ps_error *err)
{
    if (s->epoch + 1 == s->options->epochs)
        return PS_END;
    close_file(s);
    s->epoch++;
    s->file = 0;
    return open_stream(s, err);
}

/* ---- Input positions ---- */

tr_input_position tr_source_position(const tr_source *s)
{
    tr_input_position position = {.epoch = s->epoch, .file = s->file};

    if (s->loader != NULL)
        ps_loader_save(s->loader, position.mark);
    else
        ps_pack_reader_save(s->reader, position.mark);
    return position;
}

ps_result tr_source_resume(tr_source *s, const tr_input_position *position,
                           ps_error *err)
{
    ps_result r = PS_OK;

    if (position->file >= s->options->n_names ||
        position->epoch >= s->options->epochs)
        return tr_error(err, PS_ERR_ARGUMENT,
                        "fewer files or epochs than in the checkpoint");
    s->epoch = position->epoch;
    if (position->file != s->file) {
        close_file(s);
        s->file = position->file;
        r = open_stream(s, err);
    }
    if (r == PS_OK)
        r = ps_pack_reader_resume(s->reader, position->mark, err);
    return r;
}
