/*
 * sandbox.c - a process that cannot reach what it does not need.
 *
 * Linux calls this Landlock: a process names the rights that it gives up
 * and, as rules, the files for which it keeps some.  Newer kernels know more
 * rights, and the headers are often older than the kernel, so the younger
 * rights are spelled out here.
 *
 * SPDX-License-Identifier: MIT
 */

/* For syscall and O_PATH. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "cli/sandbox.h"

/*
 * Without the header there is no Landlock.  The libraries of the sanitizers
 * open files under /proc at any time; SANDBOX_OFF is for other builds whose
 * programs want files of their own, such as those that count coverage.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer) || __has_feature(leak_sanitizer)
#define SANDBOX_OFF 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    !defined(HAVE_LINUX_LANDLOCK_H)
#undef SANDBOX_OFF
#define SANDBOX_OFF 1
#endif

#ifdef SANDBOX_OFF

bool sandbox_enter(const char *const *readable, int n_readable,
                   const int *folders, int n_folders)
{
    (void)readable;
    (void)n_readable;
    (void)folders;
    (void)n_folders;
    return true;
}

int sandbox_version(void)
{
    return 0;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/files.h"
#include "cli/message.h"

/* All rights to files of version 1, and those that came later. */
#define FS_FIRST ((UINT64_C(1) << 13) - 1)
#define FS_REFER (UINT64_C(1) << 13)
#define FS_TRUNCATE (UINT64_C(1) << 14)
#define FS_IOCTL_DEV (UINT64_C(1) << 15)

#define NET_BIND_TCP (UINT64_C(1) << 0)
#define NET_CONNECT_TCP (UINT64_C(1) << 1)

#define SCOPE_ABSTRACT_SOCKET (UINT64_C(1) << 0)
#define SCOPE_SIGNAL (UINT64_C(1) << 1)

/* What it takes to replace a file, and to make sure that it is on disk. */
#define FS_REPLACE                                                      \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |     \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE |     \
     LANDLOCK_ACCESS_FS_READ_DIR | FS_TRUNCATE)

/*
 * The header's structure of this kind grew with the versions.  A kernel
 * takes a longer one than it knows if the rest is 0.
 */
typedef struct ruleset_attr {
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
} ruleset_attr;

int sandbox_version(void)
{
    long version = syscall(__NR_landlock_create_ruleset, NULL, (size_t)0,
                           LANDLOCK_CREATE_RULESET_VERSION);

    return version > 0 ? (int)version : 0;
}

static bool add_rule(int ruleset, int fd, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {
        .allowed_access = rights,
        .parent_fd = fd,
    };

    /* A pipe that has a name, as of a shell's <(...), is no part of a file
       system, needs no rule, and gets none. */
    return syscall(__NR_landlock_add_rule, ruleset,
                   LANDLOCK_RULE_PATH_BENEATH, &rule, 0U) == 0 ||
           errno == EBADFD;
}

bool sandbox_enter(const char *const *readable, int n_readable,
                   const int *folders, int n_folders)
{
    const int version = sandbox_version();
    const ruleset_attr attr = {
        .fs = FS_FIRST | (version >= 2 ? FS_REFER : 0) |
              (version >= 3 ? FS_TRUNCATE : 0) |
              (version >= 5 ? FS_IOCTL_DEV : 0),
        .net = version >= 4 ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
        .scoped = version >= 6 ? SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL : 0,
    };
    bool done;
    int ruleset;

    if (version == 0) {
        /* The kernel is older than Landlock, but knows this. */
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L);
        return true;
    }
    ruleset =
        (int)syscall(__NR_landlock_create_ruleset, &attr, sizeof attr, 0U);
    done = ruleset != -1;
    for (int i = 0; done && i < n_readable; i++) {
        const int fd = files_openat(AT_FDCWD, readable[i], O_PATH);
        struct stat st;

        /* Whoever opens it later will hear what is wrong with a name. */
        if (fd == -1) {
            done = errno != EMFILE && errno != ENFILE && errno != ENOMEM;
            continue;
        }
        /* A rule for a folder would hold for all that is in it. */
        if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
            done = add_rule(ruleset, fd, LANDLOCK_ACCESS_FS_READ_FILE);
        (void)close(fd);
    }
    for (int i = 0; done && i < n_folders; i++)
        done = folders[i] == -1 ||
               add_rule(ruleset, folders[i], FS_REPLACE & attr.fs);
    /* E2BIG: as many layers as the kernel allows confine the process, those
       of a container and the like. */
    done = done && prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 &&
           (syscall(__NR_landlock_restrict_self, ruleset, 0U) == 0 ||
            errno == E2BIG);
    if (!done)
        message_errno("cannot enter the sandbox (--no-sandbox goes without)");
    if (ruleset != -1)
        (void)close(ruleset);
    return done;
}

#endif
