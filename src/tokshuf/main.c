/*
 * main.c - reorder token records.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/message.h"
#include "cli/signals.h"
#include "files/files.h"
#include "tokshuf/conf.h"
#include "tokshuf/job.h"

int main(int argc, char **argv)
{
    conf c = conf_defaults();
    option_outcome outcome;
    int first;
    int stop = 0;
    int status;

    files_init();
    message_init(argv[0]);
    outcome = option_parse(&conf_program, argc, argv, &c, &first);
    if (outcome != OPTION_RUN)
        return option_status(outcome);
    c.inputs = option_files(argc, argv, first, &c.n_inputs);
    status = conf_settle(&c);
    if (status == STATUS_OK)
        status = job_run(&c, &stop);
    conf_free(&c);
    if (stop != 0)
        signals_die(stop);
    return status;
}
