/*
 * state.c - the state of a shuffle.
 *
 * The parts of the checkpoint are the outputs.  The runs follow, then the
 * lengths written to each output, as a LENGTHS record.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokshuf/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"

#define MAGIC "\x89SHF\r\n\x1a\n"

static const char *const endings[2] = {".0", ".1"};

/* Numbers of the shuffle. */
enum {
    HEAD_VERSION,
    HEAD_PHASE,
    HEAD_SEED,
    HEAD_SAMPLE, /* 1 if --head-count was given */
    HEAD_COUNT,  /* conf.count */
    HEAD_MIN,    /* conf.min_length and max_length, in tokens */
    HEAD_MAX,
    HEAD_WINDOW,
    HEAD_INPUTS,
    HEAD_OUTPUTS,
    HEAD_FRAMING, /* 1 if the records are framed */
    HEAD_TYPE,    /* token type of the records */
    HEAD_BYTES,   /* total size of the files read to the end */
    HEAD_FILE,    /* from here to HEAD_FIRST_ID: input_position */
    HEAD_RECORD,
    HEAD_ID,
    HEAD_OFFSET,
    HEAD_EARLIER,
    HEAD_SEQUENCES,
    HEAD_TOKENS,
    HEAD_DIGEST,
    HEAD_HASH,
    HEAD_READ,
    HEAD_SHORT,
    HEAD_LONG,
    HEAD_GROUPED, /* 1 with --group */
    HEAD_GROUP,
    HEAD_FIRST_ID,
    HEAD_KEY, /* from here to HEAD_MERGED: members of sorter */
    HEAD_PUT,
    HEAD_GIVEN,
    HEAD_WRITTEN,
    HEAD_CURRENT,
    HEAD_MERGED,
    HEAD_SIZE, /* size of the first file of runs, in bytes */
    HEAD_SUM,  /* its digest */
    HEAD_RUNS, /* its number of runs */
    HEAD_SIZE_1, /* the same numbers of the second file */
    HEAD_SUM_1,
    HEAD_RUNS_1,
    HEAD_NUMBERS
};

#define RUNS_NUMBERS (HEAD_SIZE_1 - HEAD_SIZE)

/* Numbers of an output. */
enum {
    OUTPUT_WEIGHT,
    OUTPUT_PLACE, /* resumable_records_load */
    /* size of its LENGTHS, in bytes */
    OUTPUT_LENGTHS = OUTPUT_PLACE + RESUMABLE_RECORDS_NUMBERS,
    OUTPUT_NUMBERS
};

static const checkpoint_form form = {.program = "tokshuf",
                                     .magic = MAGIC,
                                     .version = 4,
                                     .n = HEAD_NUMBERS,
                                     .n_part = OUTPUT_NUMBERS};

static uint64_t head(const state *s, size_t number)
{
    return checkpoint_u64(&s->saved, number);
}

static uint64_t output_u64(const state *s, uint64_t i, size_t number)
{
    return load_u64(checkpoint_part(&s->saved, i) + 8 * number);
}

/* ---------------------------------------------------------------------
 * Reading
 */

/* True if the numbers of the sorter are consistent. */
static bool is_sound(const state *s)
{
    const uint64_t n[2] = {head(s, HEAD_RUNS), head(s, HEAD_RUNS_1)};
    const uint64_t current = head(s, HEAD_CURRENT);
    const uint64_t merged = head(s, HEAD_MERGED);
    const uint64_t wanted =
        head(s, HEAD_SAMPLE) != 0 ? head(s, HEAD_COUNT) : SORTER_ALL;

    if (current > 1 || head(s, HEAD_PHASE) > STATE_ENDED ||
        (merged > 0 ? merged >= n[current] : n[1 - current] > 0) ||
        head(s, HEAD_PUT) > wanted || head(s, HEAD_GIVEN) > head(s, HEAD_PUT))
        return false;
    for (size_t i = 0; i < 2; i++) {
        const uint64_t size = head(s, HEAD_SIZE + i * RUNS_NUMBERS);

        if (size > 0 && size < RUNS_START)
            return false;
    }
    return head(s, HEAD_PHASE) != STATE_READING ||
           (current == 0 && merged == 0 && head(s, HEAD_GIVEN) == 0 &&
            head(s, HEAD_FILE) < head(s, HEAD_INPUTS));
}

/* Size of the runs and lengths after the outputs, in bytes. */
static uint64_t more_bytes(const state *s)
{
    const uint64_t max = s->saved.n_bytes;
    uint64_t more = RUNS_BYTES * (head(s, HEAD_RUNS) + head(s, HEAD_RUNS_1));

    /* A number that is too large counts as `max`, to avoid overflow. */
    for (uint64_t i = 0; i < head(s, HEAD_OUTPUTS); i++) {
        const uint64_t n = output_u64(s, i, OUTPUT_LENGTHS);

        more += n < max ? n : max;
    }
    return more;
}

/* Checks the sizes and the numbers of the sorter. */
static int check_state(const state *s)
{
    const uint64_t max = s->saved.n_bytes;
    const uint64_t n = head(s, HEAD_OUTPUTS);

    return head(s, HEAD_RUNS) <= max && head(s, HEAD_RUNS_1) <= max &&
                   checkpoint_has_parts(&s->saved, n) &&
                   checkpoint_bytes_after(&s->saved, n) == more_bytes(s) &&
                   is_sound(s)
               ? STATUS_OK
               : state_file_damaged(s->conf->state);
}

static int compare_options(const state *s)
{
    const conf *c = s->conf;
    const state_file_option options[] = {
        {"--seed=", head(s, HEAD_SEED), c->seed, {NULL}},
        {"", head(s, HEAD_SAMPLE), c->count != UINT64_MAX,
         {"no --head-count", "--head-count"}},
        {"--head-count=", head(s, HEAD_COUNT), c->count, {NULL}},
        {"--min-length=", head(s, HEAD_MIN), c->min_length, {NULL}},
        {"--max-length=", head(s, HEAD_MAX), c->max_length, {NULL}},
        {"--by-length=", head(s, HEAD_WINDOW), c->by_length, {NULL}},
        {"", head(s, HEAD_GROUPED), c->group != NULL,
         {"single sequences", "whole groups"}},
        {"an input count of ", head(s, HEAD_INPUTS), (uint64_t)c->n_inputs,
         {NULL}},
        {"an output count of ", head(s, HEAD_OUTPUTS), c->n_outputs, {NULL}},
    };
    const state_file_shares shares = {
        .what = "share",
        .n = c->n_outputs,
        .then = checkpoint_part(&s->saved, 0) + 8 * OUTPUT_WEIGHT,
        .stride = 8 * OUTPUT_NUMBERS,
        .now = c->weights,
        .names = c->names,
        .name_shown = files_output_name};
    int status = state_file_compare(c->state, options,
                                    sizeof options / sizeof options[0]);

    return status == STATUS_OK ? state_file_compare_shares(c->state, &shares)
                               : status;
}

/* Builds the names of the runs' files, next to the state. */
static int name_runs(state *s)
{
    for (int i = 0; i < 2; i++) {
        const char *path = s->saved.file.path;

        s->names[i] = files_join(path, strlen(path), endings[i]);
        if (s->names[i] == NULL)
            return message_memory();
        s->runs[i] = (runs_name){
            .folder = s->saved.file.folder,
            .base = s->names[i] + (s->saved.file.base - path),
            .name = s->names[i]};
    }
    return STATUS_OK;
}

int state_open(state *s, const conf *c)
{
    const state_file_options options = {
        .name = c->state,
        .resume = c->resume,
        .max = STATE_FILE_MAX,
        .magic = MAGIC,
        .beside = {endings[0], endings[1]},
        .uses = {{"an output", c->names, (int)c->n_outputs, STDOUT_FILENO},
                 {"an input", c->inputs, c->n_inputs, STDIN_FILENO}}};
    int status;

    *s = (state){.conf = c};
    status = checkpoint_open(&s->saved, &form, &options, c->state_every);
    if (status == STATUS_OK && c->state != NULL)
        status = name_runs(s);
    if (status != STATUS_OK || s->saved.bytes == NULL)
        return status;
    s->is_there = true;
    status = check_state(s);
    if (status == STATUS_OK)
        status = compare_options(s);
    if (status != STATUS_OK)
        return status;
    s->phase = (state_phase)head(s, HEAD_PHASE);
    s->all_bytes = head(s, HEAD_BYTES);
    s->position = (input_position){
        .file = (int)(head(s, HEAD_FILE) % ((uint64_t)INT_MAX + 1)),
        .at_record = head(s, HEAD_RECORD) != 0,
        .mark = {.id = head(s, HEAD_ID),
                 .offset = head(s, HEAD_OFFSET),
                 .earlier_bytes = head(s, HEAD_EARLIER),
                 .sequences = head(s, HEAD_SEQUENCES),
                 .tokens = head(s, HEAD_TOKENS),
                 .digest = head(s, HEAD_DIGEST)},
        .hash = head(s, HEAD_HASH),
        .n_read = head(s, HEAD_READ),
        .n_short = head(s, HEAD_SHORT),
        .n_long = head(s, HEAD_LONG),
        .group = head(s, HEAD_GROUP),
        .first_id = head(s, HEAD_FIRST_ID)};
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Restoring
 */

/* The numbers that runs_load expects, which follow the outputs. */
static const unsigned char *runs_numbers(const state *s)
{
    return checkpoint_part(&s->saved, head(s, HEAD_OUTPUTS));
}

void state_mark_outputs(const state *s, outputs *o)
{
    const unsigned char *lengths;

    o->is_framed = head(s, HEAD_FRAMING) != 0;
    o->put = head(s, HEAD_GIVEN);
    if (s->saved.bytes == NULL)
        return;
    lengths = runs_numbers(s) +
              RUNS_BYTES * (head(s, HEAD_RUNS) + head(s, HEAD_RUNS_1));
    for (uint32_t i = 0; i < s->conf->n_outputs; i++) {
        resumable_records_load(&o->kept[i], checkpoint_part(&s->saved, i) +
                                                8 * OUTPUT_PLACE);
        o->kept[i].lengths = lengths;
        o->kept[i].n_lengths = (size_t)output_u64(s, i, OUTPUT_LENGTHS);
        lengths += output_u64(s, i, OUTPUT_LENGTHS);
    }
}

int state_schema(const state *s, const outputs *o, ps_schema *schema)
{
    if (head(s, HEAD_TYPE) != PS_U16 && head(s, HEAD_TYPE) != PS_U32)
        return state_file_damaged(s->conf->state);
    return resumable_records_schema(&o->kept[0], head(s, HEAD_FRAMING) != 0,
                                    (ps_type)head(s, HEAD_TYPE), schema);
}

int state_compare(const state *s, const outputs *o, const ps_schema *schema)
{
    const conf *c = s->conf;
    const int n = s->phase == STATE_READING ? s->position.file : c->n_inputs;
    uint64_t left = o->put;
    uint64_t now;
    int status;

    if (s->saved.bytes == NULL)
        return STATUS_OK;
    status = state_file_compare_schema(c->state, head(s, HEAD_FRAMING),
                                       head(s, HEAD_TYPE), schema);
    if (status == STATUS_OK)
        status = resumable_records_compare(&o->kept[0], c->state, schema);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < o->n; i++) {
        if (o->kept[i].position.sequences > left)
            return state_file_damaged(s->conf->state);
        left -= o->kept[i].position.sequences;
    }
    if (left > 0)
        return state_file_damaged(s->conf->state);
    now = input_bytes(c, n);
    if (now == head(s, HEAD_BYTES) || now == PS_UNKNOWN ||
        head(s, HEAD_BYTES) == PS_UNKNOWN)
        return STATUS_OK;
    message_error("%s: the inputs read so far had %" PRIu64 " bytes when the "
                  "state was saved, but now have %" PRIu64,
                  message_name(s->conf->state), head(s, HEAD_BYTES), now);
    return STATUS_DATA;
}

int state_open_sorter(state *s, sorter *shuffled)
{
    const unsigned char *numbers =
        s->saved.bytes == NULL ? NULL : runs_numbers(s);

    for (size_t i = 0; i < 2; i++) {
        const size_t k = i * RUNS_NUMBERS;
        const uint64_t n = head(s, HEAD_RUNS + k);
        runs *r = &shuffled->files[i];
        bool fits = true;
        int status = runs_open_kept(r, &s->runs[i], head(s, HEAD_SIZE + k),
                                    head(s, HEAD_SUM + k));

        if (status == STATUS_OK && numbers != NULL) {
            status = runs_load(r, numbers, (size_t)n, &fits);
            numbers += RUNS_BYTES * n;
        }
        if (status != STATUS_OK || !fits)
            return fits ? status : state_file_damaged(s->conf->state);
    }
    if (numbers == NULL)
        return STATUS_OK;
    shuffled->max_key = head(s, HEAD_KEY);
    shuffled->count = head(s, HEAD_PUT);
    shuffled->given = head(s, HEAD_GIVEN);
    shuffled->n_runs = head(s, HEAD_WRITTEN);
    shuffled->current = (unsigned)head(s, HEAD_CURRENT);
    shuffled->merged = (size_t)head(s, HEAD_MERGED);
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Saving
 */

static void store_shuffle(const state *s, const input *in, const sorter *sorted,
                          const outputs *o, uint64_t *to)
{
    const conf *c = s->conf;
    const input_position *position = &in->position;

    to[HEAD_VERSION] = form.version;
    to[HEAD_PHASE] = s->phase;
    to[HEAD_SEED] = c->seed;
    to[HEAD_SAMPLE] = c->count != UINT64_MAX;
    to[HEAD_COUNT] = c->count;
    to[HEAD_MIN] = c->min_length;
    to[HEAD_MAX] = c->max_length;
    to[HEAD_WINDOW] = c->by_length;
    to[HEAD_INPUTS] = (uint64_t)c->n_inputs;
    to[HEAD_OUTPUTS] = o->n;
    to[HEAD_FRAMING] = o->of[0].schema.framed;
    to[HEAD_TYPE] = o->of[0].schema.token_type;
    to[HEAD_BYTES] = s->phase == STATE_READING ? input_bytes(c, position->file)
                                               : s->all_bytes;
    to[HEAD_FILE] = (uint64_t)position->file;
    to[HEAD_RECORD] = position->at_record;
    to[HEAD_ID] = position->mark.id;
    to[HEAD_OFFSET] = position->mark.offset;
    to[HEAD_EARLIER] = position->mark.earlier_bytes;
    to[HEAD_SEQUENCES] = position->mark.sequences;
    to[HEAD_TOKENS] = position->mark.tokens;
    to[HEAD_DIGEST] = position->mark.digest;
    to[HEAD_HASH] = position->hash;
    to[HEAD_READ] = position->n_read;
    to[HEAD_SHORT] = position->n_short;
    to[HEAD_LONG] = position->n_long;
    to[HEAD_GROUPED] = c->group != NULL;
    to[HEAD_GROUP] = position->group;
    to[HEAD_FIRST_ID] = position->first_id;
    to[HEAD_KEY] = sorted->max_key;
    to[HEAD_PUT] = sorted->count;
    to[HEAD_GIVEN] = sorted->given;
    to[HEAD_WRITTEN] = sorted->n_runs;
    to[HEAD_CURRENT] = sorted->current;
    to[HEAD_MERGED] = sorted->merged;
    for (size_t i = 0; i < 2; i++) {
        to[HEAD_SIZE + i * RUNS_NUMBERS] = sorted->files[i].size;
        to[HEAD_SUM + i * RUNS_NUMBERS] = runs_digest(&sorted->files[i]);
        to[HEAD_RUNS + i * RUNS_NUMBERS] = sorted->files[i].n;
    }
}

/* Writes a checkpoint.  The runs and outputs must be on disk. */
static int write_state(state *s, const input *in, const sorter *sorted,
                       const outputs *o)
{
    checkpoint *to = &s->saved;
    uint64_t numbers[HEAD_NUMBERS];
    int status;

    store_shuffle(s, in, sorted, o, numbers);
    checkpoint_put(to, numbers, HEAD_NUMBERS);
    for (uint32_t i = 0; i < o->n; i++) {
        uint64_t of_output[OUTPUT_NUMBERS] = {
            [OUTPUT_WEIGHT] = s->conf->weights[i],
            [OUTPUT_LENGTHS] = o->kept[i].n_lengths};

        resumable_records_store(&o->kept[i], of_output + OUTPUT_PLACE);
        checkpoint_put(to, of_output, OUTPUT_NUMBERS);
    }
    for (size_t i = 0; i < 2; i++)
        runs_store(&sorted->files[i], to);
    for (uint32_t i = 0; i < o->n; i++)
        checkpoint_put_bytes(to, o->kept[i].lengths, o->kept[i].n_lengths);
    status = checkpoint_write(to);
    s->is_there = s->is_there || status == STATUS_OK;
    return status;
}

int state_start(state *s, const input *in, sorter *shuffled, outputs *o)
{
    const bool resumes = s->saved.bytes != NULL;
    int status = STATUS_OK;

    for (uint32_t i = 0; !resumes && status == STATUS_OK && i < o->n; i++)
        status = resumable_records_fingerprint(&o->kept[i]);
    if (!resumes && status == STATUS_OK)
        status = write_state(s, in, shuffled, o);
    for (int i = 0; status == STATUS_OK && i < 2; i++)
        status = runs_start(&shuffled->files[i]);
    for (uint32_t i = 0; status == STATUS_OK && i < o->n; i++)
        status = resumes ? resumable_records_resume(&o->kept[i], &o->of[i])
                         : records_start(&o->of[i]);
    return status;
}

void state_sorted(state *s)
{
    s->phase = STATE_SORTED;
    s->all_bytes = input_bytes(s->conf, s->conf->n_inputs);
}

int state_save(state *s, const input *in, sorter *shuffled, outputs *o)
{
    int status = STATUS_OK;

    if (s->phase == STATE_READING)
        status = sorter_spill(shuffled);
    for (int i = 0; status == STATUS_OK && i < 2; i++)
        status = runs_sync(&shuffled->files[i]);
    for (uint32_t i = 0; status == STATUS_OK && i < o->n; i++)
        status = resumable_records_save(&o->kept[i], &o->of[i]);
    return status == STATUS_OK ? write_state(s, in, shuffled, o) : status;
}

int state_remove_runs(const state *s)
{
    temp_file_result r = TEMP_FILE_OK;

    for (int i = 0; i < 2; i++) {
        r = runs_remove(&s->runs[i]);
        if (r != TEMP_FILE_OK)
            return runs_failed(&s->runs[i], r);
    }
    return STATUS_OK;
}

void state_close(state *s)
{
    /* An error has already been reported. */
    for (int i = 0; i < 2 && !s->is_there; i++)
        if (s->runs[i].name != NULL)
            (void)runs_remove(&s->runs[i]);
    checkpoint_close(&s->saved);
    free(s->names[0]);
    free(s->names[1]);
}
