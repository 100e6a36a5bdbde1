/*
 * resume_note.c - what the job adds to the library's state.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/message.h"
#include "common/bytes.h"
#include "packstream/resume_parts.h"

#define NOTE_VERSION 3

/* Places in it. */
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

static void store_file(unsigned char *to, const output_check_mark *m)
{
    store_u64(to, m->known);
    store_u64(to + 8, m->base);
    store_u64(to + 16, m->record);
    store_u64(to + 24, m->hash);
}

static output_check_mark load_file(const unsigned char *from)
{
    return (output_check_mark){.known = load_u64(from) != 0,
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

void resume_store_note(const conf *c, const resume_place *p,
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
    store_u32(note + AT_DROPPED, dropped(c));
    store_u32(note + AT_VOCABULARY, vocabulary(c));
    store_file(note + AT_OUTPUT, &p->output);
    store_file(note + AT_REJECTS_FILE, &p->rejects.file);
    store_u64(note + AT_INPUT_BYTES, p->input_bytes);
}

static int does_not_fit(const resume *r, const char *what)
{
    message_error("%s: the state was saved with %s",
                  message_name(r->file.name), what);
    return STATUS_USAGE;
}

static int check_options(const resume *r)
{
    const unsigned char *note = r->summary.note;
    const conf *c = r->conf;

    if (load_u32(note + AT_N_NAMES) != (uint32_t)c->n_names)
        return does_not_fit(r, "another number of inputs");
    if (load_u64(note + AT_FLUSH_EVERY) != c->flush_every ||
        load_u32(note + AT_FLUSH_RECORDS) != c->flush_records)
        return does_not_fit(r, "other flush options");
    if (load_u32(note + AT_HAS_REJECTS) != (c->rejects != NULL))
        return does_not_fit(r, c->rejects == NULL ? "--rejects"
                                                  : "no --rejects");
    if (load_u32(note + AT_DROPPED) != dropped(c))
        return does_not_fit(r, "another --out-of-vocab or --empty");
    if (load_u32(note + AT_VOCABULARY) != vocabulary(c))
        return does_not_fit(r, "another --vocab");
    return STATUS_OK;
}

int resume_read_note(resume *r)
{
    const unsigned char *note = r->summary.note;
    int status;

    if (r->summary.note_bytes != RESUME_NOTE_BYTES ||
        load_u32(note) != NOTE_VERSION) {
        message_error("%s: not a state of this version of packstream",
                      message_name(r->file.name));
        return STATUS_DATA;
    }
    status = check_options(r);
    if (status != STATUS_OK)
        return status;
    r->place = (resume_place){.timed = load_u32(note + AT_TIMED) != 0,
                              .file = load_u32(note + AT_FILE),
                              .records = load_u64(note + AT_RECORDS),
                              .mark = load_mark(note + AT_MARK),
                              .rejects = {load_mark(note + AT_REJECTS_MARK),
                                          load_file(note + AT_REJECTS_FILE)},
                              .output = load_file(note + AT_OUTPUT),
                              .input_bytes = load_u64(note + AT_INPUT_BYTES)};
    if (r->place.file < (uint32_t)r->conf->n_names &&
        r->place.mark.id <= r->summary.needs)
        return STATUS_OK;
    message_error("%s: the state is damaged", message_name(r->file.name));
    return STATUS_DATA;
}
