/*
 * job_reject.c - the sequences that are not packed as they came: they are
 * longer than a pack, have no tokens, or have some that are in no vocabulary.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/files.h"
#include "cli/message.h"
#include "packstream/job_parts.h"

static int write_reject(job *j, const ps_sequence *sequence, int reason)
{
    int status = job_catch_up(j);

    if (status != STATUS_OK || sequence->id < j->known)
        return status;
    return rejects_put(&j->rejects, sequence, reason);
}

/* Leaves a sequence out, which is then counted, and written if asked for. */
static int reject(job *j, const ps_sequence *sequence, ps_reject reason)
{
    static const int numbers[] = {
        [PS_REJECT_OVERLONG] = REJECT_OVERLONG_DROPPED,
        [PS_REJECT_OUT_OF_VOCAB] = REJECT_OUT_OF_VOCAB};
    int status = STATUS_OK;
    ps_error err;
    ps_result r;

    /* No record can be without tokens. */
    if (reason != PS_REJECT_EMPTY)
        status = write_reject(j, sequence, numbers[reason]);
    if (status != STATUS_OK)
        return status;
    r = ps_packer_reject(j->packer, sequence, reason, &err);
    return job_took(j, sequence, r, &err);
}

static ps_result hold_or_skip(job *j, bool whole, ps_sequence *sequence,
                              ps_error *err)
{
    return whole ? ps_token_reader_hold(j->reader, sequence, err)
                 : ps_token_reader_skip(j->reader, err);
}

/*
 * Reads the sequence that is pending, or passes over it.  *outside says that
 * it is to be dropped because of a token.
 */
static ps_result fetch(job *j, bool whole, ps_sequence *sequence,
                       bool *outside, ps_error *err)
{
    ps_result r = hold_or_skip(j, whole, sequence, err);

    *outside = r == PS_ERR_RANGE && j->conf->drop_outside;
    return *outside ? hold_or_skip(j, whole, sequence, err) : r;
}

int job_put_overlong(job *j, ps_sequence *sequence, const ps_error *why)
{
    ps_overlong overlong = j->conf->policy == PS_POLICY_CONCAT
                               ? PS_OVERLONG_SPLIT
                               : j->conf->overlong;
    bool whole = overlong != PS_OVERLONG_DROP || j->conf->rejects != NULL;
    int status = STATUS_OK;
    bool outside;
    ps_error err;

    if (overlong == PS_OVERLONG_ERROR) {
        message_error("%s: %s (--overlong says what to do with it)",
                      files_input_name(j->input), why->text);
        return STATUS_DATA;
    }
    if (fetch(j, whole, sequence, &outside, &err) != PS_OK)
        return job_read_failure(j, &err);
    if (overlong == PS_OVERLONG_DROP)
        return reject(j, sequence, PS_REJECT_OVERLONG);
    if (outside)
        return reject(j, sequence, PS_REJECT_OUT_OF_VOCAB);
    if (overlong == PS_OVERLONG_TRUNCATE)
        status = write_reject(j, sequence, REJECT_OVERLONG_TRUNCATED);
    return status == STATUS_OK ? job_put(j, sequence) : status;
}

int job_put_outside(job *j, ps_sequence *sequence, const ps_error *why)
{
    bool outside;
    ps_error err;

    if (!j->conf->drop_outside)
        return job_read_failure(j, why);
    if (fetch(j, j->conf->rejects != NULL, sequence, &outside, &err) != PS_OK)
        return job_read_failure(j, &err);
    return reject(j, sequence, PS_REJECT_OUT_OF_VOCAB);
}

int job_put_empty(job *j, const ps_sequence *sequence, const ps_error *why)
{
    return j->conf->drop_empty ? reject(j, sequence, PS_REJECT_EMPTY)
                               : job_read_failure(j, why);
}
