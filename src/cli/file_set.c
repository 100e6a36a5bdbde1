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
#define OLD_SUFFIX ".new.old" /* of an older file, until all have their names */

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

/*
 * Whether there is anything but a regular file, after a message: a rename
 * would remove even a device.
 */
static bool is_in_the_way(const char *name)
{
    struct stat st;

    if (stat(name, &st) != 0 || S_ISREG(st.st_mode))
        return false;
    message_error("%s: is there and no regular file", message_name(name));
    return true;
}

/* Whether a file may get this name; else after a message. */
static bool can_replace(const char *name, const char *const *inputs,
                        int n_inputs)
{
    return !is_in_the_way(name) &&
           files_spare_inputs(name, inputs, n_inputs);
}

bool file_set_would_write(const char *name, const char *other)
{
    char place[FILES_MAX_NAME];
    char other_place[FILES_MAX_NAME];
    static const char *const endings[] = {"", NEW_SUFFIX, OLD_SUFFIX};

    /* Names that lead nowhere are refused when they are opened. */
    if (!files_follow(name, place) || !files_follow(other, other_place))
        return false;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char used[FILES_MAX_NAME];
        int n = snprintf(used, sizeof used, "%s%s", place, endings[i]);

        if (n >= 0 && (size_t)n < sizeof used &&
            files_are_one_name(used, other_place))
            return true;
    }
    return false;
}

bool file_set_spares(const char *name, const char *input)
{
    if (!files_spare_input(name, input))
        return false;
    if (files_is_standard(name) || files_is_special(name) ||
        files_is_standard(input) || !file_set_would_write(name, input))
        return true;
    message_error("%s: is an input as well", message_name(input));
    return false;
}

/* Whether this is the name of that file. */
static bool is_name_of(const char *name, dev_t device, ino_t inode)
{
    struct stat st;

    if (lstat(name, &st) != 0)
        return false;
    errno = EAGAIN;
    return st.st_dev == device && st.st_ino == inode;
}

/* Whether the file with the new name is still the one that was created. */
static bool has_name(const file_set_member *m)
{
    return is_name_of(m->new_name, m->device, m->inode);
}

/* Whether nothing has the name for an older file; else after a message. */
static bool can_put_aside(const file_set_member *m)
{
    struct stat st;

    if (lstat(m->aside, &st) != 0)
        return true;
    message_error("%s: exists: rename or remove it (a job that was killed "
                  "may have put an older output aside)",
                  message_name(m->aside));
    return false;
}

/* Whether another member is this file. */
static bool has_file(const file_set *set, const struct stat *st)
{
    for (size_t i = 0; i + 1 < set->n; i++)
        if (set->members[i].device == st->st_dev &&
            set->members[i].inode == st->st_ino)
            return true;
    return false;
}

/*
 * Removes what a job that was killed left under the new name.  False with a
 * reason: it may be a file of somebody else, or of another job or member.
 */
static bool remove_left_over(const file_set *set, const char *name,
                             const char **why)
{
    const int fd = files_openat(AT_FDCWD, name,
                                O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    bool removed = false;

    *why = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0) {
        if (!S_ISREG(st.st_mode))
            *why = "is there and no regular file";
        else if (has_file(set, &st))
            *why = "cannot take two streams";
        else if (st.st_nlink != 1)
            *why = "is there, and has another name as well";
        else if (!files_lock(fd))
            *why = errno == EAGAIN ? "another job is writing it" : NULL;
        else
            removed = unlink(name) == 0;
    }
    if (*why == NULL)
        *why = strerror(errno);
    if (fd >= 0)
        (void)close(fd);
    return removed;
}

int file_set_add(file_set *set, const char *stem, size_t stem_bytes,
                 const char *ending, const char *const *inputs, int n_inputs)
{
    const int how = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
    file_set_member *members =
        realloc(set->members, (set->n + 1) * sizeof *members);
    file_set_member *m = NULL;
    struct stat st;
    const char *why = NULL;
    int fd;

    if (members != NULL) {
        set->members = members;
        m = &members[set->n++];
        *m = (file_set_member){.name = join(stem, stem_bytes, ending)};
        if (m->name != NULL)
            m->new_name = join(m->name, strlen(m->name), NEW_SUFFIX);
        if (m->new_name != NULL)
            m->aside = join(m->name, strlen(m->name), OLD_SUFFIX);
    }
    if (m == NULL || m->aside == NULL) {
        message_errno("%s", message_name(stem));
        return -1;
    }
    if (!can_replace(m->name, inputs, n_inputs) ||
        !can_replace(m->new_name, inputs, n_inputs) ||
        !files_spare_inputs(m->aside, inputs, n_inputs))
        return -1;
    /* The file of a single member takes the place of an older one at once. */
    if ((set->n == 2 && !can_put_aside(members)) ||
        (set->n >= 2 && !can_put_aside(m)))
        return -1;

    /* Always a new file: one that is there may be open elsewhere. */
    fd = files_openat(AT_FDCWD, m->new_name, how);
    if (fd < 0 && errno == EEXIST && remove_left_over(set, m->new_name, &why))
        fd = files_openat(AT_FDCWD, m->new_name, how);
    if (fd < 0 && why == NULL)
        why = strerror(errno);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        m->device = st.st_dev;
        m->inode = st.st_ino;
        errno = EAGAIN;
        m->created = files_lock(fd) && has_name(m);
    }
    if (fd >= 0 && m->created)
        return fd;
    if (fd >= 0) {
        why = errno == EAGAIN ? "another job is writing it" : strerror(errno);
        (void)close(fd);
    }
    message_error("%s: %s", message_name(m->new_name), why);
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

    if (name != NULL && name[0] == '\0') {
        message_error("the name of an output is empty");
        return -1;
    }
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

/* Gives a file another name, unless something has that.  False with errno. */
static bool move(const char *from, const char *to)
{
    struct stat st;

    if (link(from, to) == 0) {
        const bool moved = unlink(from) == 0;
        const int why = errno;

        if (!moved)
            (void)unlink(to);
        errno = why;
        return moved;
    }
    if (errno == EEXIST || errno == ENOENT)
        return false;
    /* Not all file systems have links, nor may all files have two names. */
    if (lstat(to, &st) == 0) {
        errno = EEXIST;
        return false;
    }
    return rename(from, to) == 0;
}

/* Puts an older file aside, if there is one.  False after a message. */
static bool put_aside(file_set_member *m)
{
    struct stat st;

    /* A link stays until another file gets its name. */
    if (lstat(m->name, &st) == 0 && S_ISLNK(st.st_mode))
        return true;
    if (!can_put_aside(m))
        return false;
    if (!move(m->name, m->aside)) {
        if (errno == ENOENT)
            return true;
        message_errno("%s", message_name(m->name));
        return false;
    }
    if (lstat(m->aside, &st) == 0 && S_ISREG(st.st_mode)) {
        m->has_older = true;
        m->older_device = st.st_dev;
        m->older_inode = st.st_ino;
        return true;
    }
    (void)move(m->aside, m->name);
    message_error("%s: another program changed it", message_name(m->name));
    return false;
}

/* Gives the older file its name again, as far as no other has that now. */
static void bring_back(const file_set_member *m)
{
    if (!is_name_of(m->aside, m->older_device, m->older_inode) ||
        move(m->aside, m->name))
        return;
    message_errno("%s: the older output stays there", message_name(m->aside));
}

/* Removes the older file; the new ones are whole if that fails. */
static void drop_older(const file_set_member *m)
{
    if (is_name_of(m->aside, m->older_device, m->older_inode) &&
        unlink(m->aside) != 0)
        message_warning("%s: the older output cannot be removed: %s",
                        message_name(m->aside), strerror(errno));
}

/* Gives a file its name; false after a message. */
static bool give_name(file_set_member *m)
{
    if (rename(m->new_name, m->name) != 0) {
        message_errno("%s", message_name(m->name));
        return false;
    }
    m->created = false;
    /* Another job may have put its own file there just now. */
    m->named = is_name_of(m->name, m->device, m->inode);
    if (!m->named)
        message_error("%s: another program changed it",
                      message_name(m->name));
    return m->named;
}

bool file_set_publish(file_set *set)
{
    file_set_member *const m = set->members;
    bool good = true;

    for (size_t i = 0; i < set->n; i++) {
        if (!has_name(&m[i])) {
            message_error("%s: another program changed or removed it",
                          message_name(m[i].new_name));
            return false;
        }
        /* It may have come there since the file was added. */
        if (is_in_the_way(m[i].name))
            return false;
    }
    /* A single one takes the place of an older one at once. */
    for (size_t i = 0; good && set->n > 1 && i < set->n; i++)
        good = put_aside(&m[i]);
    for (size_t i = 0; good && i < set->n; i++)
        good = give_name(&m[i]);

    /* All of them have their names, or the older ones have them again. */
    for (size_t i = set->n; i-- > 0;) {
        if (!good && m[i].named &&
            is_name_of(m[i].name, m[i].device, m[i].inode))
            (void)unlink(m[i].name);
        if (m[i].has_older && good)
            drop_older(&m[i]);
        else if (m[i].has_older)
            bring_back(&m[i]);
    }
    return good;
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
        free(set->members[i].aside);
        free(set->members[i].new_name);
        free(set->members[i].name);
    }
    free(set->members);
    *set = (file_set){0};
}
