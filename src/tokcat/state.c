/*
 * state.c - the state of a job.
 *
 * A replay verifies both the output and the numbers of the checkpoint.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "cli/message.h"
#include "files/files.h"

#define MAGIC "\x89" "CAT\r\n\x1a\n"

/* Numbers of the checkpoint.  The LENGTHS record so far follows them. */
enum {
    HEAD_VERSION,
    HEAD_END,    /* 1 if the job has ended */
    HEAD_OUTPUT, /* RESUMABLE_RECORDS_NUMBERS numbers */
    HEAD_NUMBERS = HEAD_OUTPUT + RESUMABLE_RECORDS_NUMBERS
};

static const checkpoint_form form = {
    .program = "tokcat", .magic = MAGIC, .version = 1, .n = HEAD_NUMBERS};

int state_open(state *s, const conf *c, const char *const *names, int n)
{
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

    *s = (state){.conf = c, .out = {.output = {.fd = -1}}, .fd = -1};
    status = checkpoint_open(&s->saved, &form, &options, c->state_every);
    if (status != STATUS_OK || s->saved.bytes == NULL)
        return status;
    resumable_records_load(&s->out, s->saved.bytes + 8 * (1 + HEAD_OUTPUT));
    s->ended = checkpoint_u64(&s->saved, HEAD_END) != 0;
    s->out.lengths = checkpoint_part(&s->saved, 0);
    s->out.n_lengths = checkpoint_bytes_after(&s->saved, 0);
    /* Offset and sequences are 0 only in the first checkpoint. */
    return (s->out.position.offset > 0) == (s->out.position.sequences > 0) ||
                   s->ended
               ? STATUS_OK
               : state_file_damaged(c->state);
}

int state_open_output(state *s, records *out)
{
    const conf *c = s->conf;

    return s->saved.bytes == NULL
               ? resumable_records_begin(&s->out, out, c->state, c->resume)
               : resumable_records_reopen(&s->out, out, c->schema.framed);
}

/* Writes a checkpoint.  The output must be on disk up to s->out.position. */
static int write_state(state *s, bool ended)
{
    uint64_t numbers[HEAD_NUMBERS] = {[HEAD_VERSION] = form.version,
                                      [HEAD_END] = ended};

    resumable_records_store(&s->out, numbers + HEAD_OUTPUT);
    checkpoint_put(&s->saved, numbers, HEAD_NUMBERS);
    checkpoint_put_bytes(&s->saved, s->out.lengths, s->out.n_lengths);
    return checkpoint_write(&s->saved);
}

static int save(state *s, records *out, bool ended)
{
    const int status = resumable_records_save(&s->out, out);

    return status == STATUS_OK ? write_state(s, ended) : status;
}

int state_start(state *s, records *out)
{
    int status;

    if (s->conf->state == NULL)
        return records_start(out);
    if (s->saved.bytes == NULL) {
        status = resumable_records_fingerprint(&s->out);
        if (status == STATUS_OK)
            status = write_state(s, false);
        return status == STATUS_OK ? records_start(out) : status;
    }
    if (s->out.position.offset == 0)
        return resumable_records_resume(&s->out, out);
    status =
        resumable_records_compare(&s->out, s->saved.file.name, &out->schema);
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

static int fail_other_input(const state *s)
{
    message_error("%s: the state was saved with different input or options: "
                  "the first %" PRIu64 " records differ; remove the state and "
                  "the output to start again",
                  message_name(s->saved.file.name), s->out.position.sequences);
    return STATUS_USAGE;
}

/*
 * Verifies the replay once it has reached the position of the state.  Records
 * after this position are written.
 */
static int end_replay(state *s, records *out)
{
    const ps_token_mark *position = &s->out.position;
    int status = records_flush(out);
    ps_token_mark mark;

    if (status != STATUS_OK)
        return status;
    mark = ps_token_writer_mark(out->writer);
    if (mark.offset != position->offset || mark.tokens != position->tokens ||
        mark.digest != position->digest)
        return fail_other_input(s);
    ps_token_writer_free(out->writer);
    out->writer = NULL;
    (void)close(out->fd);
    out->fd = s->fd;
    s->fd = -1;
    s->replays = false;
    return resumable_records_resume(&s->out, out);
}

int state_put(state *s, records *out, uint32_t n_tok,
              const unsigned char *payload)
{
    const int status = records_put(out, n_tok, payload);

    if (status != STATUS_OK || s->conf->state == NULL)
        return status;
    if (s->replays)
        return out->figures.sequences == s->out.position.sequences
                   ? end_replay(s, out)
                   : STATUS_OK;
    return checkpoint_is_due(&s->saved,
                             ps_payload_bytes(&out->schema, n_tok))
               ? save(s, out, false)
               : STATUS_OK;
}

int state_finish(state *s, records *out)
{
    int status;

    if (s->conf->state == NULL)
        return records_finish(out);
    if (s->replays)
        return fail_other_input(s);
    status = records_end(out);
    if (status == STATUS_OK)
        status = save(s, out, true);
    return status == STATUS_OK ? records_close(out) : status;
}

int state_leave(state *s, records *out)
{
    const int status = state_open_output(s, out);

    return status == STATUS_OK ? resumable_records_leave(&s->out, out) : status;
}

void state_close(state *s)
{
    if (s->fd >= 0)
        files_abandon_output(s->fd);
    s->fd = -1;
    resumable_records_close(&s->out);
    checkpoint_close(&s->saved);
}
