/*
 * main.c - pack streams of tokenised sequences into rows for training.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/message.h"
#include "cli/signals.h"
#include "files/files.h"
#include "packstream/conf.h"
#include "packstream/job.h"

int main(int argc, char **argv)
{
    conf c = conf_defaults;
    job j = {.conf = &c, .input = {.fd = -1}, .out = -1, .rejects = {.fd = -1}};
    option_outcome outcome;
    int first;
    int status;

    files_init();
    memory_init();
    message_init(argv[0]);
    signals_init();
    outcome = option_parse(&conf_program, argc, argv, &c, &first);
    if (outcome != OPTION_RUN)
        return option_status(outcome);
    c.names = option_files(argc, argv, first, &c.n_names);
    status = conf_check(&c);
    if (status != STATUS_OK)
        return status;

    status = job_open_state(&j);
    if (status == STATUS_OK)
        status = job_read_histogram(&j);
    if (status == STATUS_OK)
        status = job_open_input(&j);
    if (status == STATUS_OK)
        status = job_begin(&j);
    if (status == STATUS_OK)
        status = job_pack(&j);
    status = job_close(&j, status);
    if (j.stop != 0)
        signals_die(j.stop);
    return status;
}
