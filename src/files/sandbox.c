/*
 * sandbox.c - drop unneeded rights.
 *
 * This uses Landlock, a Linux security module.  A process lists the rights that
 * it gives up, and rules with the files for which it keeps some of them.  A
 * kernel can support more rights than the installed headers define, so rights
 * added after version 1 are defined here.
 *
 * SPDX-License-Identifier: MIT
 */

/* for syscall and O_PATH */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "files/sandbox.h"

/*
 * The sandbox is available only if the Landlock header exists.  Sanitizer
 * runtimes open files under /proc at any time, so the sandbox is off in
 * sanitizer builds.  Define SANDBOX_OFF for other builds whose runtime writes
 * files, such as coverage builds.
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

#include "cli/message.h"
#include "files/files.h"

/* All file rights of Landlock version 1, then rights added later. */
#define FS_FIRST ((UINT64_C(1) << 13) - 1)
#define FS_REFER (UINT64_C(1) << 13)
#define FS_TRUNCATE (UINT64_C(1) << 14)
#define FS_IOCTL_DEV (UINT64_C(1) << 15)

#define NET_BIND_TCP (UINT64_C(1) << 0)
#define NET_CONNECT_TCP (UINT64_C(1) << 1)

#define SCOPE_ABSTRACT_SOCKET (UINT64_C(1) << 0)
#define SCOPE_SIGNAL (UINT64_C(1) << 1)

/* Rights needed to replace a file and sync its directory. */
#define FS_REPLACE                                                      \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |     \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE |     \
     LANDLOCK_ACCESS_FS_READ_DIR | FS_TRUNCATE)

/*
 * struct landlock_ruleset_attr grows with each version.  Kernels accept a
 * larger structure than they know if the extra members are 0.
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

    /*
     * EBADFD: a pipe that has a name, such as the shell's <(...), is not on a
     * file system and does not need a rule.
     */
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
        /* This works even on kernels without Landlock. */
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L);
        return true;
    }
    ruleset =
        (int)syscall(__NR_landlock_create_ruleset, &attr, sizeof attr, 0U);
    done = ruleset != -1;
    for (int i = 0; done && i < n_readable; i++) {
        const int fd = files_openat(AT_FDCWD, readable[i], O_PATH);
        struct stat st;

        /* Opening the file later reports why it cannot be opened. */
        if (fd == -1) {
            done = errno != EMFILE && errno != ENFILE && errno != ENOMEM;
            continue;
        }
        /* A rule for a directory would apply to everything in it. */
        if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
            done = add_rule(ruleset, fd, LANDLOCK_ACCESS_FS_READ_FILE);
        (void)close(fd);
    }
    for (int i = 0; done && i < n_folders; i++)
        done = folders[i] == -1 ||
               add_rule(ruleset, folders[i], FS_REPLACE & attr.fs);
    /*
     * E2BIG: the process already has the maximum number of layers, as in some
     * containers.
     */
    done = done && prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 &&
           (syscall(__NR_landlock_restrict_self, ruleset, 0U) == 0 ||
            errno == E2BIG);
    if (!done)
        message_errno("cannot enter the sandbox (use --no-sandbox to run "
                      "without)");
    if (ruleset != -1)
        (void)close(ruleset);
    return done;
}

#endif
