/*
 * metrics.c - a file of losses and evaluations, as JSON Lines.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/metrics.h"

#include <sys/stat.h>

#include "cli/message.h"
#include "run/rank_message.h"

static int fail(const metrics *m)
{
    message_errno("%s", message_name(m->name));
    return STATUS_FAILURE;
}

/* The first byte of a regular file; EOF if it has none, or cannot be read. */
static int first_byte(const char *name)
{
    struct stat st;
    FILE *const file = stat(name, &st) == 0 && S_ISREG(st.st_mode)
                           ? fopen(name, "re")
                           : NULL;
    const int first = file == NULL ? EOF : fgetc(file);

    if (file != NULL)
        (void)fclose(file);
    return first;
}

int metrics_open(metrics *m, const char *name)
{
    int first;

    *m = (metrics){.name = name};
    if (name == NULL)
        return STATUS_OK;
    first = first_byte(name);
    if (first != EOF && first != '{') {
        rank_message("%s: has other data than metrics; choose another name",
                     message_name(name));
        return STATUS_USAGE;
    }
    m->file = fopen(name, "ae");
    return m->file == NULL ? fail(m) : STATUS_OK;
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
