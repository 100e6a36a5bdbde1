/*
 * job_put.c - one sequence is put into the packer, and what is due after that.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/files.h"
#include "cli/message.h"
#include "packstream/job_parts.h"
#include "packstream/signals.h"

/* Whether a state would be better than the one that there is, if any. */
static bool is_news(const job *j, bool ended)
{
    /* A pipe has nothing yet that would have to be known of it. */
    if (ps_packer_totals(j->packer)->packs == 0 &&
        (!ended || j->resume.output.fd < 0))
        return false;
    if (j->resume.proves && !j->caught_up && !ended)
        return false;
    return j->next_id >= j->known;
}

int job_save(job *j, bool ended)
{
    resume_place place = {.records = j->records,
                          .timed = j->timed,
                          .input_bytes = j->input_bytes,
                          .ended = ended};
    int status;

    if (!is_news(j, ended))
        return STATUS_OK;
    status = rejects_sync(&j->rejects);
    place.rejects = j->rejects.mark;
    if (status == STATUS_OK)
        status = resume_save(&j->resume, j->packer, j->out, &place);
    j->output_failed = status != STATUS_OK;
    return status;
}

static void show_progress(job *j)
{
    const ps_totals *t = ps_packer_totals(j->packer);
    progress_figures figures = {
        .bytes = ps_token_reader_offset(j->reader),
        .sequences = t->sequences,
        .tokens = t->tokens,
        .packs = t->packs,
        .capacity = j->conf->capacity,
    };

    progress_show(&j->progress, &figures);
}

/* Whether what is held is to be packed before the next record. */
static bool is_flush_due(job *j)
{
    bool asked = signals_asked();

    j->records++;
    /* What is to be proved was flushed at no such time. */
    asked = asked && j->next_id >= j->known;
    j->timed = j->timed || asked;
    return asked || (j->conf->flush_every != 0 &&
                     j->records % j->conf->flush_every == 0);
}

/* What a state needs, between two records. */
static int look_after_state(job *j)
{
    if (j->next_id >= j->resume.next_mark)
        job_note(j);
    if (ps_packer_totals(j->packer)->packs < j->resume.next_packs)
        return STATUS_OK;
    return job_save(j, false);
}

/*
 * Not before something new comes: flushes that were asked for behind what the
 * state knows have come again by then, too.
 */
int job_catch_up(job *j)
{
    ps_error err;

    if (!j->resume.proves || j->caught_up || j->next_id < j->known)
        return STATUS_OK;
    j->caught_up = true;
    /* Of a stream that has ended the last packs are still to come. */
    if (!j->resume.summary.finished &&
        ps_packer_replay_verified(j->packer, &err) != PS_OK)
        return err.code == PS_ERR_CORRUPT ? job_input_failure(j, &err)
                                          : job_output_failure(j, &err);
    return job_cut_outputs(j);
}

int job_took(job *j, const ps_sequence *sequence, ps_result result,
             const ps_error *why)
{
    bool again = job_is_again(j);
    ps_error err;

    if (result != PS_OK)
        return again ? job_input_failure(j, why) : job_output_failure(j, why);
    j->next_id = sequence->id + 1;
    job_tell_depth(j);
    if (again)
        return job_is_again(j) ? STATUS_OK : job_cut_outputs(j);
    if (is_flush_due(j) &&
        ps_packer_flush(j->packer, PS_FLUSH_DRAIN, &err) != PS_OK)
        return job_output_failure(j, &err);
    if (progress_due(&j->progress))
        show_progress(j);
    return j->conf->state == NULL ? STATUS_OK : look_after_state(j);
}

int job_put(job *j, const ps_sequence *sequence)
{
    int status = job_catch_up(j);
    ps_error err;
    ps_result r;

    if (status != STATUS_OK)
        return status;
    r = ps_packer_put(j->packer, sequence, &err);
    return job_took(j, sequence, r, &err);
}

int job_read_failure(job *j, const ps_error *err)
{
    if (signals_stopped() != 0)
        return STATUS_OK;
    return j->output_failed ? job_output_failure(j, err)
                            : job_input_failure(j, err);
}
