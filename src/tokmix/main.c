/*
 * main.c - mix streams of token records by weight.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/message.h"
#include "cli/signals.h"
#include "files/files.h"
#include "tokmix/conf.h"
#include "tokmix/job.h"

int main(int argc, char **argv)
{
    conf c = conf_defaults;
    option_outcome outcome;
    int first;
    int stop = 0;
    int status;

    files_init();
    message_init(argv[0]);
    outcome = option_parse(&conf_program, argc, argv, &c, &first);
    if (outcome != OPTION_RUN)
        return option_status(outcome);
    message_quiet(c.quiet);
    status = conf_check(&c);
    if (status == STATUS_OK)
        status = conf_sources(&c, argv + first, argc - first);
    if (status == STATUS_OK)
        status = job_run(&c, &stop);
    conf_free(&c);
    if (stop != 0)
        signals_die(stop);
    return status;
}
