/*
 * verify.c - read back everything that an earlier job wrote before resuming.
 *
 * resumable_output.c has checked only samples of the files.  Here every byte is
 * read, and the digests in the state detect damage anywhere.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/verify.h"

#include <inttypes.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/progress.h"
#include "files/files.h"
#include "packstream/memory.h"

/* Skip records of any length; only their checksums are needed. */
#define PASS_OVER 0

/* Seeks to the start of the job's stream in the file. */
static int go_to_start(const resumable_output *o)
{
    if (lseek(o->fd, (off_t)o->base, SEEK_SET) != -1)
        return STATUS_OK;
    message_errno("%s", files_output_name(o->name));
    return STATUS_FAILURE;
}

static int fail_changed(const char *name, const char *what)
{
    message_error("%s: the %s have changed since the state was saved",
                  files_output_name(name), what);
    return STATUS_DATA;
}

static int verify_packs(const resume *r)
{
    const resumable_output *o = &r->output;
    const ps_state *state = &r->summary;
    ps_pack_reader *reader = NULL;
    progress line;
    ps_pack pack;
    ps_result result;
    ps_error err;
    int status = go_to_start(o);

    if (status != STATUS_OK)
        return status;
    result = ps_pack_reader_open(&reader, o->fd, &err);
    progress_start(&line, result == PS_OK && !r->conf->quiet);
    for (uint64_t i = 0; i < state->output_packs && result == PS_OK; i++) {
        result = ps_pack_reader_next(reader, &pack, &err);
        if (progress_due(&line))
            progress_show(&line, &(progress_figures){
                .bytes = ps_pack_reader_offset(reader), .packs = i});
    }
    if (result == PS_OK && state->finished)
        result = ps_pack_reader_next(reader, &pack, &err);
    progress_end(&line);

    if (result != PS_OK && result != PS_END)
        status = message_failure(files_output_name(o->name), &err);
    else if ((result == PS_END) != state->finished ||
             ps_pack_reader_digest(reader) != state->output_digest)
        status = fail_changed(o->name, "packs");
    ps_pack_reader_free(reader);
    return status;
}

static int verify_rejects(const rejects *left_out, const conf *c, bool finished)
{
    const resumable_output *o = &left_out->file;
    const ps_token_mark *mark = &left_out->position.stream;
    const ps_token_reader_options options = {
        .window = memory_window(c->memory), .expect_overlong = true};
    ps_token_reader *reader = NULL;
    ps_result result;
    ps_error err;
    int status = go_to_start(o);

    if (status != STATUS_OK)
        return status;
    result = ps_token_reader_open(&reader, o->fd, left_out->schema.token_type,
                                  &options, &err);
    while (result == PS_OK &&
           ps_token_reader_mark(reader).offset < mark->offset) {
        ps_sequence sequence;

        result = ps_token_reader_next(reader, PASS_OVER, &sequence, &err);
        if (result == PS_ERR_OVERLONG)
            result = ps_token_reader_skip(reader, &err);
    }
    if (result != PS_OK && result != PS_END)
        status = message_failure(files_output_name(o->name), &err);
    else if ((result == PS_END) != finished ||
             ps_token_reader_mark(reader).digest != mark->digest)
        status = fail_changed(o->name, "records");
    ps_token_reader_free(reader);
    return status;
}

int verify_outputs(const resume *r, const rejects *left_out)
{
    int status;

    if (!r->conf->verify || r->state == NULL || r->summary.blank)
        return STATUS_OK;
    if (!r->same_output || r->output.fd < 0)
        return message_usage("--verify: %s is not a file written with this "
                             "state",
                             files_output_name(r->conf->output));
    status = verify_packs(r);
    return status == STATUS_OK && left_out->name != NULL
               ? verify_rejects(left_out, r->conf, r->summary.finished)
               : status;
}
