/*
 * job_idle.c - what the job does while it waits for input.
 *
 * SPDX-License-Identifier: MIT
 */

#include <errno.h>

#include "cli/files.h"
#include "packstream/job_parts.h"
#include "packstream/signals.h"

/* Milliseconds of a pause in which the output may still be busy. */
#define SHORT_PAUSE 10

bool job_is_again(const job *j)
{
    return j->next_id < j->again;
}

/*
 * Packs all that is held; also where a flush record asks for it, which among
 * records that come again was obeyed already.
 */
ps_result job_drain(void *context, ps_error *err)
{
    job *j = context;
    ps_result r =
        job_is_again(j) ? PS_OK
                        : ps_packer_flush(j->packer, PS_FLUSH_DRAIN, err);

    j->output_failed = r != PS_OK;
    return r;
}

/*
 * What was passed on is waited for, too, so that a failure is told though
 * there is no input.
 */
static ps_result flush(job *j, ps_error *err)
{
    ps_result r = ps_packer_flush(j->packer, PS_FLUSH_DECIDED, err);

    j->output_failed = r != PS_OK;
    return r;
}

/*
 * A file is never idle, however long a disk takes; and what comes again is
 * packed as it was, which was at no time that we know.
 */
static uint64_t longest_idle(const job *j)
{
    if (j->conf->flush_idle == 0 || j->next_id < j->known ||
        files_is_regular(j->in))
        return PAUSE_FOREVER;
    return j->conf->flush_idle;
}

/* Ends the reading; job_read_failure knows why. */
static ps_result stopped(ps_error *err)
{
    *err = (ps_error){.code = PS_ERR_IO,
                      .sys_errno = EINTR,
                      .text = "a signal ends the job"};
    return PS_ERR_IO;
}

/*
 * Before the reader waits for input, what is decided goes on its way; and
 * when the wait is long, or a signal asks for it, what is held does, too.
 */
ps_result job_pass_on(void *context, ps_error *err)
{
    job *j = context;
    uint64_t idle = longest_idle(j);
    uint64_t wait = idle < SHORT_PAUSE ? idle : SHORT_PAUSE;
    ps_result r = ps_packer_flush(j->packer, PS_FLUSH_NOWAIT, err);

    j->output_failed = r != PS_OK;
    while (r == PS_OK) {
        signals_end end =
            signals_wait(ps_token_reader_descriptor(j->reader), wait);

        if (end == PAUSE_INPUT)
            break;
        if (end == PAUSE_STOP)
            return stopped(err);
        if (end == PAUSE_IDLE && wait < idle) {
            idle -= idle == PAUSE_FOREVER ? 0 : wait;
            wait = idle;
            r = flush(j, err);
        } else if (j->next_id >= j->known) {
            if (end == PAUSE_IDLE)
                idle = wait = PAUSE_FOREVER;
            j->timed = true;
            r = job_drain(j, err);
        }
    }
    return r;
}
