/*
 * faults.c - system calls that fail on demand.
 *
 * LD_PRELOAD puts this before the C library.  It passes all calls on, except
 * those that the environment selects to fail:
 *
 *   FAULT_CALL=NAME    of the calls with this name, and no other,
 *   FAULT_AT=N         the Nth fails, from 1 on,
 *   FAULT_FOREVER=1    and so do all later ones;
 *   FAULT_ERRNO=NAME   the errno of these failures, such as EIO;
 *   FAULT_EACH=EINTR   every interruptible call fails once with EINTR before it
 *                      is made;
 *   FAULT_EACH=EAGAIN  every read and write fails once with EAGAIN, except on
 *                      regular files;
 *   FAULT_SHORT=1      reads and writes move a single byte;
 *   FAULT_ROOM=BYTES   the disk is full after that many bytes;
 *   FAULT_NONBLOCK=1   stdin and stdout are made non-blocking;
 *   FAULT_REPORT=FILE  gets a byte when the first call fails;
 *   FAULT_CALLS=FILE   gets the name of each call that might fail, on a line.
 *
 * Pipes that a process makes for itself only get interruptions, because nothing
 * else can fail in them.
 *
 * No call fails once main has returned: later calls are not the program's own,
 * such as those that write coverage.  After ten minutes SIGALRM ends the
 * process.  Nothing is synced to disk, which would take most of the time.
 * Calls inside the C library do not come through here, except malloc.
 *
 * SPDX-License-Identifier: MIT
 */

/* For RTLD_NEXT. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload.h"

/* A process that still runs then hangs, even on a busy machine. */
#define SECONDS 600
#define MAX_FDS 1024

static struct {
    const char *call;
    unsigned long at;
    bool forever;
    int error;
    int each;
    bool one_byte;
    bool bounded;
    atomic_bool over;
    long room;
    int report;
    int list;
    atomic_ulong calls;
    atomic_bool told;
    atomic_bool spared[MAX_FDS];
} plan = {.report = -1, .list = -1};

/* True if FAULT_EACH has failed this thread's last call. */
static _Thread_local bool again;

static int number_of(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } errors[] = {
        {"EACCES", EACCES}, {"EAGAIN", EAGAIN}, {"EDQUOT", EDQUOT},
        {"EINTR", EINTR},   {"EIO", EIO},       {"EMFILE", EMFILE},
        {"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC}, {"EPERM", EPERM},
        {"EOPNOTSUPP", EOPNOTSUPP},
    };

    for (size_t i = 0; name != NULL && i < sizeof errors / sizeof *errors;
         i++)
        if (strcmp(name, errors[i].name) == 0)
            return errors[i].number;
    return 0;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && strcmp(value, "1") == 0;
}

/* Duplicates `fd` to a number that no program uses. */
static int move_away(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 900);

    (void)close(fd);
    return moved;
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAULT_AT");
    const char *room = getenv("FAULT_ROOM");
    const char *report = getenv("FAULT_REPORT");
    const char *list = getenv("FAULT_CALLS");

    if (report != NULL)
        plan.report = move_away(open(report, O_WRONLY));
    if (list != NULL)
        plan.list = move_away(open(list, O_WRONLY | O_APPEND));
    if (is_set("FAULT_NONBLOCK"))
        for (int fd = 0; fd < 2; fd++)
            (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    plan.forever = is_set("FAULT_FOREVER");
    plan.one_byte = is_set("FAULT_SHORT");
    plan.error = number_of(getenv("FAULT_ERRNO"));
    plan.each = number_of(getenv("FAULT_EACH"));
    plan.bounded = room != NULL;
    plan.room = plan.bounded ? strtol(room, NULL, 10) : 0;
    plan.at = at == NULL ? 0 : strtoul(at, NULL, 10);
    (void)alarm(SECONDS);
    plan.call = getenv("FAULT_CALL");
}

static bool fail(int error)
{
    char byte = '!';
    struct iovec v = {&byte, 1};

    /* This call is not counted. */
    if (!atomic_exchange(&plan.told, true))
        (void)writev(plan.report, &v, 1);
    errno = error;
    return true;
}

static void note(const char *call)
{
    char line[32];
    int n = snprintf(line, sizeof line, "%s\n", call);
    struct iovec v = {line, (size_t)n};
    int error = errno;

    (void)writev(plan.list, &v, 1);
    errno = error;
}

/* True, with errno set, if this call must fail. */
static bool fails(const char *call)
{
    unsigned long n;

    if (plan.list != -1 && !plan.over)
        note(call);
    if (plan.call == NULL || plan.over || strcmp(plan.call, call) != 0)
        return false;
    n = atomic_fetch_add(&plan.calls, 1) + 1;
    return (n == plan.at || (plan.forever && n > plan.at)) &&
           fail(plan.error);
}

/* The same for a call that programs may have to repeat. */
static bool falters(const char *call, bool may_wait)
{
    if (plan.each != 0 && !plan.over && (may_wait || plan.each == EINTR)) {
        again = !again;
        if (again)
            return fail(plan.each);
    }
    return fails(call);
}

static bool is_spared(int fd)
{
    return fd >= 0 && fd < MAX_FDS && plan.spared[fd];
}

static void spare(int fd, bool yes)
{
    if (fd >= 0 && fd < MAX_FDS)
        plan.spared[fd] = yes;
}


/* Number of bytes, of `n`, to move. */
static size_t portion(size_t n)
{
    return plan.one_byte && !plan.over && n > 1 ? 1 : n;
}

/* The same for a write; 0 with errno set if the disk is full. */
static size_t fitting(size_t n)
{
    n = portion(n);
    if (!plan.bounded || plan.over)
        return n;
    if ((size_t)plan.room < n)
        n = (size_t)plan.room;
    plan.room -= (long)n;
    if (n == 0)
        (void)fail(ENOSPC);
    return n;
}

/* True if a read or write on `fd` must fail. */
static bool moves_nothing(const char *call, int fd)
{
    REAL(lseek, off_t, int, off_t, int);
    if (is_spared(fd))
        return plan.each == EINTR && falters("", false);
    return falters(call, plan.each == EAGAIN && real(fd, 0, SEEK_CUR) == -1);
}

/* The C library's start of a program, with a main that ends the faults. */
static int (*program)(int, char **, char **);

static int main_and_over(int argc, char **argv, char **environment)
{
    int status = program(argc, argv, environment);

    plan.over = true;
    return status;
}

int __libc_start_main(int (*start)(int, char **, char **), int argc,
                      char **argv, void (*first)(void), void (*last)(void),
                      void (*unload)(void), void *stack);

int __libc_start_main(int (*start)(int, char **, char **), int argc,
                      char **argv, void (*first)(void), void (*last)(void),
                      void (*unload)(void), void *stack)
{
    REAL(__libc_start_main, int, int (*)(int, char **, char **), int,
         char **, void (*)(void), void (*)(void), void (*)(void), void *);
    program = start;
    return real(main_and_over, argc, argv, first, last, unload, stack);
}

ssize_t read(int fd, void *buf, size_t n)
{
    REAL(read, ssize_t, int, void *, size_t);
    return moves_nothing("read", fd) ? -1 : real(fd, buf, portion(n));
}

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    REAL(pread, ssize_t, int, void *, size_t, off_t);
    return falters("pread", false) ? -1 : real(fd, buf, portion(n), at);
}

ssize_t write(int fd, const void *buf, size_t n)
{
    REAL(write, ssize_t, int, const void *, size_t);
    if (moves_nothing("write", fd))
        return -1;
    if (n > 0 && !is_spared(fd) && (n = fitting(n)) == 0)
        return -1;
    return real(fd, buf, n);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
    REAL(pwrite, ssize_t, int, const void *, size_t, off_t);
    if (falters("pwrite", false))
        return -1;
    if (n > 0 && (n = fitting(n)) == 0)
        return -1;
    return real(fd, buf, n, at);
}

int open(const char *name, int flags, ...)
{
    va_list args;
    unsigned mode = 0;

    REAL(open, int, const char *, int, ...);
    va_start(args, flags);
    if ((flags & O_CREAT) != 0)
        mode = va_arg(args, unsigned);
    va_end(args);
    return falters("open", false) ? -1 : real(name, flags, mode);
}

int openat(int folder, const char *name, int flags, ...)
{
    va_list args;
    unsigned mode = 0;

    REAL(openat, int, int, const char *, int, ...);
    va_start(args, flags);
    if ((flags & O_CREAT) != 0)
        mode = va_arg(args, unsigned);
    va_end(args);
    return falters("open", false) ? -1 : real(folder, name, flags, mode);
}

/* The descriptor is closed even so, as on Linux. */
int close(int fd)
{
    int closed;

    REAL(close, int, int);
    if (is_spared(fd)) {
        spare(fd, false);
        return real(fd);
    }
    closed = real(fd);
    return fails("close") ? -1 : closed;
}

int fsync(int fd)
{
    (void)fd;
    return falters("fsync", false) ? -1 : 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return falters("fdatasync", false) ? -1 : 0;
}

int link(const char *from, const char *to)
{
    REAL(link, int, const char *, const char *);
    return fails("link") ? -1 : real(from, to);
}

int rename(const char *from, const char *to)
{
    REAL(rename, int, const char *, const char *);
    return fails("rename") ? -1 : real(from, to);
}

int renameat(int from_folder, const char *from, int to_folder,
             const char *to)
{
    REAL(renameat, int, int, const char *, int, const char *);
    return fails("rename") ? -1 : real(from_folder, from, to_folder, to);
}

int unlink(const char *name)
{
    REAL(unlink, int, const char *);
    return fails("unlink") ? -1 : real(name);
}

int unlinkat(int folder, const char *name, int flags)
{
    REAL(unlinkat, int, int, const char *, int);
    return fails("unlink") ? -1 : real(folder, name, flags);
}

int ftruncate(int fd, off_t size)
{
    REAL(ftruncate, int, int, off_t);
    return falters("ftruncate", false) ? -1 : real(fd, size);
}

off_t lseek(int fd, off_t by, int from)
{
    REAL(lseek, off_t, int, off_t, int);
    return fails("lseek") ? -1 : real(fd, by, from);
}

int fstat(int fd, struct stat *st)
{
    REAL(fstat, int, int, struct stat *);
    return fails("fstat") ? -1 : real(fd, st);
}

int stat(const char *name, struct stat *st)
{
    REAL(stat, int, const char *, struct stat *);
    return fails("stat") ? -1 : real(name, st);
}

/* F_GETFD checks whether a descriptor is open; it cannot fail otherwise. */
int fcntl(int fd, int command, ...)
{
    va_list args;
    void *arg;

    REAL(fcntl, int, int, int, ...);
    va_start(args, command);
    arg = va_arg(args, void *);
    va_end(args);
    if (command != F_GETFD && fails("fcntl"))
        return -1;
    return real(fd, command, arg);
}

int pipe(int fds[2])
{
    REAL(pipe, int, int *);
    if (fails("pipe") || real(fds) == -1)
        return -1;
    spare(fds[0], true);
    spare(fds[1], true);
    return 0;
}

int poll(struct pollfd *p, nfds_t n, int wait)
{
    REAL(poll, int, struct pollfd *, nfds_t, int);
    return falters("poll", false) ? -1 : real(p, n, wait);
}

int pselect(int n, fd_set *r, fd_set *w, fd_set *e,
            const struct timespec *wait, const sigset_t *mask)
{
    REAL(pselect, int, int, fd_set *, fd_set *, fd_set *,
         const struct timespec *, const sigset_t *);
    return falters("pselect", false) ? -1 : real(n, r, w, e, wait, mask);
}

void *mmap(void *at, size_t n, int how, int flags, int fd, off_t from)
{
    REAL(mmap, void *, void *, size_t, int, int, int, off_t);
    return fails("mmap") ? MAP_FAILED : real(at, n, how, flags, fd, from);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                   void *(*work)(void *), void *arg)
{
    REAL(pthread_create, int, pthread_t *, const pthread_attr_t *,
         void *(*)(void *), void *);
    return fails("pthread_create") ? errno : real(thread, attr, work, arg);
}

/* No call made this way has more than six arguments. */
long syscall(long number, ...)
{
    va_list args;
    long a[6];

    REAL(syscall, long, long, ...);
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    return fails("syscall")
               ? -1
               : real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int prctl(int what, ...)
{
    va_list args;
    unsigned long a[4];

    REAL(prctl, int, int, ...);
    va_start(args, what);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(args, unsigned long);
    va_end(args);
    return fails("prctl") ? -1 : real(what, a[0], a[1], a[2], a[3]);
}

/* dlsym may allocate memory itself, so these have their own names. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
    return fails("malloc") ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails("malloc") ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails("malloc") ? NULL : __libc_realloc(p, n);
}
