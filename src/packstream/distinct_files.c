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

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/atomic_file.h"
#include "cli/files.h"
#include "cli/message.h"

/* Whether the file `name` is the other one, for which "-" is `standard`. */
static bool is_file(const char *name, const char *other, int standard)
{
    char place_a[FILES_MAX_NAME];
    char place_b[FILES_MAX_NAME];
    char folder_a[FILES_MAX_NAME];
    char folder_b[FILES_MAX_NAME];
    struct stat a;
    struct stat b;

    if (files_stat(other, standard, &b) && stat(name, &a) == 0 &&
        files_are_one(&a, &b))
        return true;
    /* What is not there yet has a folder and a name. */
    return !files_is_standard(other) && files_follow(name, place_a) &&
           files_follow(other, place_b) &&
           strcmp(files_split(place_a, folder_a),
                  files_split(place_b, folder_b)) == 0 &&
           stat(folder_a, &a) == 0 && stat(folder_b, &b) == 0 &&
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
    if (c->learn_from != NULL && is_file(name, c->learn_from, STDIN_FILENO))
        use = "the histogram";
    for (int i = 0; i < c->n_names; i++)
        if (is_file(name, c->names[i], STDIN_FILENO))
            use = "an input";
    if (use == NULL)
        return STATUS_OK;
    return message_usage("--state=%s: %s is %s as well",
                         message_name(c->state), message_name(name), use);
}

static bool ends_as_fresh(const char *name)
{
    const size_t suffix = sizeof ATOMIC_FILE_SUFFIX - 1;
    const size_t n = strlen(name);

    return n >= suffix && strcmp(name + n - suffix, ATOMIC_FILE_SUFFIX) == 0;
}

int distinct_files_check(const conf *c)
{
    char place[FILES_MAX_NAME];
    char fresh[FILES_MAX_NAME + sizeof ATOMIC_FILE_SUFFIX];
    int status;

    if (c->state == NULL)
        return STATUS_OK;
    if (!files_follow(c->state, place)) {
        message_errno("%s", message_name(c->state));
        return STATUS_FAILURE;
    }
    /* A job with the rest of the name would take it for one of its own. */
    if (ends_as_fresh(c->state) || ends_as_fresh(place))
        return message_usage("--state=%s: a name that ends in "
                             ATOMIC_FILE_SUFFIX
                             " is for a state that is not whole yet",
                             message_name(c->state));
    (void)snprintf(fresh, sizeof fresh, "%s" ATOMIC_FILE_SUFFIX, place);
    status = check(c, c->state);
    return status == STATUS_OK ? check(c, fresh) : status;
}
