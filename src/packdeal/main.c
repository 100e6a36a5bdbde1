/*
 * main.c - assign packs to ranks so that all ranks have equal cost.
 *
 * SPDX-License-Identifier: MIT
 */

#include <string.h>

#include "cli/message.h"
#include "files/files.h"
#include "packdeal/conf.h"
#include "packdeal/find.h"
#include "packdeal/job.h"

/* Does what the options request.  Returns an exit status. */
static int run(conf *c)
{
    int status = conf_check(c);

    if (status == STATUS_OK)
        status = files_check_readable(c->names, c->n_names);
    if (status == STATUS_OK && c->output == NULL)
        status = files_check_inputs(NULL, c->names, c->n_names);
    if (status != STATUS_OK)
        return status;
    switch (c->what) {
    case CONF_LIST:
        return job_list(c);
    case CONF_STEPS:
        return job_steps(c);
    case CONF_FIND:
        return job_find(c);
    default:
        return job_shares(c);
    }
}

int main(int argc, char **argv)
{
    conf c = {0};
    option_outcome outcome;
    int first;
    int status;

    files_init();
    message_init(argv[0]);
    outcome = option_parse(&conf_program, argc, argv, &c, &first);
    status = option_status(outcome);
    if (outcome == OPTION_RUN) {
        c.names = option_files(argc, argv, first, &c.n_names);
        if (c.output != NULL && strcmp(c.output, "-") == 0)
            c.output = NULL;
        status = run(&c);
    }
    ids_free(&c.wanted);
    return status;
}
