/*
 * job.c - write the sequences of the sources in the order of the mix.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/job.h"

#include <inttypes.h>
#include <stdio.h>
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
#include "tokmix/stages.h"
#include "tokmix/state.h"

typedef struct job {
    const conf *conf;
    sources in;
    mix mix;
    stages stages;
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

    j->status = state_open(&j->state, c, &j->stages);
    if (j->status != STATUS_OK || !sources_open(&j->in, c))
        return false;
    stages_begin(&j->stages, &j->mix);

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
        j->status =
            state_restore(&j->state, &j->in, &j->mix, &j->stages, s);
    return j->status == STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Mixing
 */

typedef enum turn {
    TURN_GOES_ON,
    /* a source or a stage ended, so other sources may be due */
    TURN_CHANGED,
    TURN_ENDS,    /* the mix is complete */
    TURN_FAILED
} turn;

/* Length of the current stage. */
static uint64_t length_now(const job *j)
{
    return j->stages.lengths[j->stages.current];
}

/* True if all sources of the current stage have ended at least once. */
static bool all_have_ended(const job *j)
{
    for (uint32_t i = 0; i < j->in.n; i++)
        if (j->mix.sources[i].weight > 0 && !j->in.of[i].ended)
            return false;
    return true;
}

static void next_stage(job *j)
{
    stages_advance(&j->stages, &j->mix);
    sources_begin_stage(&j->in);
}

/* Handles the end of a source that is due. */
static turn end_source(job *j, uint32_t i)
{
    switch (j->conf->stop) {
    case STOP_FIRST:
        break;
    case STOP_LONGEST:
        if (mix_leave(&j->mix, i))
            return TURN_CHANGED;
        next_stage(j);
        return stages_are_over(&j->stages) ? TURN_ENDS : TURN_CHANGED;
    case STOP_REPEAT:
        if (length_now(j) == CONF_ENDLESS && all_have_ended(j))
            break;
        return sources_repeat(&j->in, i) ? TURN_CHANGED : TURN_FAILED;
    }
    j->last = i;
    return TURN_ENDS;
}

/* Reads the next sequence of every source that is due. */
static turn look(job *j)
{
    if (stages_are_over(&j->stages))
        return TURN_ENDS;
    for (uint32_t i = 0; i < j->in.n; i++) {
        if (!mix_is_due(&j->mix, i))
            continue;
        j->looked = i;
        /* With --stop=longest, it may have ended in an earlier stage. */
        if (j->in.of[i].ended && j->conf->stop != STOP_REPEAT)
            return end_source(j, i);
        switch (sources_look(&j->in, i)) {
        case SOURCE_READY:
            j->mix.sources[i].next =
                j->conf->by_sequences ? 1 : j->in.of[i].next.n_tok;
            continue;
        case SOURCE_FAILED:
            return TURN_FAILED;
        case SOURCE_ENDED:
            return end_source(j, i);
        }
    }
    return TURN_GOES_ON;
}

static bool save(job *j, bool ended)
{
    j->status = state_save(&j->state, &j->out, &j->in, &j->mix,
                           &j->stages, ended);
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
    if (stages_take(&j->stages, i, next->n_tok))
        next_stage(j);
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
                    : state_start(&j->state, &j->out, &j->in, &j->mix,
                                  &j->stages);
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

/* Reports the share of each source in a stage. */
static void report_stage(const job *j, uint32_t stage, const char *prefix)
{
    const uint64_t *weights = j->conf->stages[stage].weights;
    const uint64_t n = stages_amount(&j->stages, stage);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < j->in.n; i++)
        sum += weights[i];
    for (uint32_t i = 0; i < j->in.n; i++) {
        const stage_count *own = &stages_counts(&j->stages, stage)[i];
        const uint64_t amount =
            j->conf->by_sequences ? own->sequences : own->tokens;

        if (weights[i] > 0)
            message_note("%s%s: %" PRIu64 " sequences, %" PRIu64 " tokens, "
                         "share %.4f of %.4f",
                         prefix, files_input_name(j->in.of[i].name),
                         own->sequences, own->tokens,
                         n > 0 ? (double)amount / (double)n : 0,
                         (double)weights[i] / (double)sum);
    }
}

static void report(const job *j)
{
    stage_count before = {0, 0};

    if (j->conf->n_given == 0) {
        report_stage(j, 0, "");
        return;
    }
    for (uint32_t i = 0; i < j->conf->n_stages; i++) {
        const stage_count *all = &j->stages.totals[i];
        char prefix[24];

        (void)snprintf(prefix, sizeof prefix, "stage %" PRIu32 ": ", i + 1);
        message_note("%s%" PRIu64 " sequences, %" PRIu64 " tokens, starting "
                     "after %" PRIu64 " sequences, %" PRIu64 " tokens",
                     prefix, all->sequences, all->tokens, before.sequences,
                     before.tokens);
        report_stage(j, i, prefix);
        before.sequences += all->sequences;
        before.tokens += all->tokens;
    }
}

/* Warns of the source that ended the mix, with --stop=first. */
static void warn_ended(job *j)
{
    const char *name = files_input_name(j->in.of[j->last].name);
    uint32_t n = 0;

    if (length_now(j) != CONF_ENDLESS) {
        message_warning("%s ended, which ends the mix in stage %" PRIu32 " of "
                        "%" PRIu32 " after %" PRIu64 " of %" PRIu64 " %s (see "
                        "--stop)",
                        name, j->stages.current + 1, j->conf->n_stages,
                        stages_amount(&j->stages, j->stages.current),
                        length_now(j),
                        j->conf->by_sequences ? "sequences" : "tokens");
        return;
    }
    for (uint32_t i = 0; i < j->in.n; i++)
        if (j->mix.sources[i].weight > 0)
            n += sources_is_unread(&j->in, i);
    if (n > 0)
        message_warning("%s ended, which ends the mix: %" PRIu32 " other "
                        "source%s not read to the end (see --stop)",
                        name, n, n == 1 ? " was" : "s were");
}

/* Warns of stages whose sources ended first, with --stop=longest. */
static void warn_short(const job *j)
{
    for (uint32_t i = 0; i < j->conf->n_stages; i++) {
        const uint64_t amount = stages_amount(&j->stages, i);
        const uint64_t length = j->stages.lengths[i];

        if (length != CONF_ENDLESS && amount < length)
            message_warning("all sources of stage %" PRIu32 " ended after "
                            "%" PRIu64 " of %" PRIu64 " %s (see --stop)",
                            i + 1, amount, length,
                            j->conf->by_sequences ? "sequences" : "tokens");
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

    if (ended)
        j->status = records_end(&j->out);
    if (j->status != STATUS_OK || (c->state != NULL && !save(j, ended)))
        return false;
    j->status = records_close(&j->out);
    if (j->status == STATUS_OK && !file_set_publish(&j->set))
        j->status = STATUS_FAILURE;

    if (j->status != STATUS_OK || !ended || c->quiet)
        return j->status == STATUS_OK;
    if (c->stop == STOP_FIRST && !stages_are_over(&j->stages))
        warn_ended(j);
    else
        warn_short(j);
    return true;
}

int job_run(const conf *c, int *stop)
{
    job j = {.conf = c, .out = {.fd = -1}};
    mix_source *of = calloc(c->n, sizeof *of);
    bool done = false;

    if (of == NULL || !stages_open(&j.stages, c)) {
        stages_close(&j.stages);
        free(of);
        return message_memory();
    }
    j.mix.sources = of;
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
    stages_close(&j.stages);
    free(of);
    return j.status != STATUS_OK ? j.status : j.in.status;
}
