/*
 * state.c - the state of a mix.
 *
 * The parts of the checkpoint are the sources; the lengths written so far
 * follow as a LENGTHS record.  Numbers that can be computed from other numbers
 * are not stored.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/state.h"

#include <unistd.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"

#define MAGIC "\x89MIX\r\n\x1a\n"

/* Numbers of the mix. */
enum {
    HEAD_VERSION,
    HEAD_COUNT, /* number of sources */
    HEAD_UNIT,  /* conf.by_sequences */
    HEAD_STOP,
    HEAD_CHANNEL, /* 1 if there is a channel for the source's index */
    HEAD_FRAMING, /* 1 if the sources are framed */
    HEAD_TYPE,    /* token type of the sources */
    HEAD_END,     /* 1 if the mix has ended */
    HEAD_OFFSET,  /* length of the output, in bytes */
    HEAD_DIGEST,  /* digest of the output */
    HEAD_BASE, /* offset of the output in its file, in bytes */
    HEAD_HASH,
    HEAD_LENGTHS, /* size of the lengths, in bytes */
    HEAD_NUMBERS
};

/* Numbers of a source. */
enum {
    SOURCE_WEIGHT,
    SOURCE_FLAGS,
    SOURCE_SEQUENCES,
    SOURCE_TOKENS,
    SOURCE_TAKEN, /* mix_source.taken */
    SOURCE_BYTES,
    SOURCE_OFFSET, /* this and the next three: source.position */
    SOURCE_STREAM_SEQUENCES,
    SOURCE_STREAM_TOKENS,
    SOURCE_DIGEST,
    SOURCE_HASH, /* fingerprint of the record at this position */
    SOURCE_NUMBERS
};

enum { FLAG_READY = 1, FLAG_BEGUN = 2, FLAG_ENDED = 4, FLAG_REPEATS = 8 };

static const checkpoint_form form = {.program = "tokmix",
                                     .magic = MAGIC,
                                     .version = 2,
                                     .n = HEAD_NUMBERS,
                                     .n_part = SOURCE_NUMBERS};

static uint64_t head(const state *s, size_t number)
{
    return checkpoint_u64(&s->saved, number);
}

/* ---------------------------------------------------------------------
 * Reading
 */

static int compare_options(const state *s)
{
    const conf *c = s->conf;
    const state_file_option options[] = {
        {"a source count of ", head(s, HEAD_COUNT), c->n, {NULL}},
        {"--by=", head(s, HEAD_UNIT), c->by_sequences, {"tokens", "sequences"}},
        {"--stop=", head(s, HEAD_STOP), c->stop,
         {"first", "longest", "repeat"}},
        {"", head(s, HEAD_CHANNEL), c->channel.name[0] != '\0',
         {"no --channel", "--channel"}},
    };
    const state_file_shares shares = {
        .what = "weight",
        .n = c->n,
        .then = checkpoint_part(&s->saved, 0) + 8 * SOURCE_WEIGHT,
        .stride = 8 * SOURCE_NUMBERS,
        .now = c->weights,
        .names = c->names,
        .name_shown = files_input_name};
    int status = state_file_compare(c->state, options,
                                    sizeof options / sizeof options[0]);

    return status == STATUS_OK ? state_file_compare_shares(c->state, &shares)
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

    *s = (state){.conf = c, .out = {.output = {.fd = -1}}};
    status = checkpoint_open(&s->saved, &form, &options, c->state_every);
    if (status != STATUS_OK || s->saved.bytes == NULL)
        return status;
    if (!checkpoint_has_parts(&s->saved, head(s, HEAD_COUNT)) ||
        checkpoint_bytes_after(&s->saved, head(s, HEAD_COUNT)) !=
            head(s, HEAD_LENGTHS))
        return state_file_damaged(c->state);
    status = compare_options(s);
    if (status != STATUS_OK)
        return status;
    if (head(s, HEAD_OFFSET) > 0)
        s->out.position = (ps_token_mark){.offset = head(s, HEAD_OFFSET),
                                          .digest = head(s, HEAD_DIGEST)};
    s->out.fingerprint = (output_fingerprint){
        .known = true, .base = head(s, HEAD_BASE), .hash = head(s, HEAD_HASH)};
    s->out.lengths = checkpoint_part(&s->saved, c->n);
    s->out.n_lengths = (size_t)head(s, HEAD_LENGTHS);
    s->ended = head(s, HEAD_END) != 0;
    /* Before the first byte there is nothing to resume. */
    s->resumes = !s->ended && s->out.position.offset > 0;
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * The output
 */

int state_open_output(state *s, records *out)
{
    const conf *c = s->conf;

    const int status = files_check_inputs(c->output, c->names, (int)c->n);

    if (status != STATUS_OK)
        return status;
    if (s->saved.bytes == NULL)
        return resumable_records_begin(&s->out, out, c->state, c->resume);
    return resumable_records_reopen(
        &s->out, out, head(s, HEAD_FRAMING) != 0 || head(s, HEAD_CHANNEL) != 0);
}

/* ---------------------------------------------------------------------
 * Restoring
 */

/*
 * Loads the sources, whose numbers must be consistent.  The sums cannot
 * overflow, because all sequences are in the output, whose length was compared
 * with the file.
 */
static int load_sources(state *s, sources *in, mix *m)
{
    const conf *c = s->conf;
    const uint64_t max_tokens = s->out.position.offset / 2;

    in->n_left = 0;
    m->weight = m->taken = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        const unsigned char *numbers = checkpoint_part(&s->saved, i);
        const uint64_t flags = load_u64(numbers + 8 * SOURCE_FLAGS);
        mix_source *share = &m->sources[i];
        source *one = &in->of[i];

        one->ready = (flags & FLAG_READY) != 0;
        one->begun = (flags & FLAG_BEGUN) != 0;
        one->ended = (flags & FLAG_ENDED) != 0;
        one->repeats = (flags & FLAG_REPEATS) != 0;
        one->sequences = load_u64(numbers + 8 * SOURCE_SEQUENCES);
        one->tokens = load_u64(numbers + 8 * SOURCE_TOKENS);
        one->bytes = load_u64(numbers + 8 * SOURCE_BYTES);
        one->hash = load_u64(numbers + 8 * SOURCE_HASH);
        one->position = (ps_token_mark){
            .id = one->sequences - (one->begun && !one->ready),
            .offset = load_u64(numbers + 8 * SOURCE_OFFSET),
            .sequences = load_u64(numbers + 8 * SOURCE_STREAM_SEQUENCES),
            .tokens = load_u64(numbers + 8 * SOURCE_STREAM_TOKENS),
            .digest = load_u64(numbers + 8 * SOURCE_DIGEST)};
        share->taken = load_u64(numbers + 8 * SOURCE_TAKEN);
        share->left = one->ended && c->stop == STOP_LONGEST;

        if (flags >= 2 * FLAG_REPEATS || (one->ready && !one->begun) ||
            (one->begun && !one->ready && one->sequences == 0) ||
            share->taken > (c->by_sequences ? one->sequences : one->tokens) ||
            (share->left && share->taken > 0) ||
            one->tokens > max_tokens - s->out.position.tokens ||
            one->sequences > one->tokens)
            return state_file_damaged(c->state);
        s->out.position.tokens += one->tokens;
        s->out.position.sequences += one->sequences;
        in->n_left += !one->ended;
        m->weight += share->left ? 0 : share->weight;
        m->taken += share->taken;
    }
    s->out.position.id = s->out.position.sequences;
    return in->n_left > 0 || s->ended ? STATUS_OK
                                      : state_file_damaged(c->state);
}

int state_restore(state *s, sources *in, mix *m, const ps_schema *schema)
{
    int status;

    if (s->saved.bytes == NULL)
        return STATUS_OK;
    status = state_file_compare_schema(s->conf->state, head(s, HEAD_FRAMING),
                                       head(s, HEAD_TYPE), &in->schema);
    if (status == STATUS_OK)
        status = resumable_records_compare(&s->out, s->conf->state, schema);
    if (status != STATUS_OK || (!s->resumes && !s->ended))
        return status;
    status = load_sources(s, in, m);
    for (uint32_t i = 0; status == STATUS_OK && i < in->n; i++)
        if (!sources_check_size(in, i) ||
            (s->resumes && !m->sources[i].left && !sources_resume(in, i)))
            status = in->status;
    return status;
}

/* ---------------------------------------------------------------------
 * Saving
 */

/* Writes a checkpoint.  The output must be on disk up to s->out.position. */
static int write_state(state *s, const sources *in, const mix *m, bool ended)
{
    const conf *c = s->conf;
    const uint64_t numbers[HEAD_NUMBERS] = {
        [HEAD_VERSION] = form.version,
        [HEAD_COUNT] = in->n,
        [HEAD_UNIT] = c->by_sequences,
        [HEAD_STOP] = c->stop,
        [HEAD_CHANNEL] = c->channel.name[0] != '\0',
        [HEAD_FRAMING] = in->schema.framed,
        [HEAD_TYPE] = in->schema.token_type,
        [HEAD_END] = ended,
        [HEAD_OFFSET] = s->out.position.offset,
        [HEAD_DIGEST] = s->out.position.digest,
        [HEAD_BASE] = s->out.fingerprint.base,
        [HEAD_HASH] = s->out.fingerprint.hash,
        [HEAD_LENGTHS] = s->out.n_lengths};

    checkpoint_put(&s->saved, numbers, HEAD_NUMBERS);
    for (uint32_t i = 0; i < in->n; i++) {
        const source *one = &in->of[i];
        const uint64_t of_source[SOURCE_NUMBERS] = {
            [SOURCE_WEIGHT] = m->sources[i].weight,
            [SOURCE_FLAGS] = (one->ready ? FLAG_READY : 0U) |
                             (one->begun ? FLAG_BEGUN : 0U) |
                             (one->ended ? FLAG_ENDED : 0U) |
                             (one->repeats ? FLAG_REPEATS : 0U),
            [SOURCE_SEQUENCES] = one->sequences,
            [SOURCE_TOKENS] = one->tokens,
            [SOURCE_TAKEN] = m->sources[i].taken,
            [SOURCE_BYTES] = one->bytes,
            [SOURCE_OFFSET] = one->position.offset,
            [SOURCE_STREAM_SEQUENCES] = one->position.sequences,
            [SOURCE_STREAM_TOKENS] = one->position.tokens,
            [SOURCE_DIGEST] = one->position.digest,
            [SOURCE_HASH] = one->hash};

        checkpoint_put(&s->saved, of_source, SOURCE_NUMBERS);
    }
    checkpoint_put_bytes(&s->saved, s->out.lengths, s->out.n_lengths);
    return checkpoint_write(&s->saved);
}

int state_start(state *s, records *out, const sources *in, const mix *m)
{
    int status;

    if (s->saved.bytes != NULL)
        return resumable_records_resume(&s->out, out);
    status = resumable_records_fingerprint(&s->out);
    if (status == STATUS_OK)
        status = write_state(s, in, m, false);
    return status == STATUS_OK ? records_start(out) : status;
}

int state_save(state *s, records *out, const sources *in, const mix *m,
               bool ended)
{
    const int status = resumable_records_save(&s->out, out);

    return status == STATUS_OK ? write_state(s, in, m, ended) : status;
}

int state_finish_again(state *s, records *out)
{
    const int status = resumable_records_leave(&s->out, out);

    if (status == STATUS_OK && s->conf->verbose)
        message_note("%s: the mix is complete: nothing to do",
                     message_name(s->conf->state));
    out->figures.sequences = s->out.position.sequences;
    out->figures.tokens = s->out.position.tokens;
    return status;
}

void state_close(state *s)
{
    resumable_records_close(&s->out);
    checkpoint_close(&s->saved);
}
