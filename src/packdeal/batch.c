/*
 * batch.c - the packs of a global batch, and the rank of each.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packdeal/batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "cli/message.h"

/* What the packs of a batch may take of memory, where they come by a pipe. */
#define RECORDS_MAX (UINT64_C(4) << 30)

static bool fail_memory(batch *b)
{
    b->status = message_memory();
    return false;
}

bool batch_open(batch *b, const conf *c, bool keep)
{
    ps_error err;

    *b = (batch){.conf = c, .most = c->ranks * c->per_rank, .keep = keep};
    b->packs = calloc(b->most, sizeof *b->packs);
    b->ranks = calloc(b->most, sizeof *b->ranks);
    b->first = calloc(c->ranks, sizeof *b->first);
    b->next = calloc(b->most, sizeof *b->next);
    b->costs = calloc(b->most, sizeof *b->costs);
    b->sums = calloc(c->ranks, sizeof *b->sums);
    if (b->packs == NULL || b->ranks == NULL || b->first == NULL ||
        b->next == NULL || b->costs == NULL || b->sums == NULL)
        return fail_memory(b);
    if (c->window > 1 && !window_open(&b->window, c))
        return fail_memory(b);
    if (ps_deal_open(&b->deal, c->ranks, c->per_rank, &err) != PS_OK) {
        b->status = message_failure("-n and -b", &err);
        return false;
    }
    return true;
}

void batch_close(batch *b)
{
    free(b->packs);
    free(b->ranks);
    free(b->first);
    free(b->next);
    free(b->costs);
    free(b->sums);
    free(b->records);
    ps_deal_free(b->deal);
    window_close(&b->window);
}

bool batch_suffices(const conf *c, uint64_t n_packs)
{
    const uint64_t whole = (uint64_t)c->ranks * c->per_rank;

    if (n_packs >= whole || (!c->drop && n_packs >= c->ranks))
        return true;
    if (c->drop)
        message_error("there are %" PRIu64 " packs, and %" PRIu64 " in a "
                      "global batch: all would be dropped", n_packs, whole);
    else
        message_error("there are %" PRIu64 " packs for %" PRIu32 " ranks",
                      n_packs, c->ranks);
    return false;
}

bool batch_has_start(const conf *c, uint64_t steps)
{
    if (c->start < steps)
        return true;
    message_error("--start: there are %" PRIu64 " steps, and none is left from "
                  "step %" PRIu64 " on", steps, c->start);
    return false;
}

/* ---- Reading ---- */

/*
 * Keeps the record of pack `i`, which is there until the next one comes, in
 * memory for those of a whole batch.
 */
static bool keep_record(batch *b, uint32_t i, const input *in)
{
    const size_t size = in->info.record_bytes;
    const uint64_t bytes = (uint64_t)b->most * size;
    ps_pack *pack = &b->packs[i].pack;

    if (pack->record == NULL || !b->keep || b->steps < b->conf->start)
        return true;
    if (b->records == NULL && (bytes > RECORDS_MAX || bytes > SIZE_MAX)) {
        message_error("%s: a global batch of %" PRIu32 " packs takes %" PRIu64
                      " bytes, and at most %" PRIu64 " are held of what is "
                      "not a regular file",
                      files_input_name(in->file->name), b->most, bytes,
                      RECORDS_MAX);
        b->status = STATUS_DATA;
        return false;
    }
    if (b->records == NULL)
        b->records = malloc((size_t)bytes);
    if (b->records == NULL)
        return fail_memory(b);
    memcpy(b->records + i * size, pack->record, size);
    pack->record = b->records + i * size;
    return true;
}

/* Reads the packs of the next batch, or takes them from the window. */
static bool fill(batch *b, input *in)
{
    window *w = &b->window;

    b->n = 0;
    if (b->conf->window > 1) {
        if (w->step == w->steps) {
            w->first_step += w->steps;
            w->n = w->steps = w->step = 0;
            while (w->n < w->most && input_next(in, &w->packs[w->n]))
                w->n++;
            window_arrange(w);
        }
        b->n = window_take(w, b->packs);
    } else {
        while (b->n < b->most && input_next(in, &b->packs[b->n]) &&
               keep_record(b, b->n, in))
            b->n++;
    }
    for (uint32_t i = 0; i < b->n; i++)
        b->costs[i] = b->packs[i].cost;
    return in->status == STATUS_OK && b->status == STATUS_OK;
}

/* ---- Dealing ---- */

/* What this step costs, as it was dealt and otherwise. */
static void add_costs(batch *b)
{
    const uint32_t ranks = b->conf->ranks;
    uint64_t greatest = 0;
    double total = 0;
    batch_costs step;

    memset(b->sums, 0, ranks * sizeof *b->sums);
    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t *sum = &b->sums[i % ranks];

        *sum += b->costs[i];
        greatest = *sum > greatest ? *sum : greatest;
        total += (double)b->costs[i];
    }
    step.dealt = (double)ps_deal_max(b->deal);
    step.in_order = (double)greatest;
    step.mean = total / ranks;
    b->all.dealt += step.dealt;
    b->all.in_order += step.in_order;
    b->all.mean += step.mean;
    chart_bins_add(&b->bins, (const double[CHART_SUMS]){
        step.dealt, step.in_order, step.mean});
}

static bool deal(batch *b)
{
    const uint32_t ranks = b->conf->ranks;
    ps_error err;

    /*
     * The last packs are too few for a batch.  They are dealt in a smaller
     * one, as even as it can be: its places that stay empty count as packs
     * without cost.
     */
    if (b->n < b->most) {
        const uint32_t per_rank = b->n / ranks + (b->n % ranks != 0);

        ps_deal_free(b->deal);
        if (ps_deal_open(&b->deal, ranks, per_rank, &err) != PS_OK)
            return fail_memory(b);
        memset(b->costs + b->n, 0,
               ((size_t)ranks * per_rank - b->n) * sizeof *b->costs);
    }
    if (ps_deal_make(b->deal, b->costs, b->ranks, &err) != PS_OK) {
        b->status = message_failure("--cost", &err);
        return false;
    }

    /* Links the packs of each rank, in their order. */
    for (uint32_t rank = 0; rank < ranks; rank++)
        b->first[rank] = b->n;
    for (uint32_t i = b->n; i-- > 0;) {
        b->next[i] = b->first[b->ranks[i]];
        b->first[b->ranks[i]] = i;
    }
    add_costs(b);
    return true;
}

bool batch_next(batch *b, input *in)
{
    const conf *c = b->conf;

    /* Passes over whole windows before --start, of which nothing is read. */
    if (conf_reorders(c) && b->steps == 0) {
        const uint64_t whole = in->n_packs / b->most;
        const uint64_t steps = c->start < whole ? c->start : whole;

        b->steps = steps - steps % c->window;
        b->n_packs = b->steps * b->most;
        b->window.first_step = b->steps;
        in->number += b->n_packs;
    }
    do {
        input_forget(in);
        if (!fill(b, in))
            return false;
        if (b->steps == 0 && !batch_suffices(c, b->n)) {
            b->status = STATUS_DATA;
            return false;
        }
        if (b->n == 0 || (b->n < b->most && c->drop)) {
            if (!batch_has_start(c, b->steps))
                b->status = STATUS_DATA;
            return false;
        }
        b->steps++;
        b->n_packs += b->n;
    } while (b->steps <= c->start);
    return deal(b);
}
