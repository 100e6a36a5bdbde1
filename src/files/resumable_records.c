/*
 * resumable_records.c - token records of a job with --state.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/resumable_records.h"

#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"
#include "files/state_file.h"

/*
 * Tests for resumable_output_start: true if the output of a job that was
 * stopped before its first record can start with these bytes.
 */
static bool is_framed_start(const unsigned char *bytes, size_t n)
{
    return memcmp(bytes, "\x89TOK\r\n\x1a\n", n) == 0;
}

static bool is_raw_start(const unsigned char *bytes, size_t n)
{
    return ps_recognize(bytes, n) == NULL &&
           (n < 4 || load_u32(bytes) <= PS_MAX_SEQUENCE_BYTES / 2);
}

void resumable_records_load(resumable_records *k, const unsigned char *from)
{
    k->position = (ps_token_mark){.id = load_u64(from + 8),
                                  .offset = load_u64(from),
                                  .sequences = load_u64(from + 8),
                                  .tokens = load_u64(from + 16),
                                  .digest = load_u64(from + 24)};
    k->fingerprint = (output_fingerprint){.known = true,
                                          .base = load_u64(from + 32),
                                          .hash = load_u64(from + 40)};
}

void resumable_records_store(const resumable_records *k,
                             uint64_t numbers[RESUMABLE_RECORDS_NUMBERS])
{
    numbers[0] = k->position.offset;
    numbers[1] = k->position.sequences;
    numbers[2] = k->position.tokens;
    numbers[3] = k->position.digest;
    numbers[4] = k->fingerprint.base;
    numbers[5] = k->fingerprint.hash;
}

int resumable_records_begin(resumable_records *k, records *r, const char *state,
                            bool resume)
{
    const int status =
        resume ? state_file_check_new(state, r->name) : STATUS_OK;

    if (status != STATUS_OK)
        return status;
    r->fd = files_open_output_alone(r->name, -1);
    return r->fd < 0 ? STATUS_FAILURE
                     : resumable_output_begin(&k->output, r->name, r->fd);
}

int resumable_records_reopen(resumable_records *k, records *r, bool framed)
{
    int status;

    if (k->position.offset == 0 &&
        resumable_output_is_gone(r->name, &k->fingerprint))
        return resumable_records_begin(k, r, NULL, false);
    status = resumable_output_reopen(&k->output, r->name, -1, &r->fd,
                                     &k->fingerprint, k->position.offset);
    return status == STATUS_OK && k->position.offset == 0
               ? resumable_output_start(&k->output, r->fd,
                                        framed ? is_framed_start : is_raw_start)
               : status;
}

int resumable_records_schema(const resumable_records *k, bool framed,
                             ps_type type, ps_schema *schema)
{
    const char *name = files_output_name(k->output.name);
    ps_token_reader *reader = NULL;
    ps_error err;
    ps_result r;

    *schema = ps_schema_raw(type);
    if (!framed)
        return STATUS_OK;
    if (lseek(k->output.fd, (off_t)k->output.base, SEEK_SET) == -1) {
        message_errno("%s", name);
        return STATUS_FAILURE;
    }
    r = ps_token_reader_open(&reader, k->output.fd, type, NULL, &err);
    if (r != PS_OK)
        return message_failure(name, &err);
    *schema = *ps_token_reader_schema(reader);
    ps_token_reader_free(reader);
    return STATUS_OK;
}

int resumable_records_compare(const resumable_records *k, const char *state,
                              const ps_schema *schema)
{
    ps_schema then;
    ps_error err;
    int status;

    /* Raw records have no header to compare; the state has their format. */
    if (!schema->framed || k->position.offset == 0)
        return STATUS_OK;
    status = resumable_records_schema(k, true, schema->token_type, &then);
    if (status != STATUS_OK ||
        ps_schema_compare(&then, schema, &err) == PS_OK)
        return status;
    message_error("%s: the state was saved for different token records: %s",
                  message_name(state), err.text);
    return STATUS_USAGE;
}

int resumable_records_fingerprint(resumable_records *k)
{
    return resumable_output_fingerprint(&k->output, k->position.offset, 0,
                                        &k->fingerprint);
}

int resumable_records_resume(resumable_records *k, records *r)
{
    const int status =
        resumable_output_cut(&k->output, r->fd, k->position.offset);

    if (status != STATUS_OK)
        return status;
    return k->position.offset == 0
               ? records_start(r)
               : records_resume(r, &k->position, k->lengths, k->n_lengths);
}

int resumable_records_save(resumable_records *k, records *r)
{
    uint64_t length;
    ps_error err;
    int status = records_flush(r);

    if (status != STATUS_OK)
        return status;
    if (ps_token_writer_lengths(r->writer, &k->lengths, &k->n_lengths, &err) !=
        PS_OK)
        return message_failure(files_output_name(r->name), &err);
    k->position = ps_token_writer_mark(r->writer);
    status = resumable_records_fingerprint(k);
    if (status != STATUS_OK)
        return status;
    /* The state must not refer to output that is not on disk. */
    if (!files_sync(r->fd, r->name))
        return STATUS_FAILURE;
    status = resumable_output_length(&k->output, r->fd, &length);
    return status == STATUS_OK
               ? resumable_output_check(&k->output, r->fd, length,
                                        k->position.offset)
               : status;
}

int resumable_records_leave(const resumable_records *k, records *r)
{
    int status = files_check_length(r->fd, r->name,
                                    k->output.base + k->position.offset);

    if (status == STATUS_OK)
        status =
            resumable_output_seek_end(&k->output, r->fd, k->position.offset);
    return status == STATUS_OK ? records_close(r) : status;
}

void resumable_records_close(resumable_records *k)
{
    resumable_output_close(&k->output);
}
