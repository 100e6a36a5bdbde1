/*
 * state.c - the state of a mix.
 *
 * The file contains a magic, 64-bit numbers, the lengths written so far as a
 * LENGTHS record, and the XXH3-64 of everything before.  The numbers for the
 * whole mix come first, then the same ones for each source.  Numbers that
 * follow from others are not stored.  A state is untrusted input: each number
 * is checked before it is used.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"
#include "files/state_file.h"

#define MAGIC "\x89MIX\r\n\x1a\n"
#define STATE_VERSION 2

/* Numbers of the mix. */
enum {
    THE_VERSION,
    THE_COUNT, /* number of sources */
    THE_UNIT,  /* conf.by_sequences */
    THE_STOP,
    THE_CHANNEL, /* 1 if there is a channel for the source's index */
    THE_FRAMING, /* 1 if the sources are framed */
    THE_TYPE,    /* token type of the sources */
    THE_END,     /* 1 if the mix has ended */
    THE_OFFSET,  /* length of the output in bytes; its digest follows */
    THE_DIGEST,
    THE_BASE, /* offset of the output in its file, in bytes */
    THE_SAMPLES,
    THE_LENGTHS, /* size of the lengths, in bytes */
    THE_NUMBERS
};

/* Numbers of a source. */
enum {
    ITS_WEIGHT,
    ITS_FLAGS,
    ITS_SEQUENCES,
    ITS_TOKENS,
    ITS_TAKEN, /* mix_source.taken */
    ITS_BYTES,
    ITS_OFFSET, /* this and the next three: source.place */
    ITS_STREAM_SEQUENCES,
    ITS_STREAM_TOKENS,
    ITS_DIGEST,
    ITS_HASH, /* fingerprint of the record there */
    ITS_NUMBERS
};

enum { FLAG_READY = 1, FLAG_BEGUN = 2, FLAG_ENDED = 4, FLAG_REPEATS = 8 };

/*
 * Offset of a number of source `i`, in bytes.  The lengths follow the last
 * source.  It cannot overflow: each source already holds more memory.
 */
static size_t place_of(uint32_t i, int number)
{
    return 8 * (1 + THE_NUMBERS + (size_t)i * ITS_NUMBERS +
                (size_t)number);
}

static uint64_t the(const state *s, int number)
{
    return load_u64(s->bytes + 8 * (1 + (size_t)number));
}

static uint64_t its(const state *s, uint32_t i, int number)
{
    return load_u64(s->bytes + place_of(i, number));
}

/* ---------------------------------------------------------------------
 * Reading
 */

/* Checks the format and sizes, but not the values of the numbers. */
static int check_state(const state *s)
{
    const state_file_form form = {.program = "tokmix",
                                  .magic = MAGIC,
                                  .version = STATE_VERSION,
                                  .min_bytes = place_of(1, 1)};
    const int status = state_file_check_form(s->file.name, &form, s->bytes,
                                             s->n_bytes);

    if (status != STATUS_OK)
        return status;
    if (the(s, THE_COUNT) > UINT32_MAX || the(s, THE_LENGTHS) > s->n_bytes ||
        s->n_bytes != place_of((uint32_t)the(s, THE_COUNT), 1) +
                          the(s, THE_LENGTHS))
        return state_file_damaged(s->file.name);
    return STATUS_OK;
}

static int compare_options(const state *s)
{
    const conf *c = s->conf;
    const state_file_option options[] = {
        {"a source count of ", the(s, THE_COUNT), c->n, {NULL}},
        {"--by=", the(s, THE_UNIT), c->by_sequences, {"tokens", "sequences"}},
        {"--stop=", the(s, THE_STOP), c->stop, {"first", "longest", "repeat"}},
        {"", the(s, THE_CHANNEL), c->channel.name[0] != '\0',
         {"no --channel", "--channel"}},
    };
    const state_file_shares shares = {
        .what = "weight",
        .n = c->n,
        .then = s->bytes + place_of(0, ITS_WEIGHT),
        .stride = place_of(1, 0) - place_of(0, 0),
        .now = c->weights,
        .names = c->names,
        .name_shown = files_input_name};
    int status = state_file_compare(s->file.name, options,
                                    sizeof options / sizeof options[0]);

    return status == STATUS_OK
               ? state_file_compare_shares(s->file.name, &shares)
               : status;
}

int state_open(state *s, const conf *c)
{
    const state_file_options options = {
        .name = c->state,
        .resume = c->resume,
        .max = STATE_FILE_MAX,
        .magic = MAGIC,
        .uses = {{"the output", &c->output, 1, STDOUT_FILENO},
                 {"a source", c->names, (int)c->n, STDIN_FILENO}}};
    int status;

    *s = (state){.conf = c, .file = ATOMIC_FILE_CLOSED,
                 .out = {.output = {.fd = -1}}};
    if (c->state == NULL)
        return STATUS_OK;
    status = state_file_open(&s->file, &options, &s->bytes, &s->n_bytes);
    if (status != STATUS_OK || s->bytes == NULL)
        return status;
    status = check_state(s);
    if (status == STATUS_OK)
        status = compare_options(s);
    if (status != STATUS_OK)
        return status;
    if (the(s, THE_OFFSET) > 0)
        s->out.place = (ps_token_mark){.offset = the(s, THE_OFFSET),
                                       .digest = the(s, THE_DIGEST)};
    s->out.mark = (output_check_mark){.known = true,
                                      .base = the(s, THE_BASE),
                                      .hash = the(s, THE_SAMPLES)};
    s->out.lengths = s->bytes + place_of(c->n, 0);
    s->out.n_lengths = (size_t)the(s, THE_LENGTHS);
    s->ended = the(s, THE_END) != 0;
    /* Before the first byte there is nothing to resume. */
    s->goes_on = !s->ended && s->out.place.offset > 0;
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * The output
 */

int state_open_output(state *s, records *out)
{
    const conf *c = s->conf;

    if (!files_spare_inputs(c->output, c->names, (int)c->n))
        return STATUS_FAILURE;
    if (s->bytes == NULL)
        return kept_records_begin(&s->out, out, c->state, c->resume);
    return kept_records_reopen(&s->out, out,
                               the(s, THE_FRAMING) != 0 ||
                                   the(s, THE_CHANNEL) != 0);
}

/* ---------------------------------------------------------------------
 * Restoring
 */

/*
 * Loads the sources, whose numbers must be consistent.  All sequences are in
 * the output, whose length was compared with the file's, so the sums cannot
 * overflow.
 */
static int load_sources(state *s, sources *in, mix *m)
{
    const conf *c = s->conf;
    const uint64_t max_tokens = s->out.place.offset / 2;

    in->n_left = 0;
    m->weight = m->taken = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        const uint64_t flags = its(s, i, ITS_FLAGS);
        mix_source *share = &m->sources[i];
        source *one = &in->of[i];

        one->ready = (flags & FLAG_READY) != 0;
        one->begun = (flags & FLAG_BEGUN) != 0;
        one->ended = (flags & FLAG_ENDED) != 0;
        one->repeats = (flags & FLAG_REPEATS) != 0;
        one->sequences = its(s, i, ITS_SEQUENCES);
        one->tokens = its(s, i, ITS_TOKENS);
        one->bytes = its(s, i, ITS_BYTES);
        one->hash = its(s, i, ITS_HASH);
        one->place = (ps_token_mark){
            .id = one->sequences - (one->begun && !one->ready),
            .offset = its(s, i, ITS_OFFSET),
            .sequences = its(s, i, ITS_STREAM_SEQUENCES),
            .tokens = its(s, i, ITS_STREAM_TOKENS),
            .digest = its(s, i, ITS_DIGEST)};
        share->taken = its(s, i, ITS_TAKEN);
        share->left = one->ended && c->stop == STOP_LONGEST;

        if (flags >= 2 * FLAG_REPEATS || (one->ready && !one->begun) ||
            (one->begun && !one->ready && one->sequences == 0) ||
            share->taken > (c->by_sequences ? one->sequences : one->tokens) ||
            (share->left && share->taken > 0) ||
            one->tokens > max_tokens - s->out.place.tokens ||
            one->sequences > one->tokens)
            return state_file_damaged(s->file.name);
        s->out.place.tokens += one->tokens;
        s->out.place.sequences += one->sequences;
        in->n_left += !one->ended;
        m->weight += share->left ? 0 : share->weight;
        m->taken += share->taken;
    }
    s->out.place.id = s->out.place.sequences;
    return in->n_left > 0 || s->ended ? STATUS_OK
                                      : state_file_damaged(s->file.name);
}

int state_restore(state *s, sources *in, mix *m, const ps_schema *schema)
{
    const state_file_option options[] = {
        {"sources that are ", s->bytes == NULL ? 0 : the(s, THE_FRAMING),
         in->schema.framed, {"raw", "framed"}},
        {"tokens of type ", s->bytes == NULL ? 0 : the(s, THE_TYPE) - PS_U16,
         (uint64_t)in->schema.token_type - PS_U16, {"u16", "u32"}},
    };
    int status;

    if (s->bytes == NULL)
        return STATUS_OK;
    status = state_file_compare(s->file.name, options,
                                sizeof options / sizeof options[0]);
    if (status == STATUS_OK)
        status = kept_records_compare(&s->out, s->file.name, schema);
    if (status != STATUS_OK || (!s->goes_on && !s->ended))
        return status;
    status = load_sources(s, in, m);
    for (uint32_t i = 0; status == STATUS_OK && i < in->n; i++)
        if (!sources_has_size(in, i) ||
            (s->goes_on && !m->sources[i].left && !sources_resume(in, i)))
            status = in->status;
    return status;
}

/* ---------------------------------------------------------------------
 * Saving
 */

/* Writes the state for an output that is on disk up to s->out.place. */
static int write_state(state *s, const sources *in, const mix *m, bool ended)
{
    const conf *c = s->conf;
    const uint64_t numbers[THE_NUMBERS] = {
        [THE_VERSION] = STATE_VERSION,
        [THE_COUNT] = in->n,
        [THE_UNIT] = c->by_sequences,
        [THE_STOP] = c->stop,
        [THE_CHANNEL] = c->channel.name[0] != '\0',
        [THE_FRAMING] = in->schema.framed,
        [THE_TYPE] = in->schema.token_type,
        [THE_END] = ended,
        [THE_OFFSET] = s->out.place.offset,
        [THE_DIGEST] = s->out.place.digest,
        [THE_BASE] = s->out.mark.base,
        [THE_SAMPLES] = s->out.mark.hash,
        [THE_LENGTHS] = s->out.n_lengths};
    const size_t n = place_of(in->n, 0) + s->out.n_lengths;
    unsigned char *bytes = malloc(n + 8);
    bool written;

    if (bytes == NULL)
        return message_memory();
    memcpy(bytes, MAGIC, 8);
    for (int k = 0; k < THE_NUMBERS; k++)
        store_u64(bytes + 8 * (1 + (size_t)k), numbers[k]);
    for (uint32_t i = 0; i < in->n; i++) {
        const source *one = &in->of[i];
        const uint64_t its_numbers[ITS_NUMBERS] = {
            [ITS_WEIGHT] = m->sources[i].weight,
            [ITS_FLAGS] = (one->ready ? FLAG_READY : 0U) |
                          (one->begun ? FLAG_BEGUN : 0U) |
                          (one->ended ? FLAG_ENDED : 0U) |
                          (one->repeats ? FLAG_REPEATS : 0U),
            [ITS_SEQUENCES] = one->sequences,
            [ITS_TOKENS] = one->tokens,
            [ITS_TAKEN] = m->sources[i].taken,
            [ITS_BYTES] = one->bytes,
            [ITS_OFFSET] = one->place.offset,
            [ITS_STREAM_SEQUENCES] = one->place.sequences,
            [ITS_STREAM_TOKENS] = one->place.tokens,
            [ITS_DIGEST] = one->place.digest,
            [ITS_HASH] = one->hash};

        for (int k = 0; k < ITS_NUMBERS; k++)
            store_u64(bytes + place_of(i, k), its_numbers[k]);
    }
    if (s->out.n_lengths > 0)
        memcpy(bytes + place_of(in->n, 0), s->out.lengths, s->out.n_lengths);
    store_u64(bytes + n, XXH3_64bits(bytes, n));
    written = atomic_file_write(&s->file, bytes, n + 8);
    free(bytes);
    return written ? STATUS_OK : STATUS_FAILURE;
}

bool state_is_due(state *s, uint64_t bytes)
{
    const uint64_t every = s->conf->state_every;

    if (s->conf->state == NULL)
        return false;
    s->written += every == 0 ? bytes : 1;
    return s->written >= (every == 0 ? STATE_FILE_EVERY : every);
}

int state_start(state *s, records *out, const sources *in, const mix *m)
{
    int status;

    if (s->bytes != NULL)
        return kept_records_resume(&s->out, out);
    status = kept_records_mark(&s->out);
    if (status == STATUS_OK)
        status = write_state(s, in, m, false);
    return status == STATUS_OK ? records_start(out) : status;
}

int state_save(state *s, records *out, const sources *in, const mix *m,
               bool ended)
{
    const int status = kept_records_save(&s->out, out);

    s->written = 0;
    return status == STATUS_OK ? write_state(s, in, m, ended) : status;
}

int state_finish_again(state *s, records *out)
{
    const int status = kept_records_leave(&s->out, out);

    if (status == STATUS_OK && s->conf->verbose)
        message_note("%s: the mix has ended, there is nothing left to do",
                     message_name(s->file.name));
    out->figures.sequences = s->out.place.sequences;
    out->figures.tokens = s->out.place.tokens;
    return status;
}

void state_close(state *s)
{
    kept_records_close(&s->out);
    atomic_file_close(&s->file);
    free(s->bytes);
    s->bytes = NULL;
}
