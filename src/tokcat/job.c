/*
 * job.c - pass all input files through the reader of their form to the output.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/job.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/message.h"
#include "files/file_set.h"
#include "files/files.h"
#include "tokcat/reader.h"

static const form_reader *const form_readers[] = {
    [FROM_IDS] = &reader_ids,
    [FROM_BYTES] = &reader_bytes,
    [FROM_JSONL] = &reader_jsonl,
    [FROM_LLMC] = &reader_llmc,
    [FROM_NANOGPT] = &reader_nanogpt,
    [FROM_NPY] = &reader_npy,
    [FROM_MEGATRON] = &reader_megatron,
    [FROM_DATATROVE] = &reader_datatrove,
    [FROM_TFRECORD] = &reader_tfrecord,
};

/* Flushes before a wait for input, since the next program may need records. */
static int pass_on(void *context)
{
    records *out = context;

    return records_flush(out);
}

/* Checks that the output is neither an input nor a companion of one. */
static int check_output(const conf *c, const form_reader *form,
                        const char *const *names, int n_names)
{
    int status = files_check_inputs(c->output, names, n_names);

    if (status == STATUS_OK && c->tokenizer != NULL)
        status = file_set_check_input(c->output, c->tokenizer);
    for (int i = 0; status == STATUS_OK && i < n_names; i++) {
        const size_t cut = form->cut != NULL ? form->cut(names[i]) : 0;

        for (int k = 0;
             status == STATUS_OK && k < 2 && form->endings[k] != NULL; k++) {
            char *beside = input_name_beside(names[i], cut,
                                             form->endings[k]);

            status = beside == NULL ? STATUS_FAILURE
                                    : files_check_input(c->output, beside);
            free(beside);
        }
    }
    return status;
}

/* Ends the stream.  Warns about skipped sequences and unused --ignore. */
static int finish(reader *r, const form_reader *form)
{
    const conf *c = r->conf;
    int status = STATUS_OK;

    /* If there are no records, the kinds of the channels are unknown. */
    if (r->out.writer == NULL) {
        r->out.schema.n_channels = 0;
        status = state_start(&r->state, &r->out);
    }
    if (status == STATUS_OK)
        status = state_finish(&r->state, &r->out);
    if (status != STATUS_OK)
        return status;

    if (r->n_empty > 0)
        message_warning("%" PRIu64 " empty %s%s skipped", r->n_empty,
                        form->unit, r->n_empty == 1 ? "" : "s");
    if (r->n_padding > 0)
        message_warning("%" PRIu64 " padding token%s removed (attention_mask "
                        "is 0)", r->n_padding,
                        r->n_padding == 1 ? "" : "s");
    /* If there are no records, the input had no keys to ignore. */
    for (uint32_t i = 0; i < c->n_ignored; i++)
        if (r->out.figures.sequences > 0 && (r->ignored >> i & 1) == 0)
            message_warning("--ignore=%s: no key or channel has this name",
                            message_name(c->ignored[i]));
    return STATUS_OK;
}

/*
 * Opens the output.  With --state it is resumable; otherwise it gets its name
 * once it is complete.
 */
static int open_output(reader *r, file_set *set, const char *const *names,
                       int n_names)
{
    const conf *c = r->conf;

    if (c->state != NULL)
        return state_open_output(&r->state, &r->out);
    r->out.fd = file_set_open(set, c->output, true, names, n_names);
    return r->out.fd < 0 ? STATUS_FAILURE : STATUS_OK;
}

/* Reads an input to its end.  Opens the output with the first input. */
static int read_input(reader *r, const form_reader *form, file_set *set,
                      const char *const *names, int n_names, int i)
{
    int status = form->open != NULL ? form->open(r, names[i])
                                    : input_open(&r->in, names[i]);

    if (status == STATUS_OK && i == 0) {
        status = open_output(r, set, names, n_names);
        if (status == STATUS_OK && !form->learns)
            status = state_start(&r->state, &r->out);
        progress_start(&r->out.progress, !r->conf->quiet);
        /*
         * Other forms are read by offset or from several files, so the offset
         * of one descriptor does not show their progress.
         */
        if (form->open == NULL)
            progress_inputs(&r->out.progress, names, n_names);
    }
    r->out.figures.input = i;
    r->out.figures.fd = r->in.fd;
    if (status == STATUS_OK)
        status = form->read != NULL ? form->read(r)
                                    : reader_each_line(r, form->line);
    for (int k = 0; k < READER_BESIDE; k++)
        input_close(&r->beside[k]);
    input_close(&r->in);
    return status;
}

int job_run(const conf *c, const char *const *names, int n_names)
{
    const form_reader *form = form_readers[c->from];
    reader r = {.conf = c,
                .out = {.fd = -1, .name = c->output, .schema = c->schema}};
    file_set set = {0};
    int status = STATUS_OK;

    /* If the form has an `open` function, a name may denote several files. */
    if (form->open == NULL)
        status = files_check_readable(names, n_names);
    if (status == STATUS_OK)
        status = check_output(c, form, names, n_names);
    if (status != STATUS_OK)
        return status;
    r.in = (input_file){.max_line = form->max_line,
                        .as_it_is = c->as_it_is,
                        .expected = form->expected,
                        .skip_bom = form->skip_bom,
                        .on_wait = pass_on,
                        .context = &r.out};
    for (int i = 0; i < READER_BESIDE; i++)
        r.beside[i] = (input_file){.on_wait = pass_on, .context = &r.out};

    status = state_open(&r.state, c, names, n_names);
    if (status == STATUS_OK && r.state.ended) {
        status = state_leave(&r.state, &r.out);
    } else {
        for (int i = 0; i < n_names && status == STATUS_OK; i++)
            status = read_input(&r, form, &set, names, n_names, i);
        if (status == STATUS_OK)
            status = finish(&r, form);
    }
    if (status != STATUS_OK)
        records_abandon(&r.out);
    if (status == STATUS_OK && !file_set_publish(&set))
        status = STATUS_FAILURE;
    file_set_free(&set);

    for (int i = 0; i < READER_BESIDE; i++)
        input_free(&r.beside[i]);
    input_free(&r.in);
    free(r.tokens);
    json_columns_free(&r.columns);
    while (r.n_left_out > 0)
        free(r.left_out[--r.n_left_out]);
    state_close(&r.state);
    records_free(&r.out);
    return status;
}
