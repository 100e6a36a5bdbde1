/*
 * job.c - reads, shuffles and writes.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokshuf/job.h"

#include <inttypes.h>

#include "cli/files.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "tokshuf/order.h"
#include "tokshuf/outputs.h"
#include "tokshuf/sorter.h"

typedef struct job {
    const conf *conf;
    const char *input; /* the file that is read */
    int next_input;    /* the one behind it */
    int fd;            /* -1: not open */
    ps_token_reader *reader;
    ps_schema schema;
    sorter shuffled;
    outputs out;
    progress progress;
    uint64_t n_read; /* sequences: all, */
    uint64_t n_short;
    uint64_t n_long; /* and those that were left out */
    bool told; /* of a failure before a wait */
} job;

/* Before a wait for input: the next program may be waiting for records. */
static ps_result pass_on(void *context, ps_error *err)
{
    job *j = context;

    (void)err;
    j->told = records_flush(&j->out.of[j->out.current]) != STATUS_OK;
    return j->told ? PS_ERR_IO : PS_OK;
}

/* ---------------------------------------------------------------------
 * Input
 */

static int fail_input(const job *j, const ps_error *err)
{
    return j->told ? STATUS_FAILURE
                   : message_failure(files_input_name(j->input), err);
}

static int open_file(job *j)
{
    if (j->fd >= 0)
        files_close_input(j->fd);
    j->input = j->conf->inputs[j->next_input++];
    j->fd = files_open_input(j->input);
    return j->fd < 0 ? STATUS_FAILURE : STATUS_OK;
}

/* The next sequence that is long enough, and not too long. */
static int next_sequence(job *j, ps_sequence *next, bool *more)
{
    const conf *c = j->conf;
    ps_error err = {.code = PS_OK};

    for (;;) {
        ps_result r =
            ps_token_reader_next(j->reader, c->max_length, next, &err);
        const bool too_long = r == PS_ERR_OVERLONG;

        if (too_long)
            r = ps_token_reader_skip(j->reader, &err);
        *more = r == PS_OK;
        if (r == PS_END && j->next_input == c->n_inputs)
            return STATUS_OK;
        if (r == PS_END) {
            const int status = open_file(j);

            if (status != STATUS_OK)
                return status;
            r = ps_token_reader_append(j->reader, j->fd, &err);
            if (r == PS_OK)
                continue;
        }
        if (r != PS_OK)
            return fail_input(j, &err);
        j->n_read++;
        j->n_long += too_long;
        j->n_short += !too_long && next->n_tok < c->min_length;
        if (!too_long && next->n_tok >= c->min_length)
            return STATUS_OK;
    }
}

/* ---------------------------------------------------------------------
 * Shuffled
 */

static int shuffle(job *j)
{
    progress_figures figures = {0};
    bool more = true;
    int status = STATUS_OK;

    progress_start(&j->progress, !j->conf->quiet);
    while (status == STATUS_OK) {
        ps_sequence next;
        record one;

        status = next_sequence(j, &next, &more);
        if (status != STATUS_OK || !more)
            break;
        one = (record){.key = order_key(j->conf->seed, next.id),
                       .n_tok = next.n_tok,
                       .payload = next.payload};
        status = sorter_put(&j->shuffled, &one);
        figures.sequences++;
        figures.tokens += next.n_tok;
        figures.bytes += next.payload_bytes;
        if (progress_due(&j->progress))
            progress_show(&j->progress, &figures);
    }
    progress_end(&j->progress);
    if (status == STATUS_OK)
        status = sorter_finish(&j->shuffled);

    if (status == STATUS_OK)
        status = outputs_begin(&j->out, j->shuffled.count);
    more = true;
    while (status == STATUS_OK && more) {
        record one;

        status = sorter_next(&j->shuffled, &one, &more);
        if (status == STATUS_OK && more)
            status = outputs_put(&j->out, &one);
    }
    return status;
}

/* ---------------------------------------------------------------------
 * In the order of the input
 */

static int pass_through(job *j)
{
    bool more = true;
    int status = outputs_begin(&j->out, 0);

    ps_token_reader_on_wait(j->reader, pass_on, j);
    for (uint64_t n = 0; status == STATUS_OK && n < j->conf->count; n++) {
        ps_sequence next;
        record one;

        status = next_sequence(j, &next, &more);
        if (status != STATUS_OK || !more)
            break;
        one = (record){.n_tok = next.n_tok, .payload = next.payload};
        status = outputs_put(&j->out, &one);
    }
    return status;
}

/* ------------------------------------------------------------------ */

static int open_all(job *j)
{
    const conf *c = j->conf;
    /* What is too long is left out without a message. */
    const ps_token_reader_options options = {.expect_overlong = true};
    /* Both orders are worked on at the same time. */
    const bool twice = !c->in_order && c->by_length > 0;
    const uint64_t memory = twice ? c->memory / 2 : c->memory;
    int status = STATUS_FAILURE;
    ps_error err;

    if (files_can_read(c->inputs, c->n_inputs))
        status = open_file(j);
    if (status != STATUS_OK)
        return status;
    if (ps_token_reader_open(&j->reader, j->fd,
                             c->type == 0 ? PS_U16 : c->type, &options,
                             &err) != PS_OK)
        return fail_input(j, &err);
    j->schema = *ps_token_reader_schema(j->reader);
    status = option_check_type(c->type, &j->schema, j->input);

    if (status == STATUS_OK && !c->in_order)
        status = sorter_open(&j->shuffled, &j->schema, memory, c->folder,
                             c->count);
    if (status == STATUS_OK)
        status = outputs_open(&j->out, c, &j->schema, memory);
    if (status == STATUS_OK && !c->no_sandbox &&
        !file_set_enter_sandbox(&j->out.set, c->inputs + j->next_input,
                                c->n_inputs - j->next_input))
        status = STATUS_FAILURE;
    return status;
}

int job_run(const conf *c)
{
    job j = {.conf = c,
             .fd = -1,
             .shuffled = {.files = {{.fd = -1}, {.fd = -1}}},
             .out = {.window = {.files = {{.fd = -1}, {.fd = -1}}}}};
    int status = open_all(&j);

    if (status == STATUS_OK)
        status = c->in_order ? pass_through(&j) : shuffle(&j);
    if (status == STATUS_OK)
        status = outputs_end(&j.out);
    if (status == STATUS_OK && c->verbose)
        message_note("%" PRIu64 " sequences read, %" PRIu64 " too short, %"
                     PRIu64 " too long, %" PRIu64 " written; %" PRIu64
                     " runs in temporary files",
                     j.n_read, j.n_short, j.n_long, j.out.put,
                     j.shuffled.n_runs + j.out.window.n_earlier);
    outputs_close(&j.out);
    sorter_close(&j.shuffled);
    ps_token_reader_free(j.reader);
    if (j.fd >= 0)
        files_close_input(j.fd);
    return status;
}
