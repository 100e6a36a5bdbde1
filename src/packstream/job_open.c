/*
 * job_open.c - start the job: its state, inputs and outputs.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "cli/message.h"
#include "cli/signals.h"
#include "cli/threads.h"
#include "files/files.h"
#include "files/histogram.h"
#include "files/sandbox.h"
#include "packstream/job_parts.h"
#include "packstream/verify.h"

int job_input_failure(const job *j, const ps_error *err)
{
    return message_failure(files_input_name(j->input.name), err);
}

int job_output_failure(job *j, const ps_error *err)
{
    j->output_failed = true;
    if (err->code != PS_ERR_MEMORY)
        return message_failure(files_output_name(j->conf->output), err);
    message_error("%s", err->text);
    return STATUS_FAILURE;
}

int job_open_file(job *j)
{
    j->input.name = j->conf->names[j->input.next++];
    j->input.fd = files_open_input(j->input.name);
    return j->input.fd < 0 ? STATUS_FAILURE : STATUS_OK;
}

int job_read_histogram(job *j)
{
    const conf *c = j->conf;
    length_counts counts = {.capacity = c->capacity, .overlong = c->overlong};
    ps_error err;
    int status;

    if (c->learn_from == NULL)
        return STATUS_OK;
    if (ps_histogram_open(&j->learn_from, &err) != PS_OK)
        return message_failure(files_input_name(c->learn_from), &err);
    counts.histogram = j->learn_from;
    status = histogram_read(&counts, 1, &c->learn_from, 1);
    if (status != STATUS_OK || ps_histogram_size(j->learn_from) > 0)
        return status;
    message_error("%s: the histogram is empty, so --learn-from has nothing to "
                  "learn",
                  files_input_name(c->learn_from));
    return STATUS_DATA;
}

int job_open_state(job *j)
{
    const resume *r = &j->resume;
    int status = resume_open(&j->resume, j->conf);

    if (status != STATUS_OK)
        return status;
    j->known_until = r->summary.input_sequences;
    if (r->task != TASK_RESUME)
        return STATUS_OK;
    j->refill_until = j->known_until;
    j->input.next = (int)r->position.file;
    j->input.bytes = r->position.input_bytes;
    j->records = r->position.records;
    j->timed = r->position.timed;
    return STATUS_OK;
}

int job_open_input(job *j)
{
    const conf *c = j->conf;
    /* The reader must accept sequences that the job handles itself. */
    const ps_token_reader_options options = {
        .window = memory_window(c->memory),
        .vocab_size = c->vocab_size,
        .expect_overlong = c->policy == PS_POLICY_CONCAT ||
                           c->overlong != PS_OVERLONG_ERROR,
        .expect_outside = c->drop_outside,
        .expect_empty = c->drop_empty,
        .raw_flush = c->flush_records,
        .on_flush = job_drain,
        .flush_context = j,
    };
    ps_error err;
    int status = job_open_file(j);

    if (status != STATUS_OK)
        return status;
    if (ps_token_reader_open(&j->input.reader, j->input.fd,
                             c->type == 0 ? PS_U16 : c->type, &options,
                             &err) != PS_OK)
        return job_input_failure(j, &err);
    if (c->expect_end && !ps_token_reader_schema(j->input.reader)->framed) {
        message_error("%s: raw records have no END, which --expect-end "
                      "requires: write framed records",
                      files_input_name(j->input.name));
        return STATUS_DATA;
    }
    return option_check_type(c->type, ps_token_reader_schema(j->input.reader),
                             j->input.name);
}

/*
 * Opens an output of a job without a state.  A regular file gets its name when
 * the job succeeds, at the same time as the rejects.  A pipe or device is
 * written directly.
 */
static int open_new(job *j, const char *name, int *fd)
{
    const conf *c = j->conf;

    *fd = files_is_standard(name) || files_is_special(name)
              ? files_open_output_alone(name, j->input.fd)
              : file_set_open(&j->set, name, true, c->names, c->n_names);
    return *fd < 0 ? STATUS_FAILURE : STATUS_OK;
}

/* Opens the outputs without changing any file. */
static int open_outputs(job *j)
{
    const conf *c = j->conf;
    int status;

    if (c->state != NULL) {
        status = resume_open_output(&j->resume, j->input.fd, &j->out);
        if (status == STATUS_OK)
            status = rejects_open(&j->rejects);
        if (status == STATUS_OK)
            status = resume_check_name(c);
    } else {
        status = open_new(j, c->output, &j->out);
        if (status == STATUS_OK && c->rejects != NULL)
            status = open_new(j, c->rejects, &j->rejects.fd);
    }
    /* Check again now that both exist: two names can denote one new file. */
    return status == STATUS_OK ? job_check_distinct(c) : status;
}

/* In the sandbox, only the remaining inputs and new states can be opened. */
static int enter_sandbox(const job *j)
{
    const conf *c = j->conf;
    const char *const *names = c->names + j->input.next;
    const int n = c->n_names - j->input.next;

    return c->no_sandbox ||
                   (c->state != NULL
                        ? sandbox_enter(names, n, &j->resume.file.folder, 1)
                        : file_set_enter_sandbox(&j->set, names, n))
               ? STATUS_OK
               : STATUS_FAILURE;
}

/*
 * Distributes the threads.  The second thread writes, since writing takes the
 * most time.  If the output is a device that accepts bytes at no cost, the
 * second thread reads ahead instead.  A job with three threads does both: with
 * only two processors, more threads would compete with each other and with the
 * rest of the pipeline.
 * Sets the packer's threads; returns true if one thread reads ahead.
 */
static bool share_threads(job *j, uint32_t *packer_threads)
{
    const bool chosen = j->conf->threads != 0;
    const bool compressed = j->conf->zstd_level != 0;
    uint32_t n = memory_threads(
        &j->memory, chosen ? j->conf->threads : threads_available());
    bool reads_ahead;

    if (n == 2 && !chosen && !compressed &&
        files_is(FILES_PIPE, j->input.fd) && files_is(FILES_PIPE, j->out))
        n = 1;
    reads_ahead =
        n > 2 || (n == 2 && !compressed && files_is(FILES_DEVICE, j->out));
    *packer_threads = n == 1 || (n == 2 && reads_ahead) ? 0 : n;
    return reads_ahead;
}

int job_cut_outputs(job *j)
{
    int status = resume_cut_output(&j->resume, j->out);

    /* If the stream has ended, its rejects are complete. */
    if (status == STATUS_OK && !j->resume.summary.finished)
        status = rejects_start(&j->rejects);
    j->output_failed = status != STATUS_OK;
    return status;
}

/* With -v: prints the settings of the job. */
static void report_start(job *j)
{
    const ps_pack_info *info = ps_packer_info(j->packer);

    if (!j->conf->verbose)
        return;
    message_note("%s: %s records of %s tokens",
                 files_input_name(j->input.name),
                 info->schema.framed ? "framed" : "raw",
                 ps_type_name(info->schema.token_type));
    if (j->learn_from != NULL)
        message_note("%s: learned from %" PRIu64 " sequences",
                     files_input_name(j->conf->learn_from),
                     ps_histogram_sequences(j->learn_from));
    message_note("%s: rows of %" PRIu32 " tokens, %" PRIu32 " bytes each, "
                 "and %" PRIu32 " bytes for each sequence; %" PRIu32
                 " packs in a block",
                 files_output_name(j->conf->output), info->capacity,
                 info->row_bytes, info->seq_bytes, info->block_packs);
    message_note("uses at most %" PRIu64 " MiB of memory",
                 j->memory.bytes / MIB + (j->memory.bytes % MIB != 0));
    if (j->resume.task == TASK_RESUME)
        message_note("%s: resumes at record %" PRIu64 ", pack %" PRIu64,
                     message_name(j->resume.file.name), j->refill_until,
                     ps_packer_totals(j->packer)->packs);
}

void job_add_position(job *j)
{
    const input_position position = {.file = (uint32_t)j->input.next - 1,
                                 .input_bytes = j->input.bytes,
                                 .mark = ps_token_reader_mark(j->input.reader)};

    resume_add_position(&j->resume, &position);
}

/* Starts to read.  A resumed job reads part of its input again. */
static int start_reading(job *j, bool reads_ahead)
{
    const resume *r = &j->resume;
    int status = STATUS_OK;
    ps_error err;

    if (r->task == TASK_RESUME) {
        if (ps_token_reader_seek(j->input.reader, &r->position.mark, &err) !=
            PS_OK)
            return job_input_failure(j, &err);
        j->next_id = r->position.mark.id;
    }
    if (j->next_id >= j->known_until)
        status = job_cut_outputs(j);
    if (status != STATUS_OK)
        return status;
    report_start(j);

    /* With a state, the first position is where reading starts. */
    if (j->conf->state != NULL) {
        resume_start(&j->resume, ps_packer_info(j->packer),
                     ps_packer_totals(j->packer)->packs);
        job_add_position(j);
    }
    ps_token_reader_on_wait(j->input.reader, job_on_wait, j);
    if (reads_ahead &&
        ps_token_reader_read_ahead(j->input.reader, &err) != PS_OK)
        return job_input_failure(j, &err);
    return STATUS_OK;
}

/* Starts the output, opens the packer and starts to read. */
static int start(job *j, job_plan *p)
{
    bool reads_ahead;
    int status;

    /* From the first state on, a signal must not interrupt a save. */
    if (j->conf->state != NULL)
        signals_catch_stop();
    reads_ahead = share_threads(j, &p->options.threads);
    /* The packer may write the header immediately, from another thread. */
    status = resume_begin(&j->resume, j->out);
    if (status == STATUS_OK)
        status = resume_open_packer(&j->resume, &j->packer, j->out,
                                    &p->schema, &p->options);
    return status == STATUS_OK ? start_reading(j, reads_ahead) : status;
}

int job_begin(job *j)
{
    job_plan p;
    int status = job_make_plan(j, &p);

    if (status != STATUS_OK)
        return status;
    ps_token_reader_set_longest(j->input.reader, j->memory.longest);
    status = open_outputs(j);
    if (status == STATUS_OK)
        status = enter_sandbox(j);
    if (status == STATUS_OK)
        status = verify_outputs(&j->resume, &j->rejects);
    if (status != STATUS_OK)
        return status;
    if (j->resume.task != TASK_COMPARE)
        return start(j, &p);
    status = rejects_check_end(&j->rejects);
    return status == STATUS_OK
               ? resume_open_ended(&j->resume, &j->packer, j->out, &p.schema,
                                   &p.options)
               : status;
}
