/*
 * files-t.c - files and the standard streams.
 *
 * SPDX-License-Identifier: MIT
 */

/* For pseudo-terminals. */
#define _XOPEN_SOURCE 700

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "files.h"
#include "message.h"

/* Makes a file of a few bytes; its name replaces the XXXXXX of `name`. */
static void make_file(char *name)
{
    int fd = mkstemp(name);

    assert_int_not_equal(fd, -1);
    assert_int_equal(write(fd, "12345", 5), 5);
    assert_int_equal(close(fd), 0);
}

static int size_of(const char *name)
{
    struct stat st;

    return stat(name, &st) == 0 ? (int)st.st_size : -1;
}

static int open_input(const char *name)
{
    message_init("prog");
    return files_open_input(name) == -1;
}

static void test_input_refused(void **state)
{
    caught c = in_child(open_input, ".");

    assert_exit(&c, 1);
    assert_string_equal(c.err, "prog: .: Is a directory\n");
    c = in_child(open_input, "no/such\nfile");
    assert_exit(&c, 1);
    assert_string_equal(c.err,
                        "prog: no/such?file: No such file or directory\n");
}

static void test_standard_names(void **state)
{
    assert_string_equal(files_input_name(NULL), "stdin");
    assert_string_equal(files_input_name("-"), "stdin");
    assert_string_equal(files_input_name("--"), "--");
    assert_string_equal(files_output_name(NULL), "stdout");
    assert_string_equal(files_output_name("-"), "stdout");
    assert_string_equal(files_output_name("a\n"), "a?");
}

/* Cuts `name` to nothing while another file is the input. */
static int cut(const char *name)
{
    int input = open("/dev/null", O_RDONLY);
    int fd = files_open_output(name, true, input);

    return !(fd > 2 && size_of(name) == 0 && files_close_output(fd, name));
}

static void test_output_cut(void **state)
{
    char name[] = "cli-t.XXXXXX";
    caught c;

    make_file(name);
    c = in_child(cut, name);
    (void)unlink(name);
    assert_string_equal(c.err, "");
    assert_exit(&c, 0);
}

static int write_over_input(const char *name)
{
    int input = open(name, O_RDONLY);

    message_init("prog");
    return files_open_output(name, true, input) == -1;
}

static int redirect_over_input(const char *name)
{
    int input = open(name, O_RDONLY);
    int output = open(name, O_WRONLY);

    message_init("prog");
    (void)dup2(output, STDOUT_FILENO);
    return files_open_output(NULL, true, input) == -1;
}

static void test_output_is_input(void **state)
{
    char name[] = "cli-t.XXXXXX";
    char expected[64];
    caught named;
    caught redirected;
    int size;

    make_file(name);
    named = in_child(write_over_input, name);
    redirected = in_child(redirect_over_input, name);
    size = size_of(name);
    (void)unlink(name);
    (void)snprintf(expected, sizeof expected,
                   "prog: %s: is an input as well\n", name);
    assert_exit(&named, 1);
    assert_string_equal(named.err, expected);
    assert_exit(&redirected, 1);
    assert_string_equal(redirected.err,
                        "prog: stdout: is an input as well\n");
    assert_int_equal(size, 5);
}

/* The name of a terminal that is held open by `*fd`, or NULL. */
static const char *open_terminal(int *fd)
{
    *fd = posix_openpt(O_RDWR | O_NOCTTY);
    if (*fd == -1 || grantpt(*fd) == -1 || unlockpt(*fd) == -1)
        return NULL;
    return ptsname(*fd);
}

/* Only binary output is kept from a terminal, named or not. */
static int write_to_terminal(const char *name)
{
    int fd = open(name, O_RDWR | O_NOCTTY);

    message_init("prog");
    (void)dup2(fd, STDOUT_FILENO);
    if (files_open_output(NULL, false, -1) != STDOUT_FILENO)
        return 2;
    if (files_open_output(name, true, -1) != -1)
        return 3;
    return files_open_output(NULL, true, -1) == -1;
}

static void test_terminal_refused(void **state)
{
    char expected[128];
    const char *name;
    caught c;
    int fd;

    name = open_terminal(&fd);
    if (name == NULL)
        skip();
    c = in_child(write_to_terminal, name);
    (void)snprintf(expected, sizeof expected,
                   "prog: %s: binary output is not for a terminal\n"
                   "prog: stdout: binary output is not for a terminal\n",
                   name);
    (void)close(fd);
    assert_exit(&c, 1);
    assert_string_equal(c.err, expected);
}

/* Every use of a closed standard stream must fail, and stay apart. */
static int use_closed_streams(const char *unused)
{
    char byte = 0;

    for (int fd = 0; fd <= 2; fd++)
        (void)close(fd);
    files_init();
    if (read(0, &byte, 1) != -1 || errno != EBADF)
        return 1;
    if (write(1, &byte, 1) != -1 || errno != EBADF)
        return 2;
    if (write(2, &byte, 1) != -1 || errno != EBADF)
        return 3;
    if (open("/dev/null", O_RDWR) <= 2)
        return 4;
    if (files_open_input(NULL) != -1 || files_open_output("-", true, -1) != -1)
        return 5;
    return 0;
}

static void test_closed_streams(void **state)
{
    caught c = in_child(use_closed_streams, NULL);

    assert_exit(&c, 0);
}

/* Writes to nobody although the parent had SIGPIPE ignored and blocked. */
static int write_to_nobody(const char *unused)
{
    int ends[2];
    sigset_t set;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    files_init();
    if (pipe(ends) == -1 || close(ends[0]) == -1)
        return 2;
    return write(ends[1], "", 1) == 1 ? 3 : 1;
}

static void test_sigpipe(void **state)
{
    caught c = in_child(write_to_nobody, NULL);

    assert_true(WIFSIGNALED(c.status));
    assert_int_equal(WTERMSIG(c.status), SIGPIPE);
}

static int close_twice(const char *text)
{
    message_init("prog");
    (void)fputs(text, stdout);
    return !(files_close_stdout() && files_close_stdout());
}

static int close_bad(const char *name)
{
    message_init("prog");
    return !files_close_output(999, name);
}

static void test_close(void **state)
{
    caught c = in_child(close_twice, "text");

    assert_exit(&c, 0);
    assert_string_equal(c.out, "text");
    c = in_child(close_bad, "out");
    assert_exit(&c, 1);
    assert_string_equal(c.err, "prog: out: Bad file descriptor\n");
}

/* A second descriptor of stdout, as of a shell that waits for its job. */
static int share_stdout(const char *name)
{
    int fd = open(name, O_WRONLY);

    message_init("prog");
    (void)dup2(fd, STDOUT_FILENO);
    return fd;
}

static bool is_free(const char *name)
{
    int fd = files_open_output_alone(name, -1);

    if (fd != -1)
        (void)close(fd);
    return fd != -1;
}

static int close_shared(const char *name)
{
    int kept = share_stdout(name);

    if (files_open_output_alone(NULL, -1) != STDOUT_FILENO || is_free(name))
        return 2;
    if (!files_close_output(STDOUT_FILENO, NULL) || !is_free(name))
        return 3;
    return !(fcntl(kept, F_GETFD) != -1);
}

/* It has 5 bytes, so it is not the output that is to go on. */
static int refuse_shared(const char *name)
{
    int kept = share_stdout(name);

    if (files_reopen_output(NULL, -1, 6) != -1 || !is_free(name))
        return 2;
    return !(fcntl(kept, F_GETFD) != -1);
}

static void test_lock(void **state)
{
    char name[] = "cli-t.XXXXXX";
    char expected[64];
    caught closed;
    caught refused;

    make_file(name);
    refused = in_child(refuse_shared, name);
    closed = in_child(close_shared, name);
    (void)unlink(name);
    assert_exit(&refused, 0);
    (void)snprintf(expected, sizeof expected,
                   "prog: %s: another job is writing it\n", name);
    assert_string_equal(closed.err, expected);
    assert_exit(&closed, 0);
}

static int check_length(const char *name)
{
    int fd = share_stdout(name);

    if (!files_has_length(fd, name, 5) || files_has_length(fd, name, 6))
        return 2;
    /* What others write behind it does no harm to stdout. */
    return files_has_length(fd, name, 4) || !files_has_length(fd, NULL, 4);
}

static void test_length(void **state)
{
    char name[] = "cli-t.XXXXXX";
    char expected[192];
    caught c;

    make_file(name);
    c = in_child(check_length, name);
    (void)unlink(name);
    (void)snprintf(expected, sizeof expected,
                   "prog: %s: has 5 bytes, but 6 were written: "
                   "another program changed it\n"
                   "prog: %s: has 5 bytes, but 4 were written: "
                   "another program changed it\n",
                   name, name);
    assert_string_equal(c.err, expected);
    assert_exit(&c, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input_refused),
        cmocka_unit_test(test_standard_names),
        cmocka_unit_test(test_output_cut),
        cmocka_unit_test(test_output_is_input),
        cmocka_unit_test(test_terminal_refused),
        cmocka_unit_test(test_closed_streams),
        cmocka_unit_test(test_sigpipe),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_length),
    };

    return run_as_tap("cli-files", tests, NULL);
}
