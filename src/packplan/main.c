/*
 * main.c - compare packing algorithms on a histogram of lengths.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "cli/message.h"
#include "files/files.h"
#include "files/histogram.h"
#include "packplan/conf.h"
#include "packplan/recommend.h"
#include "packplan/report.h"
#include "packplan/rows.h"
#include "packplan/scaling.h"
#include "packplan/uses.h"

static int print_scaling(const conf *c, const ps_histogram *h,
                         const rows *rs)
{
    scaling s;
    int status;

    if (ps_histogram_size(h) == 0) {
        message_error("--scaling: there are no sequences");
        return STATUS_DATA;
    }
    if (!scaling_begin(&s, h, c->options.capacity, c->options.batch)) {
        message_error("out of memory");
        return STATUS_FAILURE;
    }
    status = report_scaling(c, &s, &rs->of[0]);
    scaling_end(&s);
    return status;
}

/* Plans with the `aligned` lengths, and reports on the sequences of `of`. */
static int plan(const conf *c, const length_counts *of,
                const ps_histogram *aligned)
{
    const ps_histogram *h = of->histogram;
    ps_plan *strategies;
    rows *rs;
    int status;

    if (c->what == CONF_PLAN) {
        status = rows_plan(&strategies, c, aligned);
        if (status == STATUS_OK) {
            report_plan(strategies);
            ps_plan_free(strategies);
        }
        return status;
    }
    rs = malloc(sizeof *rs);
    if (rs == NULL) {
        message_error("out of memory");
        return STATUS_FAILURE;
    }
    status = rows_make(rs, c, aligned, ps_histogram_tokens(h));
    if (status == STATUS_OK)
        status = c->what == CONF_SCALING ? print_scaling(c, h, rs)
                                         : report_rows(c, of, rs);
    free(rs);
    return status;
}

/*
 * Rounds lengths up to multiples of the alignment, which is the space that
 * sequences take in packs.
 */
static int align(ps_histogram **aligned, const conf *c, const ps_histogram *h)
{
    ps_error err;

    if (ps_histogram_open(aligned, &err) != PS_OK)
        return message_failure("histogram", &err);
    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        uint32_t length = ps_histogram_length(h, i);
        uint32_t over = length % c->align;

        if (over > 0)
            length += c->align - over;
        if (ps_histogram_add(*aligned, length, ps_histogram_count(h, i),
                             &err) != PS_OK)
            return message_failure("--align", &err);
    }
    return STATUS_OK;
}

static int run(const conf *c)
{
    length_counts of[CONF_LIST] = {{0}};
    recommendation found[CONF_LIST];
    int status = STATUS_OK;
    bool empty = true;
    ps_error err;

    for (unsigned i = 0; status == STATUS_OK && i < c->n_capacities; i++) {
        of[i].capacity = c->capacities[i];
        of[i].overlong = c->overlong;
        if (ps_histogram_open(&of[i].histogram, &err) != PS_OK)
            status = message_failure("histogram", &err);
    }
    if (status == STATUS_OK)
        status = histogram_read(of, c->n_capacities, c->names, c->n_names);
    for (unsigned i = 0; status == STATUS_OK && i < c->n_capacities; i++)
        empty = empty && ps_histogram_size(of[i].histogram) == 0;
    if (status == STATUS_OK && empty)
        message_warning("there are no sequences");

    for (unsigned i = 0; status == STATUS_OK && i < c->n_capacities; i++) {
        ps_histogram *aligned = NULL;

        status = align(&aligned, c, of[i].histogram);
        if (status == STATUS_OK && c->what == CONF_RECOMMEND)
            status = recommend(&found[i], c, &of[i], aligned);
        else if (status == STATUS_OK)
            status = plan(c, &of[i], aligned);
        ps_histogram_free(aligned);
    }
    if (status == STATUS_OK && c->what == CONF_RECOMMEND)
        recommend_report(c, found);
    for (unsigned i = 0; i < c->n_capacities; i++)
        ps_histogram_free(of[i].histogram);
    return status;
}

/* Prints the bounds with budgets. */
static int run_budgets(const conf *c)
{
    uses_table u = {0};
    double alone[PS_MAX_RESOURCES];
    int status = uses_read(&u, c);
    double packs;
    ps_error err;

    if (status == STATUS_OK && u.n == 0)
        message_warning("there are no sequences");
    if (status == STATUS_OK &&
        ps_plan_bound_uses(u.items, u.n, u.limits, u.n_limits, c->depths[0],
                           alone, &packs, &err) != PS_OK)
        status = message_failure("bound", &err);
    if (status == STATUS_OK)
        status = report_budgets(c, &u, alone, packs);
    uses_free(&u);
    return status;
}

int main(int argc, char **argv)
{
    conf c = conf_new();
    option_outcome outcome;
    int first;
    int status;

    files_init();
    message_init(argv[0]);
    outcome = option_parse(&conf_program, argc, argv, &c, &first);
    if (outcome != OPTION_RUN)
        return option_status(outcome);
    message_quiet(c.quiet);
    c.names = option_files(argc, argv, first, &c.n_names);
    status = conf_check(&c);
    if (status == STATUS_OK)
        status = c.what == CONF_BUDGETS ? run_budgets(&c) : run(&c);
    if (!files_close_stdout() && status == STATUS_OK)
        status = STATUS_FAILURE;
    return status;
}
