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
    return message_failure(files_input_name(j->input), err);
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
    j->input = j->conf->names[j->next_name++];
    j->in = files_open_input(j->input);
    return j->in < 0 ? STATUS_FAILURE : STATUS_OK;
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
    message_error("%s: there are no lengths to learn from",
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
    j->next_name = (int)r->position.file;
    j->input_bytes = r->position.input_bytes;
    j->records = r->position.records;
    j->timed = r->position.timed;
    return STATUS_OK;
}

int job_open_input(job *j)
{
    const conf *c = j->conf;
    /* Sequences that the job handles itself are not errors to the reader. */
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
    if (ps_token_reader_open(&j->reader, j->in,
                             c->type == 0 ? PS_U16 : c->type, &options,
                             &err) != PS_OK)
        return job_input_failure(j, &err);
    if (c->expect_end && !ps_token_reader_schema(j->reader)->framed) {
        message_error("%s: not framed, so it has no END, which --expect-end "
                      "asks for", files_input_name(j->input));
        return STATUS_DATA;
    }
    return option_check_type(c->type, ps_token_reader_schema(j->reader),
                             j->input);
}

/* Position at which the rejects resume; NULL if they are new. */
static const rejects_position *rejects_from(const job *j)
{
    return j->resume.state == NULL || j->resume.summary.blank
               ? NULL
               : &j->resume.position.rejects;
}

/* True if an output is not one of the inputs. */
static bool spares_inputs(const conf *c, const char *name)
{
    return files_spare_inputs(name, c->names, c->n_names) &&
           (c->learn_from == NULL || file_set_spares(name, c->learn_from));
}

/*
 * True if the output and the rejects are different files, including their
 * temporary names.
 */
static bool are_apart(const conf *c)
{
    if (!files_are_distinct(c->rejects, c->output))
        return false;
    if (c->state != NULL || files_is_standard(c->output) ||
        files_is_special(c->output) || files_is_standard(c->rejects) ||
        files_is_special(c->rejects) ||
        (!file_set_would_write(c->output, c->rejects) &&
         !file_set_would_write(c->rejects, c->output)))
        return true;
    message_error("%s: -o and --rejects would both write this file",
                  message_name(c->rejects));
    return false;
}

/*
 * Opens an output of a job without a state.  A regular file gets its name when
 * the job succeeds, together with the rejects.  A pipe or device is written
 * directly.
 */
static int open_new(job *j, const char *name, int *fd)
{
    const conf *c = j->conf;

    *fd = files_is_standard(name) || files_is_special(name)
              ? files_open_output_alone(name, j->in)
              : file_set_open(&j->set, name, true, c->names, c->n_names);
    return *fd < 0 ? STATUS_FAILURE : STATUS_OK;
}

/* Opens the outputs of a job with a state, which can be resumed. */
static int open_resumable(job *j)
{
    int status = resume_open_output(&j->resume, j->in, &j->out);

    if (status == STATUS_OK)
        status = rejects_open(&j->rejects, rejects_from(j));
    return status == STATUS_OK ? resume_check_name(j->conf) : status;
}

/* Opens the outputs.  Errors are found before any file is truncated. */
static int open_outputs(job *j, const ps_schema *schema,
                        const ps_packer_options *options)
{
    const conf *c = j->conf;
    ps_error err;
    int status = rejects_plan(&j->rejects, c->rejects,
                              ps_token_reader_schema(j->reader),
                              c->drop_outside);

    if (status != STATUS_OK)
        return status;
    if (ps_packer_check(schema, options, &err) != PS_OK)
        return message_usage("%s", err.text);
    if (!files_can_read(c->names + j->next_name, c->n_names - j->next_name) ||
        !spares_inputs(c, c->output) ||
        (c->rejects != NULL && !spares_inputs(c, c->rejects)))
        return STATUS_FAILURE;
    if (c->rejects != NULL && !are_apart(c))
        return STATUS_FAILURE;

    status = resume_fits(&j->resume, schema, options);
    if (status == STATUS_OK)
        status = c->state != NULL ? open_resumable(j)
                                  : open_new(j, c->output, &j->out);
    if (status == STATUS_OK && c->state == NULL && c->rejects != NULL)
        status = open_new(j, c->rejects, &j->rejects.fd);
    /*
     * Now that both files exist, compare them again: two names may denote one
     * new file.
     */
    if (status == STATUS_OK && c->rejects != NULL &&
        !files_are_distinct(c->rejects, c->output))
        status = STATUS_FAILURE;
    return status;
}

/* After this the job can only open the remaining inputs and the next state. */
static bool enter_sandbox(job *j)
{
    const char *const *names = j->conf->names + j->next_name;
    const int n = j->conf->n_names - j->next_name;

    return j->conf->state != NULL
               ? sandbox_enter(names, n, &j->resume.file.folder, 1)
               : file_set_enter_sandbox(&j->set, names, n);
}

/*
 * Distributes the threads.  The second thread writes, since writing takes the
 * most time; or it reads ahead, if the output is a device that accepts bytes at
 * no cost.  A job with three threads does both: with only two processors, more
 * threads would compete with each other and with the rest of the pipeline.
 */
static void share_work(job *j)
{
    bool chosen = j->conf->threads != 0;
    uint32_t n = memory_threads(
        &j->memory, chosen ? j->conf->threads : threads_available());
    bool compressed = j->conf->zstd_level != 0;

    if (n == 2 && !chosen && !compressed && files_is(FILES_PIPE, j->in) &&
        files_is(FILES_PIPE, j->out))
        n = 1;
    j->reads_ahead =
        n > 2 || (n == 2 && !compressed && files_is(FILES_DEVICE, j->out));
    j->writers = n == 1 || (n == 2 && j->reads_ahead) ? 0 : n;
}

int job_cut_outputs(job *j)
{
    int status = resume_cut_output(&j->resume, j->out);

    /* If the stream has ended, its rejects are complete. */
    if (status == STATUS_OK && !j->resume.summary.finished)
        status = rejects_start(&j->rejects, rejects_from(j));
    j->output_failed = status != STATUS_OK;
    return status;
}

/* With -v: prints what the job is about to do. */
static void report_start(job *j)
{
    const ps_pack_info *info = ps_packer_info(j->packer);

    if (!j->conf->verbose)
        return;
    message_note("%s: %s records of %s tokens",
                 files_input_name(j->input),
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
    message_note("at most %" PRIu64 " MiB of memory",
                 j->memory.bytes / MIB + (j->memory.bytes % MIB != 0));
    if (j->resume.task == TASK_RESUME)
        message_note("%s: resumes at record %" PRIu64 ", pack %" PRIu64,
                     message_name(j->resume.file.name), j->refill_until,
                     ps_packer_totals(j->packer)->packs);
}

void job_add_position(job *j)
{
    const input_position position = {.file = (uint32_t)j->next_name - 1,
                                 .input_bytes = j->input_bytes,
                                 .mark = ps_token_reader_mark(j->reader)};

    resume_add_position(&j->resume, &position);
}

/*
 * Opens the packer and starts to read.  A resumed job reads part of its input
 * again.
 */
static int open_packer(job *j, const ps_schema *schema,
                       const ps_packer_options *options)
{
    const conf *c = j->conf;
    const resume *r = &j->resume;
    ps_error err;
    int status = STATUS_OK;

    /* The packer may write the header immediately, from another thread. */
    if ((c->state == NULL || r->output_is_new || options->first_pack > 0) &&
        !files_begin(j->out, c->output))
        status = STATUS_FAILURE;
    if (status == STATUS_OK)
        status = resume_open_packer(r, &j->packer, j->out, schema, options);
    if (status != STATUS_OK)
        return status;
    if (r->task == TASK_RESUME) {
        if (ps_token_reader_seek(j->reader, &r->position.mark, &err) != PS_OK)
            return job_input_failure(j, &err);
        j->next_id = r->position.mark.id;
    }
    if (j->next_id >= j->known_until)
        status = job_cut_outputs(j);
    if (status != STATUS_OK)
        return status;
    report_start(j);

    /* With a state, the first position is where reading starts. */
    if (c->state != NULL) {
        resume_start(&j->resume, ps_packer_info(j->packer),
                     ps_packer_totals(j->packer)->packs);
        job_add_position(j);
    }
    ps_token_reader_on_wait(j->reader, job_on_wait, j);
    if (j->reads_ahead &&
        ps_token_reader_read_ahead(j->reader, &err) != PS_OK)
        return job_input_failure(j, &err);
    return STATUS_OK;
}

int job_begin(job *j)
{
    const conf *c = j->conf;
    ps_schema schema = *ps_token_reader_schema(j->reader);
    uint32_t pad_id = schema.special[PS_PAD];
    ps_packer_options options = {
        .capacity = c->capacity,
        .depth = c->depth,
        .window = c->window,
        .pad_id = c->pad_given ? c->pad_id : pad_id == PS_NO_ID ? 0 : pad_id,
        .overlong = c->overlong,
        .policy = c->policy,
        .order = c->seed == 0 ? c->order : PS_PACKS_SHUFFLED,
        .seed = c->seed,
        .max_delay = c->max_delay,
        .even_cost = c->even_cost,
        .align = c->align,
        .learn_from = j->learn_from,
        .compressed = c->zstd_level != 0,
        .level = (int)c->zstd_level,
        .first_pack = j->resume.first_pack,
        .block_packs = c->block_packs,
    };
    int status;

    /* Raw records have no header; the option sets the vocabulary size. */
    if (!schema.framed)
        schema.vocab_size = c->vocab_size;
    status = memory_divide(&j->memory, c, &schema, &options);
    ps_token_reader_set_longest(j->reader, j->memory.longest);
    if (status == STATUS_OK)
        status = open_outputs(j, &schema, &options);
    if (status == STATUS_OK && !c->no_sandbox && !enter_sandbox(j))
        status = STATUS_FAILURE;
    if (status == STATUS_OK && c->verify)
        status = verify_outputs(&j->resume, &j->rejects);
    if (status == STATUS_OK && j->resume.task == TASK_COMPARE)
        return rejects_are_whole(&j->rejects)
                   ? resume_open_ended(&j->resume, &j->packer, j->out,
                                       &schema, &options)
                   : STATUS_FAILURE;

    /* From the first state on, a signal must not interrupt a save. */
    if (status == STATUS_OK && c->state != NULL)
        signals_catch_stop();
    if (status == STATUS_OK)
        status = resume_begin(&j->resume, j->out);
    if (status != STATUS_OK)
        return status;
    share_work(j);
    options.threads = j->writers;
    return open_packer(j, &schema, &options);
}
