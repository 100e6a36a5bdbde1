/*
 * in_file.h - a regular file that is read at any offset.
 *
 * Reads do not map the file: a mapped file that shrinks kills the process.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_FOLDER_IN_FILE_H
#define TR_FOLDER_IN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "packstream.h"

/*
 * Opens the file `name` of the directory `folder` (a descriptor, or AT_FDCWD)
 * and returns its size in bytes.  The caller closes *fd; on failure it is -1.
 *
 * PS_OK, PS_ERR_IO, PS_ERR_ARGUMENT (not a regular file).
 */
ps_result in_file_open(int folder, const char *name, int *fd, uint64_t *size,
                       ps_error *err);

/*
 * Reads n bytes at offset `at`.  PS_OK, PS_ERR_IO, PS_ERR_TRUNCATED (the file
 * ends before).
 */
ps_result in_file_read(int fd, void *bytes, size_t n, uint64_t at,
                       ps_error *err);

#endif /* TR_FOLDER_IN_FILE_H */
