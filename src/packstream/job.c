/*
 * job.c - the one job of packstream: records in, packs out.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/job.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/files.h"
#include "cli/message.h"
#include "cli/report.h"
#include "packstream/job_parts.h"
#include "packstream/signals.h"

/* Counts the bytes of the file that was read, as far as it was read. */
static void count_input(job *j)
{
    uint64_t bytes;

    if (j->input_bytes == RESUME_UNKNOWN || !files_is_regular(j->in) ||
        !files_place(j->in, &bytes) || bytes >= UINT64_MAX - j->input_bytes)
        j->input_bytes = RESUME_UNKNOWN;
    else
        j->input_bytes += bytes;
}

/* At the end of a file: goes on with the next, if there is one. */
static int next_file(job *j, bool *more)
{
    int before = j->in;
    ps_error err;
    int status;

    *more = j->next_name < j->conf->n_names;
    count_input(j);
    if (!*more)
        return STATUS_OK;
    /* To open a file may mean to wait for one who writes to it. */
    if (ps_packer_flush(j->packer, PS_FLUSH_DECIDED, &err) != PS_OK)
        return job_output_failure(j, &err);
    status = job_open_file(j);
    if (status == STATUS_OK &&
        ps_token_reader_append(j->reader, j->in, &err) != PS_OK)
        status = job_read_failure(j, &err);
    /* Only now, lest the new one gets a number that is still in use. */
    files_close_input(before);
    return status;
}

int job_pack(job *j)
{
    bool more = true;
    int status = STATUS_OK;

    progress_start(&j->progress, !j->conf->quiet);
    while (status == STATUS_OK && more && signals_stopped() == 0) {
        ps_sequence sequence;
        ps_error err;

        switch (ps_token_reader_next(j->reader, j->conf->capacity, &sequence,
                                     &err)) {
        case PS_OK:
            status = job_put(j, &sequence);
            break;
        case PS_END:
            status = next_file(j, &more);
            break;
        case PS_ERR_OVERLONG:
            status = job_put_overlong(j, &sequence, &err);
            break;
        case PS_ERR_RANGE:
            status = job_put_outside(j, &sequence, &err);
            break;
        case PS_ERR_EMPTY:
            status = job_put_empty(j, &sequence, &err);
            break;
        default:
            status = job_read_failure(j, &err);
        }
    }
    progress_end(&j->progress);
    if (status == STATUS_OK && more)
        j->stop = signals_stopped();
    return j->stop == 0 ? status : job_save(j, false);
}

/* " (2 overlong, 1 empty)" behind the number of rejects, if there are any. */
static void print_reasons(const ps_rejected rejected[PS_REJECTS])
{
    static const char *const words[PS_REJECTS] = {
        [PS_REJECT_OVERLONG] = "overlong",
        [PS_REJECT_EMPTY] = "empty",
        [PS_REJECT_OUT_OF_VOCAB] = "out of vocabulary"};
    const char *before = " (";

    for (unsigned i = 0; i < PS_REJECTS; i++)
        if (rejected[i].sequences > 0) {
            (void)fprintf(stderr, "%s%" PRIu64 " %s", before,
                          rejected[i].sequences, words[i]);
            before = ", ";
        }
    if (before[0] == ',')
        (void)putc(')', stderr);
}

static void print_text(const ps_pack_info *info, const ps_totals *t,
                       const ps_rejected rejected[PS_REJECTS],
                       uint64_t delay)
{
    (void)fprintf(stderr,
                  "%s: %" PRIu64 " sequences, %" PRIu64
                  " tokens in %" PRIu64 " packs, %.2f%% full; %" PRIu64
                  " rejected",
                  message_program(), t->sequences, t->tokens, t->packs,
                  100.0 * report_efficiency(info, t), t->rejected_sequences);
    print_reasons(rejected);
    (void)fprintf(stderr,
                  ", %" PRIu64 " truncated, %" PRIu64
                  " split; longest delay %" PRIu64 "\n",
                  t->truncated_sequences, t->split_sequences, delay);
}

/* What was asked for and could not be told is a failure. */
static int print_stats(const job *j)
{
    const ps_pack_info *info = ps_packer_info(j->packer);
    const ps_totals *totals = ps_packer_totals(j->packer);
    uint64_t delay = ps_packer_delay(j->packer);
    ps_rejected rejected[PS_REJECTS];
    ps_depth_cost cost;
    ps_error err;

    if (j->conf->stats == STATS_NONE && (j->conf->quiet || j->stop != 0))
        return STATUS_OK;
    /* Nobody asked for the line that is lost without memory. */
    if (ps_packer_depth_cost(j->packer, &cost, &err) != PS_OK)
        return j->conf->stats == STATS_NONE
                   ? STATUS_OK
                   : message_failure(files_output_name(j->conf->output),
                                     &err);
    for (unsigned i = 0; i < PS_REJECTS; i++)
        rejected[i] = ps_packer_rejected(j->packer, (ps_reject)i);
    if (j->conf->stats == STATS_JSON)
        report_json_packing(stderr, info, totals, rejected, delay, &cost);
    else if (j->conf->stats == STATS_TEXT)
        print_text(info, totals, rejected, delay);
    if (j->conf->stats != STATS_JSON && cost.depth != 0)
        message_note("the depth cap of %" PRIu32 " costs %.1f%%: -d %" PRIu32,
                     info->depth, 100 * cost.efficiency, cost.depth);
    return ferror(stderr) ? STATUS_FAILURE : STATUS_OK;
}

/*
 * After a failure what was decided before it still goes out, but no END: the
 * stream is cut, and a reader says so.
 */
static void abandon(job *j)
{
    ps_error err;

    /* An output that was not cut yet is to stay as it is. */
    if (j->output_failed || job_is_again(j))
        return;
    /* That memory ran out once is told already. */
    if (ps_packer_flush(j->packer, PS_FLUSH_ABANDON, &err) != PS_OK &&
        err.code != PS_ERR_MEMORY)
        (void)job_output_failure(j, &err);
}

static int finish(job *j)
{
    ps_error err;

    if (j->next_id < j->known && !j->resume.ends) {
        message_error("%s: the input is not what it was when the state was "
                      "saved: it ends before sequence %" PRIu64,
                      files_input_name(j->input), j->known - 1);
        return STATUS_DATA;
    }
    if (ps_packer_flush(j->packer, PS_FLUSH_FINISH, &err) != PS_OK)
        return err.code == PS_ERR_CORRUPT ? job_input_failure(j, &err)
                                          : job_output_failure(j, &err);
    job_tell_depth(j);
    /* Of one that has just written END once more nothing is new. */
    return j->conf->state == NULL || j->resume.ends ? STATUS_OK
                                                    : job_save(j, true);
}

/* The rejects first: without them the output is not to be whole. */
static int end_streams(job *j, int status)
{
    int rejected;

    if (status == STATUS_OK && j->packer != NULL && j->stop == 0)
        status = job_catch_up(j);
    rejected = rejects_close(&j->rejects,
                             status == STATUS_OK && j->stop == 0);
    if (status == STATUS_OK)
        status = rejected;
    if (j->packer == NULL || j->resume.done || j->stop != 0)
        return status;
    if (status == STATUS_OK)
        status = finish(j);
    else
        abandon(j);
    return status;
}

int job_close(job *j, int status)
{
    status = end_streams(j, status);
    if (j->out >= 0 && !files_close_output(j->out, j->conf->output) &&
        status == STATUS_OK)
        status = STATUS_FAILURE;
    if (status == STATUS_OK && j->packer != NULL)
        status = print_stats(j);
    resume_close(&j->resume);
    ps_packer_free(j->packer);
    ps_token_reader_free(j->reader);
    if (j->in >= 0)
        files_close_input(j->in);
    return status;
}
