/*
 * job.c - sequences of the sources to the output.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/file_set.h"
#include "cli/files.h"
#include "cli/message.h"
#include "cli/records.h"
#include "cli/sandbox.h"
#include "cli/signals.h"
#include "common/bytes.h"
#include "tokmix/mix.h"
#include "tokmix/sources.h"
#include "tokmix/state.h"

typedef struct job {
    const conf *conf;
    sources in;
    mix mix;
    uint32_t looked; /* the source whose next sequence is looked for */
    uint32_t last;   /* the source with whose end the mix ends */
    file_set set;    /* empty if there is a state */
    records out;
    state state;
    int stop;   /* the signal that ends the job, or 0 */
    int status; /* of the output */
} job;

/*
 * Before a wait for input: the next program may be waiting for records.  Where
 * there is a state, a signal ends the wait, and with it the look.
 */
static ps_result pass_on(void *context, ps_error *err)
{
    job *j = context;

    (void)err;
    j->status = records_flush(&j->out);
    if (j->status != STATUS_OK)
        return PS_ERR_IO;
    return j->conf->state != NULL &&
                   signals_wait(ps_token_reader_descriptor(
                                    j->in.of[j->looked].reader),
                                WAIT_FOREVER) == WAIT_STOP
               ? PS_ERR_IO
               : PS_OK;
}

/* ---------------------------------------------------------------------
 * Opening
 */

/* The schema of the sources, and the channel that tells them apart. */
static bool complete_schema(job *j)
{
    const conf *c = j->conf;
    ps_schema *s = &j->out.schema;
    ps_error err;

    *s = j->in.schema;
    if (c->channel.name[0] == '\0')
        return true;
    if (s->n_channels < PS_MAX_CHANNELS) {
        s->framed = true;
        s->channels[s->n_channels++] = c->channel;
        if (ps_schema_check(s, &err) == PS_OK)
            return true;
        j->status = message_usage("--channel=%s: %s", c->channel.name,
                                  err.text);
        return false;
    }
    j->status = message_usage("--channel: the sources have %d channels, and "
                              "there can be no more", PS_MAX_CHANNELS);
    return false;
}

/* Opens the output: one that appears when it is whole. */
static int open_output(job *j)
{
    const conf *c = j->conf;

    j->out.fd = file_set_open(&j->set, c->output, c->names, (int)c->n);
    return j->out.fd >= 0 &&
                   (c->no_sandbox || file_set_enter_sandbox(&j->set, NULL, 0))
               ? STATUS_OK
               : STATUS_FAILURE;
}

/* The same where there is a state: one that another job can go on with. */
static int open_with_state(job *j)
{
    const conf *c = j->conf;
    int status = state_open_output(&j->state, &j->out.fd);

    if (status == STATUS_OK && !c->no_sandbox &&
        !sandbox_enter(NULL, 0, &j->state.file.folder, 1))
        status = STATUS_FAILURE;
    return status == STATUS_OK ? state_restore(&j->state, &j->in, &j->mix,
                                               &j->out.schema)
                               : status;
}

static bool open_all(job *j)
{
    const conf *c = j->conf;

    j->status = state_open(&j->state, c);
    if (j->status != STATUS_OK || !sources_open(&j->in, c) ||
        !complete_schema(j))
        return false;
    j->out.name = c->output;
    j->status = c->state == NULL ? open_output(j) : open_with_state(j);
    return j->status == STATUS_OK;
}

static bool start(job *j)
{
    /* From the first state on, a signal leaves none half made. */
    if (j->conf->state != NULL)
        signals_catch_stop();
    j->status = j->conf->state == NULL
                    ? records_start(&j->out)
                    : state_start(&j->state, &j->out, &j->in, &j->mix);
    /* Only now is there something to do before a wait. */
    sources_on_wait(&j->in, pass_on, j);
    return j->status == STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Mixing
 */

typedef enum turn {
    TURN_GOES_ON,
    TURN_CHANGED, /* the mix has: other sources may be due */
    TURN_ENDS,    /* the mix does */
    TURN_FAILED
} turn;

/* What becomes of a source that has ended. */
static turn end_source(job *j, uint32_t i)
{
    switch (j->conf->stop) {
    case STOP_FIRST:
        break;
    case STOP_LONGEST:
        return mix_leave(&j->mix, i) ? TURN_CHANGED : TURN_ENDS;
    case STOP_REPEAT:
        if (j->in.n_left == 0)
            break;
        return sources_repeat(&j->in, i) ? TURN_CHANGED : TURN_FAILED;
    }
    j->last = i;
    return TURN_ENDS;
}

/* Looks at the next sequences of all sources that are due. */
static turn look(job *j)
{
    turn t = TURN_GOES_ON;

    for (uint32_t i = 0; t == TURN_GOES_ON && i < j->in.n; i++) {
        if (!mix_is_due(&j->mix, i))
            continue;
        j->looked = i;
        switch (sources_look(&j->in, i)) {
        case SOURCE_READY:
            j->mix.sources[i].next =
                j->conf->by_sequences ? 1 : j->in.of[i].next.n_tok;
            break;
        case SOURCE_ENDED:
            t = end_source(j, i);
            break;
        case SOURCE_FAILED:
            t = TURN_FAILED;
            break;
        }
    }
    return t;
}

/* Writes the next sequence of a source, with its number if that is asked. */
static bool put(job *j, uint32_t i)
{
    const ps_channel *channel = &j->conf->channel;
    const ps_sequence *next = &j->in.of[i].next;
    const size_t n = next->payload_bytes;
    const size_t width = ps_type_bytes(channel->type);
    const unsigned char *payload = next->payload;

    if (channel->name[0] != '\0') {
        j->status = records_reserve(&j->out, n + width);
        if (j->status != STATUS_OK)
            return false;
        memcpy(j->out.payload, payload, n);
        store_low(j->out.payload + n, i, width);
        payload = j->out.payload;
    }
    j->out.figures.bytes += n;
    j->status = records_put(&j->out, next->n_tok, payload);
    return j->status == STATUS_OK;
}

static bool save(job *j, bool ended)
{
    j->status = state_save(&j->state, &j->out, &j->in, &j->mix, ended);
    return j->status == STATUS_OK;
}

/* Takes the sequence that is next; false after a failure. */
static bool take(job *j)
{
    const uint32_t i = mix_next(&j->mix);

    if (!put(j, i))
        return false;
    mix_take(&j->mix, i);
    sources_take(&j->in, i);
    return !state_is_due(&j->state, j->in.of[i].next.payload_bytes) ||
           save(j, false);
}

/* Mixes until that ends, or a signal comes; false after a failure. */
static bool mix_all(job *j)
{
    turn t;

    progress_start(&j->out.progress, !j->conf->quiet);
    while ((t = look(j)) != TURN_ENDS) {
        if (j->status != STATUS_OK || j->in.status != STATUS_OK)
            return false;
        j->stop = signals_stopped();
        if (j->stop != 0)
            return true;
        if (t == TURN_GOES_ON && !take(j))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------------
 * What came of it
 */

static void report(job *j)
{
    const progress_figures *all = &j->out.figures;
    const uint64_t n = j->conf->by_sequences ? all->sequences : all->tokens;
    uint64_t weights = 0;

    for (uint32_t i = 0; i < j->in.n; i++)
        weights += j->conf->weights[i];
    for (uint32_t i = 0; i < j->in.n; i++) {
        const source *one = &j->in.of[i];
        const uint64_t own =
            j->conf->by_sequences ? one->sequences : one->tokens;

        message_note("%s: %" PRIu64 " sequences, %" PRIu64 " tokens, share "
                     "%.4f of %.4f",
                     files_input_name(one->name), one->sequences, one->tokens,
                     n > 0 ? (double)own / (double)n : 0,
                     (double)j->conf->weights[i] / (double)weights);
    }
}

/* With --stop=first there may be more than was taken. */
static void warn_of_rest(job *j)
{
    const uint32_t n = j->conf->stop == STOP_FIRST && !j->conf->quiet
                           ? sources_unread(&j->in)
                           : 0;

    if (n > 0)
        message_warning("%s has ended, and so the mix; %" PRIu32 " other%s "
                        "not read to the end (see --stop)",
                        files_input_name(j->in.of[j->last].name), n,
                        n == 1 ? " was" : "s were");
}

/* Ends the stream, and gives it its name; or leaves it to another job. */
static bool finish(job *j)
{
    const bool ended = j->stop == 0;

    if (ended)
        j->status = records_end(&j->out);
    if (j->status != STATUS_OK ||
        (j->conf->state != NULL && !save(j, ended)))
        return false;
    j->status = records_close(&j->out);
    if (j->status == STATUS_OK && !file_set_publish(&j->set))
        j->status = STATUS_FAILURE;
    if (j->status == STATUS_OK && ended)
        warn_of_rest(j);
    return j->status == STATUS_OK;
}

/* Does all of it, or what is left of it. */
static bool run(job *j)
{
    if (!open_all(j))
        return false;
    if (j->state.ended) {
        j->status = state_finish_again(&j->state, &j->out);
        return j->status == STATUS_OK;
    }
    return start(j) && mix_all(j) && finish(j);
}

int job_run(const conf *c, int *stop)
{
    job j = {.conf = c, .out = {.fd = -1}};
    mix_source *of = calloc(c->n, sizeof *of);

    if (of == NULL)
        return message_memory();
    mix_begin(&j.mix, of, c->weights, c->n);
    if (!run(&j))
        records_abandon(&j.out);
    else if (c->verbose && j.stop == 0)
        report(&j);
    *stop = j.stop;
    state_close(&j.state);
    file_set_free(&j.set);
    records_free(&j.out);
    sources_close(&j.in);
    free(of);
    return j.status != STATUS_OK ? j.status : j.in.status;
}
