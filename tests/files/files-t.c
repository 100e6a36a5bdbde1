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
#include "cli/message.h"
#include "files/files.h"

#define FILE_NAME "cli-t.XXXXXX"

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

static void test_standard_names(void **state)
{
    assert_string_equal(files_input_name(NULL), "stdin");
    assert_string_equal(files_input_name("-"), "stdin");
    assert_string_equal(files_input_name("--"), "--");
    assert_string_equal(files_output_name(NULL), "stdout");
    assert_string_equal(files_output_name("-"), "stdout");
    assert_string_equal(files_output_name("a\n"), "a?");
}

/* Truncates `name` to zero bytes while another file is the input. */
static int cut(const char *name)
{
    int input = open("/dev/null", O_RDONLY);
    int fd = files_open_output(name, true, input);

    return !(fd > 2 && size_of(name) > 0 && files_begin(fd, name) &&
             size_of(name) == 0 && files_close_output(fd, name));
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

/* The name of a terminal that is held open by `*fd`, or NULL. */
static const char *open_terminal(int *fd)
{
    *fd = posix_openpt(O_RDWR | O_NOCTTY);
    if (*fd == -1 || grantpt(*fd) == -1 || unlockpt(*fd) == -1)
        return NULL;
    return ptsname(*fd);
}

/* Only binary output is refused on a terminal, named or not. */
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
    char expected[256];
    const char *name;
    caught c;
    int fd;

    name = open_terminal(&fd);
    if (name == NULL)
        skip();
    c = in_child(write_to_terminal, name);
    (void)snprintf(expected, sizeof expected,
                   "prog: %s: refusing to write binary output to a terminal: "
                   "redirect it or use -o FILE\n"
                   "prog: stdout: refusing to write binary output to a "
                   "terminal: redirect it or use -o FILE\n",
                   name);
    (void)close(fd);
    assert_exit(&c, 1);
    assert_string_equal(c.err, expected);
}

/* Every use of a closed standard stream must fail, each on its own. */
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

/* Writes to a broken pipe although the parent ignored and blocked SIGPIPE. */
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

/* Duplicates stdout, as a shell does that waits for its job. */
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

/* The file has 5 bytes, so it is not the output to resume. */
static int refuse_shared(const char *name)
{
    int kept = share_stdout(name);

    if (files_reopen_output(NULL, -1, 6) != -1 || !is_free(name))
        return 2;
    return !(fcntl(kept, F_GETFD) != -1);
}

static int check_length(const char *name)
{
    int fd = share_stdout(name);

    if (files_check_length(fd, name, 5) != STATUS_OK ||
        files_check_length(fd, name, 6) == STATUS_OK)
        return 2;
    /* Bytes appended by another writer do not invalidate stdout. */
    return files_check_length(fd, name, 4) == STATUS_OK ||
           files_check_length(fd, NULL, 4) != STATUS_OK;
}

/* Output and exit status of each child, given a file of 5 bytes. */
static void test_children(void **state)
{
    static const struct {
        int (*work)(const char *);
        const char *arg; /* NULL: the file's name */
        int status;
        int size; /* of the file then; -1: any */
        const char *out;
        const char *err; /* NULL: anything; the file is called FILE_NAME */
    } cases[] = {
        {open_input, ".", 1, 5, "", "prog: .: Is a directory\n"},
        {open_input, "no/such\nfile", 1, 5, "",
         "prog: no/such?file: No such file or directory\n"},
        {cut, NULL, 0, 0, "", ""},
        {write_over_input, NULL, 1, 5, "",
         "prog: " FILE_NAME ": is also an input: choose another output\n"},
        {redirect_over_input, NULL, 1, 5, "",
         "prog: stdout: is also an input: choose another output\n"},
        {use_closed_streams, "", 0, 5, "", NULL},
        {close_twice, "text", 0, 5, "text", ""},
        {close_bad, "out", 1, 5, "", "prog: out: Bad file descriptor\n"},
        {refuse_shared, NULL, 0, -1, "", NULL},
        {close_shared, NULL, 0, -1, "",
         "prog: " FILE_NAME ": locked: another job is "
         "writing it\n"},
        {check_length, NULL, 0, -1, "",
         "prog: " FILE_NAME ": has 5 bytes, but 6 were written: changed by "
         "another program\n"
         "prog: " FILE_NAME ": has 5 bytes, but 4 were written: changed by "
         "another program\n"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char name[] = FILE_NAME;
        char *at;
        caught c;
        int size;

        make_file(name);
        c = in_child(cases[i].work, cases[i].arg ? cases[i].arg : name);
        size = size_of(name);
        (void)unlink(name);
        while ((at = strstr(c.err, name)) != NULL)
            memcpy(at, FILE_NAME, strlen(FILE_NAME));
        if (cases[i].err != NULL)
            assert_string_equal(c.err, cases[i].err);
        assert_exit(&c, cases[i].status);
        assert_string_equal(c.out, cases[i].out);
        if (cases[i].size != -1)
            assert_int_equal(size, cases[i].size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_standard_names),
        cmocka_unit_test(test_terminal_refused),
        cmocka_unit_test(test_sigpipe),
        cmocka_unit_test(test_children),
    };

    return run_as_tap("files", tests, NULL);
}
