/*
 * distinct_files.h - the files of a job that must not be one.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_DISTINCT_FILES_H
#define PACKSTREAM_DISTINCT_FILES_H

#include "packstream/conf.h"

/*
 * An exit status, after a message if the state, or the new one that is to
 * take its place, is an input, the output or the file of rejects, or if it has
 * the name of a new one itself.  Call it before any of them is opened, and
 * again when all are there: only then does it show that two names are of one
 * new file, as "A" and "a" are to some file systems.
 */
int distinct_files_check(const conf *c);

#endif
