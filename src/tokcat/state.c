/*
 * state.c - the state of a job.
 *
 * The file contains a magic, 64-bit numbers, the lengths written so far as a
 * LENGTHS record, and the XXH3-64 of everything before.  A state is untrusted
 * input: its numbers are verified against the output and against the records
 * that the replay produces.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"
#include "files/state_file.h"

#define MAGIC "\x89" "CAT\r\n\x1a\n"
#define STATE_VERSION 1

enum {
    THE_VERSION,
    THE_END,    /* 1 if the job has ended */
    THE_OFFSET, /* this and the next three: ps_token_mark of the output */
    THE_SEQUENCES,
    THE_TOKENS,
    THE_DIGEST,
    THE_BASE, /* this and the next: output_check_mark */
    THE_SAMPLES,
    THE_NUMBERS
};

#define LENGTHS_AT (8 * (1 + (size_t)THE_NUMBERS))

static uint64_t the(const state *s, int number)
{
    return load_u64(s->bytes + 8 * (1 + (size_t)number));
}

int state_open(state *s, const conf *c, const char *const *names, int n)
{
    const state_file_form form = {.program = "tokcat",
                                  .magic = MAGIC,
                                  .version = STATE_VERSION,
                                  .min_bytes = LENGTHS_AT + 8};
    const state_file_options options = {
        .name = c->state,
        .resume = c->resume,
        .max = STATE_FILE_MAX,
        .magic = MAGIC,
        .uses = {{"the output", &c->output, 1, STDOUT_FILENO},
                 {"an input", names, n, STDIN_FILENO},
                 {"the tokenizer", &c->tokenizer, c->tokenizer != NULL,
                  STDIN_FILENO}}};
    int status;

    *s = (state){.conf = c, .file = ATOMIC_FILE_CLOSED,
                 .out = {.output = {.fd = -1}}, .fd = -1};
    if (c->state == NULL)
        return STATUS_OK;
    status = state_file_open(&s->file, &options, &s->bytes, &s->n_bytes);
    if (status != STATUS_OK || s->bytes == NULL)
        return status;
    status = state_file_check_form(s->file.name, &form, s->bytes, s->n_bytes);
    if (status != STATUS_OK)
        return status;
    s->ended = the(s, THE_END) != 0;
    s->out.place = (ps_token_mark){.id = the(s, THE_SEQUENCES),
                                   .offset = the(s, THE_OFFSET),
                                   .sequences = the(s, THE_SEQUENCES),
                                   .tokens = the(s, THE_TOKENS),
                                   .digest = the(s, THE_DIGEST)};
    s->out.mark = (output_check_mark){.known = true,
                                      .base = the(s, THE_BASE),
                                      .hash = the(s, THE_SAMPLES)};
    s->out.lengths = s->bytes + LENGTHS_AT;
    s->out.n_lengths = s->n_bytes - LENGTHS_AT - 8;
    /* Only the first state has offset 0, and only it has no sequences. */
    return (s->out.place.offset > 0) == (s->out.place.sequences > 0) ||
                   s->ended
               ? STATUS_OK
               : state_file_damaged(s->file.name);
}

int state_open_output(state *s, records *out)
{
    const conf *c = s->conf;

    return s->bytes == NULL
               ? kept_records_begin(&s->out, out, c->state, c->resume)
               : kept_records_reopen(&s->out, out, c->schema.framed);
}

/* Writes the state for an output that is on disk up to s->out.place. */
static int write_state(state *s, bool ended)
{
    const ps_token_mark *place = &s->out.place;
    const uint64_t numbers[THE_NUMBERS] = {
        [THE_VERSION] = STATE_VERSION,
        [THE_END] = ended,
        [THE_OFFSET] = place->offset,
        [THE_SEQUENCES] = place->sequences,
        [THE_TOKENS] = place->tokens,
        [THE_DIGEST] = place->digest,
        [THE_BASE] = s->out.mark.base,
        [THE_SAMPLES] = s->out.mark.hash};
    const size_t n = LENGTHS_AT + s->out.n_lengths;
    unsigned char *bytes = malloc(n + 8);
    bool written;

    if (bytes == NULL)
        return message_memory();
    memcpy(bytes, MAGIC, 8);
    for (int i = 0; i < THE_NUMBERS; i++)
        store_u64(bytes + 8 * (1 + (size_t)i), numbers[i]);
    if (s->out.n_lengths > 0)
        memcpy(bytes + LENGTHS_AT, s->out.lengths, s->out.n_lengths);
    store_u64(bytes + n, XXH3_64bits(bytes, n));
    written = atomic_file_write(&s->file, bytes, n + 8);
    free(bytes);
    return written ? STATUS_OK : STATUS_FAILURE;
}

static int save(state *s, records *out, bool ended)
{
    const int status = kept_records_save(&s->out, out);

    s->written = 0;
    return status == STATUS_OK ? write_state(s, ended) : status;
}

int state_start(state *s, records *out)
{
    int status;

    if (s->conf->state == NULL)
        return records_start(out);
    if (s->bytes == NULL) {
        status = kept_records_mark(&s->out);
        if (status == STATUS_OK)
            status = write_state(s, false);
        return status == STATUS_OK ? records_start(out) : status;
    }
    if (s->out.place.offset == 0)
        return kept_records_resume(&s->out, out);
    status = kept_records_compare(&s->out, s->file.name, &out->schema);
    if (status != STATUS_OK)
        return status;
    s->fd = out->fd;
    s->replays = true;
    out->fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (out->fd < 0) {
        message_errno("/dev/null");
        return STATUS_FAILURE;
    }
    return records_start(out);
}

static int is_other(const state *s)
{
    message_error("%s: the state is of other input, or of other options: the "
                  "first %" PRIu64 " records differ; remove the state and the "
                  "output to begin again",
                  message_name(s->file.name), s->out.place.sequences);
    return STATUS_USAGE;
}

/*
 * Verifies the replay once it has reached the position of the state, and
 * continues after it.
 */
static int end_replay(state *s, records *out)
{
    const ps_token_mark *place = &s->out.place;
    int status = records_flush(out);
    ps_token_mark mark;

    if (status != STATUS_OK)
        return status;
    mark = ps_token_writer_mark(out->writer);
    if (mark.offset != place->offset || mark.tokens != place->tokens ||
        mark.digest != place->digest)
        return is_other(s);
    ps_token_writer_free(out->writer);
    out->writer = NULL;
    (void)close(out->fd);
    out->fd = s->fd;
    s->fd = -1;
    s->replays = false;
    return kept_records_resume(&s->out, out);
}

int state_put(state *s, records *out, uint32_t n_tok,
              const unsigned char *payload)
{
    const uint64_t every = s->conf->state_every;
    const int status = records_put(out, n_tok, payload);

    if (status != STATUS_OK || s->conf->state == NULL)
        return status;
    if (s->replays)
        return out->figures.sequences == s->out.place.sequences
                   ? end_replay(s, out)
                   : STATUS_OK;
    s->written +=
        every == 0 ? ps_payload_bytes(&out->schema, n_tok) : 1;
    return s->written >= (every == 0 ? STATE_FILE_EVERY : every)
               ? save(s, out, false)
               : STATUS_OK;
}

int state_finish(state *s, records *out)
{
    int status;

    if (s->conf->state == NULL)
        return records_finish(out);
    if (s->replays)
        return is_other(s);
    status = records_end(out);
    if (status == STATUS_OK)
        status = save(s, out, true);
    return status == STATUS_OK ? records_close(out) : status;
}

int state_leave(state *s, records *out)
{
    const int status = state_open_output(s, out);

    return status == STATUS_OK ? kept_records_leave(&s->out, out) : status;
}

void state_close(state *s)
{
    if (s->fd >= 0)
        files_abandon_output(s->fd);
    s->fd = -1;
    kept_records_close(&s->out);
    atomic_file_close(&s->file);
    free(s->bytes);
    s->bytes = NULL;
}
