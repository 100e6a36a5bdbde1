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
#include "common/bytes.h"
#include "tokmix/mix.h"
#include "tokmix/sources.h"

typedef struct job {
    const conf *conf;
    sources in;
    mix mix;
    uint32_t last; /* the source with whose end the mix ends */
    file_set set;
    records out;
    int status; /* of the output */
} job;

/* Before a wait for input: the next program may be waiting for records. */
static ps_result pass_on(void *context, ps_error *err)
{
    job *j = context;

    (void)err;
    j->status = records_flush(&j->out);
    return j->status == STATUS_OK ? PS_OK : PS_ERR_IO;
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

static bool open_all(job *j)
{
    const conf *c = j->conf;

    if (!sources_open(&j->in, c, pass_on, j) || !complete_schema(j))
        return false;
    j->out.name = c->output;
    j->out.fd = file_set_open(&j->set, c->output, c->names, (int)c->n);
    if (j->out.fd < 0 || (!c->no_sandbox &&
                          !file_set_enter_sandbox(&j->set, NULL, 0)))
        j->status = STATUS_FAILURE;
    if (j->status == STATUS_OK)
        j->status = records_start(&j->out);
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

/* Mixes until that ends; false after a failure. */
static bool mix_all(job *j)
{
    turn t;

    progress_start(&j->out.progress, !j->conf->quiet);
    while ((t = look(j)) != TURN_ENDS) {
        uint32_t i;

        if (t == TURN_FAILED)
            return false;
        if (t == TURN_CHANGED)
            continue;
        i = mix_next(&j->mix);
        if (!put(j, i))
            return false;
        mix_take(&j->mix, i);
        sources_take(&j->in, i);
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

/* Ends the stream, and gives it its name. */
static int finish(job *j)
{
    int status = records_finish(&j->out);

    if (status == STATUS_OK && !file_set_publish(&j->set))
        status = STATUS_FAILURE;
    if (status != STATUS_OK)
        return status;
    warn_of_rest(j);
    if (j->conf->verbose)
        report(j);
    return STATUS_OK;
}

int job_run(const conf *c)
{
    job j = {.conf = c, .out = {.fd = -1}};
    mix_source *of = calloc(c->n, sizeof *of);
    int status;

    if (of == NULL)
        return message_memory();
    mix_begin(&j.mix, of, c->weights, c->n);
    if (open_all(&j) && mix_all(&j)) {
        status = finish(&j);
    } else {
        status = j.status != STATUS_OK ? j.status : j.in.status;
        records_abandon(&j.out);
    }
    file_set_free(&j.set);
    records_free(&j.out);
    sources_close(&j.in);
    free(of);
    return status;
}
