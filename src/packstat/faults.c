/*
 * faults.c - print the faults of a file as they are found.
 *
 * Only the first few faults are printed, since a damaged file can have
 * millions.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/faults.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "files/files.h"

enum { MAX_PRINTED = 10 };

int faults_worse(int a, int b)
{
    return a > b ? a : b;
}

void faults_add(faults *f, const fault_place *place, const char *format, ...)
{
    const char *name = files_input_name(f->file);
    char why[256];
    va_list args;

    f->status = faults_worse(f->status, STATUS_DATA);
    if (++f->count > MAX_PRINTED)
        return;
    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    if (place->offset == 0)
        message_error("%s: END of stream %" PRIu64 ": %s", name,
                      place->number, why);
    else
        message_error("%s: pack %" PRIu64 " in the block at byte %" PRIu64
                      ": %s", name, place->number, place->offset, why);
}

void faults_fatal(faults *f, const ps_error *err)
{
    int status = message_failure(files_input_name(f->file), err);

    f->status = faults_worse(f->status, status);
}

void faults_no_memory(faults *f)
{
    /* Without a text, the standard description of the code is printed. */
    const ps_error err = {.code = PS_ERR_MEMORY};

    faults_fatal(f, &err);
}

void faults_end(const faults *f)
{
    if (f->count > MAX_PRINTED)
        message_error("%s: ... and %" PRIu64 " more faults",
                      files_input_name(f->file), f->count - MAX_PRINTED);
}
