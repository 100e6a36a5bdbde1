/*
 * shutdown.h - a final action, such as saving, before a signal ends the run.
 *
 * The first SIGTERM or SIGINT runs the action in a separate thread, since the
 * main thread may be waiting for input, MPI or a device indefinitely.  The main
 * thread declares when the action may run, so that the two never use the same
 * data at the same time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_SHUTDOWN_H
#define TR_RUN_SHUTDOWN_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns STATUS_OK, or the exit status of the run. */
typedef int shutdown_action(void *context);

/*
 * From now on the first SIGTERM or SIGINT runs `action` and then ends the
 * process by that signal; the second one ends it immediately.  SIGPIPE and
 * SIGXFSZ make writes fail instead.  The action runs only between
 * shutdown_allow and shutdown_forbid.  False: no thread could be created.
 * Without this call the functions below do nothing.
 */
bool shutdown_catch(shutdown_action *action, void *context);

/*
 * Between these calls the action may run and has exclusive use of its data.
 * Neither returns once a signal was caught.
 */
void shutdown_allow(void);
void shutdown_forbid(void);

/* Ends the process here if a signal was caught. */
void shutdown_now(void);

/* True if SIGPIPE was caught. */
bool shutdown_pipe_broke(void);

/* Ends the process by this signal, as if it had not been caught. */
void shutdown_by_signal(int signal);

#ifdef __cplusplus
}
#endif

#endif /* TR_RUN_SHUTDOWN_H */
