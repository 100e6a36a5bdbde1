/*
 * metrics.c - a file of losses and evaluations, as JSON Lines.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/metrics.h"

#include "cli/message.h"
#include "run/rank_message.h"

static int fail(const metrics *m)
{
    message_errno("%s", message_name(m->name));
    return STATUS_FAILURE;
}

int metrics_open(metrics *m, const char *name)
{
    int first;

    *m = (metrics){.name = name};
    if (name == NULL)
        return STATUS_OK;
    m->file = fopen(name, "a+e");
    if (m->file == NULL)
        return fail(m);
    first = fgetc(m->file);
    if (first == EOF || first == '{')
        return STATUS_OK;
    rank_message("%s: has other data than metrics; choose another name",
                 message_name(name));
    return STATUS_USAGE;
}

int metrics_close(metrics *m)
{
    FILE *const file = m->file;

    m->file = NULL;
    return file == NULL || fclose(file) == 0 ? STATUS_OK : fail(m);
}

/* A line is complete when a reader sees it. */
static int check(const metrics *m, bool written)
{
    return written ? STATUS_OK : fail(m);
}

int metrics_step(const metrics *m, const report_step *s, bool pairs)
{
    return check(m, m->file == NULL || report_write(m->file, s, pairs));
}

int metrics_eval(const metrics *m, const report_eval *e)
{
    return check(m, m->file == NULL || report_write_eval(m->file, e));
}
