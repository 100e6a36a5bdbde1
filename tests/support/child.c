/*
 * child.c - runs work in a child process and captures its output.
 *
 * SPDX-License-Identifier: MIT
 */

#include "child.h"

#include "tap.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void take(FILE *f, char *text, size_t size)
{
    size_t got;

    rewind(f);
    got = fread(text, 1, size - 1, f);
    text[got] = '\0';
    (void)fclose(f);
}

caught in_child(int (*work)(const char *), const char *arg)
{
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    caught c;
    pid_t child;

    assert_true(out != NULL && err != NULL);
    (void)fflush(stdout);
    child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0) {
        (void)dup2(fileno(out), STDOUT_FILENO);
        (void)dup2(fileno(err), STDERR_FILENO);
        _exit(work(arg));
    }
    assert_int_equal(waitpid(child, &c.status, 0), child);
    take(out, c.out, sizeof c.out);
    take(err, c.err, sizeof c.err);
    return c;
}

void assert_exit(const caught *c, int status)
{
    assert_true(WIFEXITED(c->status));
    assert_int_equal(WEXITSTATUS(c->status), status);
}
