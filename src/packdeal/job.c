/*
 * job.c - write shares, a list, or the number of steps.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packdeal/job.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/message.h"
#include "cli/progress.h"
#include "files/files.h"
#include "packdeal/batch.h"
#include "packdeal/input.h"
#include "packdeal/shares.h"
#include "packdeal/skip.h"

/* Returns the first of two statuses that is a failure. */
static int either(int status, int other)
{
    return status != STATUS_OK ? status : other;
}

/*
 * Checks that options apply to token records.  On failure, prints a message and
 * returns false.
 */
static bool check_tokens(input *in, const conf *c)
{
    if (c->seed_given)
        message_error("%s: --seed cannot reorder token records; use tokshuf",
                      files_input_name(c->names[0]));
    else if (c->zstd_level != 0)
        message_error("%s: --zstd cannot compress token records; use zstd",
                      files_input_name(c->names[0]));
    else if (c->skip != NULL)
        message_error("%s: --skip needs packs, but these are token records: a "
                      "record has a single sequence",
                      files_input_name(c->names[0]));
    else
        return true;
    in->status = STATUS_DATA;
    return false;
}

bool job_begin(input *in, const conf *c)
{
    const bool finds = c->what == CONF_FIND;

    if (!input_begin(in, c->names, c->n_names, &c->cost))
        return false;
    in->few = finds;
    in->numbers_ids = finds || c->skip != NULL;
    if (in->has_tokens)
        return check_tokens(in, c);
    /* Only random access avoids reading all heads before a step. */
    if (!conf_reorders(c) && !(finds && in->seekable))
        return true;
    return input_shuffle(in, c->seed_given ? "seed" : "window",
                         c->seed_given ? &c->seed : NULL, c->epoch);
}

static void report(const batch *b)
{
    const batch_costs *all = &b->all;
    const double mean = all->mean > 0 ? all->mean : 1;

    message_note("%" PRIu64 " steps; imbalance (max/mean) %.4f, "
                 "round robin %.4f",
                 b->steps - b->conf->start, all->dealt / mean,
                 all->in_order / mean);
}

/* ---- Shares ---- */

/* Switches to another stream of the input, or ends if `to` is NULL. */
static bool turn(shares *s, input *in, const input_stream **from,
                 const input_stream *to)
{
    const input_stream *before = *from;
    ps_pack_info info;
    ps_totals totals;

    *from = to;
    if (to != NULL && !input_header(in, to, &info))
        return false;
    if (before == NULL)
        return to == NULL || shares_begin(s, &info, to->file->name);
    return input_totals(in, before, &totals) &&
           shares_end_stream(s, &totals, to == NULL ? NULL : &info,
                             before->file->name);
}

/*
 * Writes the packs of all batches, in order, each to its share.  The first
 * batch must have been assigned.
 */
static void write_all(shares *s, batch *b, input *in, skip *skipped)
{
    const input_stream *stream = NULL;
    const bool *omitted;
    progress live;
    bool going = !in->has_tokens || shares_begin_tokens(s, &in->schema);

    progress_start(&live, !s->conf->quiet);
    for (bool more = going; more; more = going && batch_next(b, in)) {
        for (uint32_t i = 0; going && i < b->n; i++) {
            const uint32_t rank = b->ranks[i];
            input_pack *p = &b->packs[i];

            going = p->stream == stream || turn(s, in, &stream, p->stream);
            if (going && shares_of(s, rank) != NULL)
                going = input_read(in, p) &&
                        skip_find(skipped, in, p, b->steps - 1, rank,
                                  &omitted) &&
                        shares_put(s, rank, p, omitted);
        }
        going = going && shares_push(s);
        if (progress_due(&live))
            progress_show(&live, &(progress_figures){
                .bytes = input_offset(in),
                .sequences = in->has_tokens ? b->n_packs : 0,
                .packs = in->has_tokens ? 0 : b->n_packs});
    }
    progress_end(&live);
    if (going && b->status == STATUS_OK && in->status == STATUS_OK)
        (void)(turn(s, in, &stream, NULL) && shares_finish(s));
}

int job_shares(const conf *c)
{
    shares s = {0};
    batch b = {0};
    input in = {0};
    skip skipped;
    int status;

    /* Read a batch before outputs are opened: there may be too few packs. */
    if (skip_open(&skipped, c) && job_begin(&in, c) &&
        batch_open(&b, c, true) && batch_next(&b, &in) &&
        shares_open(&s, c) && (c->no_sandbox || shares_sandbox(&s)))
        write_all(&s, &b, &in, &skipped);
    status = either(either(in.status, b.status),
                    either(s.status, skipped.status));
    status = shares_end(&s, status);
    if (status == STATUS_OK)
        skip_report(&skipped);
    if (status == STATUS_OK && c->verbose)
        report(&b);
    skip_close(&skipped);
    (void)input_end(&in);
    batch_close(&b);
    return status;
}

/* ---- Listing ---- */

/* Prints the step, the rank, its packs, and "-" for each missing pack. */
static void print_rank(const conf *c, const batch *b, uint32_t rank)
{
    uint32_t n = 0;

    printf("%" PRIu64 " %" PRIu32, b->steps - 1, rank);
    for (uint32_t i = b->first[rank]; i < b->n; i = b->next[i], n++)
        printf(" %" PRIu64, b->packs[i].all);
    for (; c->last == CONF_PAD && n < c->per_rank; n++)
        printf(" -");
    putchar('\n');
}

/* Prints the packs of each rank, and the costs as assigned and in turn. */
static void print_step(const batch *b)
{
    const uint32_t ranks = b->conf->ranks;

    printf("{\"step\": %" PRIu64 ", \"packs\": [", b->steps - 1);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        printf("%s[", rank == 0 ? "" : ", ");
        for (uint32_t i = b->first[rank]; i < b->n; i = b->next[i])
            printf("%s%" PRIu64, i == b->first[rank] ? "" : ", ",
                   b->packs[i].all);
        putchar(']');
    }
    printf("], \"costs\": [");
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t cost = 0;

        for (uint32_t i = b->first[rank]; i < b->n; i = b->next[i])
            cost += b->costs[i];
        printf("%s%" PRIu64, rank == 0 ? "" : ", ", cost);
    }
    printf("], \"undealt\": [");
    for (uint32_t rank = 0; rank < ranks; rank++)
        printf("%s%" PRIu64, rank == 0 ? "" : ", ", b->sums[rank]);
    printf("]}\n");
}

int job_list(const conf *c)
{
    const uint32_t first = c->rank_given ? c->rank : 0;
    const uint32_t end = c->rank_given ? c->rank + 1 : c->ranks;
    batch b = {0};
    input in;
    bool going;
    int status;

    going = job_begin(&in, c) && batch_open(&b, c, false);
    while (going && batch_next(&b, &in) && !ferror(stdout)) {
        if (c->json)
            print_step(&b);
        for (uint32_t rank = first; !c->json && rank < end; rank++)
            print_rank(c, &b, rank);
    }
    status = either(in.status, b.status);
    if (!files_close_stdout())
        status = either(status, STATUS_FAILURE);
    if (status == STATUS_OK && c->verbose)
        report(&b);
    batch_close(&b);
    (void)input_end(&in);
    return status;
}

int job_steps(const conf *c)
{
    const uint64_t whole = (uint64_t)c->ranks * c->per_rank;
    uint64_t n = 0;
    uint64_t steps;
    bool counted;
    input in;
    int status;

    counted = job_begin(&in, c) && input_count(&in, &n);
    status = input_end(&in);
    if (!counted)
        return status;
    steps = n / whole + (n % whole != 0 && c->last != CONF_DROP);
    if (!batch_suffices(c, &in, n) || !batch_has_start(c, steps))
        return STATUS_DATA;
    printf("%" PRIu64 "\n", steps - c->start);
    return files_close_stdout() ? STATUS_OK : STATUS_FAILURE;
}
