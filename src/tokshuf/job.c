/*
 * job.c - read, shuffle and write.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokshuf/job.h"

#include <inttypes.h>

#include "cli/message.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "files/files.h"
#include "files/sandbox.h"
#include "tokshuf/input.h"
#include "tokshuf/order.h"
#include "tokshuf/outputs.h"
#include "tokshuf/sorter.h"
#include "tokshuf/state.h"

typedef struct job {
    const conf *conf;
    input in;
    ps_schema schema;
    sorter shuffled;
    outputs out;
    state state;
    progress progress;
    int stop; /* signal that ended the job; 0: none */
} job;

/*
 * Hook before a wait for input.  Flushes, since the next program may need the
 * records.
 */
static ps_result pass_on(void *context, ps_error *err)
{
    job *j = context;

    (void)err;
    j->in.told = records_flush(&j->out.of[j->out.current]) != STATUS_OK;
    return j->in.told ? PS_ERR_IO : PS_OK;
}

/* ---------------------------------------------------------------------
 * Shuffling
 */

static int save(job *j)
{
    return state_save(&j->state, &j->in, &j->shuffled, &j->out);
}

/* True if a signal ended a job that can be resumed. */
static bool is_stopped(job *j)
{
    if (j->conf->state != NULL)
        j->stop = signals_stopped();
    return j->stop != 0;
}

static int read_all(job *j)
{
    progress_figures figures = {0};
    bool more = true;
    int status = STATUS_OK;

    progress_start(&j->progress, !j->conf->quiet);
    progress_inputs(&j->progress, j->conf->inputs, j->conf->n_inputs);
    while (status == STATUS_OK && !is_stopped(j)) {
        ps_sequence next;
        uint64_t first_id;
        record one;

        status = input_next(&j->in, &next, &more);
        if (status != STATUS_OK || !more)
            break;
        /* Sorting is stable, so a group of equal keys keeps its order. */
        first_id =
            j->conf->group != NULL ? j->in.position.first_id : next.id;
        one = (record){.key = order_key(j->conf->seed, first_id),
                       .n_tok = next.n_tok,
                       .bytes = (uint32_t)next.payload_bytes,
                       .payload = next.payload};
        status = sorter_put(&j->shuffled, &one);
        figures.sequences++;
        figures.tokens += next.n_tok;
        figures.bytes += next.payload_bytes;
        figures.input = j->in.next - 1;
        figures.fd = j->in.fd;
        if (progress_due(&j->progress))
            progress_show(&j->progress, &figures);
        if (status == STATUS_OK &&
            checkpoint_is_due(&j->state.saved, next.payload_bytes))
            status = save(j);
    }
    progress_end(&j->progress);
    /* A signal may have ended a wait for input. */
    return status == STATUS_OK && is_stopped(j) ? save(j) : status;
}

/* Sorts the records.  With a state, saves it after every step. */
static int sort_all(job *j)
{
    int status;

    if (j->conf->state == NULL)
        return sorter_finish(&j->shuffled);
    status = sorter_spill(&j->shuffled);
    if (j->state.phase == STATE_READING && status == STATUS_OK) {
        state_sorted(&j->state);
        status = save(j);
    }
    while (status == STATUS_OK && sorter_has_many(&j->shuffled)) {
        status = sorter_merge_some(&j->shuffled);
        if (status != STATUS_OK || is_stopped(j))
            return status;
        status = save(j);
        if (status == STATUS_OK)
            status = sorter_trim(&j->shuffled);
    }
    return status == STATUS_OK ? sorter_begin(&j->shuffled) : status;
}

static int write_all(job *j)
{
    bool more = true;
    int status = outputs_begin(&j->out, j->shuffled.count);

    while (status == STATUS_OK && more) {
        record one;
        bool is_due;

        /*
         * Do not save within a window, whose records are not in the state.
         */
        if (is_stopped(j))
            return outputs_are_even(&j->out) ? save(j) : STATUS_OK;
        status = sorter_next(&j->shuffled, &one, &more);
        if (status != STATUS_OK || !more)
            break;
        is_due = checkpoint_is_due(&j->state.saved, one.bytes);
        status = outputs_put(&j->out, &one);
        if (status == STATUS_OK && is_due && outputs_are_even(&j->out))
            status = save(j);
    }
    return status == STATUS_OK ? outputs_end(&j->out) : status;
}

static int shuffle(job *j)
{
    int status = STATUS_OK;

    if (j->conf->state != NULL) {
        /* Once there is a state, a signal must not interrupt a save. */
        signals_catch_stop();
        status = state_start(&j->state, &j->in, &j->shuffled, &j->out);
    }
    if (status == STATUS_OK && j->state.phase == STATE_READING)
        status = read_all(j);
    if (status == STATUS_OK && j->stop == 0)
        status = sort_all(j);
    if (status == STATUS_OK && j->stop == 0)
        status = write_all(j);
    if (status != STATUS_OK || j->stop != 0 || j->conf->state == NULL)
        return status;
    j->state.phase = STATE_ENDED;
    status = save(j);
    /* Close the runs first, to release their locks. */
    sorter_close(&j->shuffled);
    return status == STATUS_OK ? state_remove_runs(&j->state) : status;
}

/* ---------------------------------------------------------------------
 * Keeping the order of the input
 */

static int pass_through(job *j)
{
    bool more = true;
    int status = outputs_begin(&j->out, 0);

    ps_token_reader_on_wait(j->in.reader, pass_on, j);
    for (uint64_t n = 0; status == STATUS_OK && n < j->conf->count; n++) {
        ps_sequence next;
        record one;

        status = input_next(&j->in, &next, &more);
        if (status != STATUS_OK || !more)
            break;
        one = (record){.n_tok = next.n_tok,
                       .bytes = (uint32_t)next.payload_bytes,
                       .payload = next.payload};
        status = outputs_put(&j->out, &one);
    }
    return status == STATUS_OK ? outputs_end(&j->out) : status;
}

/* ------------------------------------------------------------------ */

static int enter_sandbox(const job *j)
{
    const conf *c = j->conf;
    const char *const *inputs = c->inputs + j->in.next;
    const int n = c->n_inputs - j->in.next;

    if (c->no_sandbox)
        return STATUS_OK;
    return (c->state == NULL
                ? file_set_enter_sandbox(&j->out.set, inputs, n)
                : sandbox_enter(inputs, n, &j->state.saved.file.folder, 1))
               ? STATUS_OK
               : STATUS_FAILURE;
}

/*
 * Compares the job with the state, restores the sorter and the input, and
 * enters the sandbox.
 */
static int open_kept(job *j, uint64_t memory)
{
    const conf *c = j->conf;
    int status = state_compare(&j->state, &j->out, &j->schema);

    sorter_open_kept(&j->shuffled, memory, c->count);
    if (status == STATUS_OK && j->state.phase != STATE_ENDED)
        status = state_open_sorter(&j->state, &j->shuffled);
    if (status == STATUS_OK)
        status = enter_sandbox(j);
    if (status == STATUS_OK && j->state.saved.bytes != NULL &&
        j->state.phase == STATE_READING)
        status = input_resume(&j->in, &j->state.position);
    return status;
}

static int open_all(job *j)
{
    const conf *c = j->conf;
    /* The shuffle and --by-length each need half of the memory. */
    const bool twice = !c->in_order && c->by_length > 0;
    const uint64_t memory = twice ? c->memory / 2 : c->memory;
    bool reads;
    int status = state_open(&j->state, c);

    reads = j->state.phase == STATE_READING;
    if (status == STATUS_OK && reads)
        status = input_open(&j->in, c, j->state.position.file);
    if (status == STATUS_OK)
        status = outputs_init(&j->out, c);
    j->schema = j->in.schema;

    /* Open temporary files first: if this fails, outputs are unchanged. */
    if (status == STATUS_OK && c->state == NULL && !c->in_order)
        status = sorter_open(&j->shuffled, memory, c->folder,
                             c->count);
    if (status == STATUS_OK && c->state != NULL)
        state_mark_outputs(&j->state, &j->out);
    if (status == STATUS_OK)
        status = outputs_open(&j->out, j->state.saved.bytes != NULL);
    if (status == STATUS_OK && !reads) {
        j->in.next = c->n_inputs;
        j->in.position = j->state.position;
        status = state_schema(&j->state, &j->out, &j->schema);
        if (status == STATUS_OK)
            status = option_check_type(c->type, &j->schema,
                                       c->state);
    }
    if (status == STATUS_OK)
        status = outputs_prepare(&j->out, &j->schema, memory);
    if (status != STATUS_OK)
        return status;
    return c->state == NULL ? enter_sandbox(j) : open_kept(j, memory);
}

/* Reports the totals, or (`again`) that the job had already ended. */
static void report(const job *j, bool again)
{
    if (again)
        message_note("%s: the shuffle is complete: nothing to do",
                     message_name(j->conf->state));
    else
        message_note("%" PRIu64 " sequences read, %" PRIu64
                     " too short, %" PRIu64 " too long, %" PRIu64
                     " written; %" PRIu64 " runs in temporary files",
                     j->in.position.n_read, j->in.position.n_short,
                     j->in.position.n_long, j->out.put,
                     j->shuffled.n_runs + j->out.window.n_earlier);
}

int job_run(const conf *c, int *stop)
{
    job j = {.conf = c,
             .in = {.fd = -1},
             .shuffled = {.files = {{.fd = -1}, {.fd = -1}}},
             .out = {.window = {.files = {{.fd = -1}, {.fd = -1}}}}};
    int status = open_all(&j);
    const bool again = j.state.phase == STATE_ENDED;

    if (status == STATUS_OK && again) {
        status = outputs_leave(&j.out);
        if (status == STATUS_OK)
            status = state_remove_runs(&j.state);
    } else if (status == STATUS_OK) {
        status = c->in_order ? pass_through(&j) : shuffle(&j);
        if (status == STATUS_OK && j.stop == 0)
            status = outputs_publish(&j.out);
    }
    if (status == STATUS_OK && c->verbose && j.stop == 0)
        report(&j, again);
    *stop = j.stop;
    outputs_close(&j.out);
    sorter_close(&j.shuffled);
    input_close(&j.in);
    state_close(&j.state);
    return status;
}
