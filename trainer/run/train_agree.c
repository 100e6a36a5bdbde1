/*
 * train_agree.c - failures, and agreement between ranks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/train_parts.h"

#include <inttypes.h>

#include "cli/signals.h"
#include "run/rank_message.h"
#include "run/shutdown.h"

int train_fail(const char *what)
{
    rank_message("%s", what);
    return STATUS_FAILURE;
}

int train_fail_loader(const training *t, const ps_error *err)
{
    shutdown_now();
    return rank_message_failure(
        t->loader == NULL ? "input" : tr_loader_name(t->loader), err);
}

/* Reports that digests differ between ranks. */
static int fail_difference(const training *t)
{
    if (t->loader == NULL) {
        rank_message("the ranks have different options");
        return STATUS_USAGE;
    }
    rank_message("%s: the ranks read different packs after step %" PRIu64,
                 tr_loader_name(t->loader), t->now.steps);
    return STATUS_FAILURE;
}

int train_agree(training *t, int status, uint64_t digest)
{
    tr_workers_verdict all;

    if (status == STATUS_OK && t->workers.rank > 0 && signals_stopped() != 0) {
        rank_message("rank %" PRIu32 ": stopped by a signal",
                     t->workers.rank);
        status = STATUS_FAILURE;
    }
    if (status == STATUS_OK && shutdown_is_due())
        status = STATUS_FAILURE;
    shutdown_allow();
    all = tr_workers_agree(&t->workers, status, digest);
    shutdown_forbid();
    rank_message_flush(all.first == t->workers.rank);
    if (all.status != STATUS_OK || all.same)
        return all.status;
    status = fail_difference(t);
    rank_message_flush(t->workers.rank == 0);
    return status;
}
