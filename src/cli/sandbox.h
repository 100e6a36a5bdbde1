/*
 * sandbox.h - a program gives up what it does not need any more, so that
 * input which finds a fault in it finds little else.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_SANDBOX_H
#define CLI_SANDBOX_H

#include <stdbool.h>

/*
 * To be called when the files are open and before the first thread is
 * started.  From then on the process can run no program, and it opens,
 * creates, renames and removes no file but these:
 *
 * - it reads the `n_readable` files of the names `readable`, each as it is
 *   now; the name of a folder, or of nothing yet, allows nothing;
 * - in the `n_folders` folders of the descriptors `folders` (-1: none), and in
 *   those below, it creates, reads, writes, renames and removes regular files,
 *   and opens these folders themselves.
 *
 * If the kernel is new enough, connect(2) and bind(2) on TCP sockets fail, and
 * so do signals to other processes.  Landlock covers neither other protocols,
 * nor UNIX sockets with a path, nor the mode, owner, times and attributes of
 * files.  Descriptors that are already open keep working.
 *
 * True if so, or if the kernel or this build cannot do it, or the kernel does
 * not nest another sandbox in those around the process.  False, after a
 * message, if the kernel can and did not.
 */
bool sandbox_enter(const char *const *readable, int n_readable,
                   const int *folders, int n_folders);

/*
 * The version of Landlock that sandbox_enter relies on, from 1 on; 0 if the
 * kernel or this build has none.
 */
int sandbox_version(void);

#endif
