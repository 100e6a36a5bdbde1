/*
 * child.h - for tests of code that prints, exits or closes a standard stream:
 * it runs in a child process with its output captured, because the test's own
 * stdout is for TAP.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

typedef struct caught {
    int status; /* as from waitpid */
    char out[2048];
    char err[1024];
} caught;

/*
 * Runs work(arg) in a child, which exits with its value.  After a failed cmocka
 * assertion in `work` the child would run the other tests: return a status.
 */
caught in_child(int (*work)(const char *), const char *arg);

/* Fails the test unless the child exited with `status`. */
void assert_exit(const caught *c, int status);

#endif
