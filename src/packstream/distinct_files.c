/*
 * distinct_files.c - the files of a job that must not be one.
 *
 * A state is replaced by a new one, which has a name of its own until it is
 * whole; whatever else has one of these names would be lost.  Files are told
 * apart by what they are if they are there, and else by folder and name, as
 * links lead there.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/distinct_files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/atomic_file.h"
#include "cli/message.h"

/* A longer name opens nothing. */
#ifdef PATH_MAX
#define MAX_NAME PATH_MAX
#else
#define MAX_NAME 4096
#endif

/* A longer chain of links opens nothing either. */
#define MAX_LINKS 40

static bool is_standard(const char *name)
{
    return name == NULL || strcmp(name, "-") == 0;
}

static bool is_one(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash == NULL ? name : slash + 1;
}

static bool stat_folder(const char *name, struct stat *st)
{
    size_t n = (size_t)(base_of(name) - name);
    char folder[MAX_NAME] = ".";

    if (n >= sizeof folder)
        return false;
    if (n > 0) {
        memcpy(folder, name, n);
        folder[n] = '\0';
    }
    return stat(folder, st) == 0;
}

/* Puts what the link `place` says in its place; false if it is none. */
static bool follow(char place[MAX_NAME])
{
    char to[MAX_NAME];
    size_t kept = (size_t)(base_of(place) - place);
    ssize_t n = readlink(place, to, sizeof to);

    if (n > 0 && to[0] == '/')
        kept = 0;
    if (n <= 0 || (size_t)n >= MAX_NAME - kept)
        return false;
    memcpy(place + kept, to, (size_t)n);
    place[kept + (size_t)n] = '\0';
    return true;
}

/* Where `name` leads, also if nothing is there yet; false if nowhere. */
static bool find_place(const char *name, char place[MAX_NAME])
{
    int links = 0;

    if (strlen(name) >= MAX_NAME)
        return false;
    (void)strcpy(place, name);
    while (links < MAX_LINKS && follow(place))
        links++;
    return links < MAX_LINKS;
}

static bool have_one_place(const char *name, const char *other)
{
    char a[MAX_NAME];
    char b[MAX_NAME];
    struct stat folder_a;
    struct stat folder_b;

    return find_place(name, a) && find_place(other, b) &&
           strcmp(base_of(a), base_of(b)) == 0 && stat_folder(a, &folder_a) &&
           stat_folder(b, &folder_b) && is_one(&folder_a, &folder_b);
}

/* Whether the file `name` is the other one, for which "-" is `standard`. */
static bool is_file(const char *name, const char *other, int standard)
{
    struct stat a;
    struct stat b;
    bool is_there = (is_standard(other) ? fstat(standard, &b)
                                        : stat(other, &b)) == 0;

    if (is_there && stat(name, &a) == 0 && is_one(&a, &b))
        return true;
    return !is_standard(other) && have_one_place(name, other);
}

/* What else the file `name` is, or NULL. */
static const char *other_use(const conf *c, const char *name)
{
    for (int i = 0; i < c->n_names; i++)
        if (is_file(name, c->names[i], STDIN_FILENO))
            return "an input";
    if (is_file(name, c->output, STDOUT_FILENO))
        return "the output";
    if (c->rejects != NULL && is_file(name, c->rejects, STDOUT_FILENO))
        return "the file of --rejects";
    return NULL;
}

static int check(const conf *c, const char *name)
{
    const char *use = other_use(c, name);

    if (use == NULL)
        return STATUS_OK;
    return message_usage("--state=%s: %s is %s as well",
                         message_name(c->state), message_name(name), use);
}

/* A job with the rest of the name would take it for one of its own. */
static int check_name(const char *name)
{
    const size_t end = sizeof ATOMIC_FILE_SUFFIX - 1;
    size_t n = strlen(name);

    if (n < end || strcmp(name + n - end, ATOMIC_FILE_SUFFIX) != 0)
        return STATUS_OK;
    return message_usage("--state=%s: a name that ends in " ATOMIC_FILE_SUFFIX
                         " is for a state that is not whole yet",
                         message_name(name));
}

int distinct_files_check(const conf *c)
{
    char fresh[MAX_NAME + sizeof ATOMIC_FILE_SUFFIX];
    int status;

    if (c->state == NULL)
        return STATUS_OK;
    status = check_name(c->state);
    if (status != STATUS_OK || strlen(c->state) >= MAX_NAME)
        return status;
    (void)snprintf(fresh, sizeof fresh, "%s" ATOMIC_FILE_SUFFIX, c->state);
    status = check(c, c->state);
    return status == STATUS_OK ? check(c, fresh) : status;
}
