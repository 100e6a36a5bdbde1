/*
 * records.c - write a stream of token records and show progress.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/records.h"

#include <stdlib.h>

#include "cli/message.h"
#include "files/files.h"

/* After an error, a writer can only be freed. */
static int failed(records *r, const ps_error *err)
{
    ps_token_writer_free(r->writer);
    r->writer = NULL;
    return message_failure(files_output_name(r->name), err);
}

int records_resume(records *r, const ps_token_mark *mark,
                   const unsigned char *lengths, size_t n)
{
    ps_error err;
    ps_result result =
        ps_token_writer_resume(&r->writer, r->fd, &r->schema, mark, &err);

    if (result == PS_OK)
        result = ps_token_writer_set_lengths(r->writer, lengths, n, &err);
    if (result != PS_OK)
        return failed(r, &err);
    r->figures.sequences = mark->sequences;
    r->figures.tokens = mark->tokens;
    return STATUS_OK;
}

int records_start(records *r)
{
    ps_error err;

    if (!files_begin(r->fd, r->name))
        return STATUS_FAILURE;
    return ps_token_writer_open(&r->writer, r->fd, &r->schema, &err) == PS_OK
               ? STATUS_OK
               : failed(r, &err);
}

int records_reserve(records *r, size_t bytes)
{
    size_t size = r->size < 4096 ? 4096 : r->size;
    unsigned char *payload;

    while (size < bytes)
        size *= 2;
    if (size == r->size)
        return STATUS_OK;
    payload = realloc(r->payload, size);
    if (payload == NULL) {
        message_errno("cannot allocate a sequence of %zu bytes",
                      bytes);
        return STATUS_FAILURE;
    }
    r->payload = payload;
    r->size = size;
    return STATUS_OK;
}

int records_put(records *r, uint32_t n_tok, const unsigned char *payload)
{
    ps_error err;

    if (ps_token_writer_put(r->writer, n_tok, payload, &err) != PS_OK)
        return failed(r, &err);
    r->figures.sequences++;
    r->figures.tokens += n_tok;
    if (progress_due(&r->progress))
        progress_show(&r->progress, &r->figures);
    return STATUS_OK;
}

int records_flush(records *r)
{
    ps_error err;

    if (r->writer != NULL &&
        ps_token_writer_flush(r->writer, &err) != PS_OK)
        return failed(r, &err);
    return STATUS_OK;
}

int records_end(records *r)
{
    ps_error err;
    int status = STATUS_OK;

    if (ps_token_writer_finish(r->writer, &err) != PS_OK)
        status = failed(r, &err);
    progress_end(&r->progress);
    return status;
}

int records_close(records *r)
{
    const int fd = r->fd;

    r->fd = -1;
    return files_close_output(fd, r->name) ? STATUS_OK : STATUS_FAILURE;
}

int records_finish(records *r)
{
    int status = records_end(r);

    return status == STATUS_OK ? records_close(r) : status;
}

void records_abandon(records *r)
{
    progress_end(&r->progress);
    /* An error was already reported, so this one is not printed. */
    if (r->writer != NULL &&
        ps_token_writer_flush(r->writer, NULL) != PS_OK) {
        ps_token_writer_free(r->writer);
        r->writer = NULL;
    }
    if (r->fd >= 0)
        files_abandon_output(r->fd);
    r->fd = -1;
}

void records_free(records *r)
{
    ps_token_writer_free(r->writer);
    free(r->payload);
    r->writer = NULL;
    r->payload = NULL;
}
