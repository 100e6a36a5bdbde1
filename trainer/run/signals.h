/*
 * signals.h - signals that end the program, and what it does before.
 *
 * SIGTERM and SIGINT want a last deed.  A thread waits for them, and does it
 * while ours may be waiting for input that never comes.  So that both do not
 * work on the same things at once, ours says when it may be done.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_STOP_H
#define BERT_STOP_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The last deed; gives the status to exit with if that is not STATUS_OK. */
typedef int stop_last(void *context);

/*
 * From now on the first SIGTERM or SIGINT has `last` done, and then the
 * program end as the signal would have ended it; a second one of either kind
 * ends it at once.  Nothing of that happens before stop_allow.  SIGPIPE and
 * SIGXFSZ let writes fail instead.  False: there is no thread to be had.
 * Without this call those below do nothing.
 */
bool stop_catch(stop_last *last, void *context);

/*
 * From stop_allow to stop_forbid the last deed may be done, and its thread
 * has what it works on.  If a signal has come neither of them returns.
 */
void stop_allow(void);
void stop_forbid(void);

/* Ends here if a signal has come. */
void stop_now(void);

/* Whether SIGPIPE came. */
bool stop_broken(void);

/* Ends the program as the signal would have. */
void stop_die(int signal);

#ifdef __cplusplus
}
#endif

#endif /* BERT_STOP_H */
