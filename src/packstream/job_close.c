/*
 * job_close.c - end the job: the last packs and END, the statistics, and the
 * files.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/message.h"
#include "cli/report.h"
#include "files/files.h"
#include "packstream/job_parts.h"

static void print_text(const ps_pack_info *info, const ps_totals *t,
                       const ps_rejected rejected[PS_REJECTS],
                       uint64_t delay, const ps_groups *groups)
{
    static const char *const words[PS_REJECTS] = {
        [PS_REJECT_OVERLONG] = "overlong",
        [PS_REJECT_EMPTY] = "empty",
        [PS_REJECT_OUT_OF_VOCAB] = "out of vocabulary"};
    const char *before = " (";

    (void)fprintf(stderr,
                  "%s: %" PRIu64 " sequences, %" PRIu64
                  " tokens in %" PRIu64 " packs, %.2f%% full; %" PRIu64
                  " rejected",
                  message_program(), t->sequences, t->tokens, t->packs,
                  100.0 * report_efficiency(info, t), t->rejected_sequences);
    for (unsigned i = 0; i < PS_REJECTS; i++)
        if (rejected[i].sequences > 0) {
            (void)fprintf(stderr, "%s%" PRIu64 " %s", before,
                          rejected[i].sequences, words[i]);
            before = ", ";
        }
    if (before[0] == ',')
        (void)putc(')', stderr);
    (void)fprintf(stderr,
                  ", %" PRIu64 " truncated, %" PRIu64
                  " split; longest delay %" PRIu64,
                  t->truncated_sequences, t->split_sequences, delay);
    if (groups != NULL)
        (void)fprintf(stderr, "; %" PRIu64 " groups, %" PRIu64 " overlong",
                      groups->groups, groups->overlong);
    (void)putc('\n', stderr);
}

/* No warning if efficiency is at least this. */
#define FULL 0.98

/* No warning for fewer packs. */
#define MIN_PACKS 16

/* Window and memory that the warning recommends, in packs. */
#define WINDOW_PACKS 64
#define MEMORY_PACKS 16

/* Rounds up to two significant digits. */
static uint64_t rounded_up(uint64_t n)
{
    uint64_t unit = 1;

    while (n / unit >= 100)
        unit *= 10;
    return (n + unit - 1) / unit * unit;
}

/* Warns if -w or -M limited the window so much that packs are less full. */
static void warn_of_window(const job *j)
{
    const conf *c = j->conf;
    const ps_pack_info *info = ps_packer_info(j->packer);
    const ps_totals *t = ps_packer_totals(j->packer);
    const ps_scarce scarce = ps_packer_scarce(j->packer);
    const double by_depth = (double)t->sequences / ps_max_sequences(info);
    const double packs = fmax((double)t->tokens / info->capacity, by_depth);
    const ps_groups groups = ps_packer_groups(j->packer);
    const uint64_t items = j->conf->group == NULL ? t->sequences
                                                  : groups.groups;
    double per_pack; /* mean sequences or groups per full pack */
    uint64_t sequences;
    uint64_t bytes;

    /* A window of 1 rules out good packing, so do not warn. */
    if (c->window == 1 || t->packs < MIN_PACKS ||
        (scarce.by_window + scarce.by_bytes) * 2 < t->packs ||
        packs >= FULL * (double)t->packs)
        return;
    per_pack = (double)items * info->capacity / (double)t->tokens;
    if (c->window != 0 && scarce.by_window >= scarce.by_bytes) {
        sequences = rounded_up((uint64_t)(WINDOW_PACKS * per_pack) + 1);
        if (sequences <= PS_MAX_WINDOW)
            message_warning("packs are only %.1f%% full, because -w "
                            "%" PRIu32 " holds few packs: use -w %" PRIu64 ", "
                            "which holds %d packs",
                            100 * report_efficiency(info, t), c->window,
                            sequences, WINDOW_PACKS);
        return;
    }
    sequences = (uint64_t)(MEMORY_PACKS * per_pack) + 1;
    bytes = memory_for(&j->memory, sequences, MEMORY_PACKS);
    if (bytes != 0)
        message_warning("packs are only %.1f%% full, because %" PRIu64 " MiB "
                        "of memory holds few packs: use -M %" PRIu64 "Mi, "
                        "which holds %d packs",
                        100 * report_efficiency(info, t),
                        j->memory.bound / MIB, bytes / MIB, MEMORY_PACKS);
}

/* Failing to print requested statistics is an error. */
static int print_stats(const job *j)
{
    const ps_pack_info *info = ps_packer_info(j->packer);
    const ps_totals *totals = ps_packer_totals(j->packer);
    const ps_groups counts = ps_packer_groups(j->packer);
    const ps_groups *groups = j->conf->group == NULL ? NULL : &counts;
    uint64_t delay = ps_packer_delay(j->packer);
    ps_rejected rejected[PS_REJECTS];

    if (j->conf->stats == STATS_NONE)
        return STATUS_OK;
    for (unsigned i = 0; i < PS_REJECTS; i++)
        rejected[i] = ps_packer_rejected(j->packer, (ps_reject)i);
    if (j->conf->stats == STATS_JSON)
        report_json_packing(stderr, info, totals, rejected, delay, groups);
    else
        print_text(info, totals, rejected, delay, groups);
    return ferror(stderr) ? STATUS_FAILURE : STATUS_OK;
}

/* Ends the rejects and the packs if the job succeeded so far. */
static int end_streams(job *j, int status)
{
    bool stopped = j->stop != 0;
    ps_error err;

    if (status == STATUS_OK && j->packer != NULL && !stopped)
        status = job_catch_up(j);
    /* Rejects first: if they fail, the output must not look complete. */
    status = rejects_close(&j->rejects, status, !stopped);
    if (j->packer == NULL || j->resume.task == TASK_COMPARE || stopped)
        return status;

    if (status != STATUS_OK) {
        /*
         * After a failure, packs decided before it are still written, but an
         * output that was not truncated yet must stay unchanged.  The failure
         * has been reported; an error here probably has the same cause.
         */
        if (!j->output_failed && !job_refills(j) &&
            ps_packer_flush(j->packer, PS_FLUSH_ABANDON, &err) != PS_OK)
            j->output_failed = true;
        return status;
    }
    if (j->next_id < j->known_until && j->resume.task != TASK_END) {
        message_error("%s: the input has changed since the state was saved: it "
                      "ends before sequence %" PRIu64,
                      files_input_name(j->input.name), j->known_until - 1);
        return STATUS_DATA;
    }
    if (ps_packer_flush(j->packer, PS_FLUSH_FINISH, &err) != PS_OK)
        return err.code == PS_ERR_CORRUPT ? job_input_failure(j, &err)
                                          : job_output_failure(j, &err);
    /* The job only wrote END again, so its state is unchanged. */
    return j->conf->state == NULL || j->resume.task == TASK_END
               ? STATUS_OK
               : job_save(j, true);
}

int job_close(job *j, int status)
{
    status = end_streams(j, status);
    status = files_end_output(j->out, j->conf->output, status);
    if (status == STATUS_OK && !file_set_publish(&j->set))
        status = STATUS_FAILURE;
    file_set_free(&j->set);
    if (status == STATUS_OK && j->packer != NULL && !j->conf->quiet)
        warn_of_window(j);
    if (status == STATUS_OK && j->packer != NULL)
        status = print_stats(j);
    resume_close(&j->resume);
    ps_packer_free(j->packer);
    ps_histogram_free(j->learn_from);
    ps_token_reader_free(j->input.reader);
    if (j->input.fd >= 0)
        files_close_input(j->input.fd);
    return status;
}
