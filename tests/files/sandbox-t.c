/*
 * sandbox-t.c - operations allowed and refused in the sandbox.
 *
 * A child process attempts one operation after another and prints each result,
 * first outside the sandbox, where all of them succeed, and then inside.  A
 * failure inside is therefore the sandbox's doing.
 *
 * This program compiles src/files/sandbox.c again with syscall renamed to the
 * fake below, which simulates older kernels and failing calls.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "cli/message.h"
#include "files/sandbox.h"
#include "sandbox-place.h"

/* ------------------------------------------------------------ the kernel */

/* The calls of sandbox.c: version, ruleset, rule, restriction. */
enum call { ASK, CREATE, RULE, ENTER };

static struct {
    bool on;        /* no call reaches the kernel */
    int version;    /* reported Landlock version */
    int fails;      /* the call that fails, with `error`; -1: none */
    int error;
    bool entered;
    uint64_t attr[3]; /* of the ruleset */
    uint64_t rule;    /* rights of the last rule */
} fake;

/* The kernel's own result for the last restriction. */
static int entered_error;

/* The numbers are the same on all but one architecture. */
#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif

static enum call call_of(long number, const void *attr)
{
    if (number == __NR_landlock_create_ruleset)
        return attr == NULL ? ASK : CREATE;
    return number == __NR_landlock_add_rule ? RULE : ENTER;
}

static long faked(enum call call, const void *attr, const void *rule)
{
    if ((int)call == fake.fails) {
        errno = fake.error;
        return -1;
    }
    switch (call) {
    case ASK:
        return fake.version;
    case CREATE:
        memcpy(fake.attr, attr, sizeof fake.attr);
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    case RULE:
        memcpy(&fake.rule, rule, sizeof fake.rule);
        return 0;
    case ENTER:
        break;
    }
    fake.entered = true;
    return 0;
}

/* <unistd.h> has declared the fake instead of the real one. */
#undef syscall
long syscall(long number, ...);

/* sandbox.c passes two, three or four arguments besides the number. */
long fake_syscall(long number, ...)
{
    va_list args;
    const void *attr = NULL;
    const void *rule = NULL;
    size_t size = 0;
    int fd = -1;
    int type = 0;
    unsigned flags = 0;

    va_start(args, number);
    if (number == __NR_landlock_create_ruleset) {
        attr = va_arg(args, const void *);
        size = va_arg(args, size_t);
    } else {
        fd = va_arg(args, int);
    }
    if (number == __NR_landlock_add_rule) {
        type = va_arg(args, int);
        rule = va_arg(args, const void *);
    }
    flags = va_arg(args, unsigned);
    va_end(args);
    if (fake.on)
        return faked(call_of(number, attr), attr, rule);
    if (number == __NR_landlock_create_ruleset)
        return syscall(number, attr, size, flags);
    if (number == __NR_landlock_add_rule)
        return syscall(number, fd, type, rule, flags);
    entered_error = syscall(number, fd, flags) == 0 ? 0 : errno;
    return entered_error == 0 ? 0 : -1;
}

static void fake_kernel(int version, int fails, int error)
{
    memset(&fake, 0, sizeof fake);
    fake.on = true;
    fake.version = version;
    fake.fails = fails;
    fake.error = error;
}

static int set_up(void **state)
{
    memset(&fake, 0, sizeof fake);
    return place_set_up(state);
}

static void skip_without_landlock(void)
{
    if (sandbox_version() > 0)
        return;
    print_message("# the kernel or this build has no Landlock\n");
    skip();
}

/* --------------------------------------------------------------- tests */

static int outside(const char *arg)
{
    try_all();
    return 0;
}

static int inside(const char *arg)
{
    static const char *const inputs[] = {"input"};

    if (!sandbox_enter(inputs, 1, (const int[]){place_folder()}, 1))
        return 1;
    try_all();
    return 0;
}

static void test_refused(void **state)
{
    caught c;

    skip_without_landlock();
    c = in_child(inside, NULL);
    assert_string_equal(c.err, "");
    assert_tried(c.out, sandbox_version());
    assert_exit(&c, 0);
}

static void test_possible_outside(void **state)
{
    caught c;

    c = in_child(outside, NULL);
    assert_tried(c.out, 0);
    assert_exit(&c, 0);
}

/* The first attempt with the wrong outcome, from 1; 0 if all are right. */
static int first_wrong(const bool *right, int n)
{
    for (int i = 0; i < n; i++)
        if (!right[i])
            return i + 1;
    return 0;
}
#define FIRST_WRONG(...)                                                \
    first_wrong((const bool[]){__VA_ARGS__},                            \
                (int)(sizeof((const bool[]){__VA_ARGS__}) / sizeof(bool)))

/* Inputs that exist, that do not, and that are not regular files. */
static int read_inputs(const char *arg)
{
    static const char *const inputs[] = {"input", "-", "none", "state",
                                         "state/FILE/x", "other"};

    if (!sandbox_enter(inputs, 6, NULL, 0))
        return 100;
    return FIRST_WRONG(try_open("input", O_RDONLY) == 0,
                       try_open("other", O_RDONLY) == 0,
                       try_open("input", O_RDWR) == EACCES,
                       try_open("none", O_RDONLY) == ENOENT,
                       try_open("none", O_WRONLY | O_CREAT) == EACCES,
                       try_open("state", O_RDONLY) == EACCES,
                       try_open("state/FILE", O_RDONLY) == EACCES);
}

static int read_link(const char *arg)
{
    static const char *const inputs[] = {"name"};

    if (!sandbox_enter(inputs, 1, NULL, 0))
        return 100;
    return FIRST_WRONG(try_open("name", O_RDONLY) == 0,
                       try_open("input", O_RDONLY) == 0,
                       try_open("other", O_RDONLY) == EACCES);
}

/* A named pipe, like that of a shell's <(...). */
static int read_named_pipe(const char *arg)
{
    char name[32];
    const char *inputs[] = {name};
    int ends[2];

    if (pipe(ends) == -1)
        return 99;
    (void)snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    if (access(name, R_OK) == -1)
        return 0;
    if (!sandbox_enter(inputs, 1, NULL, 0))
        return 100;
    return try_open(name, O_RDONLY | O_NONBLOCK);
}

static bool flushed(const char *name)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    bool done = fd != -1 && fsync(fd) == 0;

    if (fd != -1)
        (void)close(fd);
    return done;
}

static int replace_state(const char *arg)
{
    int fd;

    if (!sandbox_enter(NULL, 0, (const int[]){place_folder()}, 1))
        return 100;
    fd = openat(place_folder(), "part", O_RDWR | O_CREAT | O_CLOEXEC,
                0600);
    return FIRST_WRONG(fd != -1, write(fd, "67", 2) == 2, fsync(fd) == 0,
                       ftruncate(fd, 1) == 0,
                       rename("state/part", "state/FILE") == 0,
                       flushed("state"),
                       try_open("state/FILE", O_RDONLY) == 0,
                       try_open("state/FILE", O_WRONLY | O_TRUNC) == 0,
                       rename("state/FILE", "moved") == -1,
                       unlink("state/FILE") == 0,
                       mkdir("state/folder", 0700) == -1,
                       symlink("x", "state/link") == -1,
                       try_open("input", O_RDONLY) == EACCES,
                       try_open("new", O_WRONLY | O_CREAT) == EACCES);
}

static int use_descriptor(const char *arg)
{
    int fd = place_descriptor();
    char byte;

    if (!sandbox_enter(NULL, 0, NULL, 0))
        return 100;
    return FIRST_WRONG(pread(fd, &byte, 1, 0) == 1 && byte == '1',
                       pwrite(fd, "6", 1, 5) == 1, ftruncate(fd, 2) == 0,
                       fsync(fd) == 0,
                       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
                       try_open("open", O_RDONLY) == EACCES);
}

/* Each attempt has its own folder. */
static void test_tries(void **state)
{
    static int (*const tries[])(const char *) = {
        read_inputs, read_link, read_named_pipe, replace_state,
        use_descriptor};

    skip_without_landlock();
    for (size_t i = 0; i < COUNT(tries); i++) {
        caught c = in_child(tries[i], NULL);

        assert_string_equal(c.err, "");
        assert_exit(&c, 0);
        assert_int_equal(place_tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

/* ------------------------------------------------ as a fake has it */

/* Kernels without Landlock, and kernels that refuse the query. */
static void test_no_landlock(void **state)
{
    static const int errors[] = {ENOSYS, EOPNOTSUPP, EPERM};
    caught c;

    for (int i = 0; i < 3; i++) {
        fake_kernel(7, ASK, errors[i]);
        assert_int_equal(sandbox_version(), 0);
        c = in_child(inside, NULL);
        assert_string_equal(c.err, "");
        assert_tried(c.out, 0);
        assert_exit(&c, 0);
        assert_int_equal(place_tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static int enter_fake(const char *arg)
{
    static const char *const inputs[] = {"input"};

    message_init("prog");
    if (sandbox_enter(inputs, 1, (const int[]){place_folder()}, 1))
        return 0;
    return fake.entered ? 100 : 1;
}

/* A failure of an existing sandbox is reported. */
static void test_fails(void **state)
{
    static const struct {
        int call;
        int error;
        const char *why;
    } cases[] = {
        {CREATE, ENOMEM, "Cannot allocate memory"},
        {RULE, EINVAL, "Invalid argument"},
        {ENTER, EINVAL, "Invalid argument"},
    };

    fake_kernel(7, -1, 0);
    if (sandbox_version() == 0)
        skip();
    for (int i = 0; i < 3; i++) {
        char wanted[128];
        caught c;

        fake_kernel(7, cases[i].call, cases[i].error);
        c = in_child(enter_fake, NULL);
        (void)snprintf(wanted, sizeof wanted,
                       "prog: cannot enter the sandbox (use --no-sandbox to "
                       "run without): %s\n",
                       cases[i].why);
        assert_string_equal(c.err, wanted);
        assert_exit(&c, 1);
    }
}

/* The kernel nests at most 16 sandboxes. */
static int enter_often(const char *arg)
{
    for (int i = 0; i < 16; i++)
        if (!sandbox_enter(NULL, 0, NULL, 0) || entered_error != 0)
            return 1 + i;
    if (!sandbox_enter(NULL, 0, NULL, 0))
        return 100;
    return entered_error == E2BIG ? 0 : 101;
}

static void test_too_deep(void **state)
{
    caught c;

    skip_without_landlock();
    c = in_child(enter_often, NULL);
    assert_string_equal(c.err, "");
    assert_exit(&c, 0);
}

/* A kernel refuses rights introduced after its version. */
static void test_versions(void **state)
{
    static const uint64_t rights[][3] = {
        {0, 0, 0},      {0x1fff, 0, 0}, {0x3fff, 0, 0}, {0x7fff, 0, 0},
        {0x7fff, 3, 0}, {0xffff, 3, 0}, {0xffff, 3, 3}, {0xffff, 3, 3},
        {0xffff, 3, 3},
    };

    for (int version = 1; version <= 8; version++) {
        fake_kernel(version, -1, 0);
        if (sandbox_version() == 0)
            skip();
        assert_int_equal(enter_fake(NULL), 0);
        assert_true(fake.entered);
        assert_memory_equal(fake.attr, rights[version], sizeof fake.attr);
        /* A rule may only allow rights that the ruleset handles. */
        assert_int_equal(fake.rule & ~fake.attr[0], 0);
        /* The last rule allows writing to files. */
        assert_int_not_equal(fake.rule & 2, 0);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_possible_outside), TEST(test_refused),
        TEST(test_tries),            TEST(test_no_landlock),
        TEST(test_fails),            TEST(test_too_deep),
        TEST(test_versions),
    };

    return run_as_tap("sandbox", tests, NULL);
}
