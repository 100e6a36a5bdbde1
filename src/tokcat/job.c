/*
 * job.c - all input files through a source to the output.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/job.h"

#include <inttypes.h>

#include "cli/files.h"
#include "cli/message.h"

static const job_source *source_of(const conf *c)
{
    switch (c->from) {
    case FROM_IDS:
        return &source_ids;
    case FROM_BYTES:
        return &source_bytes;
    default:
        return &source_jsonl;
    }
}

/*
 * Before we wait for input, the records made so far go to those who wait
 * for us.
 */
static int pass_on(void *context)
{
    records *out = context;

    return records_flush(out);
}

int job_empty(job *j)
{
    if (j->conf->empty == EMPTY_ERROR)
        return text_bad(&j->in, "no tokens");
    j->n_empty++;
    return STATUS_OK;
}

uint32_t job_most_id(const job *j)
{
    const ps_schema *s = &j->out.schema;

    if (s->vocab_size != 0)
        return s->vocab_size - 1;
    return s->token_type == PS_U16 ? UINT16_MAX : UINT32_MAX;
}

uint32_t job_most_tokens(const job *j)
{
    const uint64_t fixed = ps_payload_bytes(&j->out.schema, 0);
    const uint64_t each = ps_payload_bytes(&j->out.schema, 1) - fixed;

    return (uint32_t)((PS_MAX_SEQUENCE_BYTES - fixed) / each);
}

int job_too_large(const job *j)
{
    return text_bad(&j->in, "a sequence of more than %" PRIu32 " tokens is "
                    "too large for a record", job_most_tokens(j));
}

/* Reads the file that is open to its end. */
static int read_file(job *j, const job_source *source)
{
    text_line line;
    int status;

    for (;;) {
        status = text_next(&j->in, &line);
        if (status != STATUS_OK || line.bytes == NULL)
            break;
        status = source->line(j, &line);
        j->out.figures.bytes = j->in.bytes;
        if (status != STATUS_OK)
            break;
    }
    if (status == STATUS_OK && source->file_end != NULL)
        status = source->file_end(j);
    return status;
}

static int read_files(job *j, const job_source *source,
                      const char *const *names, int n_names)
{
    for (int i = 0; i < n_names; i++) {
        /* The first file is open already. */
        int status = i == 0 ? STATUS_OK : text_open(&j->in, names[i]);

        if (status == STATUS_OK)
            status = read_file(j, source);
        text_close(&j->in);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/*
 * Opens the first input before the output, so that a wrong name does not
 * cost the user an old output file.
 */
static int open_both(job *j, const char *const *names, int n_names)
{
    const conf *c = j->conf;
    int status = STATUS_FAILURE;

    if (files_spare_inputs(c->output, names, n_names) &&
        (c->tokenizer == NULL ||
         files_spare_input(c->output, c->tokenizer)))
        status = text_open(&j->in, names[0]);
    if (status == STATUS_OK)
        status = records_open(&j->out, c->output, j->in.fd);
    return status;
}

static int finish(job *j, const job_source *source)
{
    int status = STATUS_OK;

    /* No record has told what kinds of channels there are. */
    if (j->out.writer == NULL) {
        j->out.schema.n_channels = 0;
        status = records_start(&j->out);
    }
    if (status == STATUS_OK)
        status = records_finish(&j->out);
    if (status == STATUS_OK && j->n_empty > 0)
        message_warning("%" PRIu64 " empty %s%s skipped", j->n_empty,
                        source->unit, j->n_empty == 1 ? "" : "s");
    return status;
}

int job_run(const conf *c, const char *const *names, int n_names)
{
    const job_source *source = source_of(c);
    job j = {.conf = c, .out = records_make(&c->schema)};
    int status;

    j.in = (text){.longest = source->longest, .on_wait = pass_on,
                  .context = &j.out};
    status = open_both(&j, names, n_names);
    if (status == STATUS_OK && !source->learns)
        status = records_start(&j.out);
    progress_start(&j.out.progress, !c->quiet);
    if (status == STATUS_OK)
        status = read_files(&j, source, names, n_names);
    if (status == STATUS_OK)
        status = finish(&j, source);
    else
        records_abandon(&j.out);
    text_free(&j.in);
    records_free(&j.out);
    return status;
}
