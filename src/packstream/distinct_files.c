/*
 * distinct_files.c - the files of a job that must not be one.
 *
 * A state is replaced by a new one, which has a name of its own until it is
 * whole; whatever else has one of these names would be lost.  Files that are
 * there are told apart by device and inode, others by folder and name, with
 * links followed.
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
#include "cli/files.h"
#include "cli/message.h"

/* A longer name opens nothing. */
#ifdef PATH_MAX
#define MAX_NAME PATH_MAX
#else
#define MAX_NAME 4096
#endif

/* A longer chain of links opens nothing either. */
#define MAX_LINKS 40

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

/* Where `name` leads, also if nothing is there yet; false if nowhere. */
static bool find_place(const char *name, char place[MAX_NAME])
{
    if (strlen(name) >= MAX_NAME)
        return false;
    (void)strcpy(place, name);
    for (int links = 0; links < MAX_LINKS; links++) {
        char to[MAX_NAME];
        size_t kept = (size_t)(base_of(place) - place);
        ssize_t n = readlink(place, to, sizeof to);

        if (n > 0 && to[0] == '/')
            kept = 0;
        if (n <= 0 || (size_t)n >= MAX_NAME - kept)
            return true;
        memcpy(place + kept, to, (size_t)n);
        place[kept + (size_t)n] = '\0';
    }
    return false;
}

/* Whether the file `name` is the other one, for which "-" is `standard`. */
static bool is_file(const char *name, const char *other, int standard)
{
    char place_a[MAX_NAME];
    char place_b[MAX_NAME];
    struct stat a;
    struct stat b;

    if (files_stat(other, standard, &b) && stat(name, &a) == 0 &&
        files_are_one(&a, &b))
        return true;
    /* What is not there yet has a folder and a name. */
    return !files_is_standard(other) && find_place(name, place_a) &&
           find_place(other, place_b) &&
           strcmp(base_of(place_a), base_of(place_b)) == 0 &&
           stat_folder(place_a, &a) && stat_folder(place_b, &b) &&
           files_are_one(&a, &b);
}

/* Whether the file `name` is nothing else in this job. */
static int check(const conf *c, const char *name)
{
    const char *use = NULL;

    if (c->rejects != NULL && is_file(name, c->rejects, STDOUT_FILENO))
        use = "the file of --rejects";
    if (is_file(name, c->output, STDOUT_FILENO))
        use = "the output";
    for (int i = 0; i < c->n_names; i++)
        if (is_file(name, c->names[i], STDIN_FILENO))
            use = "an input";
    if (use == NULL)
        return STATUS_OK;
    return message_usage("--state=%s: %s is %s as well",
                         message_name(c->state), message_name(name), use);
}

int distinct_files_check(const conf *c)
{
    const size_t suffix = sizeof ATOMIC_FILE_SUFFIX - 1;
    char fresh[MAX_NAME + sizeof ATOMIC_FILE_SUFFIX];
    size_t n;
    int status;

    if (c->state == NULL)
        return STATUS_OK;
    n = strlen(c->state);
    /* A job with the rest of the name would take it for one of its own. */
    if (n >= suffix && strcmp(c->state + n - suffix, ATOMIC_FILE_SUFFIX) == 0)
        return message_usage("--state=%s: a name that ends in "
                             ATOMIC_FILE_SUFFIX
                             " is for a state that is not whole yet",
                             message_name(c->state));
    if (n >= MAX_NAME)
        return STATUS_OK;
    (void)snprintf(fresh, sizeof fresh, "%s" ATOMIC_FILE_SUFFIX, c->state);
    status = check(c, c->state);
    return status == STATUS_OK ? check(c, fresh) : status;
}
