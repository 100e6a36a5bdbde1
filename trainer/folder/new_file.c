/*
 * new_file.c - a file that appears, or replaces the old one, once complete.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/new_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/error.h"
#include "files/files.h"

#define SUFFIX ".new"

ps_result new_file_open(new_file *f, int folder, const char *name,
                        ps_error *err)
{
    const size_t n = strlen(name);

    *f = (new_file)NEW_FILE_CLOSED;
    if (n + sizeof SUFFIX > sizeof f->next)
        return tr_error(err, PS_ERR_ARGUMENT, "the name is too long");
    memcpy(f->name, name, n + 1);
    memcpy(f->next, name, n);
    memcpy(f->next + n, SUFFIX, sizeof SUFFIX);
    f->temp.folder = folder;
    f->temp.name = f->next;
    switch (temp_file_create(&f->temp)) {
    case TEMP_FILE_OK:
        return PS_OK;
    case TEMP_FILE_ERRNO:
    case TEMP_FILE_UNOPENED:
        return tr_error_errno(err);
    case TEMP_FILE_LOCKED:
        return tr_error(err, PS_ERR_IO, "another process is writing this file");
    default:
        return tr_error(err, PS_ERR_IO, "the temporary name with the suffix "
                                        "%s is taken: remove it", SUFFIX);
    }
}

ps_result new_file_write(new_file *f, const void *bytes, size_t n,
                         ps_error *err)
{
    return files_write(f->temp.fd, bytes, n) ? PS_OK : tr_error_errno(err);
}

ps_result new_file_sync(new_file *f, ps_error *err)
{
    return files_fsync(f->temp.fd) ? PS_OK : tr_error_errno(err);
}

ps_result new_file_publish(new_file *f, ps_error *err)
{
    if (!temp_file_has_name(&f->temp))
        return tr_error(err, PS_ERR_IO, "another program changed the file");
    if (renameat(f->temp.folder, f->next, f->temp.folder, f->name) != 0)
        return tr_error_errno(err);
    temp_file_close(&f->temp);
    return PS_OK;
}

void new_file_abandon(new_file *f)
{
    const int why = errno;

    if (f->temp.fd >= 0)
        (void)temp_file_discard(&f->temp);
    errno = why;
}
