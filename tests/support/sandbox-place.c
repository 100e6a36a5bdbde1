/*
 * sandbox-place.c - attempts that a sandbox must refuse.
 *
 * SPDX-License-Identifier: MIT
 */

#include "sandbox-place.h"

#include "tap.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* The folder and other targets of the attempts, inherited by children. */
static struct {
    char folder[32];
    int descriptor; /* to read and write "open" */
    int state;      /* the folder */
    int port;       /* of a server on this machine */
    int server;
    struct sockaddr_un abstract; /* of a socket without a file */
    int abstract_server;
} place;

static int told(bool done)
{
    return done ? 0 : errno;
}

int try_open(const char *name, int flags)
{
    int fd = open(name, flags | O_CLOEXEC, 0600);

    if (fd == -1)
        return errno;
    (void)close(fd);
    return 0;
}

static int read_other(void)
{
    return try_open("other", O_RDONLY);
}

static int write_other(void)
{
    return try_open("other", O_WRONLY);
}

static int write_input(void)
{
    return try_open("input", O_WRONLY);
}

static int create_file(void)
{
    return try_open("new", O_WRONLY | O_CREAT);
}

static int cut_other(void)
{
    return told(truncate("other", 1) == 0);
}

static int list_folder(void)
{
    DIR *d = opendir(".");

    return d == NULL ? errno : told(closedir(d) == 0);
}

static int make_folder(void)
{
    return told(mkdir("folder", 0700) == 0);
}

static int make_link(void)
{
    return told(symlink("other", "link") == 0);
}

static int rename_other(void)
{
    return told(rename("other", "moved") == 0);
}

/* Outside the sandbox the attempt above has moved it. */
static int remove_other(void)
{
    int e = told(unlink("moved") == 0);

    return e == ENOENT ? told(unlink("other") == 0) : e;
}

static int run_program(void)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        (void)execl("/bin/sh", "sh", "-c", ":", (char *)NULL);
        _exit(errno);
    }
    if (child == -1 || waitpid(child, &status, 0) != child)
        return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

static struct sockaddr_in local(int port)
{
    struct sockaddr_in a;

    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((uint16_t)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static int connect_tcp(void)
{
    struct sockaddr_in a = local(place.port);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    int e = told(connect(s, (const struct sockaddr *)&a, sizeof a) == 0);

    (void)close(s);
    return e;
}

static int bind_tcp(void)
{
    struct sockaddr_in a = local(0);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    int e = told(bind(s, (const struct sockaddr *)&a, sizeof a) == 0);

    (void)close(s);
    return e;
}

static int connect_abstract(void)
{
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    int e = told(connect(s, (const struct sockaddr *)&place.abstract,
                         sizeof place.abstract) == 0);

    (void)close(s);
    return e;
}

static int signal_parent(void)
{
    return told(kill(getppid(), 0) == 0);
}

/* Attempts, the first Landlock version that refuses them, and the error. */
static const struct {
    const char *name;
    int (*attempt)(void);
    int since;
    int error;
} refused[] = {
    {"read a file", read_other, 1, EACCES},
    {"write a file", write_other, 1, EACCES},
    {"write an input", write_input, 1, EACCES},
    {"create a file", create_file, 1, EACCES},
    {"cut a file", cut_other, 3, EACCES},
    {"list a folder", list_folder, 1, EACCES},
    {"make a folder", make_folder, 1, EACCES},
    {"make a link", make_link, 1, EACCES},
    {"rename a file", rename_other, 1, EACCES},
    {"remove a file", remove_other, 1, EACCES},
    {"run a program", run_program, 1, EACCES},
    {"connect by TCP", connect_tcp, 4, EACCES},
    {"wait for TCP", bind_tcp, 4, EACCES},
    {"connect to an abstract socket", connect_abstract, 6, EPERM},
    {"send a signal", signal_parent, 6, EPERM},
};
#define N_REFUSED COUNT(refused)

void try_all(void)
{
    for (size_t i = 0; i < N_REFUSED; i++)
        (void)printf("%s: %s\n", refused[i].name,
                     strerror(refused[i].attempt()));
    (void)fflush(stdout);
}

void assert_tried(const char *out, int version)
{
    char wanted[TRIED_BYTES];
    size_t n = 0;

    for (size_t i = 0; i < N_REFUSED; i++) {
        bool works = version < refused[i].since;

        n += (size_t)snprintf(wanted + n, sizeof wanted - n, "%s: %s\n",
                              refused[i].name,
                              strerror(works ? 0 : refused[i].error));
    }
    assert_string_equal(out, wanted);
}

/* ----------------------------------------------------------- the targets */

static void make_file(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_int_not_equal(fd, -1);
    assert_int_equal(write(fd, "12345", 5), 5);
    assert_int_equal(close(fd), 0);
}

static void open_tcp_server(void)
{
    struct sockaddr_in a = local(0);
    socklen_t n = sizeof a;

    place.server = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_not_equal(place.server, -1);
    assert_int_equal(
        bind(place.server, (const struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(place.server, 8), 0);
    assert_int_equal(
        getsockname(place.server, (struct sockaddr *)&a, &n), 0);
    place.port = ntohs(a.sin_port);
}

static void open_abstract_server(void)
{
    memset(&place.abstract, 0, sizeof place.abstract);
    place.abstract.sun_family = AF_UNIX;
    /* A leading NUL makes the address abstract. */
    (void)snprintf(place.abstract.sun_path + 1, 64, "cli-sandbox-t.%ld",
                   (long)getpid());
    place.abstract_server = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(place.abstract_server,
                          (const struct sockaddr *)&place.abstract,
                          sizeof place.abstract),
                     0);
    assert_int_equal(listen(place.abstract_server, 8), 0);
}

int place_descriptor(void)
{
    return place.descriptor;
}

int place_folder(void)
{
    return place.state;
}

int place_set_up(void **state)
{
    (void)strcpy(place.folder, "cli-sandbox-t.XXXXXX");
    assert_non_null(mkdtemp(place.folder));
    assert_int_equal(chdir(place.folder), 0);
    make_file("input");
    make_file("other");
    make_file("open");
    place.descriptor = open("open", O_RDWR | O_CLOEXEC);
    assert_int_equal(mkdir("state", 0700), 0);
    make_file("state/FILE");
    place.state = open("state", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_not_equal(place.state, -1);
    assert_int_equal(symlink("input", "name"), 0);
    open_tcp_server();
    open_abstract_server();
    return 0;
}

int place_tear_down(void **state)
{
    static const char *const files[] = {"input", "other",      "open",
                                        "new",   "state/FILE", "state/part",
                                        "name",  "link",       "moved"};

    (void)close(place.descriptor);
    (void)close(place.state);
    (void)close(place.server);
    (void)close(place.abstract_server);
    for (size_t i = 0; i < COUNT(files); i++)
        (void)unlink(files[i]);
    (void)rmdir("state");
    (void)rmdir("folder");
    assert_int_equal(chdir(".."), 0);
    return rmdir(place.folder);
}
