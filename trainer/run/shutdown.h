/*
 * shutdown.h - run a final action, such as saving, before a signal ends the
 * process.
 *
 * The first SIGTERM or SIGINT runs the action in a separate thread, because the
 * main thread may be waiting indefinitely for input, MPI or a device.  The main
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
 * From now on, the first SIGTERM or SIGINT runs `action` and then ends the
 * process by that signal; a second signal ends the process immediately.
 * SIGPIPE only makes writes fail.  The action runs only between
 * shutdown_allow and shutdown_forbid.  Returns false if no thread can be
 * created.  Without this call, the functions below do nothing.
 */
bool shutdown_catch(shutdown_action *action, void *context);

/*
 * Between these calls, the action may run and has exclusive use of its data.
 * Neither call returns once a signal has been caught.
 */
void shutdown_allow(void);
void shutdown_forbid(void);

/* Waits for the end of the process if a signal has been caught. */
void shutdown_now(void);

/*
 * While deferred, the functions above do nothing, so that the action does not
 * run: saving then needs all ranks.  shutdown_is_due() returns true if a signal
 * has been caught meanwhile.
 */
void shutdown_defer(bool deferred);
bool shutdown_is_due(void);

/* True if SIGPIPE has been caught. */
bool shutdown_pipe_broke(void);

/* Ends the process by this signal, as if there were no handler. */
void shutdown_by_signal(int signal);

#ifdef __cplusplus
}
#endif

#endif /* TR_RUN_SHUTDOWN_H */
