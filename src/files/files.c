/*
 * files.c - open and close files and the standard streams.
 *
 * SPDX-License-Identifier: MIT
 */

/* for F_OFD_SETLK, in POSIX since 2024 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"

/*
 * The process opens and closes its output a second time to read it.  An open
 * file description lock survives this; a traditional process lock, used on
 * systems without such locks, does not.
 */
#ifndef F_OFD_SETLK
#define F_OFD_SETLK F_SETLK
#endif

/* Limit on the length of a chain of symbolic links. */
#define MAX_LINKS 40

void files_init(void)
{
    struct sigaction action;
    sigset_t set;

    /*
     * A file opened later would otherwise get the number of a closed standard
     * stream, and messages or records would be written to the file.
     */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) != -1)
            continue;
        /*
         * open returns the lowest free descriptor, which is `fd`.  The wrong
         * access mode makes any use of it fail.
         */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _Exit(STATUS_FAILURE);
    }

    /* The parent may have ignored or blocked SIGPIPE, which exec inherits. */
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGPIPE, &action, NULL);
    /* Makes writes beyond the file size limit fail with EFBIG. */
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGXFSZ, &action, NULL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---------------------------------------------------------------------
 * Names and descriptors
 */

bool files_is_standard(const char *name)
{
    return name == NULL || strcmp(name, "-") == 0;
}

const char *files_input_name(const char *name)
{
    return files_is_standard(name) ? "stdin" : message_name(name);
}

const char *files_output_name(const char *name)
{
    return files_is_standard(name) ? "stdout" : message_name(name);
}

/* True if `fd` was opened with exactly this access mode. */
static bool has_mode(int fd, int mode)
{
    int flags = fcntl(fd, F_GETFL);

    return flags != -1 && (flags & O_ACCMODE) == mode;
}

bool files_are_one(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* True if a symbolic link of this name can be a kernel-provided link. */
static bool is_of_system(const char *name)
{
    return strncmp(name, "/dev/", 5) == 0 || strncmp(name, "/proc/", 6) == 0;
}

/* Resolves symbolic links.  With `stops`, stops at a kernel-provided link. */
static bool follow(const char *name, char path[FILES_MAX_NAME], bool stops)
{
    if (strlen(name) >= FILES_MAX_NAME) {
        errno = ENAMETOOLONG;
        return false;
    }
    (void)strcpy(path, name);
    for (int links = 0; links < MAX_LINKS; links++) {
        const char *slash = strrchr(path, '/');
        size_t kept = slash == NULL ? 0 : (size_t)(slash + 1 - path);
        char to[FILES_MAX_NAME];
        ssize_t n = readlink(path, to, sizeof to);

        /* not a link, or does not exist */
        if (n <= 0 || (stops && is_of_system(path)))
            return true;
        if (to[0] == '/')
            kept = 0;
        if ((size_t)n >= FILES_MAX_NAME - kept) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(path + kept, to, (size_t)n);
        path[kept + (size_t)n] = '\0';
    }
    errno = ELOOP;
    return false;
}

bool files_follow(const char *name, char path[FILES_MAX_NAME])
{
    return follow(name, path, false);
}

const char *files_split(const char *path, char folder[FILES_MAX_NAME])
{
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    const size_t n = (size_t)(base - path);

    memcpy(folder, path, n);
    (void)strcpy(folder + n, n == 0 ? "." : "");
    return base;
}

char *files_join(const char *stem, size_t n, const char *ending)
{
    const size_t rest = strlen(ending) + 1;
    char *text = malloc(n + rest);

    if (text == NULL)
        return NULL;
    memcpy(text, stem, n);
    memcpy(text + n, ending, rest);
    return text;
}

bool files_are_one_name(const char *a, const char *b)
{
    char in_a[FILES_MAX_NAME];
    char in_b[FILES_MAX_NAME];
    struct stat x;
    struct stat y;

    return strlen(a) < sizeof in_a && strlen(b) < sizeof in_b &&
           strcmp(files_split(a, in_a), files_split(b, in_b)) == 0 &&
           stat(in_a, &x) == 0 && stat(in_b, &y) == 0 && files_are_one(&x, &y);
}

bool files_stat(const char *name, int standard, struct stat *st)
{
    return (files_is_standard(name) ? fstat(standard, st)
                                    : stat(name, st)) == 0;
}

/*
 * True if both are the same regular file.  Only regular files matter, since a
 * terminal or socket can be read and written at the same time.
 */
static bool is_same_file(const struct stat *output, int input_fd)
{
    struct stat input;

    return input_fd != -1 && S_ISREG(output->st_mode) &&
           fstat(input_fd, &input) == 0 && files_are_one(output, &input);
}

bool files_is(files_kind kind, int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    switch (kind) {
    case FILES_REGULAR:
        return S_ISREG(st.st_mode);
    case FILES_DEVICE:
        return S_ISCHR(st.st_mode);
    case FILES_PIPE:
        return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
    }
    return false;
}

bool files_is_special(const char *name)
{
    struct stat st;
    char path[FILES_MAX_NAME];
    char to[1];

    if (stat(name, &st) != 0 || S_ISDIR(st.st_mode))
        return false;
    return !S_ISREG(st.st_mode) ||
           (follow(name, path, true) && is_of_system(path) &&
            readlink(path, to, sizeof to) > 0);
}

bool files_is_for_file(const char *name)
{
    struct stat st;

    if (!files_stat(name, STDOUT_FILENO, &st))
        return !files_is_standard(name);
    return S_ISREG(st.st_mode);
}

/* ---------------------------------------------------------------------
 * Locks
 */

static bool set_lock(int fd, short type)
{
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    int status;

    do {
        status = fcntl(fd, F_OFD_SETLK, &whole);
    } while (status == -1 && errno == EINTR);
    return status != -1;
}

bool files_lock(int fd)
{
    if (set_lock(fd, F_WRLCK))
        return true;
    if (errno == EACCES)
        errno = EAGAIN;
    return errno == ENOLCK || errno == EINVAL || errno == ENOSYS ||
           errno == ENOTSUP;
}

/* ---------------------------------------------------------------------
 * Opening
 */

int files_openat(int folder, const char *name, int flags)
{
    int fd;

    do {
        fd = openat(folder, name, flags | O_CLOEXEC | O_NOCTTY, 0666);
    } while (fd == -1 && errno == EINTR);
    return fd;
}

int files_open_folder(const char *name)
{
    char folder[FILES_MAX_NAME];

    if (strlen(name) >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    (void)files_split(name, folder);
    return files_openat(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
}

int files_open_input(const char *name)
{
    int fd = files_is_standard(name) ? STDIN_FILENO
                               : files_openat(AT_FDCWD, name, O_RDONLY);
    struct stat st;

    /* Report unreadable inputs here, not at the first read. */
    if (fd != -1 && fstat(fd, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            errno = EISDIR;
        else if (has_mode(fd, O_WRONLY))
            errno = EBADF;
        else
            return fd;
    }
    /* The permissions allow reading, so the sandbox denied access. */
    if (errno == EACCES && !files_is_standard(name) &&
        faccessat(AT_FDCWD, name, R_OK, AT_EACCESS) == 0)
        message_error("%s: replaced since the job started, and the sandbox "
                      "allows only the earlier file: use --no-sandbox",
                      files_input_name(name));
    else
        message_errno("%s", files_input_name(name));
    if (fd != -1)
        files_close_input(fd);
    return -1;
}

int files_check_readable(const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        struct stat st;

        if (files_is_standard(names[i]))
            continue;
        if (stat(names[i], &st) == 0) {
            errno = EISDIR;
            if (!S_ISDIR(st.st_mode) &&
                faccessat(AT_FDCWD, names[i], R_OK, AT_EACCESS) == 0)
                continue;
        }
        message_errno("%s", files_input_name(names[i]));
        return STATUS_FAILURE;
    }
    return STATUS_OK;
}

uint64_t files_left_to_open(uint64_t most)
{
    struct rlimit limit;
    uint64_t n = 0;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return most;
    for (rlim_t fd = 0; n < most && fd < limit.rlim_cur && fd < INT_MAX; fd++)
        n += fcntl((int)fd, F_GETFD) == -1;
    return n;
}

/* Truncates a regular file; does nothing to a pipe or device. */
static bool cut_to(int fd, uint64_t length)
{
    struct stat st;
    int status;

    if (fstat(fd, &st) == -1)
        return false;
    if (!S_ISREG(st.st_mode))
        return true;
    do {
        status = ftruncate(fd, (off_t)length);
    } while (status != 0 && errno == EINTR);
    return status == 0;
}

/*
 * Opens an existing output or, with `create` = O_CREAT, a new one.  With
 * `alone`, also locks a regular file.  On failure, prints a message and returns
 * -1.
 */
static int open_output(const char *name, int create, bool binary, bool alone,
                       int input_fd)
{
    int fd = files_is_standard(name)
                 ? STDOUT_FILENO
                 : files_openat(AT_FDCWD, name, O_WRONLY | create);
    const char *why;
    struct stat st;

    if (fd == -1 || fstat(fd, &st) == -1)
        why = strerror(errno);
    else if (has_mode(fd, O_RDONLY))
        why = strerror(EBADF);
    else if (is_same_file(&st, input_fd))
        why = "is also an input: choose another output";
    else if (binary && isatty(fd))
        why = "refusing to write binary output to a terminal: redirect it or "
              "use -o FILE";
    else if (alone && S_ISREG(st.st_mode) && !files_lock(fd))
        why = errno == EAGAIN ? "locked: another job is writing it"
                              : strerror(errno);
    else
        return fd;
    message_error("%s: %s", files_output_name(name), why);
    if (fd != -1 && fd != STDOUT_FILENO)
        (void)close(fd);
    return -1;
}

int files_open_output(const char *name, bool binary, int input_fd)
{
    return open_output(name, O_CREAT, binary, false, input_fd);
}

int files_open_output_alone(const char *name, int input_fd)
{
    return open_output(name, O_CREAT, true, true, input_fd);
}

int files_reopen_output(const char *name, int input_fd, uint64_t length)
{
    int fd = open_output(name, 0, true, true, input_fd);
    struct stat st;

    if (fd == -1)
        return -1;
    if (fstat(fd, &st) == -1)
        message_errno("%s", files_output_name(name));
    else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size >= length)
        return fd;
    else
        message_error("%s: has %" PRIu64 " bytes, but the state was saved "
                      "after %" PRIu64 ": not the output of this state",
                      files_output_name(name), (uint64_t)st.st_size, length);
    /* Stdout may be shared and stay open, so release the lock explicitly. */
    (void)set_lock(fd, F_UNLCK);
    if (fd != STDOUT_FILENO)
        (void)close(fd);
    return -1;
}

bool files_begin(int fd, const char *name)
{
    return files_is_standard(name) || files_cut(fd, name, 0);
}

bool files_cut(int fd, const char *name, uint64_t length)
{
    struct stat st;

    if (cut_to(fd, length) && fstat(fd, &st) == 0 &&
        (!S_ISREG(st.st_mode) || lseek(fd, (off_t)length, SEEK_SET) != -1))
        return true;
    message_errno("%s", files_output_name(name));
    return false;
}

/* ---------------------------------------------------------------------
 * Writing, and reading back
 */

bool files_write(int fd, const void *bytes, size_t n)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    const char *at = bytes;

    while (n > 0) {
        const ssize_t part = write(fd, at, n);

        if (part > 0) {
            at += part;
            n -= (size_t)part;
        } else if (part == 0) {
            /* Avoid an endless loop on a device that accepts nothing. */
            errno = ENOSPC;
            return false;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (poll(&ready, 1, -1) < 0 && errno != EINTR)
                return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

bool files_sync(int fd, const char *name)
{
    struct stat st;
    int status = fstat(fd, &st);

    if (status == 0 && S_ISREG(st.st_mode))
        do {
            status = fdatasync(fd);
        } while (status != 0 && errno == EINTR);
    if (status != 0)
        message_errno("%s", files_output_name(name));
    return status == 0;
}

bool files_fsync(int fd)
{
    int status;

    do {
        status = fsync(fd);
    } while (status != 0 && errno == EINTR);
    return status == 0;
}

bool files_sync_folder(int fd)
{
    return files_fsync(fd) || errno == EINVAL || errno == ENOTSUP;
}

bool files_sync_name(const char *name)
{
    char path[FILES_MAX_NAME];
    bool synced;
    int fd = -1;

    if (files_is_standard(name))
        return true;
    if (files_follow(name, path))
        fd = files_open_folder(path);
    /* A directory can be writable without being readable. */
    if (fd < 0 && errno == EACCES)
        return true;
    synced = fd >= 0 && files_sync_folder(fd);
    if (!synced)
        message_errno("%s", files_output_name(name));
    if (fd >= 0)
        (void)close(fd);
    return synced;
}

int files_check_length(int fd, const char *name, uint64_t length)
{
    struct stat st;
    uint64_t size;

    if (fstat(fd, &st) != 0) {
        message_errno("%s", files_output_name(name));
        return STATUS_FAILURE;
    }
    size = (uint64_t)st.st_size;
    if (!S_ISREG(st.st_mode) || size == length ||
        (size > length && files_is_standard(name)))
        return STATUS_OK;
    message_error("%s: has %" PRIu64 " bytes, but %" PRIu64 " were written: "
                  "changed by another program",
                  files_output_name(name), size, length);
    return STATUS_FAILURE;
}

/* ---------------------------------------------------------------------
 * Comparing inputs and outputs
 */

int files_check_input(const char *name, const char *input)
{
    struct stat to;
    struct stat from;

    if (!files_stat(name, STDOUT_FILENO, &to) || !S_ISREG(to.st_mode) ||
        !files_stat(input, STDIN_FILENO, &from) || !files_are_one(&from, &to))
        return STATUS_OK;
    message_error("%s: is also an input: choose another output",
                  files_output_name(name));
    return STATUS_FAILURE;
}

int files_check_inputs(const char *name, const char *const *inputs, int n)
{
    for (int i = 0; i < n; i++)
        if (files_check_input(name, inputs[i]) != STATUS_OK)
            return STATUS_FAILURE;
    return STATUS_OK;
}

int files_check_distinct(const char *name, const char *other)
{
    struct stat a;
    struct stat b;
    bool same = files_is_standard(name) ? files_is_standard(other)
                                  : !files_is_standard(other) &&
                                        strcmp(name, other) == 0;

    /* Both outputs may be /dev/null. */
    if (files_stat(name, STDOUT_FILENO, &a) &&
        files_stat(other, STDOUT_FILENO, &b))
        same = files_are_one(&a, &b) &&
               (S_ISREG(a.st_mode) || S_ISFIFO(a.st_mode));
    if (same)
        message_error("%s: used for two outputs: give each its own name",
                      files_output_name(name));
    return same ? STATUS_FAILURE : STATUS_OK;
}

bool files_inputs_size(const char *const *names, int n, uint64_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < n; i++) {
        struct stat st;

        if (!files_stat(names[i], STDIN_FILENO, &st) ||
            !S_ISREG(st.st_mode) ||
            (uint64_t)st.st_size > UINT64_MAX - *bytes)
            return false;
        *bytes += (uint64_t)st.st_size;
    }
    return true;
}

bool files_offset(int fd, uint64_t *bytes)
{
    int flags = fcntl(fd, F_GETFL);
    off_t at;

    if (flags == -1)
        return false;
    at = lseek(fd, 0, (flags & O_APPEND) != 0 ? SEEK_END : SEEK_CUR);
    *bytes = at == -1 ? 0 : (uint64_t)at;
    return at != -1;
}

int files_reread_output(const char *name, int output)
{
    int fd = files_openat(AT_FDCWD,
                          files_is_standard(name) ? "/dev/stdout" : name,
                          O_RDONLY | O_NONBLOCK);
    struct stat st;

    if (fd == -1)
        message_error("%s: cannot reopen the output for reading: %s",
                      files_output_name(name), strerror(errno));
    else if (fstat(fd, &st) == 0 && is_same_file(&st, output))
        return fd;
    else
        message_error("%s: replaced by another program while the job was "
                      "running", files_output_name(name));
    if (fd != -1)
        (void)close(fd);
    return -1;
}

/* ---------------------------------------------------------------------
 * Closing
 */

void files_close_input(int fd)
{
    if (fd != STDIN_FILENO)
        (void)close(fd);
}

/*
 * Releases the lock after the close, since some file systems write the data
 * only when the file is closed.  The release is explicit because another
 * process may share the open file description.
 */
static bool close_output(int fd)
{
    int again = files_is(FILES_REGULAR, fd)
                    ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                    : -1;
    bool closed = close(fd) == 0;
    int why = errno;

    if (again != -1) {
        (void)set_lock(again, F_UNLCK);
        (void)close(again);
    }
    errno = why;
    return closed;
}

bool files_close_output(int fd, const char *name)
{
    struct stat st;
    const bool removed = !files_is_standard(name) && fstat(fd, &st) == 0 &&
                         S_ISREG(st.st_mode) && st.st_nlink == 0 &&
                         !files_is_special(name);
    const bool closed = close_output(fd);

    if (!closed)
        message_errno("%s", files_output_name(name));
    else if (removed)
        message_error("%s: removed by another program: the output is lost",
                      message_name(name));
    return closed && !removed;
}

void files_abandon_output(int fd)
{
    (void)close_output(fd);
}

int files_end_output(int fd, const char *name, int status)
{
    if (fd < 0)
        return status;
    if (status == STATUS_OK)
        return files_close_output(fd, name) ? STATUS_OK : STATUS_FAILURE;
    files_abandon_output(fd);
    return status;
}

bool files_close_stdout(void)
{
    bool failed_before = ferror(stdout) != 0;
    bool failed_now = fflush(stdout) != 0;

    /*
     * The stream itself is not closed, so calling this twice is harmless: the
     * buffer is empty and the descriptor already closed.
     */
    if (!failed_now && close(STDOUT_FILENO) == -1 && errno != EBADF)
        failed_now = true;
    if (failed_now)
        message_errno("stdout");
    else if (failed_before)
        message_error("stdout: write error");
    return !failed_now && !failed_before;
}
