/*
 * rejects.c - the stream of dropped and truncated sequences.
 *
 * It consists of framed token records with the channels of the input and two
 * more, so the sequences can be packed again with other options.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/rejects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"

/* Checks that the file can be resumed. */
static int check_name(const char *name)
{
    struct stat st;

    if (strcmp(name, "-") == 0)
        return message_usage("--rejects=- cannot be used with --state: name a "
                             "file");
    if (stat(name, &st) == 0 &&
        (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
        return message_usage("--rejects=%s: is a pipe, which --state cannot "
                             "rewind: use a regular file",
                             message_name(name));
    return STATUS_OK;
}

int rejects_plan(rejects *r, const conf *c, const ps_schema *schema,
                 const rejects_position *from)
{
    static const ps_channel extra[2] = {REJECT_CHANNELS};
    ps_schema *with = &r->schema;
    ps_error err;

    *r = (rejects){.name = c->rejects,
                   .schema = *schema,
                   .fd = -1,
                   .file = {.fd = -1},
                   .resumable = c->state != NULL && c->rejects != NULL,
                   .resumes = from != NULL};
    if (from != NULL)
        r->position = *from;
    if (r->name == NULL)
        return STATUS_OK;
    if (with->n_channels > PS_MAX_CHANNELS - 2)
        return message_usage("--rejects adds two channels, which exceeds the "
                             "limit");
    with->framed = true;
    /* Readers would refuse tokens outside the declared vocabulary. */
    if (c->drop_outside)
        with->vocab_size = 0;
    with->channels[with->n_channels++] = extra[0];
    with->channels[with->n_channels++] = extra[1];
    if (ps_schema_check(with, &err) != PS_OK)
        return message_usage("--rejects: %s", err.text);
    return r->resumable ? check_name(r->name) : STATUS_OK;
}

int rejects_open(rejects *r)
{
    if (r->name == NULL)
        return STATUS_OK;
    if (r->resumes)
        return resumable_output_reopen(&r->file, r->name, -1, &r->fd,
                                       &r->position.file,
                                       r->position.stream.offset);
    r->fd = files_open_output_alone(r->name, -1);
    return r->fd < 0 ? STATUS_FAILURE
                     : resumable_output_begin(&r->file, r->name, r->fd);
}

int rejects_check_end(const rejects *r)
{
    return r->name == NULL
               ? STATUS_OK
               : files_check_length(r->fd, r->name,
                                    r->position.file.base +
                                        r->position.stream.offset);
}

int rejects_start(rejects *r)
{
    ps_error err;
    int status = STATUS_OK;

    if (r->name == NULL)
        return STATUS_OK;
    if (r->resumes)
        status = resumable_output_cut(&r->file, r->fd,
                                      r->position.stream.offset);
    else if (!files_begin(r->fd, r->name))
        status = STATUS_FAILURE;
    if (status == STATUS_OK &&
        ps_token_writer_resume(&r->writer, r->fd, &r->schema,
                               &r->position.stream, &err) != PS_OK)
        status = message_failure(files_output_name(r->name), &err);
    return status;
}

/* Records vary in length, so the sample at the end has its default size. */
static int sync_file(rejects *r)
{
    if (!files_sync(r->fd, r->name))
        return STATUS_FAILURE;
    r->position.stream = ps_token_writer_mark(r->writer);
    return resumable_output_fingerprint(&r->file, r->position.stream.offset, 0,
                                        &r->position.file);
}

int rejects_sync(rejects *r)
{
    ps_error err;

    if (r->writer == NULL)
        return STATUS_OK;
    if (ps_token_writer_flush(r->writer, &err) != PS_OK)
        return message_failure(files_output_name(r->name), &err);
    return sync_file(r);
}

int rejects_put(rejects *r, const ps_sequence *sequence, int reason)
{
    const size_t size = sequence->payload_bytes + REJECT_EXTRA_BYTES;
    size_t n;
    ps_error err;

    if (r->name == NULL)
        return STATUS_OK;
    if (r->writer == NULL) {
        message_error("%s: cannot add a reject: the job that saved this state "
                      "is already complete", files_output_name(r->name));
        return STATUS_DATA;
    }
    if (size > r->size) {
        unsigned char *larger = realloc(r->payload, size);

        if (larger == NULL) {
            message_error("%s: out of memory", files_output_name(r->name));
            return STATUS_FAILURE;
        }
        r->payload = larger;
        r->size = size;
    }
    /* The two channels are the last of the table; lists follow them. */
    n = sequence->payload_bytes -
        (size_t)ps_payload_lists(&r->schema, sequence->n_tok,
                                 sequence->payload);
    memcpy(r->payload, sequence->payload, n);
    store_u64(r->payload + n, sequence->id);
    r->payload[n + REJECT_AT_REASON] = (unsigned char)reason;
    memcpy(r->payload + n + REJECT_EXTRA_BYTES, sequence->payload + n,
           sequence->payload_bytes - n);
    if (ps_token_writer_put(r->writer, sequence->n_tok, r->payload, &err) ==
        PS_OK)
        return STATUS_OK;
    ps_token_writer_free(r->writer);
    r->writer = NULL;
    return message_failure(files_output_name(r->name), &err);
}

int rejects_close(rejects *r, int status, bool complete)
{
    ps_error err;
    ps_result result = PS_OK;

    /* Write the header but no END, which marks the stream as incomplete. */
    if (r->writer != NULL)
        result = complete && status == STATUS_OK
                     ? ps_token_writer_finish(r->writer, &err)
                     : ps_token_writer_flush(r->writer, &err);
    if (result != PS_OK && status == STATUS_OK)
        status = message_failure(files_output_name(r->name), &err);
    else if (status == STATUS_OK && r->writer != NULL && r->resumable)
        status = sync_file(r);
    ps_token_writer_free(r->writer);
    r->writer = NULL;
    free(r->payload);
    resumable_output_close(&r->file);
    return files_end_output(r->fd, r->name, status);
}
