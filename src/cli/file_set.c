/*
 * file_set.c - files that appear together or not at all.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/file_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/files.h"
#include "cli/message.h"
#include "cli/sandbox.h"

#define NEW_SUFFIX ".new"

/* The first `n` bytes of `stem`, and the ending; NULL without memory. */
static char *join(const char *stem, size_t n, const char *ending)
{
    const size_t rest = strlen(ending) + 1;
    char *text = malloc(n + rest);

    if (text == NULL)
        return NULL;
    memcpy(text, stem, n);
    memcpy(text + n, ending, rest);
    return text;
}

/* Whether a file may get this name: a rename would remove even a device. */
static bool can_replace(const char *name, const char *const *inputs,
                        int n_inputs)
{
    struct stat st;

    if (stat(name, &st) == 0 && !S_ISREG(st.st_mode)) {
        message_error("%s: is there and no regular file",
                      message_name(name));
        return false;
    }
    return files_spare_inputs(name, inputs, n_inputs);
}

bool file_set_would_write(const char *name, const char *other)
{
    char new_name[FILES_MAX_NAME];
    const int n = snprintf(new_name, sizeof new_name, "%s" NEW_SUFFIX, name);

    return files_are_one_name(name, other) ||
           (n >= 0 && (size_t)n < sizeof new_name &&
            files_are_one_name(new_name, other));
}

/* Whether the file with the new name is still the one that was created. */
static bool has_name(const file_set_member *m)
{
    struct stat st;

    if (lstat(m->new_name, &st) != 0)
        return false;
    errno = EAGAIN;
    return st.st_dev == m->device && st.st_ino == m->inode;
}

/*
 * Takes an open file for the newest member.  False with a reason: names of two
 * members may lead to one file, or another process may write it.
 */
static bool take(file_set *set, int fd, const char **why)
{
    file_set_member *const m = &set->members[set->n - 1];
    struct stat st;

    if (fstat(fd, &st) == 0) {
        m->device = st.st_dev;
        m->inode = st.st_ino;
        *why = "cannot take two streams";
        for (size_t i = 0; i + 1 < set->n; i++)
            if (set->members[i].device == m->device &&
                set->members[i].inode == m->inode)
                return false;
        /* What was there may be anything else, such as a pipe. */
        errno = EEXIST;
        m->created = S_ISREG(st.st_mode) && files_lock(fd) && has_name(m);
    }
    *why = errno == EAGAIN ? "another job is writing it" : strerror(errno);
    return m->created;
}

int file_set_add(file_set *set, const char *stem, size_t stem_bytes,
                 const char *ending, const char *const *inputs, int n_inputs)
{
    file_set_member *members =
        realloc(set->members, (set->n + 1) * sizeof *members);
    file_set_member *m = NULL;
    const char *why;
    int fd;

    if (members != NULL) {
        set->members = members;
        m = &members[set->n++];
        *m = (file_set_member){.name = join(stem, stem_bytes, ending)};
        if (m->name != NULL)
            m->new_name = join(m->name, strlen(m->name), NEW_SUFFIX);
    }
    if (m == NULL || m->new_name == NULL) {
        message_errno("%s", message_name(stem));
        return -1;
    }

    if (!can_replace(m->name, inputs, n_inputs) ||
        !can_replace(m->new_name, inputs, n_inputs))
        return -1;
    fd = files_openat(AT_FDCWD, m->new_name,
                      O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
    why = strerror(errno);
    if (fd < 0 || !take(set, fd, &why))
        message_error("%s: %s", message_name(m->new_name), why);
    else if (files_cut(fd, m->new_name, 0))
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* Whether another job is writing the file of this name, as with --state. */
static bool is_written(const char *name)
{
    const int fd = files_openat(AT_FDCWD, name, O_WRONLY | O_NONBLOCK);
    const bool locked = fd >= 0 && !files_lock(fd) && errno == EAGAIN;

    if (fd >= 0)
        (void)close(fd);
    return locked;
}

int file_set_open(file_set *set, const char *name, bool binary,
                  const char *const *inputs, int n_inputs)
{
    char place[FILES_MAX_NAME];
    struct stat st;
    int fd;

    if (files_is_standard(name) || files_is_special(name))
        return files_spare_inputs(name, inputs, n_inputs)
                   ? files_open_output(name, binary, -1)
                   : -1;
    if (!files_follow(name, place)) {
        message_errno("%s", message_name(name));
        return -1;
    }
    if (is_written(place)) {
        message_error("%s: another job is writing it", message_name(name));
        return -1;
    }
    fd = file_set_add(set, place, strlen(place), "", inputs, n_inputs);
    /* Where that is not allowed they are those of a new file. */
    if (fd >= 0 && stat(place, &st) == 0 &&
        fchmod(fd, st.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO)) != 0)
        errno = 0;
    return fd;
}

const char *file_set_name(const file_set *set)
{
    return set->members[set->n - 1].name;
}

bool file_set_publish(file_set *set)
{
    file_set_member *const m = set->members;

    for (size_t i = 0; i < set->n; i++)
        if (!has_name(&m[i])) {
            message_error("%s: another program changed or removed it",
                          message_name(m[i].new_name));
            return false;
        }
    for (size_t i = 1; i < set->n; i++)
        if (unlink(m[i].name) != 0 && errno != ENOENT) {
            message_errno("%s", message_name(m[i].name));
            return false;
        }
    for (size_t i = 0; i < set->n; i++)
        if (rename(m[i].new_name, m[i].name) != 0) {
            message_errno("%s", message_name(m[i].name));
            while (i-- > 0)
                (void)unlink(m[i].name);
            return false;
        }
    for (size_t i = 0; i < set->n; i++)
        m[i].created = false;
    return true;
}

bool file_set_enter_sandbox(const file_set *set, const char *const *inputs,
                            int n_inputs)
{
    int *folders = calloc(set->n + 1, sizeof *folders);
    int n = 0;
    bool entered = folders != NULL;

    if (!entered)
        message_errno("the sandbox");
    for (; entered && (size_t)n < set->n; n += entered) {
        folders[n] = files_open_folder(set->members[n].name);
        entered = folders[n] >= 0;
        if (!entered)
            message_errno("%s", message_name(set->members[n].name));
    }
    entered = entered && sandbox_enter(inputs, n_inputs, folders, n);
    while (n > 0)
        (void)close(folders[--n]);
    free(folders);
    return entered;
}

void file_set_free(file_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        if (set->members[i].created && has_name(&set->members[i]))
            (void)unlink(set->members[i].new_name);
        free(set->members[i].new_name);
        free(set->members[i].name);
    }
    free(set->members);
    *set = (file_set){0};
}
