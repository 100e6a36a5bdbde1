/*
 * job.c - the one job of packstream: records in, packs out.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/job.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/files.h"
#include "cli/message.h"
#include "cli/report.h"
#include "cli/threads.h"
#include "packstream/pause.h"

/* Milliseconds of a pause in which the output may still be busy. */
#define SHORT_PAUSE 10

static int input_failure(const job *j, const ps_error *err)
{
    const char *name = files_input_name(j->input);

    if (err->code != PS_ERR_MAGIC)
        return message_failure(name, err);
    message_error("%s: %s (packcat unpacks it)", name, err->text);
    return STATUS_DATA;
}

static int output_failure(job *j, const ps_error *err)
{
    j->output_failed = true;
    if (err->code != PS_ERR_MEMORY)
        return message_failure(files_output_name(j->conf->output), err);
    message_error("%s", err->text);
    return STATUS_FAILURE;
}

/* Opens the next input file. */
static int open_file(job *j)
{
    j->input = j->conf->names[j->next_name++];
    j->in = files_open_input(j->input);
    return j->in < 0 ? STATUS_FAILURE : STATUS_OK;
}

/* Packs all that is held; also where a flush record asks for it. */
static ps_result drain(void *context, ps_error *err)
{
    job *j = context;
    ps_result r = ps_packer_drain(j->packer, err);

    j->output_failed = r != PS_OK;
    return r;
}

/*
 * What was passed on is waited for, too, so that a failure is told though
 * there is no input.
 */
static ps_result flush(job *j, ps_error *err)
{
    ps_result r = ps_packer_flush(j->packer, err);

    j->output_failed = r != PS_OK;
    return r;
}

/* A file is never idle, however long a disk takes. */
static uint64_t longest_idle(const job *j)
{
    if (j->conf->flush_idle == 0 || files_is_regular(j->in))
        return PAUSE_FOREVER;
    return j->conf->flush_idle;
}

/*
 * Before the reader waits for input, what is decided goes on its way; and
 * when the wait is long, or a signal asks for it, what is held does, too.
 */
static ps_result pass_on(void *context, ps_error *err)
{
    job *j = context;
    uint64_t idle = longest_idle(j);
    uint64_t wait = idle < SHORT_PAUSE ? idle : SHORT_PAUSE;
    ps_result r = ps_packer_push(j->packer, err);

    j->output_failed = r != PS_OK;
    while (r == PS_OK) {
        pause_end end =
            pause_wait(ps_token_reader_descriptor(j->reader), wait);

        if (end == PAUSE_INPUT)
            break;
        if (end == PAUSE_IDLE && wait < idle) {
            idle -= idle == PAUSE_FOREVER ? 0 : wait;
            wait = idle;
            r = flush(j, err);
        } else {
            if (end == PAUSE_IDLE)
                idle = wait = PAUSE_FOREVER;
            r = drain(j, err);
        }
    }
    return r;
}

static int check_type(const job *j)
{
    const ps_schema *schema = ps_token_reader_schema(j->reader);

    if (j->conf->type == 0 || j->conf->type == schema->token_type)
        return STATUS_OK;
    return message_usage("%s: the records hold %s tokens, not %s",
                         files_input_name(j->input),
                         ps_type_name(schema->token_type),
                         ps_type_name(j->conf->type));
}

int job_open_input(job *j)
{
    ps_type raw_type = j->conf->type == 0 ? PS_U16 : j->conf->type;
    ps_error err;
    int status = open_file(j);

    if (status != STATUS_OK)
        return status;
    if (ps_token_reader_open(&j->reader, j->in, raw_type, &err) != PS_OK)
        return input_failure(j, &err);
    if (j->conf->vocab_size != 0)
        ps_token_reader_set_vocab(j->reader, j->conf->vocab_size);
    return check_type(j);
}

/*
 * The schema as the packs declare it: raw records say nothing themselves,
 * so the packs can say what the command line does.
 */
static ps_schema declared_schema(const job *j)
{
    ps_schema schema = *ps_token_reader_schema(j->reader);

    if (!schema.framed)
        schema.vocab_size = j->conf->vocab_size;
    return schema;
}

static uint32_t pad_id(const job *j, const ps_schema *schema)
{
    if (j->conf->pad_given)
        return j->conf->pad_id;
    return schema->special[PS_PAD] == PS_NO_ID ? 0 : schema->special[PS_PAD];
}

static ps_packer_options packer_options(const job *j,
                                        const ps_schema *schema)
{
    return (ps_packer_options){
        .capacity = j->conf->capacity,
        .depth = j->conf->depth,
        .window = j->conf->window,
        .pad_id = pad_id(j, schema),
        .overlong = j->conf->overlong,
        .policy = j->conf->policy,
        .order = j->conf->seed == 0 ? j->conf->order : PS_PACKS_SHUFFLED,
        .seed = j->conf->seed,
        .max_delay = j->conf->max_delay,
        .max_bytes = j->conf->max_bytes,
        .even_cost = j->conf->even_cost,
        .compressed = j->conf->zstd_level != 0,
        .level = (int)j->conf->zstd_level,
    };
}

/* Finds what is wrong with the outputs before a file is cut for them. */
static int check_outputs(job *j, const ps_schema *schema,
                         const ps_packer_options *options)
{
    const conf *c = j->conf;
    ps_error err;
    int status = rejects_plan(&j->rejects, c->rejects,
                              ps_token_reader_schema(j->reader));

    if (status != STATUS_OK)
        return status;
    if (ps_packer_check(schema, options, &err) != PS_OK)
        return message_usage("%s", err.text);
    if (!files_spare_inputs(c->output, c->names, c->n_names))
        return STATUS_FAILURE;
    if (c->rejects != NULL &&
        (!files_spare_inputs(c->rejects, c->names, c->n_names) ||
         !files_are_apart(c->rejects, c->output)))
        return STATUS_FAILURE;
    return STATUS_OK;
}

/* Whether those before and after in the pipeline need processors as well. */
static bool is_among_others(const job *j)
{
    return files_is_pipe(j->in) && files_is_pipe(j->out);
}

/*
 * A second thread writes, since that is what keeps the first one longest; or
 * reads, where to write is for nothing.  Only from three on there is one for
 * each: with two processors they would be in one another's way, and in the
 * way of the neighbours, if there is one at either end.
 */
static void share_work(job *j)
{
    bool chosen = j->conf->threads != 0;
    uint32_t n = chosen ? j->conf->threads : threads_available();
    bool compressed = j->conf->zstd_level != 0;

    if (n == 2 && !chosen && !compressed && is_among_others(j))
        n = 1;
    j->reads_ahead =
        n > 2 || (n == 2 && !compressed && files_is_device(j->out));
    j->writers = n == 1 || (n == 2 && j->reads_ahead) ? 0 : n;
}

int job_open_output(job *j)
{
    ps_schema schema = declared_schema(j);
    ps_packer_options options = packer_options(j, &schema);
    ps_error err;
    int status = check_outputs(j, &schema, &options);

    if (status != STATUS_OK)
        return status;
    j->out = files_open_output(j->conf->output, true, j->in);
    if (j->out < 0)
        return STATUS_FAILURE;
    share_work(j);
    options.threads = j->writers;
    if (ps_packer_open(&j->packer, j->out, &schema, &options, &err) != PS_OK)
        return output_failure(j, &err);
    ps_token_reader_on_wait(j->reader, pass_on, j);
    if (schema.framed || j->conf->flush_records)
        ps_token_reader_on_flush(j->reader, drain, j);
    if (j->reads_ahead &&
        ps_token_reader_read_ahead(j->reader, &err) != PS_OK)
        return input_failure(j, &err);
    status = rejects_open(&j->rejects);
    /* Now that both are there, two names of one new file show, too. */
    if (status == STATUS_OK && j->conf->rejects != NULL &&
        !files_are_apart(j->conf->rejects, j->conf->output))
        status = STATUS_FAILURE;
    return status;
}

static void show_progress(job *j)
{
    const ps_totals *t = ps_packer_totals(j->packer);
    progress_figures figures = {
        .bytes = ps_token_reader_offset(j->reader),
        .sequences = t->sequences,
        .tokens = t->tokens,
        .packs = t->packs,
        .capacity = j->conf->capacity,
    };

    progress_show(&j->progress, &figures);
}

/* Whether what is held is to be packed before the next record. */
static bool is_flush_due(job *j)
{
    j->records++;
    return pause_asked() || (j->conf->flush_every != 0 &&
                             j->records % j->conf->flush_every == 0);
}

static int put(job *j, const ps_sequence *sequence)
{
    ps_error err;

    if (ps_packer_put(j->packer, sequence, &err) != PS_OK ||
        (is_flush_due(j) && ps_packer_drain(j->packer, &err) != PS_OK))
        return output_failure(j, &err);
    if (progress_due(&j->progress))
        show_progress(j);
    return STATUS_OK;
}

/* A sequence longer than a pack, whose payload is still to be read. */
static int put_overlong(job *j, ps_sequence *sequence, const ps_error *why)
{
    ps_overlong overlong = j->conf->policy == PS_POLICY_CONCAT
                               ? PS_OVERLONG_SPLIT
                               : j->conf->overlong;
    ps_error err;
    ps_result r;
    int status = STATUS_OK;

    if (overlong == PS_OVERLONG_ERROR) {
        message_error("%s: %s (--overlong says what to do with it)",
                      files_input_name(j->input), why->text);
        return STATUS_DATA;
    }
    if (overlong == PS_OVERLONG_DROP && j->conf->rejects == NULL)
        r = ps_token_reader_skip(j->reader, &err);
    else
        r = ps_token_reader_hold(j->reader, sequence, &err);
    if (r != PS_OK)
        return input_failure(j, &err);
    if (overlong != PS_OVERLONG_SPLIT)
        status = rejects_put(&j->rejects, sequence,
                             overlong == PS_OVERLONG_DROP
                                 ? REJECT_OVERLONG_DROPPED
                                 : REJECT_OVERLONG_TRUNCATED);
    return status == STATUS_OK ? put(j, sequence) : status;
}

/* At the end of a file: goes on with the next, if there is one. */
static int next_file(job *j, bool *more)
{
    int before = j->in;
    ps_error err;
    int status;

    *more = j->next_name < j->conf->n_names;
    if (!*more)
        return STATUS_OK;
    /* To open a file may mean to wait for one who writes to it. */
    if (ps_packer_flush(j->packer, &err) != PS_OK)
        return output_failure(j, &err);
    status = open_file(j);
    if (status == STATUS_OK &&
        ps_token_reader_append(j->reader, j->in, &err) != PS_OK)
        status = input_failure(j, &err);
    /* Only now, lest the new one gets a number that is still in use. */
    files_close_input(before);
    return status;
}

int job_pack(job *j)
{
    bool more = true;
    int status = STATUS_OK;

    progress_start(&j->progress, !j->conf->quiet);
    while (status == STATUS_OK && more) {
        ps_sequence sequence;
        ps_error err;

        switch (ps_token_reader_next(j->reader, j->conf->capacity, &sequence,
                                     &err)) {
        case PS_OK:
            status = put(j, &sequence);
            break;
        case PS_END:
            status = next_file(j, &more);
            break;
        case PS_ERR_OVERLONG:
            status = put_overlong(j, &sequence, &err);
            break;
        default:
            status = j->output_failed ? output_failure(j, &err)
                                      : input_failure(j, &err);
        }
    }
    progress_end(&j->progress);
    return status;
}

static void print_text(const ps_pack_info *info, const ps_totals *t,
                       uint64_t delay)
{
    (void)fprintf(stderr,
                  "%s: %" PRIu64 " sequences, %" PRIu64
                  " tokens in %" PRIu64 " packs, %.2f%% full; %" PRIu64
                  " rejected, %" PRIu64 " truncated, %" PRIu64
                  " split; longest delay %" PRIu64 "\n",
                  message_program(), t->sequences, t->tokens, t->packs,
                  100.0 * report_efficiency(info, t), t->rejected_sequences,
                  t->truncated_sequences, t->split_sequences, delay);
}

/* What was asked for and could not be told is a failure. */
static int print_stats(const job *j)
{
    const ps_pack_info *info = ps_packer_info(j->packer);
    const ps_totals *totals = ps_packer_totals(j->packer);
    uint64_t delay = ps_packer_delay(j->packer);

    if (j->conf->stats == STATS_NONE)
        return STATUS_OK;
    if (j->conf->stats == STATS_JSON)
        report_json_packing(stderr, info, totals, delay);
    else
        print_text(info, totals, delay);
    return ferror(stderr) ? STATUS_FAILURE : STATUS_OK;
}

/*
 * Ends the stream.  After a failure what was decided before it still goes
 * out, but no END: the stream is cut, and a reader says so.
 */
static int end_stream(job *j, int status)
{
    ps_error err;

    if (j->packer == NULL)
        return status;
    if (status == STATUS_OK && ps_packer_finish(j->packer, &err) != PS_OK)
        return output_failure(j, &err);
    if (status != STATUS_OK && !j->output_failed &&
        ps_packer_abandon(j->packer, &err) != PS_OK)
        (void)output_failure(j, &err);
    return status;
}

int job_close(job *j, int status)
{
    int rejected;

    status = end_stream(j, status);
    rejected = rejects_close(&j->rejects, status == STATUS_OK);
    if (status == STATUS_OK)
        status = rejected;
    if (j->out >= 0 && !files_close_output(j->out, j->conf->output) &&
        status == STATUS_OK)
        status = STATUS_FAILURE;
    if (status == STATUS_OK)
        status = print_stats(j);
    ps_packer_free(j->packer);
    ps_token_reader_free(j->reader);
    if (j->in >= 0)
        files_close_input(j->in);
    return status;
}
