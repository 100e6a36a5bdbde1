/*
 * main.c - convert text, or token files of other programs, to token records.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/message.h"
#include "cli/options.h"
#include "files/files.h"
#include "tokcat/conf.h"
#include "tokcat/job.h"

int main(int argc, char **argv)
{
    conf c = conf_defaults();
    option_outcome outcome;
    const char *const *names;
    int n_names;
    int first;
    int status;

    files_init();
    message_init(argv[0]);
    outcome = option_parse(&conf_program, argc, argv, &c, &first);
    if (outcome != OPTION_RUN)
        return option_status(outcome);
    message_quiet(c.quiet);
    names = option_files(argc, argv, first, &n_names);
    status = conf_settle(&c);
    if (status == STATUS_OK)
        status = job_run(&c, names, n_names);
    return status;
}
