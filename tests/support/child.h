/*
 * child.h - for tests of what prints, exits or closes a standard stream: it
 * runs in a child process with its output caught, because the test's own
 * stdout belongs to TAP.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

typedef struct caught {
    int status; /* as waitpid gives it */
    char out[2048];
    char err[1024];
} caught;

/*
 * Runs work(arg) in a child, which exits with its value.  A cmocka assertion
 * in `work` would go on with the tests in the child: return a status instead.
 */
caught in_child(int (*work)(const char *), const char *arg);

/* Fails the test unless the child exited with `status`. */
void assert_exit(const caught *c, int status);

#endif
