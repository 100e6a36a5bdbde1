/*
 * main.c - from a histogram of lengths, what every packing algorithm
 * makes of it.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "cli/files.h"
#include "cli/message.h"
#include "packplan/conf.h"
#include "packplan/input.h"
#include "packplan/report.h"
#include "packplan/rows.h"
#include "packplan/scaling.h"

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

/* Plans for the lengths that are `aligned`, and reports on those of `h`. */
static int plan(const conf *c, const ps_histogram *h,
                const ps_histogram *aligned)
{
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
                                         : report_rows(c, h, rs);
    free(rs);
    return status;
}

static int run(const conf *c)
{
    ps_histogram *h = NULL;
    ps_histogram *aligned = NULL;
    ps_error err;
    int status;

    if (ps_histogram_open(&h, &err) != PS_OK)
        return message_failure("histogram", &err);
    status = input_read(h, c->options.capacity, c->names, c->n_names);
    if (status == STATUS_OK && ps_histogram_size(h) == 0)
        message_warning("there are no sequences");

    /* Round lengths up to what the sequences take up in a pack. */
    if (status == STATUS_OK && ps_histogram_open(&aligned, &err) != PS_OK)
        status = message_failure("histogram", &err);
    for (size_t i = 0; status == STATUS_OK && i < ps_histogram_size(h); i++) {
        uint32_t length = ps_histogram_length(h, i);
        uint32_t over = length % c->align;

        if (over > 0)
            length += c->align - over;
        if (ps_histogram_add(aligned, length, ps_histogram_count(h, i),
                             &err) != PS_OK)
            status = message_failure("--align", &err);
    }
    if (status == STATUS_OK)
        status = plan(c, h, aligned);
    ps_histogram_free(aligned);
    ps_histogram_free(h);
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
        status = run(&c);
    if (!files_close_stdout() && status == STATUS_OK)
        status = STATUS_FAILURE;
    return status;
}
