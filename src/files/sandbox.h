/*
 * sandbox.h - drop unneeded rights, to limit the damage if malicious input
 * exploits a bug.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_SANDBOX_H
#define FILES_SANDBOX_H

#include <stdbool.h>

/*
 * Call this after the files are open and before the first thread starts.
 * Afterwards the process cannot execute programs, and it cannot open, create,
 * rename or remove any file except these:
 *
 * - It can read the `n_readable` files named in `readable`, as they are now.
 *   A name that is a directory or does not exist allows nothing.
 * - In and below the `n_folders` directories open as `folders` (-1: none) it
 *   can create, read, write, rename and remove regular files, and open the
 *   directories themselves.
 *
 * If the kernel supports it, connect(2) and bind(2) on TCP sockets and signals
 * to other processes fail too.  Landlock does not restrict other protocols,
 * UNIX sockets with a path, or changes of mode, owner, times and attributes of
 * files.  Open descriptors keep working.
 *
 * Returns true on success, and also if the kernel or this build does not
 * support Landlock, or if the limit of nested sandboxes is reached.  If
 * Landlock is available but fails, prints a message and returns false.
 */
bool sandbox_enter(const char *const *readable, int n_readable,
                   const int *folders, int n_folders);

/* Landlock version, from 1; 0 if the kernel or this build does not have it. */
int sandbox_version(void);

#endif
