/*
 * main.c - assign packs to ranks so that all ranks have equal cost.
 *
 * SPDX-License-Identifier: MIT
 */

#include <string.h>

#include "cli/message.h"
#include "files/files.h"
#include "packdeal/conf.h"
#include "packdeal/job.h"

int main(int argc, char **argv)
{
    conf c = {0};
    option_outcome outcome;
    int first;
    int status;

    files_init();
    message_init(argv[0]);
    outcome = option_parse(&conf_program, argc, argv, &c, &first);
    if (outcome != OPTION_RUN)
        return option_status(outcome);
    c.names = option_files(argc, argv, first, &c.n_names);
    if (c.output != NULL && strcmp(c.output, "-") == 0)
        c.output = NULL;
    status = conf_check(&c);
    if (status != STATUS_OK)
        return status;
    status = files_check_readable(c.names, c.n_names);
    if (status == STATUS_OK && c.output == NULL)
        status = files_check_inputs(NULL, c.names, c.n_names);
    if (status != STATUS_OK)
        return status;
    if (c.what == CONF_SHARES)
        return job_shares(&c);
    return c.what == CONF_LIST ? job_list(&c) : job_steps(&c);
}
