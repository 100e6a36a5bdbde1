/*
 * job.c - write the sequences of the sources in the order of the mix.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cli/signals.h"
#include "common/bytes.h"
#include "files/file_set.h"
#include "files/files.h"
#include "files/records.h"
#include "files/sandbox.h"
#include "tokmix/mix.h"
#include "tokmix/sources.h"
#include "tokmix/state.h"

typedef struct job {
    const conf *conf;
    sources in;
    mix mix;
    uint32_t looked; /* index of the source being read, for messages */
    uint32_t last;   /* index of the source that ended the mix */
    file_set set;    /* empty with --state */
    records out;
    state state;
    int stop;   /* signal that ended the job; 0: none */
    int status; /* exit status of the output */
} job;

/*
 * Hook before a wait for input.  Flushes, since the next program may need the
 * records.  With --state, a signal ends the wait and the read.
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

static bool open_all(job *j)
{
    const conf *c = j->conf;
    ps_schema *s = &j->out.schema;
    ps_error err;

    j->status = state_open(&j->state, c);
    if (j->status != STATUS_OK || !sources_open(&j->in, c))
        return false;

    /* The output has the schema of the sources and the channel of --channel. */
    *s = j->in.schema;
    if (c->channel.name[0] != '\0') {
        if (s->n_channels == PS_MAX_CHANNELS) {
            j->status = message_usage("--channel: the sources already have %d "
                                      "channels, which is the limit",
                                      PS_MAX_CHANNELS);
            return false;
        }
        s->framed = true;
        s->channels[s->n_channels++] = c->channel;
        if (ps_schema_check(s, &err) != PS_OK) {
            j->status = message_usage("--channel=%s: %s", c->channel.name,
                                      err.text);
            return false;
        }
    }

    j->out.name = c->output;

    /* Without a state, the output gets its name once it is complete. */
    if (c->state == NULL) {
        j->out.fd = file_set_open(&j->set, c->output, true, c->names,
                                  (int)c->n);
        if (j->out.fd < 0 || (!c->no_sandbox &&
                              !file_set_enter_sandbox(&j->set, NULL, 0)))
            j->status = STATUS_FAILURE;
        return j->status == STATUS_OK;
    }

    /* With a state, the output can be resumed. */
    j->status = state_open_output(&j->state, &j->out);
    if (j->status == STATUS_OK && !c->no_sandbox &&
        !sandbox_enter(NULL, 0, &j->state.saved.file.folder, 1))
        j->status = STATUS_FAILURE;
    if (j->status == STATUS_OK)
        j->status = state_restore(&j->state, &j->in, &j->mix, s);
    return j->status == STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Mixing
 */

typedef enum turn {
    TURN_GOES_ON,
    TURN_CHANGED, /* a source ended or restarted, so others may be due */
    TURN_ENDS,    /* the mix is complete */
    TURN_FAILED
} turn;

/* Reads the next sequence of every source that is due. */
static turn look(job *j)
{
    for (uint32_t i = 0; i < j->in.n; i++) {
        if (!mix_is_due(&j->mix, i))
            continue;
        j->looked = i;
        switch (sources_look(&j->in, i)) {
        case SOURCE_READY:
            j->mix.sources[i].next =
                j->conf->by_sequences ? 1 : j->in.of[i].next.n_tok;
            continue;
        case SOURCE_FAILED:
            return TURN_FAILED;
        case SOURCE_ENDED:
            break;
        }

        /* The source has ended. */
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
    return TURN_GOES_ON;
}

static bool save(job *j, bool ended)
{
    j->status = state_save(&j->state, &j->out, &j->in, &j->mix, ended);
    return j->status == STATUS_OK;
}

/* Writes the next sequence of the mix.  Returns false after a failure. */
static bool take(job *j)
{
    const uint32_t i = mix_next(&j->mix);
    const ps_channel *channel = &j->conf->channel;
    const ps_sequence *next = &j->in.of[i].next;
    const size_t n = next->payload_bytes;
    const size_t width = ps_type_bytes(channel->type);
    const unsigned char *payload = next->payload;

    /* With --channel, insert the index of the source before the lists. */
    if (channel->name[0] != '\0') {
        const size_t lists = (size_t)ps_payload_lists(
            &j->out.schema, next->n_tok, payload);

        j->status = records_reserve(&j->out, n + width);
        if (j->status != STATUS_OK)
            return false;
        memcpy(j->out.payload, payload, n - lists);
        store_low(j->out.payload + n - lists, i, width);
        memcpy(j->out.payload + n - lists + width, payload + n - lists, lists);
        payload = j->out.payload;
    }
    j->out.figures.bytes += n;
    j->status = records_put(&j->out, next->n_tok, payload);
    if (j->status != STATUS_OK)
        return false;

    mix_take(&j->mix, i);
    sources_take(&j->in, i);
    return !checkpoint_is_due(&j->state.saved, n) || save(j, false);
}

/*
 * Starts the stream and mixes until the mix is complete or a signal arrives.
 * Returns false after a failure.
 */
static bool mix_all(job *j)
{
    turn t;

    /* Once there is a state, a signal must not interrupt a save. */
    if (j->conf->state != NULL)
        signals_catch_stop();
    j->status = j->conf->state == NULL
                    ? records_start(&j->out)
                    : state_start(&j->state, &j->out, &j->in, &j->mix);
    if (j->status != STATUS_OK)
        return false;
    /* The hook needs the output, which was not open before. */
    for (uint32_t i = 0; i < j->in.n; i++)
        ps_token_reader_on_wait(j->in.of[i].reader, pass_on, j);

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
 * Reporting
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

/*
 * Ends the stream and renames the output; with a state, saves it instead.  If a
 * signal ended the job, the stream is not ended, so that it can be resumed.
 */
static bool finish(job *j)
{
    const conf *c = j->conf;
    const bool ended = j->stop == 0;
    uint32_t n;

    if (ended)
        j->status = records_end(&j->out);
    if (j->status != STATUS_OK || (c->state != NULL && !save(j, ended)))
        return false;
    j->status = records_close(&j->out);
    if (j->status == STATUS_OK && !file_set_publish(&j->set))
        j->status = STATUS_FAILURE;

    /* With --stop=first, other sources may have sequences left. */
    if (j->status != STATUS_OK || !ended || c->stop != STOP_FIRST || c->quiet)
        return j->status == STATUS_OK;
    n = sources_unread(&j->in);
    if (n > 0)
        message_warning("%s ended, which ends the mix: %" PRIu32 " other "
                        "source%s not read to the end (see --stop)",
                        files_input_name(j->in.of[j->last].name), n,
                        n == 1 ? " was" : "s were");
    return true;
}

int job_run(const conf *c, int *stop)
{
    job j = {.conf = c, .out = {.fd = -1}};
    mix_source *of = calloc(c->n, sizeof *of);
    bool done = false;

    if (of == NULL)
        return message_memory();
    mix_begin(&j.mix, of, c->weights, c->n);
    if (open_all(&j)) {
        if (j.state.ended)
            j.status = state_finish_again(&j.state, &j.out);
        done = j.state.ended ? j.status == STATUS_OK
                             : mix_all(&j) && finish(&j);
    }
    if (!done)
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
