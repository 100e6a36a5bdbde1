/*
 * rows.c - plan the packing of a histogram, with one row per algorithm and
 * depth.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/rows.h"

#include <time.h>

#include "cli/message.h"

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Makes and checks a plan.  *seconds is the time for making it. */
static int make_plan(ps_plan **plan, double *seconds, const conf *c,
                     const ps_histogram *h, const algorithm *a,
                     uint32_t depth)
{
    ps_plan_options o = c->options;
    ps_error err;
    double start = now();
    ps_result r;

    o.depth = depth;
    r = ps_plan_make(plan, h, a->id, &o, &err);
    *seconds = now() - start;
    if (r == PS_OK) {
        r = ps_plan_check(*plan, h, &o, &err);
        if (r != PS_OK)
            ps_plan_free(*plan);
    }
    if (r == PS_OK)
        return STATUS_OK;
    (void)message_failure(a->name, &err);
    return STATUS_FAILURE;
}

/*
 * Makes the plan for `of`, whose algorithm, depth and bound are set, and
 * appends its row.
 */
static int add_row(rows *rs, const row *of, const conf *c,
                   const ps_histogram *h, uint64_t tokens)
{
    row *r = &rs->of[rs->n];
    ps_plan *plan;
    int status;

    *r = *of;
    status = make_plan(&plan, &r->seconds, c, h, r->algorithm, r->depth);
    if (status != STATUS_OK)
        return status;
    r->packs = ps_plan_packs(plan);
    r->strategies = ps_plan_strategies(plan);
    r->max_depth = ps_plan_max_depth(plan);
    ps_plan_free(plan);
    if (r->packs > 0) {
        double packs = (double)r->packs;

        r->efficiency =
            (double)tokens / (packs * (double)c->options.capacity);
        r->factor = (double)ps_histogram_sequences(h) / packs;
    }
    r->speed_up = r->factor / (1 + r->overhead / 100);
    rs->n++;
    return STATUS_OK;
}

int rows_make(rows *rs, const conf *c, const ps_histogram *aligned,
              uint64_t tokens)
{
    const uint32_t capacity = c->options.capacity;
    int status = STATUS_OK;
    ps_error err;

    /*
     * Algorithms without a depth come first.  Their rows are not packs; only
     * the number of sequences or tokens bounds the number of rows.
     */
    rs->n = 0;
    for (unsigned i = 0; status == STATUS_OK && i < ALGORITHMS; i++) {
        row r = {.algorithm = &algorithms[i], .depth = 1, .bound = -1};

        if (!c->algorithms[i] || !algorithms[i].is_flat)
            continue;
        if (!c->no_bound && algorithms[i].id == PS_PLAN_NONE)
            r.bound = (double)ps_histogram_sequences(aligned);
        else if (!c->no_bound)
            r.bound =
                (double)ps_histogram_tokens(aligned) / (double)capacity;
        status = add_row(rs, &r, c, aligned, tokens);
    }

    /* The bound depends only on the depth. */
    for (unsigned k = 0; status == STATUS_OK && k < c->n_depths; k++) {
        double bound = c->no_bound ? -1 : 0;
        bool known = c->no_bound || ps_histogram_size(aligned) == 0;

        for (unsigned i = 0; status == STATUS_OK && i < ALGORITHMS; i++) {
            row r = {.algorithm = &algorithms[i],
                     .depth = c->depths[k],
                     .overhead = c->overheads[k]};

            if (!c->algorithms[i] || algorithms[i].is_flat)
                continue;
            if (!known && ps_plan_bound(aligned, capacity, r.depth, &bound,
                                        &err) != PS_OK)
                return message_failure("bound", &err);
            known = true;
            r.bound = bound;
            status = add_row(rs, &r, c, aligned, tokens);
        }
    }
    return status;
}

int rows_plan(ps_plan **plan, const conf *c, const ps_histogram *h)
{
    double seconds;
    unsigned i = 0;

    while (!c->algorithms[i])
        i++;
    return make_plan(plan, &seconds, c, h, &algorithms[i], c->depths[0]);
}
