/*
 * resume.c - the state of a job, kept in a file.
 *
 * The library saves its packer; its note holds what the job adds to that:
 * where in which input the first record lies that is needed again, where the
 * rejects are, and the options that only the job knows.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/resume.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/files.h"
#include "cli/message.h"
#include "common/bytes.h"
#include "packstream/apart.h"

#define NOTE_BYTES RESUME_NOTE_BYTES
#define NOTE_VERSION 2

/* Unless --state-every says otherwise. */
#define DEFAULT_BYTES ((uint64_t)256 << 20)

/* No state is as large; what is was put there by mistake. */
#define MOST_BYTES ((uint64_t)1 << 32)

/* ---- The note ---- */

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

static void store_file(unsigned char *to, const written_mark *m)
{
    store_u64(to, m->known);
    store_u64(to + 8, m->base);
    store_u64(to + 16, m->record);
    store_u64(to + 24, m->hash);
}

static written_mark load_file(const unsigned char *from)
{
    return (written_mark){.known = load_u64(from) != 0,
                          .base = load_u64(from + 8),
                          .record = load_u64(from + 16),
                          .hash = load_u64(from + 24)};
}

/* What is dropped, in bits. */
static uint32_t dropped(const conf *c)
{
    return (c->drop_outside ? 1U : 0U) | (c->drop_empty ? 2U : 0U);
}

/* The given vocabulary, where it changes the output. */
static uint32_t vocabulary(const conf *c)
{
    return c->drop_outside ? c->vocab_size : 0;
}

static void store_note(const conf *c, const resume_place *p,
                       unsigned char note[NOTE_BYTES])
{
    store_u32(note, NOTE_VERSION);
    store_u32(note + 4, (uint32_t)c->n_names);
    store_u64(note + 8, c->flush_every);
    store_u32(note + 16, c->flush_records);
    store_u32(note + 20, c->rejects != NULL);
    store_u32(note + 24, p->timed);
    store_u32(note + 28, p->file);
    store_u64(note + 32, p->records);
    store_mark(note + 40, &p->mark);
    store_mark(note + 88, &p->rejects.stream);
    store_u32(note + 136, dropped(c));
    store_u32(note + 140, vocabulary(c));
    store_file(note + 144, &p->output);
    store_file(note + 176, &p->rejects.file);
    store_u64(note + 208, p->input_bytes);
}

static int does_not_fit(const resume *r, const char *what)
{
    message_error("%s: the state was saved with %s",
                  message_name(r->file.name), what);
    return STATUS_USAGE;
}

static int check_options(const resume *r)
{
    const unsigned char *note = r->says.note;
    const conf *c = r->conf;

    if (load_u32(note + 4) != (uint32_t)c->n_names)
        return does_not_fit(r, "another number of inputs");
    if (load_u64(note + 8) != c->flush_every ||
        load_u32(note + 16) != c->flush_records)
        return does_not_fit(r, "other flush options");
    if (load_u32(note + 20) != (c->rejects != NULL))
        return does_not_fit(r, c->rejects == NULL ? "--rejects"
                                                  : "no --rejects");
    if (load_u32(note + 136) != dropped(c))
        return does_not_fit(r, "another --out-of-vocab or --empty");
    if (load_u32(note + 140) != vocabulary(c))
        return does_not_fit(r, "another --vocab");
    return STATUS_OK;
}

static int read_note(resume *r)
{
    const unsigned char *note = r->says.note;
    int status;

    if (r->says.note_bytes != NOTE_BYTES || load_u32(note) != NOTE_VERSION) {
        message_error("%s: not a state of this version of packstream",
                      message_name(r->file.name));
        return STATUS_DATA;
    }
    status = check_options(r);
    if (status != STATUS_OK)
        return status;
    r->place = (resume_place){.timed = load_u32(note + 24) != 0,
                              .file = load_u32(note + 28),
                              .records = load_u64(note + 32),
                              .mark = load_mark(note + 40),
                              .rejects = {load_mark(note + 88),
                                          load_file(note + 176)},
                              .output = load_file(note + 144),
                              .input_bytes = load_u64(note + 208)};
    if (r->place.file < (uint32_t)r->conf->n_names)
        return STATUS_OK;
    message_error("%s: the state is damaged", message_name(r->file.name));
    return STATUS_DATA;
}

/* ---- Begun again ---- */

/* Whether a file may be a state, by what it begins with. */
static bool is_state(const unsigned char *bytes, size_t n)
{
    ps_state says;
    ps_error err;

    return ps_state_read(bytes, n, &says, &err) != PS_ERR_MAGIC;
}

/* Two of them are in the memory at once. */
static uint64_t most_bytes(const conf *c)
{
    return c->memory == 0 ? MOST_BYTES : c->memory / 2;
}

static int read_state(resume *r)
{
    ps_error err;

    if (!replace_read(&r->file, most_bytes(r->conf), &r->state, &r->bytes))
        return STATUS_FAILURE;
    if (r->state == NULL)
        return STATUS_OK;
    if (!r->conf->resume) {
        message_error("%s: is there already (--resume goes on from it)",
                      message_name(r->file.name));
        return STATUS_USAGE;
    }
    if (ps_state_read(r->state, r->bytes, &r->says, &err) != PS_OK)
        return message_failure(message_name(r->file.name), &err);
    return read_note(r);
}

/*
 * A file goes on where it was; a pipe from the pack that its reader wants,
 * for which all may have to be packed again.
 */
static int choose_start(resume *r)
{
    uint64_t from = r->conf->resume_from;

    if (r->state == NULL) {
        r->first_record = from;
        return STATUS_OK;
    }
    if (from == 0 && files_is_for_file(r->conf->output)) {
        r->done = r->says.finished;
        r->goes_on = !r->done;
        return STATUS_OK;
    }
    r->first_record = from == 0 ? r->says.packs : from;
    r->goes_on = !r->says.finished && r->first_record >= r->says.packs;
    if (r->goes_on || !r->place.timed)
        return STATUS_OK;
    message_error("%s: packs were flushed because of time, so those before "
                  "%" PRIu64 " cannot be made again",
                  message_name(r->file.name), r->says.packs);
    return STATUS_DATA;
}

/* A link to what was not there yet shows when it is. */
static int open_file(resume *r)
{
    int status = apart_check(r->conf);

    if (status != STATUS_OK)
        return status;
    if (!replace_open(&r->file, r->conf->state, is_state))
        return STATUS_FAILURE;
    return apart_check(r->conf);
}

int resume_open(resume *r, const conf *c)
{
    int status = STATUS_OK;

    *r = (resume){.conf = c, .file = {.folder = -1, .next = -1},
                  .output = {.fd = -1}};
    if (c->state != NULL) {
        status = open_file(r);
        if (status == STATUS_OK)
            status = read_state(r);
    }
    return status == STATUS_OK ? choose_start(r) : status;
}

/* ---- Compared ---- */

/* All inputs together; UINT64_MAX unless they are regular files. */
static uint64_t input_bytes(const resume *r)
{
    uint64_t bytes;

    return files_inputs_size(r->conf->names, r->conf->n_names, &bytes)
               ? bytes
               : UINT64_MAX;
}

int resume_fits(const resume *r, const ps_schema *schema,
                const ps_packer_options *options)
{
    uint64_t then = r->place.input_bytes;
    uint64_t now = input_bytes(r);
    ps_error err;

    if (r->state == NULL)
        return STATUS_OK;
    if (ps_state_fits(r->state, r->bytes, schema, options, &err) != PS_OK)
        return message_failure(message_name(r->file.name), &err);
    if (!r->done || then == now || then == UINT64_MAX || now == UINT64_MAX)
        return STATUS_OK;
    message_error("%s: the job has ended, with %" PRIu64
                  " bytes of input and not %" PRIu64,
                  message_name(r->file.name), then, now);
    return STATUS_DATA;
}

int resume_prove(const resume *r, ps_packer *packer)
{
    ps_error err;

    if (r->state == NULL ||
        ps_packer_prove(packer, r->state, r->bytes, &err) == PS_OK)
        return STATUS_OK;
    return message_failure(message_name(r->file.name), &err);
}

/* Whether the output is that of the state. */
static bool has_output(const resume *r)
{
    return r->done || (r->goes_on && r->first_record == 0);
}

int resume_open_output(resume *r, int in, int *out)
{
    const char *name = r->conf->output;

    if (has_output(r))
        return written_reopen(&r->output, name, in, out, &r->place.output,
                              r->says.output_bytes);
    *out = files_open_output_alone(name, in);
    if (*out < 0)
        return STATUS_FAILURE;
    /* One that begins with a later pack is no output to go on with. */
    return r->conf->state != NULL && r->first_record == 0
               ? written_begin(&r->output, name, *out)
               : STATUS_OK;
}

int resume_cut_output(const resume *r, int out)
{
    return has_output(r)
               ? written_cut(&r->output, out, r->says.output_bytes)
               : STATUS_OK;
}

/* ---- Saved ---- */

void resume_start(resume *r, const ps_pack_info *info, uint64_t packs)
{
    uint64_t every = r->conf->state_every;

    if (every == 0)
        every = DEFAULT_BYTES / info->record_bytes + 1;
    r->next_packs = packs > UINT64_MAX - every ? UINT64_MAX : packs + every;
    /* A few marks reach back to the oldest sequence that may be held. */
    r->mark_every = info->window / (RESUME_MARKS / 2) + 1;
}

void resume_note(resume *r, uint32_t file, const ps_token_mark *mark)
{
    r->marks[r->n_marks++ % RESUME_MARKS] = (resume_mark){file, *mark};
    r->next_mark = mark->id + r->mark_every;
}

/* The newest place that is not behind a sequence. */
static bool find_mark(const resume *r, uint64_t id, resume_place *place)
{
    uint64_t n = r->n_marks < RESUME_MARKS ? r->n_marks : RESUME_MARKS;

    for (uint64_t i = 1; i <= n; i++) {
        const resume_mark *m =
            &r->marks[(r->n_marks - i) % RESUME_MARKS];

        if (m->mark.id <= id) {
            place->file = m->file;
            place->mark = m->mark;
            return true;
        }
    }
    return false;
}

/* What is written so far, for the state that is to be saved. */
static int mark_output(const resume *r, ps_packer *packer, int out,
                       written_mark *mark)
{
    const char *name = r->conf->output;
    uint64_t length = 0;
    ps_error err;

    if (ps_packer_flush(packer, &err) != PS_OK)
        return message_failure(files_output_name(name), &err);
    if (r->output.fd >= 0 && !written_length(&r->output, out, &length))
        return STATUS_FAILURE;
    return written_take(&r->output, length,
                        ps_packer_info(packer)->record_bytes, mark);
}

/* Whether the output ends where the state says. */
static bool is_output(const resume *r, int out, const unsigned char *state,
                      size_t bytes)
{
    ps_state says;
    ps_error err;

    return r->output.fd < 0 ||
           (ps_state_read(state, bytes, &says, &err) == PS_OK &&
            files_has(out, r->conf->output,
                      r->output.base + says.output_bytes));
}

int resume_save(resume *r, ps_packer *packer, int out, resume_place *place)
{
    unsigned char note[NOTE_BYTES];
    unsigned char *state;
    size_t bytes;
    ps_error err;
    bool done;
    int status = mark_output(r, packer, out, &place->output);

    if (status != STATUS_OK)
        return status;
    if (!find_mark(r, ps_packer_needs(packer), place)) {
        message_error("internal error: no mark before sequence %" PRIu64,
                      ps_packer_needs(packer));
        return STATUS_FAILURE;
    }
    place->input_bytes = input_bytes(r);
    store_note(r->conf, place, note);
    if (ps_packer_save(packer, note, sizeof note, &state, &bytes, &err) !=
        PS_OK)
        return message_failure(files_output_name(r->conf->output), &err);
    done = files_sync(out, r->conf->output) &&
           is_output(r, out, state, bytes) &&
           replace_write(&r->file, state, bytes);
    free(state);
    resume_start(r, ps_packer_info(packer), ps_packer_totals(packer)->packs);
    return done ? STATUS_OK : STATUS_FAILURE;
}

void resume_close(resume *r)
{
    written_close(&r->output);
    replace_close(&r->file);
    free(r->state);
    r->state = NULL;
}
