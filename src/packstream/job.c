/*
 * job.c - pass sequences from the reader to the packer until the input ends or
 * a signal arrives, and handle waits for input.
 *
 * SPDX-License-Identifier: MIT
 */

#include <errno.h>
#include <inttypes.h>

#include "cli/message.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "files/files.h"
#include "packstream/job_parts.h"

/* First wait for input, in milliseconds.  Output may still be in progress. */
#define SHORT_WAIT 10

bool job_refills(const job *j)
{
    return j->next_id < j->refill_until;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Reports a read error, unless a signal ended the read. */
static int read_failure(job *j, const ps_error *err)
{
    if (signals_stopped() != 0)
        return STATUS_OK;
    return j->output_failed ? job_output_failure(j, err)
                            : job_input_failure(j, err);
}

/* ---- A sequence ---- */

int job_catch_up(job *j)
{
    ps_error err;

    if (j->resume.task != TASK_REPLAY || j->caught_up ||
        j->next_id < j->known_until)
        return STATUS_OK;
    j->caught_up = true;
    /*
     * If the stream has ended, its last packs are still to be written, so the
     * replay cannot be verified yet.
     */
    if (!j->resume.summary.finished &&
        ps_packer_replay_verified(j->packer, &err) != PS_OK)
        return err.code == PS_ERR_CORRUPT ? job_input_failure(j, &err)
                                          : job_output_failure(j, &err);
    return job_cut_outputs(j);
}

int job_save(job *j, bool ended)
{
    resume_position position = {.records = j->records,
                                .timed = j->timed,
                                .input_bytes = j->input.bytes,
                                .ended = ended};
    int status;

    if (ps_packer_totals(j->packer)->packs == 0 && !ended)
        return STATUS_OK;
    /* The existing state is further ahead or is not verified yet. */
    if (j->next_id < j->known_until ||
        (j->resume.task == TASK_REPLAY && !j->caught_up && !ended))
        return STATUS_OK;
    status = rejects_sync(&j->rejects);
    position.rejects = j->rejects.position;
    if (status == STATUS_OK)
        status = resume_save(&j->resume, j->packer, j->out, &position);
    j->output_failed = status != STATUS_OK;
    return status;
}

/*
 * After FLUSHES_SEEN flushes, warn if the stream has FLUSHES_COST times as many
 * packs as the sequences need.
 */
#define FLUSHES_SEEN 64
#define FLUSHES_COST 3.0

/*
 * Warns once if flushes produce partly filled packs.  There is nothing to
 * report if a short delay, an alignment or one sequence per pack causes padding
 * anyway.
 */
static void warn_of_flushes(const job *j)
{
    const conf *c = j->conf;
    const ps_totals *totals = ps_packer_totals(j->packer);
    double needed = (double)totals->tokens / c->capacity;
    double by_depth =
        c->depth == 0 ? 0 : (double)totals->sequences / c->depth;

    if (c->quiet || j->records / c->flush_every != FLUSHES_SEEN ||
        c->max_delay != 0 || c->align > 1 || c->policy == PS_POLICY_NONE)
        return;
    needed = needed > by_depth ? needed : by_depth;
    if ((double)totals->packs > FLUSHES_COST * needed)
        message_warning("--flush-every=%" PRIu64 " writes %.1f times as many "
                        "packs as the sequences need: raise it",
                        c->flush_every, (double)totals->packs / needed);
}

/* With --every=N: prints the totals after each N packs. */
static void report_every(job *j)
{
    const uint64_t every = j->conf->stats_every;
    const ps_totals *totals = ps_packer_totals(j->packer);
    ps_rejected rejected[PS_REJECTS];
    ps_groups groups;

    if (every == 0 || totals->packs / every == j->lines)
        return;
    j->lines = totals->packs / every;
    for (unsigned i = 0; i < PS_REJECTS; i++)
        rejected[i] = ps_packer_rejected(j->packer, (ps_reject)i);
    groups = ps_packer_groups(j->packer);
    message_wipe();
    /* A write error is detected at the end, after the last line. */
    report_json_packing(stderr, ps_packer_info(j->packer), totals, rejected,
                        ps_packer_delay(j->packer),
                        j->conf->group == NULL ? NULL : &groups);
}

static int overlong_failure(const job *j, const ps_error *why)
{
    message_error("%s: %s: use --overlong=%s",
                  files_input_name(j->input.name), why->text,
                  why->code == PS_ERR_RANGE ? "drop or a larger --budget"
                                            : "split, truncate or drop");
    return STATUS_DATA;
}

/*
 * Does the work that is due after the packer has accepted `n` sequences, or
 * reports its failure.
 */
static int after_put(job *j, uint64_t n, ps_result result,
                     const ps_error *why)
{
    const conf *c = j->conf;
    const ps_totals *totals = ps_packer_totals(j->packer);
    bool refilled = job_refills(j);
    bool asked;
    bool counted;
    ps_error err;

    if (j->reject_status != STATUS_OK)
        return j->reject_status;
    if (result == PS_ERR_OVERLONG || result == PS_ERR_RANGE)
        return overlong_failure(j, why);
    if (result != PS_OK)
        return refilled ? job_input_failure(j, why)
                        : job_output_failure(j, why);
    j->next_id += n;
    if (refilled)
        return job_refills(j) ? STATUS_OK : job_cut_outputs(j);

    j->records += n;
    /* Packs to be verified were flushed by record count only, never by time. */
    asked = signals_asked() && j->next_id >= j->known_until;
    j->timed = j->timed || asked;
    counted = c->flush_every != 0 && j->records % c->flush_every == 0;
    if ((asked || counted) &&
        ps_packer_flush(j->packer, PS_FLUSH_DRAIN, &err) != PS_OK)
        return job_output_failure(j, &err);
    if (counted)
        warn_of_flushes(j);
    if (progress_due(&j->progress))
        progress_show(&j->progress, &(progress_figures){
            .bytes = ps_token_reader_offset(j->input.reader),
            .sequences = totals->sequences,
            .tokens = totals->tokens,
            .packs = totals->packs,
            .capacity = c->capacity,
            .input = j->input.next - 1,
            .fd = j->input.fd});
    report_every(j);

    if (c->state == NULL)
        return STATUS_OK;
    if (j->next_id >= j->resume.next_position)
        job_add_position(j);
    return totals->packs < j->resume.next_packs ? STATUS_OK
                                                : job_save(j, false);
}

static int put(job *j, const ps_sequence *sequence)
{
    int status = job_catch_up(j);
    ps_error err;
    ps_result r;

    if (status != STATUS_OK)
        return status;
    r = ps_packer_put(j->packer, sequence, &err);
    return after_put(j, 1, r, &err);
}

/* Maximum number of sequences put between two checks for signals. */
#define READY_AT_ONCE 64

/*
 * Puts the sequences that are ready, at most up to the next flush, position,
 * state or report that is due.  Returns false if none is ready or if each
 * sequence has to be handled separately.
 */
static bool put_ready(job *j, int *status)
{
    const conf *c = j->conf;
    uint64_t most = READY_AT_ONCE;
    uint64_t packs = UINT64_MAX;
    uint64_t n;
    ps_error err;
    ps_result r;

    if (j->next_id < j->known_until ||
        (j->resume.task == TASK_REPLAY && !j->caught_up))
        return false;
    if (c->flush_every != 0)
        most = least(most, c->flush_every - j->records % c->flush_every);
    if (c->state != NULL) {
        most = least(most, j->resume.next_position - j->next_id);
        packs = j->resume.next_packs;
    }
    if (c->stats_every != 0)
        packs = least(packs, (j->lines + 1) * c->stats_every);
    r = ps_packer_put_ready(j->packer, j->input.reader, most, packs, &n, &err);
    if (r == PS_OK && n == 0)
        return false;
    *status = after_put(j, n, r, &err);
    return true;
}

/* ---- Overlong and rejected sequences ---- */

static int write_reject(job *j, const ps_sequence *sequence, int reason)
{
    int status = job_catch_up(j);

    if (status != STATUS_OK || sequence->id < j->known_until)
        return status;
    return rejects_put(&j->rejects, sequence, reason);
}

ps_result job_on_reject(void *context, const ps_sequence *sequence,
                        bool truncated, ps_error *err)
{
    job *j = context;

    /* Earlier rejects were written before the state was saved. */
    if (j->next_id >= j->known_until)
        j->reject_status =
            rejects_put(&j->rejects, sequence,
                        truncated ? REJECT_TRUNCATED : REJECT_DROPPED);
    if (j->reject_status == STATUS_OK)
        return PS_OK;
    *err = (ps_error){.code = PS_ERR_IO, .text = "--rejects failed"};
    return PS_ERR_IO;
}

/* Rejects a sequence: counts it and, with --rejects, writes it. */
static int reject(job *j, const ps_sequence *sequence, ps_reject reason)
{
    static const int numbers[] = {
        [PS_REJECT_OVERLONG] = REJECT_DROPPED,
        [PS_REJECT_OUT_OF_VOCAB] = REJECT_OUT_OF_VOCAB};
    int status = STATUS_OK;
    ps_error err;
    ps_result r;

    /* An empty sequence cannot be written as a record. */
    if (reason != PS_REJECT_EMPTY)
        status = write_reject(j, sequence, numbers[reason]);
    if (status != STATUS_OK)
        return status;
    r = ps_packer_reject(j->packer, sequence, reason, &err);
    return after_put(j, 1, r, &err);
}

/*
 * Reads the pending sequence if `whole`, otherwise skips it.  Sets *outside if
 * it contains an out-of-vocabulary token and must be dropped.
 */
static ps_result fetch(job *j, bool whole, ps_sequence *sequence,
                       bool *outside, ps_error *err)
{
    ps_result r = PS_OK;

    /*
     * The reader stops once at the first such token; reading again continues
     * after it.
     */
    do {
        *outside = r == PS_ERR_RANGE;
        r = whole ? ps_token_reader_hold(j->input.reader, sequence, err)
                  : ps_token_reader_skip(j->input.reader, err);
    } while (r == PS_ERR_RANGE && j->conf->drop_outside && !*outside);
    return r;
}

/*
 * The packer itself handles overlong groups and, with budgets, all overlong
 * sequences.  It needs them whole.
 */
static int put_overlong(job *j, ps_sequence *sequence, const ps_error *why)
{
    const bool by_packer = j->conf->group != NULL ||
                           ps_packer_info(j->packer)->n_budgets > 0;
    ps_overlong overlong = j->conf->policy == PS_POLICY_CONCAT
                               ? PS_OVERLONG_SPLIT
                               : j->conf->overlong;
    bool whole = overlong != PS_OVERLONG_DROP || by_packer ||
                 j->conf->rejects != NULL;
    int status = STATUS_OK;
    bool outside;
    ps_error err;

    if (overlong == PS_OVERLONG_ERROR)
        return overlong_failure(j, why);
    if (fetch(j, whole, sequence, &outside, &err) != PS_OK)
        return read_failure(j, &err);
    if (overlong == PS_OVERLONG_DROP && !by_packer)
        return reject(j, sequence, PS_REJECT_OVERLONG);
    if (outside)
        return reject(j, sequence, PS_REJECT_OUT_OF_VOCAB);
    if (overlong == PS_OVERLONG_TRUNCATE && !by_packer)
        status = write_reject(j, sequence, REJECT_TRUNCATED);
    return status == STATUS_OK ? put(j, sequence) : status;
}

/* ---- The main loop ---- */

/*
 * Opens the next input at the end of a file.  *more is false after the last.
 */
static int next_file(job *j, bool *more)
{
    int before = j->input.fd;
    uint64_t bytes;
    ps_error err;
    int status;

    /* Add the number of bytes read from the file. */
    if (j->input.bytes == RESUME_UNKNOWN ||
        !files_is(FILES_REGULAR, j->input.fd) ||
        !files_offset(j->input.fd, &bytes) ||
        bytes >= UINT64_MAX - j->input.bytes)
        j->input.bytes = RESUME_UNKNOWN;
    else
        j->input.bytes += bytes;

    *more = j->input.next < j->conf->n_names;
    if (!*more)
        return STATUS_OK;
    /*
     * Opening a pipe can block until it has a writer, so write full blocks
     * first.
     */
    if (ps_packer_flush(j->packer, PS_FLUSH_DECIDED, &err) != PS_OK)
        return job_output_failure(j, &err);
    status = job_open_file(j);
    if (status == STATUS_OK &&
        ps_token_reader_append(j->input.reader, j->input.fd, &err) != PS_OK)
        status = read_failure(j, &err);
    /* Close it only now, so that the new input gets another descriptor. */
    files_close_input(before);
    return status;
}

/*
 * Handles an empty input.  If it is a pipe and the output is a file, fails: the
 * producer has probably failed, and a pack stream without packs would replace
 * the file.
 */
static int empty_input(const job *j)
{
    if (j->conf->output != NULL && files_is(FILES_PIPE, j->input.fd)) {
        message_error("%s: the pipe ended without data: its producer failed, "
                      "or wrote no raw records",
                      files_input_name(j->input.name));
        return STATUS_DATA;
    }
    /* With --stats the totals show that the input is empty. */
    if (!j->conf->quiet && j->conf->stats == STATS_NONE)
        message_warning("%s: the input is empty (use --expect-end to refuse "
                        "it)",
                        files_input_name(j->input.name));
    return STATUS_OK;
}

int job_pack(job *j)
{
    bool more = true;
    int status = STATUS_OK;

    /* The earlier job has ended: there is nothing to pack. */
    if (j->resume.task == TASK_COMPARE || j->resume.task == TASK_END)
        return STATUS_OK;
    progress_start(&j->progress, !j->conf->quiet);
    progress_inputs(&j->progress, j->conf->names, j->conf->n_names);
    if (j->conf->stats_every != 0)
        j->lines = ps_packer_totals(j->packer)->packs / j->conf->stats_every;
    while (status == STATUS_OK && more && signals_stopped() == 0) {
        ps_sequence sequence;
        bool outside;
        ps_error err;

        if (put_ready(j, &status))
            continue;
        switch (ps_token_reader_next(j->input.reader, j->conf->capacity,
                                     &sequence, &err)) {
        case PS_OK:
            status = put(j, &sequence);
            break;
        case PS_END:
            status = next_file(j, &more);
            break;
        case PS_ERR_OVERLONG:
            status = put_overlong(j, &sequence, &err);
            break;
        case PS_ERR_RANGE:
            if (j->conf->drop_outside &&
                fetch(j, j->conf->rejects != NULL, &sequence, &outside,
                      &err) == PS_OK)
                status = reject(j, &sequence, PS_REJECT_OUT_OF_VOCAB);
            else
                status = read_failure(j, &err);
            break;
        case PS_ERR_EMPTY:
            status = j->conf->drop_empty
                         ? reject(j, &sequence, PS_REJECT_EMPTY)
                         : read_failure(j, &err);
            break;
        default:
            status = read_failure(j, &err);
        }
    }
    progress_end(&j->progress);
    if (status == STATUS_OK && more)
        j->stop = signals_stopped();
    if (status == STATUS_OK && !more &&
        ps_token_reader_offset(j->input.reader) == 0)
        status = empty_input(j);
    return j->stop == 0 ? status : job_save(j, false);
}

/* ---- Waiting for input ---- */

ps_result job_drain(void *context, ps_error *err)
{
    job *j = context;
    ps_result r = PS_OK;

    /* The earlier job already flushed the sequences that are read again. */
    if (!job_refills(j))
        r = ps_packer_flush(j->packer, PS_FLUSH_DRAIN, err);
    j->output_failed = r != PS_OK;
    return r;
}

ps_result job_on_wait(void *context, ps_error *err)
{
    job *j = context;
    uint64_t idle = j->conf->flush_idle;
    uint64_t wait;
    ps_result r = ps_packer_flush(j->packer, PS_FLUSH_NOWAIT, err);

    j->output_failed = r != PS_OK;
    /*
     * Reading a file never counts as idle, even on a slow disk.  A replay never
     * flushes by time, since the original times are unknown.
     */
    if (idle == 0 || j->next_id < j->known_until ||
        files_is(FILES_REGULAR, j->input.fd))
        idle = WAIT_FOREVER;
    wait = idle < SHORT_WAIT ? idle : SHORT_WAIT;
    while (r == PS_OK) {
        signals_end end =
            signals_wait(ps_token_reader_descriptor(j->input.reader), wait);

        if (end == WAIT_INPUT)
            break;
        if (end == WAIT_STOP) {
            /* Make the read fail; read_failure finds the reason. */
            *err = (ps_error){.code = PS_ERR_IO,
                              .sys_errno = EINTR,
                              .text = "interrupted by a signal"};
            return PS_ERR_IO;
        }
        if (end == WAIT_IDLE && wait < idle) {
            /* Report write errors now: the next input may be far off. */
            idle -= idle == WAIT_FOREVER ? 0 : wait;
            wait = idle;
            r = ps_packer_flush(j->packer, PS_FLUSH_DECIDED, err);
            j->output_failed = r != PS_OK;
        } else if (j->next_id >= j->known_until) {
            if (end == WAIT_IDLE)
                idle = wait = WAIT_FOREVER;
            j->timed = true;
            r = job_drain(j, err);
        }
    }
    return r;
}
