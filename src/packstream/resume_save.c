/*
 * resume_save.c - the state of the job, saved while it works.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>

#include "cli/files.h"
#include "cli/message.h"
#include "packstream/resume_parts.h"

/* Unless --state-every says otherwise. */
#define DEFAULT_BYTES ((uint64_t)256 << 20)

void resume_start(resume *r, const ps_pack_info *info, uint64_t packs)
{
    uint64_t every = r->conf->state_every;

    if (every == 0)
        every = DEFAULT_BYTES / info->record_bytes + 1;
    r->next_packs = packs > UINT64_MAX - every ? UINT64_MAX : packs + every;
    /* A few marks reach back to the oldest sequence that may be held. */
    r->mark_every = info->window / (RESUME_MARKS / 2) + 1;
}

void resume_note(resume *r, const resume_mark *mark)
{
    r->marks[r->n_marks++ % RESUME_MARKS] = *mark;
    r->next_mark = mark->mark.id + r->mark_every;
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
            if (!place->ended)
                place->input_bytes = m->input_bytes;
            return true;
        }
    }
    return false;
}

/* What is written so far, for the state that is to be saved. */
static int mark_output(const resume *r, ps_packer *packer, int out,
                       uint64_t *length, output_check_mark *mark)
{
    const char *name = r->conf->output;
    ps_error err;

    *length = 0;
    if (ps_packer_flush(packer, PS_FLUSH_DECIDED, &err) != PS_OK)
        return message_failure(files_output_name(name), &err);
    if (r->output.fd >= 0 && !output_check_length(&r->output, out, length))
        return STATUS_FAILURE;
    return output_check_take(&r->output, *length,
                             ps_packer_info(packer)->record_bytes, mark);
}

/* Whether the output, of such a length, ends where the state says. */
static bool is_output(const resume *r, int out, uint64_t length,
                      const unsigned char *state, size_t bytes)
{
    const char *name = r->conf->output;
    ps_state summary;
    ps_error err;

    if (r->output.fd < 0)
        return true;
    if (ps_state_read(state, bytes, &summary, &err) != PS_OK)
        return false;
    if (length == summary.output_bytes)
        return files_has_length(out, name, r->output.base + length);
    message_error("%s: has %" PRIu64 " bytes, but %" PRIu64 " were written: "
                  "another program changed it",
                  files_output_name(name), r->output.base + length,
                  r->output.base + summary.output_bytes);
    return false;
}

static int write_state(resume *r, const unsigned char *state, size_t bytes)
{
    return atomic_file_write(&r->file, state, bytes) ? STATUS_OK
                                                 : STATUS_FAILURE;
}

int resume_begin(resume *r, int out)
{
    unsigned char note[RESUME_NOTE_BYTES];
    resume_place place = {.input_bytes = RESUME_UNKNOWN};
    unsigned char *state;
    size_t bytes;
    ps_error err;
    int status;

    if (r->summary.blank && resume_has_output(r))
        return output_check_cut(&r->output, out, 0);
    /* A pipe begins anew, and then there is nothing to know of it. */
    if (r->state != NULL || r->output.fd < 0)
        return STATUS_OK;
    status = output_check_take(&r->output, 0, 0, &place.output);
    if (status != STATUS_OK)
        return status;
    resume_store_note(r->conf, &place, note);
    if (ps_state_blank(note, sizeof note, &state, &bytes, &err) != PS_OK)
        return message_failure(message_name(r->file.name), &err);
    status = write_state(r, state, bytes);
    free(state);
    return status;
}

int resume_save(resume *r, ps_packer *packer, int out, resume_place *place)
{
    unsigned char note[RESUME_NOTE_BYTES];
    unsigned char *state;
    uint64_t length;
    size_t bytes;
    ps_error err;
    int status = mark_output(r, packer, out, &length, &place->output);

    if (status != STATUS_OK)
        return status;
    if (!find_mark(r, ps_packer_resume_from(packer), place)) {
        message_error("internal error: no mark before sequence %" PRIu64,
                      ps_packer_resume_from(packer));
        return STATUS_FAILURE;
    }
    resume_store_note(r->conf, place, note);
    if (ps_packer_save(packer, note, sizeof note, &state, &bytes, &err) !=
        PS_OK)
        return message_failure(files_output_name(r->conf->output), &err);
    status = files_sync(out, r->conf->output) &&
                     is_output(r, out, length, state, bytes)
                 ? write_state(r, state, bytes)
                 : STATUS_FAILURE;
    free(state);
    resume_start(r, ps_packer_info(packer), ps_packer_totals(packer)->packs);
    return status;
}
