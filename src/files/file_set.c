/*
 * file_set.c - files that become visible together or not at all.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/file_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "files/files.h"
#include "files/sandbox.h"

#define NEW_SUFFIX ".new"
#define OLD_SUFFIX ".new.old" /* for an existing file during publication */

/*
 * Checks that the name is unused or names a regular file.  A rename would
 * replace anything else, even a device.  On failure, prints a message.
 */
static int check_regular(const char *name)
{
    struct stat st;

    if (stat(name, &st) != 0 || S_ISREG(st.st_mode))
        return STATUS_OK;
    message_error("%s: exists and is not a regular file: choose another name",
                  message_name(name));
    return STATUS_FAILURE;
}

/* Checks that an output may have this name; otherwise prints a message. */
static int check_name(const char *name, const char *const *inputs,
                      int n_inputs)
{
    const int status = check_regular(name);

    return status == STATUS_OK ? files_check_inputs(name, inputs, n_inputs)
                               : status;
}

bool file_set_would_write(const char *name, const char *other)
{
    char path[FILES_MAX_NAME];
    char other_path[FILES_MAX_NAME];
    static const char *const endings[] = {"", NEW_SUFFIX, OLD_SUFFIX};

    /* Opening such a name will fail. */
    if (!files_follow(name, path) || !files_follow(other, other_path))
        return false;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char used[FILES_MAX_NAME];
        int n = snprintf(used, sizeof used, "%s%s", path, endings[i]);

        if (n >= 0 && (size_t)n < sizeof used &&
            files_are_one_name(used, other_path))
            return true;
    }
    return false;
}

int file_set_check_input(const char *name, const char *input)
{
    const int status = files_check_input(name, input);

    if (status != STATUS_OK || files_is_standard(name) ||
        files_is_special(name) || files_is_standard(input) ||
        !file_set_would_write(name, input))
        return status;
    message_error("%s: is also an input: choose another output",
                  message_name(input));
    return STATUS_FAILURE;
}

/* Checks that the name `aside` is unused; otherwise prints a message. */
static int check_aside(const file_set_member *m)
{
    struct stat st;

    if (lstat(m->aside, &st) != 0)
        return STATUS_OK;
    message_error("%s: exists already: rename or remove it (a killed job may "
                  "have moved an older output here)",
                  message_name(m->aside));
    return STATUS_FAILURE;
}

/*
 * Adds a member with its names.  Returns NULL if out of memory; file_set_free
 * then frees the incomplete member.
 */
static file_set_member *add_member(file_set *set, const char *stem,
                                   size_t stem_bytes, const char *ending)
{
    file_set_member *m =
        realloc(set->members, (set->n + 1) * sizeof *set->members);

    if (m == NULL)
        return NULL;
    set->members = m;
    m += set->n++;
    *m = (file_set_member){.name = files_join(stem, stem_bytes, ending)};
    if (m->name != NULL)
        m->new_name = files_join(m->name, strlen(m->name), NEW_SUFFIX);
    if (m->new_name != NULL)
        m->aside = files_join(m->name, strlen(m->name), OLD_SUFFIX);
    return m->aside != NULL ? m : NULL;
}

/* Creates the file of the last member.  Returns NULL, or why it failed. */
static const char *create(const file_set *set)
{
    file_set_member *m = &set->members[set->n - 1];
    temp_file file = {.folder = AT_FDCWD, .name = m->new_name};

    for (size_t i = 0; i + 1 < set->n; i++) {
        file.device = set->members[i].file.device;
        file.inode = set->members[i].file.inode;
        if (temp_file_has_name(&file))
            return "used for two outputs: give each its own name";
    }
    /* Always create a new file: an existing one may be open elsewhere. */
    switch (temp_file_create(&file)) {
    case TEMP_FILE_OK:
        m->file = file;
        return NULL;
    case TEMP_FILE_EXISTS:
    case TEMP_FILE_LOCKED:
        return "locked: another job is writing it";
    case TEMP_FILE_SPECIAL:
        return "exists and is not a regular file: choose another output name";
    case TEMP_FILE_LINKED:
        return "exists and has another hard link: remove it or choose another "
               "output name";
    default:
        return strerror(errno);
    }
}

int file_set_add(file_set *set, const char *stem, size_t stem_bytes,
                 const char *ending, const char *const *inputs, int n_inputs)
{
    file_set_member *m = add_member(set, stem, stem_bytes, ending);
    const char *why;
    int fd;

    if (m == NULL) {
        message_errno("%s", message_name(stem));
        return -1;
    }
    if (check_name(m->name, inputs, n_inputs) != STATUS_OK ||
        check_name(m->new_name, inputs, n_inputs) != STATUS_OK ||
        files_check_inputs(m->aside, inputs, n_inputs) != STATUS_OK)
        return -1;
    /* A single file needs no `aside`: the rename replaces the old file. */
    if ((set->n == 2 && check_aside(set->members) != STATUS_OK) ||
        (set->n >= 2 && check_aside(m) != STATUS_OK))
        return -1;
    why = create(set);
    if (why != NULL) {
        message_error("%s: %s", message_name(m->new_name), why);
        return -1;
    }
    /* The caller owns the descriptor. */
    fd = m->file.fd;
    m->file.fd = -1;
    return fd;
}

/* True if another job holds the lock on this file, as with --state. */
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
    char path[FILES_MAX_NAME];
    struct stat st;
    int fd;

    if (name != NULL && name[0] == '\0') {
        message_error("the name of an output is empty");
        return -1;
    }
    if (files_is_standard(name) || files_is_special(name))
        return files_check_inputs(name, inputs, n_inputs) == STATUS_OK
                   ? files_open_output(name, binary, -1)
                   : -1;
    if (!files_follow(name, path)) {
        message_errno("%s", message_name(name));
        return -1;
    }
    if (is_written(path)) {
        message_error("%s: locked: another job is writing it",
                      message_name(name));
        return -1;
    }
    fd = file_set_add(set, path, strlen(path), "", inputs, n_inputs);
    /* If fchmod fails, keep the permissions of a new file. */
    if (fd >= 0 && stat(path, &st) == 0)
        (void)fchmod(fd, st.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO));
    return fd;
}

const char *file_set_name(const file_set *set)
{
    return set->members[set->n - 1].name;
}

/*
 * Renames a file unless the new name exists.  On failure, returns false with
 * errno set.
 */
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
    /* No hard links on this file system, or not for this file. */
    if (lstat(to, &st) == 0) {
        errno = EEXIST;
        return false;
    }
    return rename(from, to) == 0;
}

/*
 * Moves an existing file aside.  On failure, prints a message and returns
 * false.
 */
static bool put_aside(file_set_member *m)
{
    struct stat st;

    /* A symbolic link stays until the rename replaces it. */
    if (lstat(m->name, &st) == 0 && S_ISLNK(st.st_mode))
        return true;
    if (check_aside(m) != STATUS_OK)
        return false;
    if (!move(m->name, m->aside)) {
        if (errno == ENOENT)
            return true;
        message_errno("%s", message_name(m->name));
        return false;
    }
    if (lstat(m->aside, &st) == 0 && S_ISREG(st.st_mode)) {
        m->older = (temp_file){.folder = AT_FDCWD,
                               .name = m->aside,
                               .fd = -1,
                               .device = st.st_dev,
                               .inode = st.st_ino};
        return true;
    }
    (void)move(m->aside, m->name);
    message_error("%s: changed by another program", message_name(m->name));
    return false;
}

/* Moves the old file back, unless its name is taken by now. */
static void bring_back(const file_set_member *m)
{
    if (!temp_file_has_name(&m->older) ||
        move(m->aside, m->name))
        return;
    message_errno("%s: cannot move the older output back from here",
                  message_name(m->aside));
}

/* Removes the old file.  Only warns on failure: the new files are complete. */
static void drop_older(const file_set_member *m)
{
    if (temp_file_has_name(&m->older) &&
        unlink(m->aside) != 0)
        message_warning("%s: cannot remove the older output: %s",
                        message_name(m->aside), strerror(errno));
}

/*
 * Renames a file to its final name.  On failure, prints a message and returns
 * false.
 */
static bool give_name(file_set_member *m)
{
    if (rename(m->new_name, m->name) != 0) {
        message_errno("%s", message_name(m->name));
        return false;
    }
    m->file.name = m->name;
    /* Another job may have replaced `new_name` just before the rename. */
    if (temp_file_has_name(&m->file))
        return true;
    m->file.name = NULL;
    message_error("%s: changed by another program", message_name(m->name));
    return false;
}

bool file_set_publish(file_set *set)
{
    file_set_member *const m = set->members;
    bool good = true;

    for (size_t i = 0; i < set->n; i++) {
        if (!temp_file_has_name(&m[i].file)) {
            message_error("%s: changed or removed by another program",
                          message_name(m[i].new_name));
            return false;
        }
        /* It may have been created since the file was added. */
        if (check_regular(m[i].name) != STATUS_OK)
            return false;
    }
    /* A single file is renamed over an existing one directly. */
    for (size_t i = 0; good && set->n > 1 && i < set->n; i++)
        good = put_aside(&m[i]);
    for (size_t i = 0; good && i < set->n; i++)
        good = give_name(&m[i]);

    /* Drop the old files if all renames succeeded; otherwise undo them. */
    for (size_t i = set->n; i-- > 0;) {
        if (!good && m[i].file.name == m[i].name)
            (void)temp_file_discard(&m[i].file);
        if (m[i].older.name != NULL && good)
            drop_older(&m[i]);
        else if (m[i].older.name != NULL)
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
        message_errno("cannot prepare the sandbox");
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
        file_set_member *m = &set->members[i];

        if (m->new_name != NULL && m->file.name == m->new_name)
            (void)temp_file_discard(&m->file);
        free(m->aside);
        free(m->new_name);
        free(m->name);
    }
    free(set->members);
    *set = (file_set){0};
}
