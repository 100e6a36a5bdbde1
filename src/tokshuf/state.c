/*
 * state.c - the state of a shuffle.
 *
 * The file contains a magic, 64-bit numbers, the lengths written to each output
 * as a LENGTHS record, and the XXH3-64 of everything before.  The numbers for
 * the whole shuffle come first, then the same ones for each output, then for
 * each run.  A state is untrusted input: each number is checked before it is
 * used.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokshuf/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"
#include "files/state_file.h"

#define MAGIC "\x89SHF\r\n\x1a\n"
#define STATE_VERSION 2

static const char *const endings[2] = {".0", ".1"};

/* Numbers of the shuffle. */
enum {
    THE_VERSION,
    THE_PHASE,
    THE_SEED,
    THE_SAMPLE, /* 1 if -n was given */
    THE_COUNT,  /* conf.count */
    THE_MIN,    /* conf.min_length and max_length, in tokens */
    THE_MAX,
    THE_WINDOW,
    THE_INPUTS,
    THE_OUTPUTS,
    THE_FRAMING, /* 1 if the records are framed */
    THE_TYPE,    /* token type of the records */
    THE_BYTES,   /* total size of the files read to the end */
    THE_FILE,    /* this and the following, up to THE_LONG: input_place */
    THE_RECORD,
    THE_ID,
    THE_OFFSET,
    THE_EARLIER,
    THE_SEQUENCES,
    THE_TOKENS,
    THE_DIGEST,
    THE_HASH,
    THE_READ,
    THE_SHORT,
    THE_LONG,
    THE_KEY, /* this and the following: members of sorter, from max_key on */
    THE_PUT,
    THE_GIVEN,
    THE_WRITTEN,
    THE_CURRENT,
    THE_MERGED,
    THE_SIZE, /* of a file of runs: size in bytes, digest, number of runs */
    THE_SUM,
    THE_RUNS,
    THE_SIZE_1, /* the same for the other file */
    THE_SUM_1,
    THE_RUNS_1,
    THE_NUMBERS
};

#define RUNS_NUMBERS (THE_SIZE_1 - THE_SIZE)

/* Numbers of an output. */
enum {
    ITS_WEIGHT,
    ITS_OFFSET, /* this and the following: kept_records */
    ITS_SEQUENCES,
    ITS_TOKENS,
    ITS_DIGEST,
    ITS_BASE,
    ITS_SAMPLES,
    ITS_LENGTHS, /* size of its LENGTHS, in bytes */
    ITS_NUMBERS
};

/*
 * Offset of a number of output `i`, in bytes.  The runs follow the last output.
 */
static size_t place_of(uint64_t i, int number)
{
    return 8 * (1 + THE_NUMBERS + (size_t)i * ITS_NUMBERS + (size_t)number);
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

/* True if the numbers of the sorter are consistent. */
static bool is_sound(const state *s)
{
    const uint64_t n[2] = {the(s, THE_RUNS), the(s, THE_RUNS_1)};
    const uint64_t current = the(s, THE_CURRENT);
    const uint64_t merged = the(s, THE_MERGED);
    const uint64_t wanted =
        the(s, THE_SAMPLE) != 0 ? the(s, THE_COUNT) : SORTER_ALL;

    if (current > 1 || the(s, THE_PHASE) > STATE_ENDED ||
        (merged > 0 ? merged >= n[current] : n[1 - current] > 0) ||
        the(s, THE_PUT) > wanted || the(s, THE_GIVEN) > the(s, THE_PUT))
        return false;
    for (int i = 0; i < 2; i++) {
        const uint64_t size = the(s, THE_SIZE + i * RUNS_NUMBERS);

        if (size > 0 && size < RUNS_START)
            return false;
    }
    return the(s, THE_PHASE) != STATE_READING ||
           (current == 0 && merged == 0 && the(s, THE_GIVEN) == 0 &&
            the(s, THE_FILE) < the(s, THE_INPUTS));
}

/*
 * Total size of the outputs' lengths, in bytes.  A number that is too large
 * counts as the size of the state, to avoid overflow.
 */
static uint64_t lengths_bytes(const state *s)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < the(s, THE_OUTPUTS); i++) {
        const uint64_t n = its(s, i, ITS_LENGTHS);

        bytes += n < s->n_bytes ? n : s->n_bytes;
    }
    return bytes;
}

/* Checks the whole state, except against other files. */
static int check_state(const state *s)
{
    const state_file_form form = {.program = "tokshuf",
                                  .magic = MAGIC,
                                  .version = STATE_VERSION,
                                  .min_bytes = place_of(1, 1)};
    const uint64_t n = s->n_bytes / 8;
    const int status = state_file_check_form(s->file.name, &form, s->bytes,
                                             s->n_bytes);

    if (status != STATUS_OK)
        return status;
    if (the(s, THE_OUTPUTS) > n || the(s, THE_RUNS) > n ||
        the(s, THE_RUNS_1) > n ||
        place_of(the(s, THE_OUTPUTS), 1) > s->n_bytes ||
        s->n_bytes != place_of(the(s, THE_OUTPUTS), 1) +
                          RUNS_BYTES * (the(s, THE_RUNS) +
                                        the(s, THE_RUNS_1)) +
                          lengths_bytes(s) ||
        !is_sound(s))
        return state_file_damaged(s->file.name);
    return STATUS_OK;
}

static int compare_options(const state *s)
{
    const conf *c = s->conf;
    const state_file_option options[] = {
        {"--seed=", the(s, THE_SEED), c->seed, {NULL}},
        {"", the(s, THE_SAMPLE), c->count != UINT64_MAX, {"no -n", "-n"}},
        {"-n ", the(s, THE_COUNT), c->count, {NULL}},
        {"--min-length=", the(s, THE_MIN), c->min_length, {NULL}},
        {"--max-length=", the(s, THE_MAX), c->max_length, {NULL}},
        {"--by-length=", the(s, THE_WINDOW), c->by_length, {NULL}},
        {"an input count of ", the(s, THE_INPUTS), (uint64_t)c->n_inputs,
         {NULL}},
        {"an output count of ", the(s, THE_OUTPUTS), c->n_outputs, {NULL}},
    };
    const state_file_shares shares = {
        .what = "share",
        .n = c->n_outputs,
        .then = s->bytes + place_of(0, ITS_WEIGHT),
        .stride = place_of(1, 0) - place_of(0, 0),
        .now = c->weights,
        .names = c->names,
        .name_shown = files_output_name};
    int status = state_file_compare(s->file.name, options,
                                    sizeof options / sizeof options[0]);

    return status == STATUS_OK
               ? state_file_compare_shares(s->file.name, &shares)
               : status;
}

/* Builds the names of the runs' files, next to the state. */
static int name_runs(state *s)
{
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(s->file.path) + strlen(endings[i]) + 1;

        s->names[i] = malloc(n);
        if (s->names[i] == NULL)
            return message_memory();
        (void)snprintf(s->names[i], n, "%s%s", s->file.path, endings[i]);
        s->runs[i] = (runs_name){
            .folder = s->file.folder,
            .base = s->names[i] + (s->file.base - s->file.path),
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

    *s = (state){.conf = c, .file = ATOMIC_FILE_CLOSED};
    if (c->state == NULL)
        return STATUS_OK;
    status = state_file_open(&s->file, &options, &s->bytes, &s->n_bytes);
    if (status == STATUS_OK)
        status = name_runs(s);
    if (status != STATUS_OK || s->bytes == NULL)
        return status;
    s->is_there = true;
    status = check_state(s);
    if (status == STATUS_OK)
        status = compare_options(s);
    if (status != STATUS_OK)
        return status;
    s->phase = (state_phase)the(s, THE_PHASE);
    s->all_bytes = the(s, THE_BYTES);
    s->place = (input_place){
        .file = (int)(the(s, THE_FILE) % ((uint64_t)INT_MAX + 1)),
        .at_record = the(s, THE_RECORD) != 0,
        .mark = {.id = the(s, THE_ID),
                 .offset = the(s, THE_OFFSET),
                 .earlier_bytes = the(s, THE_EARLIER),
                 .sequences = the(s, THE_SEQUENCES),
                 .tokens = the(s, THE_TOKENS),
                 .digest = the(s, THE_DIGEST)},
        .hash = the(s, THE_HASH),
        .n_read = the(s, THE_READ),
        .n_short = the(s, THE_SHORT),
        .n_long = the(s, THE_LONG)};
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Restoring
 */

void state_mark_outputs(const state *s, outputs *o)
{
    const unsigned char *lengths = s->bytes;

    if (s->bytes != NULL)
        lengths += place_of(s->conf->n_outputs, 0) +
                   RUNS_BYTES * (the(s, THE_RUNS) + the(s, THE_RUNS_1));
    for (uint32_t i = 0; s->bytes != NULL && i < s->conf->n_outputs; i++) {
        o->kept[i].mark = (output_check_mark){.known = true,
                                              .base = its(s, i, ITS_BASE),
                                              .hash = its(s, i, ITS_SAMPLES)};
        o->kept[i].place =
            (ps_token_mark){.id = its(s, i, ITS_SEQUENCES),
                            .offset = its(s, i, ITS_OFFSET),
                            .sequences = its(s, i, ITS_SEQUENCES),
                            .tokens = its(s, i, ITS_TOKENS),
                            .digest = its(s, i, ITS_DIGEST)};
        o->kept[i].lengths = lengths;
        o->kept[i].n_lengths = (size_t)its(s, i, ITS_LENGTHS);
        lengths += its(s, i, ITS_LENGTHS);
    }
    o->is_framed = s->bytes != NULL && the(s, THE_FRAMING) != 0;
    o->put = s->bytes != NULL ? the(s, THE_GIVEN) : 0;
}

int state_schema(const state *s, const outputs *o, ps_schema *schema)
{
    if (the(s, THE_TYPE) != PS_U16 && the(s, THE_TYPE) != PS_U32)
        return state_file_damaged(s->file.name);
    return kept_records_schema(&o->kept[0], the(s, THE_FRAMING) != 0,
                               (ps_type)the(s, THE_TYPE), schema);
}

int state_compare(const state *s, const outputs *o, const ps_schema *schema)
{
    const conf *c = s->conf;
    const state_file_option options[] = {
        {"records that are ", s->bytes == NULL ? 0 : the(s, THE_FRAMING),
         schema->framed, {"raw", "framed"}},
        {"tokens of type ", s->bytes == NULL ? 0 : the(s, THE_TYPE) - PS_U16,
         (uint64_t)schema->token_type - PS_U16, {"u16", "u32"}},
    };
    const int n = s->phase == STATE_READING ? s->place.file : c->n_inputs;
    uint64_t left = o->put;
    uint64_t now;
    int status;

    if (s->bytes == NULL)
        return STATUS_OK;
    status = state_file_compare(s->file.name, options,
                                sizeof options / sizeof options[0]);
    if (status == STATUS_OK)
        status = kept_records_compare(&o->kept[0], s->file.name, schema);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < o->n; i++) {
        if (o->kept[i].place.sequences > left)
            return state_file_damaged(s->file.name);
        left -= o->kept[i].place.sequences;
    }
    if (left > 0)
        return state_file_damaged(s->file.name);
    now = input_bytes(c, n);
    if (now == the(s, THE_BYTES) || now == PS_UNKNOWN ||
        the(s, THE_BYTES) == PS_UNKNOWN)
        return STATUS_OK;
    message_error("%s: what was read whole of the input had %" PRIu64
                  " bytes, and has %" PRIu64,
                  message_name(s->file.name), the(s, THE_BYTES), now);
    return STATUS_DATA;
}

int state_open_sorter(state *s, sorter *shuffled)
{
    const unsigned char *numbers = NULL;

    for (int i = 0; i < 2; i++) {
        const int k = i * RUNS_NUMBERS;
        runs *r = &shuffled->files[i];
        bool fits = true;
        int status = runs_open_kept(
            r, &s->runs[i], shuffled->schema,
            s->bytes == NULL ? 0 : the(s, THE_SIZE + k),
            s->bytes == NULL ? 0 : the(s, THE_SUM + k));

        if (status != STATUS_OK || s->bytes == NULL) {
            if (status != STATUS_OK)
                return status;
            continue;
        }
        if (numbers == NULL)
            numbers = s->bytes + place_of(the(s, THE_OUTPUTS), 0);
        status = runs_load(r, numbers, (size_t)the(s, THE_RUNS + k), &fits);
        numbers += RUNS_BYTES * the(s, THE_RUNS + k);
        if (status != STATUS_OK || !fits)
            return fits ? status : state_file_damaged(s->file.name);
    }
    if (s->bytes == NULL)
        return STATUS_OK;
    shuffled->max_key = the(s, THE_KEY);
    shuffled->count = the(s, THE_PUT);
    shuffled->given = the(s, THE_GIVEN);
    shuffled->n_runs = the(s, THE_WRITTEN);
    shuffled->current = (unsigned)the(s, THE_CURRENT);
    shuffled->merged = (size_t)the(s, THE_MERGED);
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Saving
 */

static void store_shuffle(const state *s, const input *in, const sorter *sorted,
                          const outputs *o, uint64_t *to)
{
    const conf *c = s->conf;
    const input_place *place = &in->place;

    to[THE_VERSION] = STATE_VERSION;
    to[THE_PHASE] = s->phase;
    to[THE_SEED] = c->seed;
    to[THE_SAMPLE] = c->count != UINT64_MAX;
    to[THE_COUNT] = c->count;
    to[THE_MIN] = c->min_length;
    to[THE_MAX] = c->max_length;
    to[THE_WINDOW] = c->by_length;
    to[THE_INPUTS] = (uint64_t)c->n_inputs;
    to[THE_OUTPUTS] = o->n;
    to[THE_FRAMING] = o->of[0].schema.framed;
    to[THE_TYPE] = o->of[0].schema.token_type;
    to[THE_BYTES] = s->phase == STATE_READING ? input_bytes(c, place->file)
                                              : s->all_bytes;
    to[THE_FILE] = (uint64_t)place->file;
    to[THE_RECORD] = place->at_record;
    to[THE_ID] = place->mark.id;
    to[THE_OFFSET] = place->mark.offset;
    to[THE_EARLIER] = place->mark.earlier_bytes;
    to[THE_SEQUENCES] = place->mark.sequences;
    to[THE_TOKENS] = place->mark.tokens;
    to[THE_DIGEST] = place->mark.digest;
    to[THE_HASH] = place->hash;
    to[THE_READ] = place->n_read;
    to[THE_SHORT] = place->n_short;
    to[THE_LONG] = place->n_long;
    to[THE_KEY] = sorted->max_key;
    to[THE_PUT] = sorted->count;
    to[THE_GIVEN] = sorted->given;
    to[THE_WRITTEN] = sorted->n_runs;
    to[THE_CURRENT] = sorted->current;
    to[THE_MERGED] = sorted->merged;
    for (int i = 0; i < 2; i++) {
        to[THE_SIZE + i * RUNS_NUMBERS] = sorted->files[i].size;
        to[THE_SUM + i * RUNS_NUMBERS] = runs_digest(&sorted->files[i]);
        to[THE_RUNS + i * RUNS_NUMBERS] = sorted->files[i].n;
    }
}

static void store_lengths(const outputs *o, unsigned char *to)
{
    for (uint32_t i = 0; i < o->n; i++) {
        const kept_records *one = &o->kept[i];

        if (one->n_lengths > 0)
            memcpy(to, one->lengths, one->n_lengths);
        to += one->n_lengths;
    }
}

/* Writes the state for runs and outputs that are on disk. */
static int write_state(state *s, const input *in, const sorter *sorted,
                       const outputs *o)
{
    const size_t at_lengths =
        place_of(o->n, 0) +
        RUNS_BYTES * (sorted->files[0].n + sorted->files[1].n);
    size_t n = at_lengths;
    unsigned char *bytes;
    uint64_t numbers[THE_NUMBERS];
    bool written;

    for (uint32_t i = 0; i < o->n; i++)
        n += o->kept[i].n_lengths;
    bytes = malloc(n + 8);
    if (bytes == NULL)
        return message_memory();
    memcpy(bytes, MAGIC, 8);
    store_shuffle(s, in, sorted, o, numbers);
    for (int k = 0; k < THE_NUMBERS; k++)
        store_u64(bytes + 8 * (1 + (size_t)k), numbers[k]);
    for (uint32_t i = 0; i < o->n; i++) {
        const kept_records *one = &o->kept[i];
        const uint64_t its_numbers[ITS_NUMBERS] = {
            [ITS_WEIGHT] = s->conf->weights[i],
            [ITS_OFFSET] = one->place.offset,
            [ITS_SEQUENCES] = one->place.sequences,
            [ITS_TOKENS] = one->place.tokens,
            [ITS_DIGEST] = one->place.digest,
            [ITS_BASE] = one->mark.base,
            [ITS_SAMPLES] = one->mark.hash,
            [ITS_LENGTHS] = one->n_lengths};

        for (int k = 0; k < ITS_NUMBERS; k++)
            store_u64(bytes + place_of(i, k), its_numbers[k]);
    }
    runs_store(&sorted->files[0], bytes + place_of(o->n, 0));
    runs_store(&sorted->files[1],
               bytes + place_of(o->n, 0) + RUNS_BYTES * sorted->files[0].n);
    store_lengths(o, bytes + at_lengths);
    store_u64(bytes + n, XXH3_64bits(bytes, n));
    written = atomic_file_write(&s->file, bytes, n + 8);
    free(bytes);
    s->is_there = s->is_there || written;
    s->written = 0;
    return written ? STATUS_OK : STATUS_FAILURE;
}

int state_start(state *s, const input *in, sorter *shuffled, outputs *o)
{
    const bool goes_on = s->bytes != NULL;
    int status = STATUS_OK;

    for (uint32_t i = 0; !goes_on && status == STATUS_OK && i < o->n; i++)
        status = kept_records_mark(&o->kept[i]);
    if (!goes_on && status == STATUS_OK)
        status = write_state(s, in, shuffled, o);
    for (int i = 0; status == STATUS_OK && i < 2; i++)
        status = runs_start(&shuffled->files[i]);
    for (uint32_t i = 0; status == STATUS_OK && i < o->n; i++)
        status = goes_on ? kept_records_resume(&o->kept[i], &o->of[i])
                         : records_start(&o->of[i]);
    return status;
}

void state_sorted(state *s)
{
    s->phase = STATE_SORTED;
    s->all_bytes = input_bytes(s->conf, s->conf->n_inputs);
}

bool state_is_due(state *s, uint64_t bytes)
{
    const uint64_t every = s->conf->state_every;

    if (s->conf->state == NULL)
        return false;
    s->written += every == 0 ? bytes : 1;
    return s->written >= (every == 0 ? STATE_FILE_EVERY : every);
}

int state_save(state *s, const input *in, sorter *shuffled, outputs *o)
{
    int status = STATUS_OK;

    if (s->phase == STATE_READING)
        status = sorter_spill(shuffled);
    for (int i = 0; status == STATUS_OK && i < 2; i++)
        status = runs_sync(&shuffled->files[i]);
    for (uint32_t i = 0; status == STATUS_OK && i < o->n; i++)
        status = kept_records_save(&o->kept[i], &o->of[i]);
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
    /* An error was already reported. */
    for (int i = 0; i < 2 && !s->is_there; i++)
        if (s->runs[i].name != NULL)
            (void)runs_remove(&s->runs[i]);
    atomic_file_close(&s->file);
    free(s->bytes);
    free(s->names[0]);
    free(s->names[1]);
}
