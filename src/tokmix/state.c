/*
 * state.c - the state of a mix.
 *
 * The parts of the checkpoint are the sources.  With --stage, the numbers of
 * the stages follow (see stage_numbers); then the lengths written so far as a
 * LENGTHS record.  Numbers that can be computed from other numbers are not
 * stored, except the weights of the current stage.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/state.h"

#include <inttypes.h>
#include <stdio.h>
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

/* Versions.  Without --stage, the older version is written. */
enum { VERSION_PLAIN = 2, VERSION_STAGES = 3 };

/* Numbers before all stages, of a stage, and of a source in a stage. */
enum { STAGES_COUNT, STAGES_CURRENT, STAGES_NUMBERS };
enum { STAGE_LENGTH, STAGE_NUMBERS };
enum { SHARE_WEIGHT, SHARE_SEQUENCES, SHARE_TOKENS, SHARE_NUMBERS };

static const checkpoint_form form = {.program = "tokmix",
                                     .magic = MAGIC,
                                     .version = VERSION_STAGES,
                                     .other_version = VERSION_PLAIN,
                                     .n = HEAD_NUMBERS,
                                     .n_part = SOURCE_NUMBERS};

static uint64_t head(const state *s, size_t number)
{
    return checkpoint_u64(&s->saved, number);
}

/* ---------------------------------------------------------------------
 * The stages of a loaded state
 */

/* Number of 64-bit numbers of a stage. */
static uint64_t stage_numbers(uint64_t n_sources)
{
    return STAGE_NUMBERS + n_sources * SHARE_NUMBERS;
}

static const unsigned char *saved_stage(const state *s, uint64_t stage)
{
    return s->stages.numbers + 8 * stage * stage_numbers(s->stages.n_sources);
}

static uint64_t saved_length(const state *s, uint64_t stage)
{
    return s->stages.numbers == NULL
               ? CONF_ENDLESS
               : load_u64(saved_stage(s, stage) + 8 * STAGE_LENGTH);
}

/* Weights of a stage, and the distance between them in bytes. */
static const unsigned char *saved_weights(const state *s, uint64_t stage,
                                          size_t *stride)
{
    if (s->stages.numbers == NULL) {
        *stride = 8 * SOURCE_NUMBERS;
        return checkpoint_part(&s->saved, 0) + 8 * SOURCE_WEIGHT;
    }
    *stride = 8 * SHARE_NUMBERS;
    return saved_stage(s, stage) + 8 * (STAGE_NUMBERS + SHARE_WEIGHT);
}

static uint64_t saved_weight(const state *s, uint64_t stage, uint32_t i)
{
    size_t stride;
    const unsigned char *weights = saved_weights(s, stage, &stride);

    return load_u64(weights + i * stride);
}

/* Returns the amount that a stage has taken from source `i`. */
static stage_count saved_count(const state *s, uint64_t stage, uint32_t i)
{
    const unsigned char *from;

    if (s->stages.numbers == NULL) {
        from = checkpoint_part(&s->saved, i);
        return (stage_count){load_u64(from + 8 * SOURCE_SEQUENCES),
                             load_u64(from + 8 * SOURCE_TOKENS)};
    }
    from = saved_stage(s, stage) + 8 * (STAGE_NUMBERS + i * SHARE_NUMBERS);
    return (stage_count){load_u64(from + 8 * SHARE_SEQUENCES),
                         load_u64(from + 8 * SHARE_TOKENS)};
}

/* Finds the stages, and the lengths of the output after them. */
static int find_stages(state *s)
{
    const uint64_t n_sources = head(s, HEAD_COUNT);
    saved_stages *to = &s->stages;
    const unsigned char *at;
    uint64_t bytes = 0;

    if (!checkpoint_has_parts(&s->saved, n_sources) || n_sources > UINT32_MAX)
        return state_file_damaged(s->conf->state);
    *to = (saved_stages){.n = 1, .n_sources = (uint32_t)n_sources};
    at = checkpoint_part(&s->saved, n_sources);
    if (head(s, HEAD_VERSION) == VERSION_STAGES) {
        bytes = 8 * STAGES_NUMBERS;
        if (checkpoint_bytes_after(&s->saved, n_sources) < bytes)
            return state_file_damaged(s->conf->state);
        to->n = load_u64(at + 8 * STAGES_COUNT);
        to->current = load_u64(at + 8 * STAGES_CURRENT);
        to->numbers = at + bytes;
        if (to->n == 0 || to->n > CONF_MAX_STAGES + 1 || to->current > to->n)
            return state_file_damaged(s->conf->state);
        bytes += 8 * to->n * stage_numbers(n_sources);
    }
    if (checkpoint_bytes_after(&s->saved, n_sources) < bytes ||
        checkpoint_bytes_after(&s->saved, n_sources) - bytes !=
            head(s, HEAD_LENGTHS))
        return state_file_damaged(s->conf->state);
    s->out.lengths = at + bytes;
    s->out.n_lengths = (size_t)head(s, HEAD_LENGTHS);

    for (uint32_t i = 0; to->current < to->n && i < to->n_sources; i++) {
        const stage_count count = saved_count(s, to->current, i);

        to->amount += s->conf->by_sequences ? count.sequences : count.tokens;
    }
    return STATUS_OK;
}

/* True if the job or the state has stages. */
static bool is_staged(const state *s)
{
    return s->stages.numbers != NULL || s->conf->n_given > 0;
}

/* ---------------------------------------------------------------------
 * Comparing
 */

static int compare_options(const state *s)
{
    const conf *c = s->conf;
    const uint64_t n = head(s, HEAD_COUNT);
    const state_file_option options[] = {
        {"a source count of ", n, is_staged(s) ? n : c->n, {NULL}},
        {"--by=", head(s, HEAD_UNIT), c->by_sequences, {"tokens", "sequences"}},
        {"--stop=", head(s, HEAD_STOP), c->stop,
         {"first", "longest", "repeat"}},
        {"", head(s, HEAD_CHANNEL), c->channel.name[0] != '\0',
         {"no --channel", "--channel"}},
    };

    return state_file_compare(c->state, options,
                              sizeof options / sizeof options[0]);
}

/* Compares the weights of a stage that has begun. */
static int compare_weights(const state *s, uint32_t stage)
{
    const conf *c = s->conf;
    const uint32_t n_saved = s->stages.n_sources;
    char what[32] = "weight";
    state_file_shares shares = {.what = what,
                                .n = c->n < n_saved ? c->n : n_saved,
                                .now = c->stages[stage].weights,
                                .names = c->names,
                                .name_shown = files_input_name};

    /* Only one of the command lines has the sources after these. */
    for (uint32_t i = shares.n; i < n_saved || i < c->n; i++)
        if (i < n_saved ? saved_weight(s, stage, i) > 0
                        : c->stages[stage].weights[i] > 0) {
            message_error("%s: the state was saved with other sources in "
                          "stage %" PRIu32, message_name(c->state), stage + 1);
            return STATUS_USAGE;
        }
    if (is_staged(s))
        (void)snprintf(what, sizeof what, "stage %" PRIu32 " weight",
                       stage + 1);
    shares.then = saved_weights(s, stage, &shares.stride);
    return state_file_compare_shares(c->state, &shares);
}

/* Compares the length of a stage that has begun, and resolves it. */
static int compare_length(state *s, uint32_t stage, stages *to)
{
    const uint64_t then = saved_length(s, stage);
    const uint64_t now = s->conf->stages[stage].length;
    const char *name = message_name(s->conf->state);
    char text[2][24] = {"none", "none"};

    to->lengths[stage] = now == CONF_NOW ? then : now;
    if (s->ended || stage < s->stages.current) {
        if (to->lengths[stage] == then)
            return STATUS_OK;
        if (then != CONF_ENDLESS)
            (void)snprintf(text[0], sizeof text[0], "%" PRIu64, then);
        if (now != CONF_ENDLESS)
            (void)snprintf(text[1], sizeof text[1], "%" PRIu64, now);
        message_error("%s: the state was saved with a stage %" PRIu32 " length "
                      "of %s, not %s",
                      name, stage + 1, text[0], text[1]);
        return STATUS_USAGE;
    }
    if (now != CONF_NOW && now < s->stages.amount) {
        message_error("%s: stage %" PRIu32 " already has %" PRIu64 " %s, more "
                      "than its length of %" PRIu64 ": end it there with the "
                      "length now",
                      name, stage + 1, s->stages.amount,
                      s->conf->by_sequences ? "sequences" : "tokens", now);
        return STATUS_USAGE;
    }
    if (now == CONF_NOW)
        to->lengths[stage] = s->stages.amount;
    if (to->lengths[stage] == s->stages.amount)
        to->current = stage + 1;
    return STATUS_OK;
}

/* Compares the stages that have begun, and resolves all lengths. */
static int compare_stages(state *s, stages *to)
{
    const conf *c = s->conf;
    const saved_stages *then = &s->stages;
    const uint64_t n_begun =
        s->ended ? then->n : then->current + (then->amount > 0);
    int status = STATUS_OK;

    if (s->ended && then->n != c->n_stages) {
        message_error("%s: the mix is complete with %" PRIu64 " stage%s, which "
                      "cannot become %" PRIu32,
                      message_name(c->state), then->n, then->n == 1 ? "" : "s",
                      c->n_stages);
        return STATUS_USAGE;
    }
    if (n_begun > c->n_stages) {
        message_error("%s: the state has begun stage %" PRIu64 ", but the "
                      "command line has only %" PRIu32,
                      message_name(c->state), n_begun, c->n_stages);
        return STATUS_USAGE;
    }
    to->current = (uint32_t)then->current;
    for (uint32_t i = 0; status == STATUS_OK && i < n_begun; i++) {
        status = compare_weights(s, i);
        if (status == STATUS_OK)
            status = compare_length(s, i, to);
    }
    for (uint32_t i = (uint32_t)n_begun; i < c->n_stages; i++)
        if (status == STATUS_OK && c->stages[i].length == CONF_NOW &&
            (i > then->current || i == 0))
            status = message_usage("stage %" PRIu32 ": the length can be now "
                                   "only if the stage has begun", i + 1);
    return status;
}

/* ---------------------------------------------------------------------
 * Reading
 */

int state_open(state *s, const conf *c, stages *to)
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
    if (status != STATUS_OK)
        return status;
    if (s->saved.bytes == NULL) {
        for (uint32_t i = 0; i < c->n_stages; i++)
            if (c->stages[i].length == CONF_NOW)
                return message_usage("stage %" PRIu32 ": the length can be now "
                                     "only with a state, but %s does not "
                                     "exist",
                                     i + 1, message_name(c->state));
        return STATUS_OK;
    }
    status = find_stages(s);
    if (status != STATUS_OK)
        return status;
    s->ended = head(s, HEAD_END) != 0;
    if (head(s, HEAD_OFFSET) > 0)
        s->out.position = (ps_token_mark){.offset = head(s, HEAD_OFFSET),
                                          .digest = head(s, HEAD_DIGEST)};
    s->out.fingerprint = (output_fingerprint){
        .known = true, .base = head(s, HEAD_BASE), .hash = head(s, HEAD_HASH)};
    /* Before the first byte there is nothing to resume. */
    s->resumes = !s->ended && s->out.position.offset > 0;
    if (is_staged(s) && !s->resumes && !s->ended)
        s->stages.current = s->stages.amount = 0;
    status = compare_options(s);
    return status == STATUS_OK ? compare_stages(s, to) : status;
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
 * True if the position of a source need not be restored, because no stage that
 * has begun has it.  It can be another file than before.
 */
static bool is_untouched(const state *s, const source *one, uint32_t i)
{
    return is_staged(s) && one->sequences == 0 &&
           (i >= s->stages.n_sources || s->stages.amount == 0 ||
            saved_weight(s, s->stages.current, i) == 0);
}

/*
 * Loads the numbers of a source, which must be consistent.  The sums cannot
 * overflow, because all sequences are in the output, whose length was compared
 * with the file.
 */
static bool load_source(state *s, source *one, mix_source *share, uint32_t i)
{
    const conf *c = s->conf;
    const unsigned char *numbers = checkpoint_part(&s->saved, i);
    const uint64_t flags = load_u64(numbers + 8 * SOURCE_FLAGS);
    const uint64_t taken = load_u64(numbers + 8 * SOURCE_TAKEN);
    ps_token_mark *all = &s->out.position;
    source loaded = *one;

    loaded.ready = (flags & FLAG_READY) != 0;
    loaded.begun = (flags & FLAG_BEGUN) != 0;
    loaded.ended = (flags & FLAG_ENDED) != 0;
    loaded.repeats = (flags & FLAG_REPEATS) != 0;
    loaded.sequences = load_u64(numbers + 8 * SOURCE_SEQUENCES);
    loaded.tokens = load_u64(numbers + 8 * SOURCE_TOKENS);
    loaded.bytes = load_u64(numbers + 8 * SOURCE_BYTES);
    loaded.hash = load_u64(numbers + 8 * SOURCE_HASH);
    loaded.position = (ps_token_mark){
        .id = loaded.sequences - (loaded.begun && !loaded.ready),
        .offset = load_u64(numbers + 8 * SOURCE_OFFSET),
        .sequences = load_u64(numbers + 8 * SOURCE_STREAM_SEQUENCES),
        .tokens = load_u64(numbers + 8 * SOURCE_STREAM_TOKENS),
        .digest = load_u64(numbers + 8 * SOURCE_DIGEST)};

    if (flags >= 2 * FLAG_REPEATS || (loaded.ready && !loaded.begun) ||
        (loaded.begun && !loaded.ready && loaded.sequences == 0) ||
        taken > (c->by_sequences ? loaded.sequences : loaded.tokens) ||
        (loaded.ended && c->stop == STOP_LONGEST && taken > 0) ||
        loaded.tokens > all->offset / 2 - all->tokens ||
        loaded.sequences > loaded.tokens)
        return false;
    all->tokens += loaded.tokens;
    all->sequences += loaded.sequences;
    share->taken = taken;
    if (!is_untouched(s, &loaded, i))
        *one = loaded;
    return true;
}

/*
 * Loads what the stages have taken from source `i`, which must add up to all of
 * it.
 */
static bool load_counts(const state *s, stages *to, uint32_t i,
                        const source *one)
{
    stage_count left = {one->sequences, one->tokens};

    for (uint64_t k = 0; k < s->stages.n; k++) {
        const stage_count count = saved_count(s, k, i);

        if (count.sequences > left.sequences || count.tokens > left.tokens ||
            count.sequences > count.tokens ||
            (count.tokens > 0 &&
             (k > s->stages.current || saved_weight(s, k, i) == 0)))
            return false;
        left.sequences -= count.sequences;
        left.tokens -= count.tokens;
        /* Stages and sources that this job lacks have no counts. */
        if (count.tokens == 0)
            continue;
        if (k >= s->conf->n_stages || i >= s->conf->n)
            return false;
        stages_counts(to, (uint32_t)k)[i] = count;
        to->totals[k].sequences += count.sequences;
        to->totals[k].tokens += count.tokens;
    }
    return left.sequences == 0 && left.tokens == 0;
}

/* Loads the mix of the current stage, whose sources have been loaded. */
static bool load_mix(const state *s, const sources *in, mix *m)
{
    bool any = is_staged(s) || s->ended;

    m->weight = m->taken = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        mix_source *share = &m->sources[i];

        share->left =
            share->weight == 0 ||
            (in->of[i].ended && s->conf->stop == STOP_LONGEST);
        if (share->left && share->taken > 0)
            return false;
        any = any || !in->of[i].ended;
        m->weight += share->left ? 0 : share->weight;
        m->taken += share->taken;
    }
    return any;
}

/* Loads the sources and the stages. */
static int load_all(state *s, sources *in, mix *m, stages *to)
{
    source none = {.sequences = 0};
    mix_source no_share = {.weight = 0};
    /* False if the current stage starts here. */
    const bool continues = !stages_are_over(to) &&
                           (s->ended || !is_staged(s) ||
                            (s->stages.amount > 0 &&
                             to->current == s->stages.current));
    bool ok = true;

    for (uint32_t i = 0; ok && i < s->stages.n_sources; i++) {
        const bool is_used = i < in->n;
        source *one = is_used ? &in->of[i] : &none;
        mix_source *share = is_used ? &m->sources[i] : &no_share;

        ok = load_source(s, one, share, i) && load_counts(s, to, i, one);
        if (!continues)
            share->taken = 0;
    }
    if (!continues)
        sources_begin_stage(in);
    else if (ok)
        ok = load_mix(s, in, m);
    s->out.position.id = s->out.position.sequences;
    return ok ? STATUS_OK : state_file_damaged(s->conf->state);
}

int state_restore(state *s, sources *in, mix *m, stages *to,
                  const ps_schema *schema)
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
    status = load_all(s, in, m, to);
    for (uint32_t i = 0; status == STATUS_OK && i < in->n; i++) {
        const source *one = &in->of[i];

        if (is_untouched(s, one, i))
            continue;
        if (!sources_check_size(in, i) ||
            (s->resumes &&
             !(one->ended && s->conf->stop == STOP_LONGEST) &&
             !sources_resume(in, i)))
            status = in->status;
    }
    return status;
}

/* ---------------------------------------------------------------------
 * Saving
 */

/* Appends the stages to the next checkpoint. */
static void put_stages(state *s, const stages *from)
{
    const conf *c = s->conf;
    const uint64_t all[STAGES_NUMBERS] = {
        [STAGES_COUNT] = c->n_stages, [STAGES_CURRENT] = from->current};

    checkpoint_put(&s->saved, all, STAGES_NUMBERS);
    for (uint32_t k = 0; k < c->n_stages; k++) {
        checkpoint_put(&s->saved, &from->lengths[k], STAGE_NUMBERS);
        for (uint32_t i = 0; i < c->n; i++) {
            const stage_count *count = &stages_counts(from, k)[i];
            const uint64_t share[SHARE_NUMBERS] = {
                [SHARE_WEIGHT] = c->stages[k].weights[i],
                [SHARE_SEQUENCES] = count->sequences,
                [SHARE_TOKENS] = count->tokens};

            checkpoint_put(&s->saved, share, SHARE_NUMBERS);
        }
    }
}

/* Writes a checkpoint.  The output must be on disk up to s->out.position. */
static int write_state(state *s, const sources *in, const mix *m,
                       const stages *to, bool ended)
{
    const conf *c = s->conf;
    const uint64_t numbers[HEAD_NUMBERS] = {
        [HEAD_VERSION] = c->n_given > 0 ? VERSION_STAGES : VERSION_PLAIN,
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
    if (c->n_given > 0)
        put_stages(s, to);
    checkpoint_put_bytes(&s->saved, s->out.lengths, s->out.n_lengths);
    return checkpoint_write(&s->saved);
}

int state_start(state *s, records *out, const sources *in, const mix *m,
                const stages *to)
{
    int status;

    if (s->saved.bytes != NULL) {
        status = resumable_records_resume(&s->out, out);
        return status == STATUS_OK && is_staged(s)
                   ? write_state(s, in, m, to, false)
                   : status;
    }
    status = resumable_records_fingerprint(&s->out);
    if (status == STATUS_OK)
        status = write_state(s, in, m, to, false);
    return status == STATUS_OK ? records_start(out) : status;
}

int state_save(state *s, records *out, const sources *in, const mix *m,
               const stages *to, bool ended)
{
    const int status = resumable_records_save(&s->out, out);

    return status == STATUS_OK ? write_state(s, in, m, to, ended) : status;
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
