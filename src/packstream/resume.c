/*
 * resume.c - the state of a job and resuming from it.
 *
 * The library saves the packer.  The job adds a note: the input and offset of
 * the first record needed again, the position of the rejects, and the options
 * unknown to the library.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/resume.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"
#include "files/state_file.h"

/*
 * Positions per window.  There are more if they would be FAR_POSITIONS or more
 * records apart.
 */
#define FEW_POSITIONS 16
#define FAR_POSITIONS 129

/* First 8 bytes of the states of the library. */
#define STATE_MAGIC "\x89PKT\r\n\x1a\n"

#define NOTE_VERSION 3

/* ---- The note ---- */

/* Offsets in the note, in bytes. */
enum {
    AT_N_NAMES = 4,
    AT_FLUSH_EVERY = 8,
    AT_FLUSH_RECORDS = 16,
    AT_HAS_REJECTS = 20,
    AT_TIMED = 24,
    AT_FILE = 28,
    AT_RECORDS = 32,
    AT_MARK = 40,
    AT_REJECTS_MARK = 88,
    AT_DROPPED = 136,
    AT_VOCABULARY = 140,
    AT_OUTPUT = 144,
    AT_REJECTS_FILE = 176,
    AT_INPUT_BYTES = 208
};

static void store_mark(unsigned char *to, const ps_token_mark *m)
{
    store_u64(to, m->id);
    store_u64(to + 8, m->offset);
    store_u64(to + 16, m->earlier_bytes);
    store_u64(to + 24, m->sequences);
    store_u64(to + 32, m->tokens);
    store_u64(to + 40, m->digest);
}

static ps_token_mark load_mark(const unsigned char *from)
{
    return (ps_token_mark){.id = load_u64(from),
                           .offset = load_u64(from + 8),
                           .earlier_bytes = load_u64(from + 16),
                           .sequences = load_u64(from + 24),
                           .tokens = load_u64(from + 32),
                           .digest = load_u64(from + 40)};
}

static void store_file(unsigned char *to, const output_fingerprint *m)
{
    store_u64(to, m->known);
    store_u64(to + 8, m->base);
    store_u64(to + 16, m->last);
    store_u64(to + 24, m->hash);
}

static output_fingerprint load_file(const unsigned char *from)
{
    return (output_fingerprint){.known = load_u64(from) != 0,
                                .base = load_u64(from + 8),
                                .last = load_u64(from + 16),
                                .hash = load_u64(from + 24)};
}

static void store_note(const conf *c, const resume_position *p,
                       unsigned char note[RESUME_NOTE_BYTES])
{
    store_u32(note, NOTE_VERSION);
    store_u32(note + AT_N_NAMES, (uint32_t)c->n_names);
    store_u64(note + AT_FLUSH_EVERY, c->flush_every);
    store_u32(note + AT_FLUSH_RECORDS, c->flush_records);
    store_u32(note + AT_HAS_REJECTS, c->rejects != NULL);
    store_u32(note + AT_TIMED, p->timed);
    store_u32(note + AT_FILE, p->file);
    store_u64(note + AT_RECORDS, p->records);
    store_mark(note + AT_MARK, &p->mark);
    store_mark(note + AT_REJECTS_MARK, &p->rejects.stream);
    store_u32(note + AT_DROPPED,
              (c->drop_outside ? 1U : 0U) | (c->drop_empty ? 2U : 0U));
    /* The vocabulary size, where it affects the output. */
    store_u32(note + AT_VOCABULARY, c->drop_outside ? c->vocab_size : 0);
    store_file(note + AT_OUTPUT, &p->output);
    store_file(note + AT_REJECTS_FILE, &p->rejects.file);
    store_u64(note + AT_INPUT_BYTES, p->input_bytes);
}

/* Compares the options unknown to the library. */
static int compare_options(const resume *r)
{
    const unsigned char *note = r->summary.note;
    const conf *c = r->conf;
    const uint32_t dropped = load_u32(note + AT_DROPPED);
    const state_file_option options[] = {
        {"an input count of ", load_u32(note + AT_N_NAMES),
         (uint64_t)c->n_names, {NULL}},
        {"--flush-every ", load_u64(note + AT_FLUSH_EVERY), c->flush_every,
         {"none"}},
        {"", load_u32(note + AT_FLUSH_RECORDS), c->flush_records,
         {"no --flush-records", "--flush-records"}},
        {"", load_u32(note + AT_HAS_REJECTS), c->rejects != NULL,
         {"no --rejects", "--rejects"}},
        {"--out-of-vocab ", dropped & 1, c->drop_outside, {"error", "drop"}},
        {"--empty ", dropped >> 1, c->drop_empty, {"error", "drop"}},
        {"--vocab ", load_u32(note + AT_VOCABULARY),
         c->drop_outside ? c->vocab_size : 0, {"none"}},
    };

    return state_file_compare(r->file.name, options,
                              sizeof options / sizeof options[0]);
}

/* Reads r->position from the state's note if the options match. */
static int read_note(resume *r)
{
    const unsigned char *note = r->summary.note;
    const conf *c = r->conf;
    int status;

    if (r->summary.note_bytes != RESUME_NOTE_BYTES ||
        load_u32(note) != NOTE_VERSION) {
        message_error("%s: saved by another version of packstream: resume with "
                      "that version",
                      message_name(r->file.name));
        return STATUS_DATA;
    }
    status = compare_options(r);
    if (status != STATUS_OK)
        return status;
    r->position =
        (resume_position){.timed = load_u32(note + AT_TIMED) != 0,
                          .file = load_u32(note + AT_FILE),
                          .records = load_u64(note + AT_RECORDS),
                          .mark = load_mark(note + AT_MARK),
                          .rejects = {load_mark(note + AT_REJECTS_MARK),
                                      load_file(note + AT_REJECTS_FILE)},
                          .output = load_file(note + AT_OUTPUT),
                          .input_bytes = load_u64(note + AT_INPUT_BYTES)};
    return r->position.file < (uint32_t)c->n_names &&
                   r->position.mark.id <= r->summary.resume_from_id
               ? STATUS_OK
               : state_file_damaged(r->file.name);
}

/* ---- Reading the state ---- */

/*
 * Chooses the task.  A file continues at its end.  A pipe starts at the pack
 * that the reader wants, which may require packing everything again.
 */
static int choose_start(resume *r)
{
    uint64_t from = r->conf->resume_from;
    uint64_t packs = r->summary.output_packs;
    bool ended = r->summary.finished;
    bool is_for_file = files_is_for_file(r->conf->output);

    r->first_pack = from;
    if (r->conf->state != NULL && r->conf->zstd_level != 0 && !is_for_file)
        return message_usage("--state with --zstd needs a regular file as "
                             "output, but %s is not a regular file: use "
                             "-o FILE",
                             files_output_name(r->conf->output));
    if (r->state == NULL)
        return STATUS_OK;
    /* The packs before `from` would be missing from the file. */
    if (r->position.output.known && from > 0 && is_for_file) {
        message_error("%s: cannot use --resume-from to write to a file, "
                      "because the job's output is a file: use --resume, or "
                      "--resume-from with a pipe",
                      files_output_name(r->conf->output));
        return STATUS_USAGE;
    }
    if (r->position.output.known && from == 0 && !is_for_file) {
        message_error("%s: the job that saved this state wrote to a file: use "
                      "-o, or --resume-from=INDEX to send packs elsewhere",
                      message_name(r->file.name));
        return STATUS_USAGE;
    }
    if (r->summary.blank)
        return STATUS_OK;
    if (from == 0 && is_for_file) {
        r->task = ended ? TASK_COMPARE : TASK_RESUME;
        return STATUS_OK;
    }
    if (from == 0 && packs == 0)
        return state_file_damaged(r->file.name);

    r->first_pack = from == 0 ? packs : from;
    if (!ended && r->first_pack >= packs)
        r->task = TASK_RESUME;
    else if (ended && r->first_pack == packs)
        r->task = TASK_END;
    else
        r->task = TASK_REPLAY;
    if (r->task != TASK_REPLAY || !r->position.timed)
        return STATUS_OK;
    message_error("%s: packs were flushed by time, so packs before %" PRIu64 " "
                  "cannot be reproduced",
                  message_name(r->file.name), packs);
    return STATUS_DATA;
}

static state_file_options file_options(const conf *c)
{
    return (state_file_options){
        .name = c->state,
        .resume = c->resume,
        /* Two states are in memory at the same time. */
        .max = c->memory == 0 ? STATE_FILE_MAX : c->memory / 2,
        .magic = STATE_MAGIC,
        .uses = {{"the file of --rejects", &c->rejects, c->rejects != NULL,
                  STDOUT_FILENO},
                 {"the output", &c->output, 1, STDOUT_FILENO},
                 {"the histogram", &c->learn_from, c->learn_from != NULL,
                  STDIN_FILENO},
                 {"an input", c->names, c->n_names, STDIN_FILENO}}};
}

int resume_check_name(const conf *c)
{
    const state_file_options options = file_options(c);

    return c->state == NULL ? STATUS_OK : state_file_check(&options);
}

int resume_open(resume *r, const conf *c)
{
    const state_file_options options = file_options(c);
    ps_error err;
    int status;

    *r = (resume){.conf = c, .file = ATOMIC_FILE_CLOSED,
                  .output = {.fd = -1}};
    if (c->state == NULL)
        return choose_start(r);
    status = state_file_open(&r->file, &options, &r->state, &r->bytes);
    if (status != STATUS_OK)
        return status;
    if (r->state == NULL)
        return choose_start(r);
    if (ps_state_read(r->state, r->bytes, &r->summary, &err) != PS_OK)
        return message_failure(message_name(r->file.name), &err);
    status = read_note(r);
    return status == STATUS_OK ? choose_start(r) : status;
}

/* ---- Comparing the state with the job ---- */

const rejects_position *resume_rejects(const resume *r)
{
    return r->state == NULL || r->summary.blank ? NULL : &r->position.rejects;
}

/* True if the output matches the state. */
static bool has_output(const resume *r)
{
    if (r->task == TASK_COMPARE)
        return true;
    if (r->first_pack > 0)
        return false;
    /* A new output may not have survived a crash. */
    return r->task == TASK_RESUME ||
           (r->summary.blank && !resumable_output_is_gone(
                                    r->conf->output, &r->position.output));
}

/* Checks the sizes of the inputs already read. */
static int check_inputs(const resume *r)
{
    const conf *c = r->conf;
    const bool ended = r->summary.finished;
    const int n = ended ? c->n_names : (int)r->position.file;
    const uint64_t then = r->position.input_bytes;
    uint64_t now;

    /* A replay of a completed job is verified by its packs. */
    if ((r->task == TASK_REPLAY && ended) || then == RESUME_UNKNOWN ||
        !files_inputs_size(c->names, n, &now) || then == now)
        return STATUS_OK;
    if (ended)
        message_error("%s: the job ended after %" PRIu64 " bytes of input, but "
                      "the input now has %" PRIu64 " bytes: start again with a "
                      "new state",
                      message_name(r->file.name), then, now);
    else
        message_error("%s: the inputs before %s had %" PRIu64 " bytes when the "
                      "state was saved, but now have %" PRIu64,
                      message_name(r->file.name),
                      files_input_name(c->names[n]), then, now);
    return STATUS_DATA;
}

int resume_plan(resume *r, const ps_schema *schema,
                const ps_packer_options *options)
{
    const conf *c = r->conf;
    ps_error err;

    if (r->state == NULL)
        return c->state != NULL && c->resume
                   ? state_file_check_new(c->state, c->output)
                   : STATUS_OK;
    if (ps_state_fits(r->state, r->bytes, schema, options, &err) != PS_OK)
        return message_failure(message_name(r->file.name), &err);
    r->same_output = has_output(r);
    return check_inputs(r);
}

/* ---- The output ---- */

/* True if an output, plain or compressed, can start with these bytes. */
static bool is_start(const unsigned char *bytes, size_t n)
{
    static const unsigned char plain[] = {0x89, 'P', 'K', 'S'};
    static const unsigned char compressed[] = {0x28, 0xb5, 0x2f, 0xfd};

    if (n > sizeof plain)
        n = sizeof plain;
    return memcmp(bytes, plain, n) == 0 || memcmp(bytes, compressed, n) == 0;
}

int resume_open_output(resume *r, int in, int *out)
{
    const char *name = r->conf->output;
    int status;

    if (r->same_output) {
        status = resumable_output_reopen(&r->output, name, in, out,
                                         &r->position.output,
                                         r->summary.output_bytes);
        return status == STATUS_OK && r->summary.output_bytes == 0
                   ? resumable_output_start(&r->output, *out, is_start)
                   : status;
    }
    *out = files_open_output_alone(name, in);
    if (*out < 0)
        return STATUS_FAILURE;
    /* An output that starts at a later pack cannot be resumed. */
    return r->first_pack == 0 ? resumable_output_begin(&r->output, name, *out)
                              : STATUS_OK;
}

int resume_cut_output(const resume *r, int out)
{
    return r->task == TASK_RESUME && r->same_output
               ? resumable_output_cut(&r->output, out, r->summary.output_bytes)
               : STATUS_OK;
}

/* ---- The packer ---- */

int resume_open_packer(const resume *r, ps_packer **packer, int out,
                       const ps_schema *schema,
                       const ps_packer_options *options)
{
    ps_result result;
    ps_error err;

    if (r->task == TASK_RESUME || r->task == TASK_END) {
        result = ps_packer_resume(packer, out, schema, options, r->state,
                                  r->bytes, &err);
    } else {
        result = ps_packer_open(packer, out, schema, options, &err);
        /* Running out of memory is not an error of the output. */
        if (result == PS_ERR_MEMORY) {
            message_error("%s", err.text);
            return STATUS_FAILURE;
        }
        if (result != PS_OK)
            return message_failure(files_output_name(r->conf->output), &err);
        if (r->task == TASK_REPLAY)
            result = ps_packer_verify_replay(*packer, r->state, r->bytes,
                                             &err);
    }
    return result == PS_OK
               ? STATUS_OK
               : message_failure(message_name(r->file.name), &err);
}

int resume_open_ended(const resume *r, ps_packer **packer, int out,
                      const ps_schema *schema,
                      const ps_packer_options *options)
{
    ps_error err;

    if (files_check_length(out, r->conf->output,
                           r->output.base + r->summary.output_bytes) !=
        STATUS_OK)
        return STATUS_FAILURE;
    if (ps_packer_open_ended(packer, schema, options, r->state, r->bytes,
                             &err) != PS_OK)
        return message_failure(message_name(r->file.name), &err);
    if (r->conf->verbose)
        message_note("%s: the job is complete: nothing to do",
                     message_name(r->file.name));
    return resumable_output_seek_end(&r->output, out, r->summary.output_bytes);
}

/* ---- Saving the state ---- */

void resume_start(resume *r, const ps_pack_info *info, uint64_t packs)
{
    uint64_t every = r->conf->state_every;

    if (every == 0)
        every = STATE_FILE_EVERY / info->row_bytes + 1;
    r->next_packs = packs > UINT64_MAX - every ? UINT64_MAX : packs + every;
    /* Marks must reach back to the oldest sequence that can be held. */
    r->position_every = info->max_displacement / FEW_POSITIONS + 1;
    if (r->position_every > FAR_POSITIONS)
        r->position_every =
            info->max_displacement / (RESUME_POSITIONS / 2) + FAR_POSITIONS;
}

void resume_add_position(resume *r, const input_position *position)
{
    r->positions[r->n_positions++ % RESUME_POSITIONS] = *position;
    r->next_position = position->mark.id + r->position_every;
}

/* Finds the newest position at or before sequence `id`. */
static bool find_position(const resume *r, uint64_t id,
                          resume_position *position)
{
    uint64_t n =
        r->n_positions < RESUME_POSITIONS ? r->n_positions : RESUME_POSITIONS;

    for (uint64_t i = 1; i <= n; i++) {
        const input_position *m =
            &r->positions[(r->n_positions - i) % RESUME_POSITIONS];

        if (m->mark.id <= id) {
            position->file = m->file;
            position->mark = m->mark;
            if (!position->ended)
                position->input_bytes = m->input_bytes;
            return true;
        }
    }
    return false;
}

/* Saves a state without packs. */
static int save_blank(resume *r)
{
    unsigned char note[RESUME_NOTE_BYTES];
    resume_position position = {.input_bytes = RESUME_UNKNOWN};
    unsigned char *state;
    size_t bytes;
    ps_error err;
    int status =
        resumable_output_fingerprint(&r->output, 0, 0, &position.output);

    if (status != STATUS_OK)
        return status;
    store_note(r->conf, &position, note);
    if (ps_state_blank(note, sizeof note, &state, &bytes, &err) != PS_OK)
        return message_failure(message_name(r->file.name), &err);
    if (!atomic_file_write(&r->file, state, bytes))
        status = STATUS_FAILURE;
    free(state);
    return status;
}

int resume_begin(resume *r, int out)
{
    int status = STATUS_OK;

    if (r->same_output)
        return r->summary.blank ? resumable_output_cut(&r->output, out, 0)
                                : STATUS_OK;
    /* A pipe has no position to save. */
    if (r->state == NULL && r->output.fd >= 0)
        status = save_blank(r);
    return status == STATUS_OK && !files_begin(out, r->conf->output)
               ? STATUS_FAILURE
               : status;
}

int resume_save(resume *r, ps_packer *packer, int out,
                resume_position *position)
{
    const ps_pack_info *info = ps_packer_info(packer);
    const char *name = r->conf->output;
    uint64_t oldest = ps_packer_resume_from_id(packer);
    unsigned char note[RESUME_NOTE_BYTES];
    unsigned char *state;
    uint64_t length = 0;
    size_t bytes;
    ps_state summary;
    ps_error err;
    int status = STATUS_OK;

    if (ps_packer_flush(packer, PS_FLUSH_DECIDED, &err) != PS_OK)
        return message_failure(files_output_name(name), &err);
    if (r->output.fd >= 0)
        status = resumable_output_length(&r->output, out, &length);
    if (status == STATUS_OK)
        status = resumable_output_fingerprint(
            &r->output, length, info->block_bytes, &position->output);
    if (status != STATUS_OK)
        return status;
    if (!find_position(r, oldest, position)) {
        message_error("internal error: no position before sequence %" PRIu64,
                      oldest);
        return STATUS_FAILURE;
    }
    store_note(r->conf, position, note);
    if (ps_packer_save(packer, note, sizeof note, &state, &bytes, &err) !=
        PS_OK)
        return message_failure(files_output_name(name), &err);

    /*
     * The state must match an output on disk: a file must be synced and end
     * where the state says.  A pipe has nothing to resume from before its first
     * block.
     */
    if (!files_sync(out, name) ||
        ps_state_read(state, bytes, &summary, &err) != PS_OK ||
        (r->output.fd >= 0 &&
         resumable_output_check(&r->output, out, length,
                                summary.output_bytes) != STATUS_OK) ||
        ((r->output.fd >= 0 || summary.output_packs > 0) &&
         !atomic_file_write(&r->file, state, bytes)))
        status = STATUS_FAILURE;
    free(state);
    resume_start(r, info, ps_packer_totals(packer)->packs);
    return status;
}

void resume_close(resume *r)
{
    resumable_output_close(&r->output);
    atomic_file_close(&r->file);
    free(r->state);
    r->state = NULL;
}
