/*
 * state_file.c - the state file of a job.
 *
 * The state is replaced by way of a temporary file, so any other file with one
 * of the two names would be lost.  Existing files are compared by device and
 * inode.  Names that do not exist are compared by directory and name, after
 * links are resolved.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/state_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"

/* Maximum size of a suffix, in bytes, including the NUL. */
#define ENDING_MAX 16

const char *state_file_set_name(void *member, const char *value)
{
    *(const char **)member = value;
    return *value == '\0' ? "must be the name of a file" : NULL;
}

int state_file_check_options(const char *state, bool resume, uint64_t every,
                             const char *const *outputs, size_t n)
{
    if (state == NULL && (resume || every != 0))
        return message_usage("--resume and --state-every need --state=FILE");
    for (size_t i = 0; state != NULL && i < n; i++)
        if (!files_is_for_file(outputs[i]))
            return message_usage("--state needs a regular file as output, but "
                                 "%s is not a regular file: use -o FILE",
                                 files_output_name(outputs[i]));
    return STATUS_OK;
}

/*
 * True if `name` and `other` are the same file.  "-" as `other` means the
 * descriptor `standard`.
 */
static bool is_file(const char *name, const char *other, int standard)
{
    char path_a[FILES_MAX_NAME];
    char path_b[FILES_MAX_NAME];
    struct stat a;
    struct stat b;

    if (files_stat(other, standard, &b) && stat(name, &a) == 0 &&
        files_are_one(&a, &b))
        return true;
    /* A file that does not exist yet is compared by directory and name. */
    return !files_is_standard(other) && files_follow(name, path_a) &&
           files_follow(other, path_b) && files_are_one_name(path_a, path_b);
}

/* Checks that the job uses the file `name` only for its state. */
static int check_name(const state_file_options *o, const char *name)
{
    const char *what = NULL;

    for (size_t i = 0; i < sizeof o->uses / sizeof o->uses[0]; i++)
        for (int k = 0; k < o->uses[i].n; k++)
            if (is_file(name, o->uses[i].names[k], o->uses[i].standard))
                what = o->uses[i].what;
    if (what == NULL)
        return STATUS_OK;
    return message_usage("--state=%s: %s is also %s: choose another name",
                         message_name(o->name), message_name(name), what);
}

/* Like check_name, for the name `path` + `ending`. */
static int check_other(const state_file_options *o, const char *path,
                       const char *ending)
{
    char name[FILES_MAX_NAME + ENDING_MAX];

    (void)snprintf(name, sizeof name, "%s%s", path, ending);
    return check_name(o, name);
}

static bool ends_as_fresh(const char *name)
{
    const size_t suffix = sizeof ATOMIC_FILE_SUFFIX - 1;
    const size_t n = strlen(name);

    return n >= suffix && strcmp(name + n - suffix, ATOMIC_FILE_SUFFIX) == 0;
}

int state_file_check(const state_file_options *o)
{
    char path[FILES_MAX_NAME];
    int status;

    if (!files_follow(o->name, path)) {
        message_errno("%s", message_name(o->name));
        return STATUS_FAILURE;
    }
    /*
     * Another job whose state has this name without the suffix would remove the
     * file, because it looks like that job's temporary file.
     */
    if (ends_as_fresh(o->name) || ends_as_fresh(path))
        return message_usage("--state=%s: a name that ends in "
                             ATOMIC_FILE_SUFFIX
                             " is reserved for states being written: choose "
                             "another name",
                             message_name(o->name));
    status = check_name(o, o->name);
    if (status == STATUS_OK)
        status = check_other(o, path, ATOMIC_FILE_SUFFIX);
    for (size_t i = 0; status == STATUS_OK && i < 2; i++)
        if (o->beside[i] != NULL)
            status = check_other(o, path, o->beside[i]);
    return status;
}

int state_file_open(atomic_file *f, const state_file_options *o,
                    unsigned char **state, size_t *bytes)
{
    int status = state_file_check(o);

    if (status != STATUS_OK)
        return status;
    if (!atomic_file_open(f, o->name, o->magic))
        return STATUS_FAILURE;
    /* Now that the temporary file exists, links to it can be recognised. */
    status = state_file_check(o);
    if (status != STATUS_OK)
        return status;
    if (!atomic_file_read(f, o->max, state, bytes))
        return STATUS_FAILURE;
    if (*state == NULL || o->resume)
        return STATUS_OK;
    message_error("%s: exists already: use --resume to continue from it",
                  message_name(o->name));
    return STATUS_USAGE;
}

int state_file_check_new(const char *state, const char *output)
{
    struct stat st;

    if (files_is_standard(output) || stat(output, &st) != 0 ||
        !S_ISREG(st.st_mode) || st.st_size == 0)
        return STATUS_OK;
    message_error("%s: exists already, but its state %s does not: remove the "
                  "output to start again",
                  files_output_name(output), message_name(state));
    return STATUS_USAGE;
}

int state_file_compare(const char *name, const state_file_option *options,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const state_file_option *o = &options[i];
        const size_t n_words = sizeof o->words / sizeof o->words[0];
        const uint64_t values[2] = {o->then, o->now};
        char text[2][24];

        if (o->then == o->now)
            continue;
        for (size_t k = 0; k < 2; k++)
            if (values[k] < n_words && o->words[values[k]] != NULL)
                (void)snprintf(text[k], sizeof text[k], "%s",
                               o->words[values[k]]);
            else
                (void)snprintf(text[k], sizeof text[k], "%" PRIu64,
                               values[k]);
        message_error("%s: the state was saved with %s%s, not %s",
                      message_name(name), o->what, text[0], text[1]);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

int state_file_compare_shares(const char *name,
                              const state_file_shares *shares)
{
    uint64_t then = 0;
    uint64_t now = 0;

    for (uint32_t i = 0; i < shares->n; i++) {
        then += load_u64(shares->then + i * shares->stride);
        now += shares->now[i];
    }
    for (uint32_t i = 0; i < shares->n; i++) {
        const uint64_t share = load_u64(shares->then + i * shares->stride);

        if (share == shares->now[i])
            continue;
        message_error("%s: the state was saved with a %s of %" PRIu64
                      "/%" PRIu64 " for %s, not %" PRIu64 "/%" PRIu64,
                      message_name(name), shares->what, share, then,
                      shares->name_shown(shares->names[i]), shares->now[i],
                      now);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

int state_file_compare_schema(const char *name, uint64_t framed, uint64_t type,
                              const ps_schema *now)
{
    const state_file_option options[] = {
        {"records that are ", framed, now->framed, {"raw", "framed"}},
        {"tokens of type ", type - PS_U16, (uint64_t)now->token_type - PS_U16,
         {"u16", "u32"}},
    };

    return state_file_compare(name, options,
                              sizeof options / sizeof options[0]);
}

int state_file_damaged(const char *name)
{
    message_error("%s: the state is damaged: remove it and the output to start "
                  "again", message_name(name));
    return STATUS_DATA;
}
