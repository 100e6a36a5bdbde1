/*
 * job.c - all input files through a source to the output.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "cli/message.h"
#include "tokcat/channel_defaults.h"

static const job_source *const sources[] = {
    [FROM_IDS] = &source_ids,
    [FROM_BYTES] = &source_bytes,
    [FROM_JSONL] = &source_jsonl,
    [FROM_LLMC] = &source_llmc,
    [FROM_NANOGPT] = &source_nanogpt,
    [FROM_NPY] = &source_npy,
    [FROM_MEGATRON] = &source_megatron,
    [FROM_DATATROVE] = &source_datatrove,
    [FROM_TFRECORD] = &source_tfrecord,
};

/*
 * Before we wait for input, the records made so far go to those who wait
 * for us.
 */
static int pass_on(void *context)
{
    records *out = context;

    return records_flush(out);
}

/* ---------------------------------------------------------------------
 * For the sources
 */

int job_start(job *j, size_t number_width)
{
    if (j->out.writer != NULL)
        return STATUS_OK;
    if (j->conf->type_open && number_width > 2)
        j->out.schema.token_type = PS_U32;
    return records_start(&j->out);
}

int job_add_channel(job *j, const char *name, ps_kind kind)
{
    const known_channel *k = known_find(name);
    ps_schema *s = &j->out.schema;
    ps_channel *c = &s->channels[s->n_channels];

    if (!s->framed)
        return job_bad(j, "%s: --raw cannot keep channels; leave it out "
                       "with --ignore=%s", name, name);
    *c = (ps_channel){.type = k->type, .kind = kind,
                      .fill = known_fill(name, k->type)};
    memcpy(c->name, name, strlen(name));
    s->n_channels++;
    return STATUS_OK;
}

int job_bad(const job *j, const char *format, ...)
{
    const bool is_text = sources[j->conf->from]->line != NULL;
    char why[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (is_text)
        return text_bad(&j->in, "%s", why);
    message_error("%s: %s %" PRIu64 " at byte %" PRIu64 ": %s",
                  binary_name(&j->data), j->place.unit, j->place.number,
                  j->place.offset, why);
    return STATUS_DATA;
}

int job_empties(job *j, uint64_t n)
{
    if (j->conf->empty == EMPTY_ERROR)
        return job_bad(j, "no tokens");
    /* Headers of a few bytes can say that there are any number. */
    j->n_empty = n > UINT64_MAX - j->n_empty ? UINT64_MAX : j->n_empty + n;
    return STATUS_OK;
}

int job_empty(job *j)
{
    return job_empties(j, 1);
}

bool job_ignores(job *j, const char *key)
{
    const conf *c = j->conf;
    uint64_t found = 0;

    _Static_assert(CONF_IGNORED <= 64, "a bit for each");
    for (uint32_t i = 0; i < c->n_ignored; i++)
        if (strcmp(c->ignored[i], key) == 0)
            found |= UINT64_C(1) << i;
    j->ignored |= found;
    return found != 0;
}

uint32_t job_max_id(const job *j)
{
    const ps_schema *s = &j->out.schema;

    if (s->vocab_size != 0)
        return s->vocab_size - 1;
    return s->token_type == PS_U16 ? UINT16_MAX : UINT32_MAX;
}

uint32_t job_max_tokens(const job *j)
{
    const uint64_t fixed = ps_payload_bytes(&j->out.schema, 0);
    const uint64_t each = ps_payload_bytes(&j->out.schema, 1) - fixed;

    return (uint32_t)((PS_MAX_SEQUENCE_BYTES - fixed) / each);
}

int job_too_large(const job *j)
{
    return job_bad(j, "a sequence of more than %" PRIu32 " tokens is too "
                   "large for a record", job_max_tokens(j));
}

/* ---------------------------------------------------------------------
 * Files
 */

static int open_file(job *j, const job_source *source, const char *name)
{
    return source->open != NULL ? source->open(j, name)
                                : text_open(&j->in, name);
}

static void close_files(job *j)
{
    text_close(&j->in);
    /* These may read by way of another's descriptor. */
    for (int i = JOB_BESIDE; i > 0; i--)
        binary_close(&j->beside[i - 1]);
    binary_close(&j->data);
}

/* Reads the file that is open to its end, if it is one of lines. */
static int read_lines(job *j, const job_source *source)
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
        int status = i == 0 ? STATUS_OK : open_file(j, source, names[i]);

        if (status == STATUS_OK)
            status = source->read != NULL ? source->read(j)
                                          : read_lines(j, source);
        close_files(j);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* True if the output is no input, nor what belongs to one. */
static bool spare_inputs(const conf *c, const job_source *source,
                         const char *const *names, int n_names)
{
    if (!files_spare_inputs(c->output, names, n_names) ||
        (c->tokenizer != NULL &&
         !files_spare_input(c->output, c->tokenizer)))
        return false;
    for (int i = 0; i < n_names && source->spare != NULL; i++)
        if (!source->spare(c->output, names[i]))
            return false;
    return true;
}

/*
 * Opens the first input before the output, so that a wrong name does not
 * cost the user an old output file.
 */
static int open_both(job *j, const job_source *source,
                     const char *const *names, int n_names)
{
    int status = STATUS_FAILURE;

    if (spare_inputs(j->conf, source, names, n_names))
        status = open_file(j, source, names[0]);
    if (status == STATUS_OK)
        status = records_open(&j->out, j->conf->output,
                              source->open != NULL ? j->data.fd : j->in.fd);
    return status;
}

/* Where there was no record, there was no key either, and no mistake. */
static void warn_of_ignored(const job *j)
{
    const conf *c = j->conf;

    for (uint32_t i = 0; i < c->n_ignored; i++)
        if (j->out.figures.sequences > 0 && (j->ignored >> i & 1) == 0)
            message_warning("--ignore=%s: nothing had this name",
                            message_name(c->ignored[i]));
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
    if (status == STATUS_OK)
        warn_of_ignored(j);
    return status;
}

/* Sets what the inputs need to know before they are opened. */
static void prepare(job *j, const job_source *source)
{
    j->in = (text){.longest = source->longest, .on_wait = pass_on,
                   .context = &j->out};
    j->data = (binary){.on_wait = pass_on, .context = &j->out};
    for (int i = 0; i < JOB_BESIDE; i++)
        j->beside[i] = j->data;
}

static void release(job *j)
{
    close_files(j);
    text_free(&j->in);
    for (int i = 0; i < JOB_BESIDE; i++)
        binary_free(&j->beside[i]);
    binary_free(&j->data);
    free(j->numbers);
    records_free(&j->out);
}

int job_run(const conf *c, const char *const *names, int n_names)
{
    const job_source *source = sources[c->from];
    job j = {.conf = c, .out = records_make(&c->schema)};
    int status;

    prepare(&j, source);
    status = open_both(&j, source, names, n_names);
    if (status == STATUS_OK && !source->learns)
        status = records_start(&j.out);
    progress_start(&j.out.progress, !c->quiet);
    if (status == STATUS_OK)
        status = read_files(&j, source, names, n_names);
    if (status == STATUS_OK)
        status = finish(&j, source);
    else
        records_abandon(&j.out);
    release(&j);
    return status;
}
